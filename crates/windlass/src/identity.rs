//! From flags to who may come in and what they may do.

use std::path::Path;
use std::sync::Arc;

use auth::oidc::{AuthenticationConfig, OidcTokens};
use auth::webhook::{Remembered, ReviewVersion, Verdicts, WebhookAuthorizer, WebhookTokens};
use auth::{
    Anonymous, Authenticator, Issuer, IssuerOptions, PublicKey, SigningKey, StaticTokens,
    read_token_file,
};
use resources::Resources;
use resources::accounts::{AccountTokens, BootstrapTokens};
use resources::authorization::{Mode, node_mode};
use server::{ClientCertificates, FrontProxy, HttpsClient, OutsideOptions};

use crate::arguments::identity::{self, Identity};
use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::outside;
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
    let bytes = |path: &Path| std::fs::read(path).map_err(|error| given(path, error));
    let signing = match &flags.service_account_signing_key_file {
        Some(path) => SigningKey::from_pem(&bytes(path)?).map_err(|error| given(path, error))?,
        None => credentials.signing_key()?,
    };
    let mut keys = Vec::new();
    for path in &flags.service_account_key_file {
        let more = PublicKey::all_from_pem(&bytes(path)?);
        keys.extend(more.map_err(|error| given(path, error))?);
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
        lifetime_seconds_max: longest.map_or(0, seconds),
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
    let config = authentication_config(flags)?;
    let admin = [(credentials.token.clone(), Credentials::admin())];
    let mut known = Authenticator::new(audiences.clone(), anonymous(flags, &config))
        .with_tokens(StaticTokens::new(admin, &audiences));
    if let Some(path) = &flags.token_auth_file {
        let text = std::fs::read_to_string(path).map_err(|error| given(path, error))?;
        let tokens = read_token_file(&path.display().to_string(), &text);
        let tokens = tokens.map_err(|error| given(path, error))?;
        known = known.with_tokens(StaticTokens::new(tokens, &audiences));
    }
    known = known.with_tokens(AccountTokens::new(resources.clone(), Arc::clone(issuer)));
    if flags.enable_bootstrap_token_auth {
        let tokens = BootstrapTokens::new(resources.clone(), audiences.clone());
        known = known.with_tokens(tokens);
    }
    for trusted in config.issuers {
        let client = HttpsClient::new(OutsideOptions {
            authority: trusted.authority.clone().into_bytes(),
            ..OutsideOptions::default()
        });
        let client = client.map_err(|error| {
            Failure::Refused(format!("cannot trust the issuer {}: {error}", trusted.url))
        })?;
        let tokens = OidcTokens::new(trusted, Box::new(client), audiences.clone());
        known = known.with_tokens(tokens);
    }
    if let Some(path) = &flags.authentication_token_webhook_config_file {
        let (url, client) = outside::webhook(path)?;
        known = known.with_tokens(WebhookTokens {
            outside: Box::new(client),
            url,
            version: review_version(flags.authentication_token_webhook_version),
            audiences,
            remember_seconds: seconds(flags.authentication_token_webhook_cache_ttl),
            remembered: Remembered::default(),
        });
    }
    Ok(known)
}

fn authentication_config(flags: &Identity) -> Result<AuthenticationConfig, Failure> {
    let Some(path) = &flags.authentication_config else {
        return Ok(AuthenticationConfig::default());
    };
    let text = std::fs::read(path).map_err(|error| given(path, error))?;
    AuthenticationConfig::read(&text, &flags.service_account_issuer)
        .map_err(|error| given(path, error))
}

fn anonymous(flags: &Identity, config: &AuthenticationConfig) -> Anonymous {
    match &config.anonymous {
        Some(said) if !said.enabled => Anonymous::Refused,
        Some(said) if !said.paths.is_empty() => Anonymous::To(said.paths.clone()),
        None if !flags.anonymous_auth => Anonymous::Refused,
        _ => Anonymous::Allowed,
    }
}

/// Who decides what users may do.
pub(crate) fn modes(flags: &Identity, resources: &Resources) -> Result<Vec<Mode>, Failure> {
    let mut modes = Vec::new();
    for (place, mode) in flags.authorization_mode.iter().enumerate() {
        if flags.authorization_mode[..place].contains(mode) {
            let text = format!("--authorization-mode has {mode:?} more than once");
            return Err(Failure::Refused(text));
        }
        modes.push(match mode {
            identity::Mode::AlwaysAllow => Mode::AlwaysAllow,
            identity::Mode::AlwaysDeny => Mode::AlwaysDeny,
            identity::Mode::Node => node_mode(resources),
            identity::Mode::Rbac => Mode::Rbac,
            identity::Mode::Webhook => Mode::Asked(Arc::new(webhook_authorizer(flags, resources)?)),
        });
    }
    let webhook = flags.authorization_webhook_config_file.is_some();
    if webhook && !flags.authorization_mode.contains(&identity::Mode::Webhook) {
        let text = "--authorization-webhook-config-file needs Webhook in --authorization-mode";
        return Err(Failure::Refused(text.to_owned()));
    }
    Ok(modes)
}

fn webhook_authorizer(
    flags: &Identity,
    resources: &Resources,
) -> Result<WebhookAuthorizer, Failure> {
    let Some(path) = &flags.authorization_webhook_config_file else {
        let text = "the authorization mode Webhook needs --authorization-webhook-config-file";
        return Err(Failure::Refused(text.to_owned()));
    };
    let (url, client) = outside::webhook(path)?;
    let resources = resources.clone();
    Ok(WebhookAuthorizer {
        outside: Box::new(client),
        url,
        version: review_version(flags.authorization_webhook_version),
        allowed_seconds: seconds(flags.authorization_webhook_cache_authorized_ttl),
        denied_seconds: seconds(flags.authorization_webhook_cache_unauthorized_ttl),
        now: Arc::new(move || resources.now()),
        verdicts: Verdicts::default(),
    })
}

fn review_version(version: identity::Version) -> ReviewVersion {
    match version {
        identity::Version::V1 => ReviewVersion::V1,
        identity::Version::V1Beta1 => ReviewVersion::V1Beta1,
    }
}

fn seconds(duration: std::time::Duration) -> i64 {
    duration.as_secs().try_into().unwrap_or(i64::MAX)
}

fn given(path: &Path, detail: impl std::fmt::Display) -> Failure {
    Failure::Given {
        path: path.to_owned(),
        detail: detail.to_string(),
    }
}
