//! The flags that describe one OpenID issuer, spelled as upstream spells them.

use std::path::PathBuf;

use clap::Args;

/// The flags by the names that the command line's library knows.
pub(crate) const FLAGS: [&str; 9] = [
    "oidc_issuer_url",
    "oidc_client_id",
    "oidc_ca_file",
    "oidc_username_claim",
    "oidc_username_prefix",
    "oidc_groups_claim",
    "oidc_groups_prefix",
    "oidc_signing_algs",
    "oidc_required_claim",
];

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Oidc {
    /// An OpenID issuer whose tokens are trusted: an https URL.
    ///
    /// It needs --oidc-client-id. Several issuers, and rules for their claims, can be named with
    /// --authentication-config.
    #[arg(long, env = "WINDLASS_OIDC_ISSUER_URL", value_name = "URL")]
    pub oidc_issuer_url: Option<String>,
    /// Whom the tokens of --oidc-issuer-url have to be meant for.
    #[arg(long, env = "WINDLASS_OIDC_CLIENT_ID", value_name = "ID")]
    pub oidc_client_id: Option<String>,
    /// Who signs the certificate of --oidc-issuer-url.
    ///
    /// PEM; the authorities of the system unless given.
    #[arg(long, env = "WINDLASS_OIDC_CA_FILE", value_name = "FILE")]
    pub oidc_ca_file: Option<PathBuf>,
    /// The claim that names the user: sub unless given.
    #[arg(long, env = "WINDLASS_OIDC_USERNAME_CLAIM", value_name = "CLAIM")]
    pub oidc_username_claim: Option<String>,
    /// What stands before the name of a user.
    ///
    /// Unless given it is the URL of the issuer and a #, but nothing for the claim email. A - is
    /// for nothing.
    #[arg(
        long,
        env = "WINDLASS_OIDC_USERNAME_PREFIX",
        value_name = "PREFIX",
        allow_hyphen_values = true
    )]
    pub oidc_username_prefix: Option<String>,
    /// The claim that names the groups of a user: a text or a list of texts.
    #[arg(long, env = "WINDLASS_OIDC_GROUPS_CLAIM", value_name = "CLAIM")]
    pub oidc_groups_claim: Option<String>,
    /// What stands before the name of a group.
    #[arg(long, env = "WINDLASS_OIDC_GROUPS_PREFIX", value_name = "PREFIX")]
    pub oidc_groups_prefix: Option<String>,
    /// The algorithms that may have signed a token: RS256 unless given.
    ///
    /// Some of RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384 and PS512.
    #[arg(
        long,
        env = "WINDLASS_OIDC_SIGNING_ALGS",
        value_delimiter = ',',
        value_name = "LIST"
    )]
    pub oidc_signing_algs: Vec<String>,
    /// A claim that a token must have, and its value; may be repeated.
    #[arg(long, env = "WINDLASS_OIDC_REQUIRED_CLAIM", value_parser = claim,
          value_name = "CLAIM=VALUE")]
    pub oidc_required_claim: Vec<(String, String)>,
}

impl Oidc {
    /// Whether any of the flags is given.
    pub(crate) fn is_given(&self) -> bool {
        let texts = [
            &self.oidc_issuer_url,
            &self.oidc_client_id,
            &self.oidc_username_claim,
            &self.oidc_username_prefix,
            &self.oidc_groups_claim,
            &self.oidc_groups_prefix,
        ];
        texts.iter().any(|text| text.is_some())
            || self.oidc_ca_file.is_some()
            || !self.oidc_signing_algs.is_empty()
            || !self.oidc_required_claim.is_empty()
    }
}

fn claim(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((claim, value)) => Ok((claim.to_owned(), value.to_owned())),
        None => Err("a claim and its value are written CLAIM=VALUE".to_owned()),
    }
}
