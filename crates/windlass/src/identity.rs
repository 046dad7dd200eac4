//! From flags to who may come in and what they may do.

mod reload;

use std::path::Path;
use std::sync::Arc;

use auth::authorizers::{AuthorizationConfig, AuthorizerConfig, Conditions};
use auth::oidc::{AuthenticationConfig, OidcFlags, OidcTokens};
use auth::webhook::{Remembered, ReviewVersion, Verdicts, WebhookAuthorizer, WebhookTokens};
use auth::{
    Anonymous, Authenticator, Decision, Issuer, IssuerOptions, PublicKey, SigningKey, StaticTokens,
    Trust, read_token_file,
};
use object::Text;
use resources::Resources;
use resources::accounts::{AccountTokens, BootstrapTokens};
use resources::authorization::{Mode, node_mode};
use server::{ClientCertificates, FrontProxy, HttpsClient, OutsideOptions};

use crate::arguments::identity::{self, Identity};
use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::outside;
use crate::serving::{Authorities, Serving};

pub(crate) use reload::Files;

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
    let admin = [(credentials.token.clone(), Credentials::admin())];
    let mut known = Authenticator::new(audiences.clone(), Anonymous::Refused)
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
    let trust = known.trust();
    set_trust(flags, authentication_config(flags)?, &audiences, &trust)?;
    known = known.with_tokens(trust);
    if let Some(path) = &flags.authentication_token_webhook_config_file {
        let (url, client) = outside::webhook(path, None)?;
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

/// Trusts the issuers of a configuration, and nobody else.
fn set_trust(
    flags: &Identity,
    config: AuthenticationConfig,
    audiences: &[Text],
    trust: &Trust,
) -> Result<(), Failure> {
    let anonymous = anonymous(flags, &config)?;
    let mut issuers = Vec::new();
    for trusted in config.issuers {
        let client = HttpsClient::new(OutsideOptions {
            authority: trusted.authority.clone().into_bytes(),
            ..OutsideOptions::default()
        });
        let client = client.map_err(|error| {
            Failure::Refused(format!("cannot trust the issuer {}: {error}", trusted.url))
        })?;
        issuers.push(OidcTokens::new(
            trusted,
            Box::new(client),
            audiences.to_vec(),
        ));
    }
    trust.replace(anonymous, issuers);
    Ok(())
}

fn authentication_config(flags: &Identity) -> Result<AuthenticationConfig, Failure> {
    match &flags.authentication_config {
        Some(path) => {
            let text = std::fs::read(path).map_err(|error| given(path, error))?;
            read_authentication(flags, path, &text)
        }
        None if flags.oidc.is_given() => flags_of_issuer(flags),
        None => Ok(AuthenticationConfig::default()),
    }
}

fn read_authentication(
    flags: &Identity,
    path: &Path,
    text: &[u8],
) -> Result<AuthenticationConfig, Failure> {
    AuthenticationConfig::read(text, &flags.service_account_issuer)
        .map_err(|error| given(path, error))
}

/// The issuer that the `--oidc-*` flags describe.
fn flags_of_issuer(flags: &Identity) -> Result<AuthenticationConfig, Failure> {
    let oidc = &flags.oidc;
    let text = |given: &Option<String>| given.clone().unwrap_or_default();
    let (issuer_url, client_id) = (text(&oidc.oidc_issuer_url), text(&oidc.oidc_client_id));
    if issuer_url.is_empty() || client_id.is_empty() {
        let text = "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* \
                    flags are set";
        return Err(Failure::Refused(text.to_owned()));
    }
    let authority = match &oidc.oidc_ca_file {
        Some(path) => std::fs::read_to_string(path).map_err(|error| given(path, error))?,
        None => String::new(),
    };
    let mut signing_algorithms = oidc.oidc_signing_algs.clone();
    if signing_algorithms.is_empty() {
        signing_algorithms.push("RS256".to_owned());
    }
    let username_claim = oidc.oidc_username_claim.clone();
    let described = OidcFlags {
        issuer_url,
        client_id,
        authority,
        username_claim: username_claim.unwrap_or_else(|| "sub".to_owned()),
        username_prefix: text(&oidc.oidc_username_prefix),
        groups_claim: text(&oidc.oidc_groups_claim),
        groups_prefix: text(&oidc.oidc_groups_prefix),
        signing_algorithms,
        required_claims: oidc.oidc_required_claim.clone(),
    };
    AuthenticationConfig::of_flags(&described, &flags.service_account_issuer)
        .map_err(|error| Failure::Refused(format!("the --oidc-* flags: {error}")))
}

fn anonymous(flags: &Identity, config: &AuthenticationConfig) -> Result<Anonymous, Failure> {
    Ok(match (&config.anonymous, flags.anonymous_auth) {
        (Some(_), Some(_)) => {
            let text = "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous \
                        field is configured in authentication configuration file";
            return Err(Failure::Refused(text.to_owned()));
        }
        (Some(said), None) if !said.enabled => Anonymous::Refused,
        (Some(said), None) if !said.paths.is_empty() => Anonymous::To(said.paths.clone()),
        (None, Some(false)) => Anonymous::Refused,
        _ => Anonymous::Allowed,
    })
}

/// Who decides what users may do.
pub(crate) fn modes(flags: &Identity, resources: &Resources) -> Result<Vec<Mode>, Failure> {
    if let Some(path) = &flags.authorization_config {
        let text = std::fs::read(path).map_err(|error| given(path, error))?;
        return read_authorization(path, &text, resources);
    }
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

fn read_authorization(
    path: &Path,
    text: &[u8],
    resources: &Resources,
) -> Result<Vec<Mode>, Failure> {
    let config = AuthorizationConfig::read(text).map_err(|error| given(path, error))?;
    let mut modes = Vec::new();
    for authorizer in config.authorizers {
        modes.push(match authorizer {
            AuthorizerConfig::AlwaysAllow => Mode::AlwaysAllow,
            AuthorizerConfig::AlwaysDeny => Mode::AlwaysDeny,
            AuthorizerConfig::Node => node_mode(resources),
            AuthorizerConfig::Rbac => Mode::Rbac,
            AuthorizerConfig::Webhook(config) => {
                let kubeconfig = Path::new(&config.kubeconfig);
                let (url, client) = outside::webhook(kubeconfig, Some(config.timeout))?;
                let resources = resources.clone();
                Mode::Asked(Arc::new(WebhookAuthorizer {
                    outside: Box::new(client),
                    url,
                    version: config.version,
                    allowed_seconds: config.allowed_seconds,
                    denied_seconds: config.denied_seconds,
                    on_failure: config.on_failure,
                    conditions: config.conditions,
                    now: Arc::new(move || resources.now()),
                    verdicts: Verdicts::default(),
                }))
            }
        });
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
    let (url, client) = outside::webhook(path, None)?;
    let resources = resources.clone();
    Ok(WebhookAuthorizer {
        outside: Box::new(client),
        url,
        version: review_version(flags.authorization_webhook_version),
        allowed_seconds: seconds(flags.authorization_webhook_cache_authorized_ttl),
        denied_seconds: seconds(flags.authorization_webhook_cache_unauthorized_ttl),
        on_failure: Decision::Deny,
        conditions: Conditions::default(),
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
