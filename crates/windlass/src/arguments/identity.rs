//! The flags that say who may come in and what they may do, spelled as upstream spells them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::duration;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Who may come in, and what they may do")]
pub(crate) struct Identity {
    /// The certificate to serve with.
    ///
    /// PEM, with whatever is needed up to an authority that clients trust. Read again when it
    /// changes. Without it a certificate is made, signed by the authority in the data directory,
    /// and renewed in time.
    #[arg(
        long,
        env = "WINDLASS_TLS_CERT_FILE",
        value_name = "FILE",
        requires = "tls_private_key_file"
    )]
    pub tls_cert_file: Option<PathBuf>,
    /// The key of --tls-cert-file.
    #[arg(
        long,
        env = "WINDLASS_TLS_PRIVATE_KEY_FILE",
        value_name = "FILE",
        requires = "tls_cert_file"
    )]
    pub tls_private_key_file: Option<PathBuf>,
    /// An authority whose client certificates count.
    ///
    /// PEM; read again when it changes. The authority in the data directory counts as well.
    #[arg(long, env = "WINDLASS_CLIENT_CA_FILE", value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// A file of bearer tokens: `token,user,uid,"group1,group2"` on each line.
    #[arg(long, env = "WINDLASS_TOKEN_AUTH_FILE", value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,
    /// Whether requests without credentials are let in, as system:anonymous.
    ///
    /// RBAC decides what they may do: little. A request with wrong credentials is always refused.
    /// Yes unless told otherwise, here or in --authentication-config.
    #[arg(long, env = "WINDLASS_ANONYMOUS_AUTH", value_name = "BOOL",
          action = clap::ArgAction::Set)]
    pub anonymous_auth: Option<bool>,
    /// Accept bootstrap tokens: Secrets of type bootstrap.kubernetes.io/token in kube-system.
    #[arg(long, env = "WINDLASS_ENABLE_BOOTSTRAP_TOKEN_AUTH", default_value_t = false,
          value_name = "BOOL", num_args = 0..=1, default_missing_value = "true",
          require_equals = true, action = clap::ArgAction::Set)]
    pub enable_bootstrap_token_auth: bool,
    /// The issuer of service account tokens; repeat it for issuers of old.
    ///
    /// The first signs, tokens of all of them are accepted.
    #[arg(
        long,
        env = "WINDLASS_SERVICE_ACCOUNT_ISSUER",
        value_name = "URL",
        default_value = "https://kubernetes.default.svc"
    )]
    pub service_account_issuer: Vec<String>,
    /// The private key that signs service account tokens.
    ///
    /// PEM: RSA, P-256 or P-384. Without it a key is made and kept in the data directory.
    #[arg(
        long,
        env = "WINDLASS_SERVICE_ACCOUNT_SIGNING_KEY_FILE",
        value_name = "FILE"
    )]
    pub service_account_signing_key_file: Option<PathBuf>,
    /// Keys, public or private, that verify service account tokens; may be repeated.
    ///
    /// The key that signs verifies too.
    #[arg(long, env = "WINDLASS_SERVICE_ACCOUNT_KEY_FILE", value_name = "FILE")]
    pub service_account_key_file: Vec<PathBuf>,
    /// The longest life of a service account token: 1h or more.
    #[arg(long, env = "WINDLASS_SERVICE_ACCOUNT_MAX_TOKEN_EXPIRATION", value_parser = duration,
          value_name = "DURATION")]
    pub service_account_max_token_expiration: Option<Duration>,
    /// Whom a token has to be meant for; the issuer unless given.
    #[arg(
        long,
        env = "WINDLASS_API_AUDIENCES",
        value_delimiter = ',',
        value_name = "LIST"
    )]
    pub api_audiences: Vec<String>,
    /// The authority of front proxies, which say in headers who is asking.
    #[arg(
        long,
        env = "WINDLASS_REQUESTHEADER_CLIENT_CA_FILE",
        value_name = "FILE"
    )]
    pub requestheader_client_ca_file: Option<PathBuf>,
    /// The common names that a front proxy's certificate may have; any unless given.
    #[arg(
        long,
        env = "WINDLASS_REQUESTHEADER_ALLOWED_NAMES",
        value_delimiter = ',',
        value_name = "LIST"
    )]
    pub requestheader_allowed_names: Vec<String>,
    /// Headers with the user's name.
    #[arg(
        long,
        env = "WINDLASS_REQUESTHEADER_USERNAME_HEADERS",
        value_delimiter = ',',
        default_value = "X-Remote-User",
        value_name = "LIST"
    )]
    pub requestheader_username_headers: Vec<String>,
    /// Headers with the user's id.
    #[arg(
        long,
        env = "WINDLASS_REQUESTHEADER_UID_HEADERS",
        value_delimiter = ',',
        value_name = "LIST"
    )]
    pub requestheader_uid_headers: Vec<String>,
    /// Headers with the user's groups.
    #[arg(
        long,
        env = "WINDLASS_REQUESTHEADER_GROUP_HEADERS",
        value_delimiter = ',',
        default_value = "X-Remote-Group",
        value_name = "LIST"
    )]
    pub requestheader_group_headers: Vec<String>,
    /// What headers with extra values begin with.
    #[arg(
        long,
        env = "WINDLASS_REQUESTHEADER_EXTRA_HEADERS_PREFIX",
        value_delimiter = ',',
        default_value = "X-Remote-Extra-",
        value_name = "LIST"
    )]
    pub requestheader_extra_headers_prefix: Vec<String>,
    /// Which OpenID issuers are trusted, and whether anonymous is.
    ///
    /// A file with an AuthenticationConfiguration of apiserver.config.k8s.io. Read again when it
    /// changes; if it is wrong then, what was there before goes on. The --oidc-* flags describe an
    /// issuer instead.
    #[arg(
        long,
        env = "WINDLASS_AUTHENTICATION_CONFIG",
        value_name = "FILE",
        conflicts_with_all = super::oidc::FLAGS
    )]
    pub authentication_config: Option<PathBuf>,
    #[command(flatten)]
    pub oidc: super::oidc::Oidc,
    /// A kubeconfig that names a server which knows tokens.
    #[arg(
        long,
        env = "WINDLASS_AUTHENTICATION_TOKEN_WEBHOOK_CONFIG_FILE",
        value_name = "FILE"
    )]
    pub authentication_token_webhook_config_file: Option<PathBuf>,
    /// The version of the TokenReview that is sent to it.
    #[arg(
        long,
        env = "WINDLASS_AUTHENTICATION_TOKEN_WEBHOOK_VERSION",
        default_value = "v1beta1",
        value_name = "VERSION"
    )]
    pub authentication_token_webhook_version: Version,
    /// How long what it says about a token counts.
    #[arg(long, env = "WINDLASS_AUTHENTICATION_TOKEN_WEBHOOK_CACHE_TTL", default_value = "2m",
          value_parser = duration, value_name = "DURATION")]
    pub authentication_token_webhook_cache_ttl: Duration,
    /// A kubeconfig that names a server which decides; for the mode Webhook.
    #[arg(
        long,
        env = "WINDLASS_AUTHORIZATION_WEBHOOK_CONFIG_FILE",
        value_name = "FILE"
    )]
    pub authorization_webhook_config_file: Option<PathBuf>,
    /// The version of the SubjectAccessReview that is sent to it.
    #[arg(
        long,
        env = "WINDLASS_AUTHORIZATION_WEBHOOK_VERSION",
        default_value = "v1beta1",
        value_name = "VERSION"
    )]
    pub authorization_webhook_version: Version,
    /// How long its permissions count.
    #[arg(long, env = "WINDLASS_AUTHORIZATION_WEBHOOK_CACHE_AUTHORIZED_TTL",
          default_value = "5m", value_parser = duration, value_name = "DURATION")]
    pub authorization_webhook_cache_authorized_ttl: Duration,
    /// How long its refusals count.
    #[arg(long, env = "WINDLASS_AUTHORIZATION_WEBHOOK_CACHE_UNAUTHORIZED_TTL",
          default_value = "30s", value_parser = duration, value_name = "DURATION")]
    pub authorization_webhook_cache_unauthorized_ttl: Duration,
    /// Who decides what users may do, with webhooks and the conditions under which they are asked.
    ///
    /// A file with an AuthorizationConfiguration of apiserver.config.k8s.io. Read again when it
    /// changes; if it is wrong then, what was there before goes on. It stands instead of
    /// --authorization-mode and the --authorization-webhook-* flags.
    #[arg(
        long,
        env = "WINDLASS_AUTHORIZATION_CONFIG",
        value_name = "FILE",
        conflicts_with_all = [
            "authorization_mode",
            "authorization_webhook_config_file",
            "authorization_webhook_version",
            "authorization_webhook_cache_authorized_ttl",
            "authorization_webhook_cache_unauthorized_ttl",
        ]
    )]
    pub authorization_config: Option<PathBuf>,
    /// Who decides what users may do, asked in this order.
    ///
    /// The first that allows or forbids counts. Members of system:masters may do everything.
    #[arg(
        long,
        env = "WINDLASS_AUTHORIZATION_MODE",
        value_delimiter = ',',
        default_value = "RBAC",
        value_name = "LIST"
    )]
    pub authorization_mode: Vec<Mode>,
}

/// A way to decide what users may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Everything is allowed.
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    /// Nothing is allowed.
    #[value(name = "AlwaysDeny")]
    AlwaysDeny,
    /// Nodes may read what their pods need.
    #[value(name = "Node")]
    Node,
    /// Roles and their bindings.
    #[value(name = "RBAC")]
    Rbac,
    /// The server of --authorization-webhook-config-file.
    #[value(name = "Webhook")]
    Webhook,
}

/// A version of what is sent to webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Version {
    /// The form of today.
    #[value(name = "v1")]
    V1,
    /// What upstream sends unless told otherwise.
    #[value(name = "v1beta1")]
    V1Beta1,
}
