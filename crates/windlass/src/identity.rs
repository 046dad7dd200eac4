//! From flags to who may come in and what they may do.

use std::path::Path;
use std::sync::Arc;

use auth::{
    Anonymous, Authenticator, Issuer, IssuerOptions, PublicKey, SigningKey, StaticTokens,
    read_token_file,
};
use resources::Resources;
use resources::accounts::{AccountTokens, BootstrapTokens};
use resources::authorization::Mode;
use server::{ClientCertificates, FrontProxy};

use crate::arguments::identity::{self, Identity};
use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::serving::{Authorities, Serving};

/// The certificates of a server and those it trusts.
pub(crate) struct Certificates {
    pub serving: Arc<Serving>,
    pub authorities: Authorities,
    pub clients: Arc<ClientCertificates>,
}

/// Reads or makes the certificates.
pub(crate) fn certificates(
    flags: &Identity,
    credentials: &Arc<Credentials>,
    address: std::net::SocketAddr,
) -> Result<Certificates, Failure> {
    let serving = match (&flags.tls_cert_file, &flags.tls_private_key_file) {
        (Some(certificate), Some(key)) => Serving::files(certificate, key)?,
        _ => Serving::made(Arc::clone(credentials), address)?,
    };
    let authorities = Authorities {
        own: credentials.authority().to_owned(),
        clients: flags.client_ca_file.clone(),
        proxies: flags.requestheader_client_ca_file.clone(),
    };
    let proxies = authorities.proxies()?;
    let proxy = proxies
        .as_deref()
        .map(|authority| (front_proxy(flags), authority));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = ClientCertificates::new(provider, &authorities.clients()?, proxy)
        .map_err(|error| Failure::Certificates(error.to_string()))?;
    Ok(Certificates {
        serving: Arc::new(serving),
        authorities,
        clients: Arc::new(clients),
    })
}

fn front_proxy(flags: &Identity) -> FrontProxy {
    FrontProxy {
        names: flags.requestheader_allowed_names.clone(),
        user_headers: flags.requestheader_username_headers.clone(),
        uid_headers: flags.requestheader_uid_headers.clone(),
        group_headers: flags.requestheader_group_headers.clone(),
        extra_prefixes: flags.requestheader_extra_headers_prefix.clone(),
    }
}

/// The signer of service accounts' tokens.
pub(crate) fn issuer(flags: &Identity, credentials: &Credentials) -> Result<Issuer, Failure> {
    let wrong = |path: &Path, detail: String| Failure::Given {
        path: path.to_owned(),
        detail,
    };
    let bytes = |path: &Path| std::fs::read(path).map_err(|it| wrong(path, it.to_string()));
    let signing = match &flags.service_account_signing_key_file {
        Some(path) => {
            SigningKey::from_pem(&bytes(path)?).map_err(|error| wrong(path, error.to_string()))?
        }
        None => credentials.signing_key()?,
    };
    let mut keys = Vec::new();
    for path in &flags.service_account_key_file {
        let more = PublicKey::all_from_pem(&bytes(path)?);
        keys.extend(more.map_err(|error| wrong(path, error.to_string()))?);
    }
    let longest = flags.service_account_max_token_expiration;
    if let Some(longest) = longest.filter(|longest| longest.as_secs() < 3600) {
        return Err(Failure::Refused(format!(
            "--service-account-max-token-expiration is {} seconds, it has to be at least an hour",
            longest.as_secs()
        )));
    }
    Ok(Issuer::new(IssuerOptions {
        signing,
        keys,
        issuers: flags.service_account_issuer.clone(),
        audiences: flags.api_audiences.iter().map(Into::into).collect(),
        lifetime_seconds_max: longest.map_or(0, |it| it.as_secs().try_into().unwrap_or(i64::MAX)),
    }))
}

/// Everyone who may come in.
pub(crate) fn authenticator(
    flags: &Identity,
    credentials: &Credentials,
    resources: &Resources,
    issuer: &Arc<Issuer>,
) -> Result<Authenticator, Failure> {
    let audiences = issuer.audiences().to_vec();
    let anonymous = if flags.anonymous_auth {
        Anonymous::Allowed
    } else {
        Anonymous::Refused
    };
    let admin = [(credentials.token.clone(), Credentials::admin())];
    let mut known = Authenticator::new(audiences.clone(), anonymous)
        .with_tokens(StaticTokens::new(admin, &audiences));
    if let Some(path) = &flags.token_auth_file {
        let wrong = |detail: String| Failure::Given {
            path: path.clone(),
            detail,
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let tokens = read_token_file(&path.display().to_string(), &text).map_err(wrong)?;
        known = known.with_tokens(StaticTokens::new(tokens, &audiences));
    }
    known = known.with_tokens(AccountTokens::new(resources.clone(), Arc::clone(issuer)));
    if flags.enable_bootstrap_token_auth {
        known = known.with_tokens(BootstrapTokens::new(resources.clone(), audiences));
    }
    Ok(known)
}

/// Who decides what users may do.
pub(crate) fn modes(flags: &Identity) -> Vec<Mode> {
    let mode = |mode: &identity::Mode| match mode {
        identity::Mode::AlwaysAllow => Mode::AlwaysAllow,
        identity::Mode::AlwaysDeny => Mode::AlwaysDeny,
        identity::Mode::Rbac => Mode::Rbac,
    };
    flags.authorization_mode.iter().map(mode).collect()
}
