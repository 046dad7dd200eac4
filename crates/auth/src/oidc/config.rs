//! The file of `--authentication-config`: which issuers are trusted, and how claims become users.
//!
//! Contract: `apiserver/pkg/apis/apiserver` and its validation. Rules in CEL are not read yet; a
//! file that has some is refused, since ignoring a rule would let in whom it keeps out.

use std::fmt;

use object::{Map, Text, Value, yaml};

/// What a configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthenticationConfig {
    /// The issuers.
    pub issuers: Vec<IssuerConfig>,
    /// Who may come in without credentials, if it says so.
    pub anonymous: Option<AnonymousConfig>,
}

/// Who may come in without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnonymousConfig {
    /// Whether anybody may.
    pub enabled: bool,
    /// To these paths alone; empty for all.
    pub paths: Vec<String>,
}

/// An issuer and what its tokens mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerConfig {
    /// The issuer as its tokens name it.
    pub url: String,
    /// Where it tells about itself.
    pub discovery_url: String,
    /// Who signs its certificate, as PEM; the authorities of the system if empty.
    pub authority: String,
    /// A token has to be meant for one of these.
    pub audiences: Vec<Text>,
    pub(super) username: Prefixed,
    pub(super) groups: Option<Prefixed>,
    pub(super) uid: Option<Mapping>,
    pub(super) required_claims: Vec<(String, String)>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mapping {
    Claim(String),
}

/// A value with something in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Prefixed {
    pub from: Mapping,
    pub prefix: String,
}

/// What is wrong with a configuration, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {detail}")]
pub struct ConfigError {
    place: String,
    detail: String,
}

impl AuthenticationConfig {
    /// Reads a configuration in YAML or JSON. `own_issuers` sign the tokens of service accounts,
    /// so nobody else may.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read(text: &[u8], own_issuers: &[String]) -> Result<AuthenticationConfig, ConfigError> {
        let root = Node {
            value: None,
            place: String::new(),
        };
        let document = yaml::parse(text).map_err(|error| root.wrong(error.to_string()))?;
        let root = Node {
            value: Some(&document),
            place: String::new(),
        };
        root.only(&["apiVersion", "kind", "jwt", "anonymous"])?;
        let versions = ["v1", "v1beta1", "v1alpha1"];
        let versions = versions.map(|version| format!("apiserver.config.k8s.io/{version}"));
        if !versions.contains(&root.at("apiVersion").text()?) {
            let known = format!("must be {}", versions.join(" or "));
            return Err(root.at("apiVersion").wrong(known));
        }
        if root.at("kind").text()? != "AuthenticationConfiguration" {
            let known = "must be AuthenticationConfiguration".to_owned();
            return Err(root.at("kind").wrong(known));
        }
        let mut issuers: Vec<IssuerConfig> = Vec::new();
        for node in root.at("jwt").items()? {
            let issuer = issuer(&node, own_issuers)?;
            if issuers.iter().any(|other| other.url == issuer.url) {
                let detail = format!("Duplicate value: \"{}\"", issuer.url);
                return Err(node.at("issuer").at("url").wrong(detail));
            }
            issuers.push(issuer);
        }
        let anonymous = anonymous(&root.at("anonymous"))?;
        Ok(AuthenticationConfig { issuers, anonymous })
    }
}

fn anonymous(node: &Node<'_>) -> Result<Option<AnonymousConfig>, ConfigError> {
    if node.is_absent() {
        return Ok(None);
    }
    node.only(&["enabled", "conditions"])?;
    let enabled = node.at("enabled").value.and_then(Value::as_bool);
    let enabled = enabled.ok_or_else(|| node.at("enabled").wrong("must be true or false"))?;
    let mut paths = Vec::new();
    for condition in node.at("conditions").items()? {
        condition.only(&["path"])?;
        paths.push(condition.at("path").required()?);
    }
    if !enabled && !paths.is_empty() {
        let text = "enabled should be set to true when conditions are defined";
        return Err(node.at("conditions").wrong(text));
    }
    Ok(Some(AnonymousConfig { enabled, paths }))
}

fn issuer(node: &Node<'_>, own_issuers: &[String]) -> Result<IssuerConfig, ConfigError> {
    node.only(&[
        "issuer",
        "claimValidationRules",
        "claimMappings",
        "userValidationRules",
    ])?;
    let about = node.at("issuer");
    about.only(&[
        "url",
        "discoveryURL",
        "certificateAuthority",
        "audiences",
        "audienceMatchPolicy",
        "egressSelectorType",
    ])?;
    let url = check_url(&about.at("url"), own_issuers)?;
    let discovery_url = match about.at("discoveryURL") {
        node if node.is_absent() => {
            format!(
                "{}/.well-known/openid-configuration",
                url.trim_end_matches('/')
            )
        }
        node => check_url(&node, &[])?,
    };
    let mappings = node.at("claimMappings");
    mappings.only(&["username", "groups", "uid", "extra"])?;
    if let Some(extra) = mappings.at("extra").items()?.first() {
        return Err(extra.at("valueExpression").no_expressions());
    }
    if let Some(rule) = node.at("userValidationRules").items()?.first() {
        return Err(rule.at("expression").no_expressions());
    }
    let username = prefixed(&mappings.at("username"))?.ok_or_else(|| {
        mappings
            .at("username")
            .wrong("claim or expression is required")
    })?;
    Ok(IssuerConfig {
        url,
        discovery_url,
        authority: about.at("certificateAuthority").text()?,
        audiences: audiences(&about)?,
        username,
        groups: prefixed(&mappings.at("groups"))?,
        uid: mapping(&mappings.at("uid"), &["claim", "expression"])?,
        required_claims: required_claims(&node.at("claimValidationRules"))?,
    })
}

fn check_url(node: &Node<'_>, own_issuers: &[String]) -> Result<String, ConfigError> {
    let url = node.required()?;
    if own_issuers.contains(&url) {
        let own = own_issuers.join(" ");
        return Err(node.wrong(format!(
            "URL must not overlap with disallowed issuers: [{own}]"
        )));
    }
    let Some(rest) = url.strip_prefix("https://") else {
        return Err(node.wrong("URL scheme must be https"));
    };
    let host = rest.split('/').next().unwrap_or_default();
    let problem = if host.contains('@') {
        "URL must not contain a username or password"
    } else if rest.contains('?') {
        "URL must not contain a query"
    } else if rest.contains('#') {
        "URL must not contain a fragment"
    } else if host.is_empty() {
        "URL must name a host"
    } else {
        return Ok(url);
    };
    Err(node.wrong(problem))
}

fn audiences(about: &Node<'_>) -> Result<Vec<Text>, ConfigError> {
    let node = about.at("audiences");
    let mut audiences: Vec<Text> = Vec::new();
    for item in node.items()? {
        let audience = Text::from(item.required()?);
        if audiences.contains(&audience) {
            return Err(item.wrong(format!("Duplicate value: \"{audience}\"")));
        }
        audiences.push(audience);
    }
    if audiences.is_empty() {
        return Err(node.wrong("at least one audience is required"));
    }
    let policy = about.at("audienceMatchPolicy");
    match (policy.text()?.as_str(), audiences.len()) {
        ("MatchAny", _) | ("", 1) => Ok(audiences),
        ("", _) => Err(policy.wrong("audienceMatchPolicy must be MatchAny for multiple audiences")),
        _ => Err(policy.wrong("audienceMatchPolicy must be empty or MatchAny for single audience")),
    }
}

fn required_claims(node: &Node<'_>) -> Result<Vec<(String, String)>, ConfigError> {
    let mut claims: Vec<(String, String)> = Vec::new();
    for rule in node.items()? {
        rule.only(&["claim", "requiredValue", "expression", "message"])?;
        if !rule.at("expression").is_absent() {
            return Err(rule.at("expression").no_expressions());
        }
        let claim = rule.at("claim").text()?;
        if claim.is_empty() {
            return Err(rule.wrong("claim or expression is required"));
        }
        if !rule.at("message").is_absent() {
            let text = "may not be specified when claim is set";
            return Err(rule.at("message").wrong(text));
        }
        if claims.iter().any(|(other, _)| *other == claim) {
            let detail = format!("Duplicate value: \"{claim}\"");
            return Err(rule.at("claim").wrong(detail));
        }
        claims.push((claim, rule.at("requiredValue").text()?));
    }
    Ok(claims)
}

fn prefixed(node: &Node<'_>) -> Result<Option<Prefixed>, ConfigError> {
    let Some(from) = mapping(node, &["claim", "prefix", "expression"])? else {
        return Ok(None);
    };
    let prefix = node.at("prefix");
    if prefix.is_absent() {
        let text = "prefix is required when claim is set. It can be set to an empty string to \
                    disable prefixing";
        return Err(prefix.wrong(text));
    }
    let prefix = prefix.text()?;
    Ok(Some(Prefixed { from, prefix }))
}

fn mapping(node: &Node<'_>, fields: &[&str]) -> Result<Option<Mapping>, ConfigError> {
    if node.is_absent() {
        return Ok(None);
    }
    node.only(fields)?;
    if !node.at("expression").is_absent() {
        return Err(node.at("expression").no_expressions());
    }
    match node.at("claim").text()? {
        claim if claim.is_empty() => Ok(None),
        claim => Ok(Some(Mapping::Claim(claim))),
    }
}

/// A place in the document and what is there.
struct Node<'a> {
    value: Option<&'a Value>,
    place: String,
}

impl<'a> Node<'a> {
    fn at(&self, field: &str) -> Node<'a> {
        let dot = if self.place.is_empty() { "" } else { "." };
        let value = self.value.and_then(|value| value.get(field));
        Node {
            value: value.filter(|value| !value.is_null()),
            place: format!("{}{dot}{field}", self.place),
        }
    }

    fn is_absent(&self) -> bool {
        self.value.is_none()
    }

    /// A string; empty if there is none.
    fn text(&self) -> Result<String, ConfigError> {
        match self.value {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.to_string()),
            Some(_) => Err(self.wrong("must be a string")),
        }
    }

    fn required(&self) -> Result<String, ConfigError> {
        match self.text()? {
            text if text.is_empty() => Err(self.wrong("Required value")),
            text => Ok(text),
        }
    }

    fn items(&self) -> Result<Vec<Node<'a>>, ConfigError> {
        match self.value {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items
                .iter()
                .enumerate()
                .map(|(at, value)| Node {
                    value: Some(value),
                    place: format!("{}[{at}]", self.place),
                })
                .collect()),
            Some(_) => Err(self.wrong("must be a list")),
        }
    }

    /// Refuses fields that nobody reads: a misspelt rule would not be one.
    fn only(&self, fields: &[&str]) -> Result<(), ConfigError> {
        let empty = Map::new();
        let map = match self.value {
            None => &empty,
            Some(Value::Object(map)) => map,
            Some(_) => return Err(self.wrong("must be a map")),
        };
        match map.keys().find(|key| !fields.contains(&key.as_str())) {
            Some(unknown) => Err(self.at(unknown).wrong("unknown field")),
            None => Ok(()),
        }
    }

    fn wrong(&self, detail: impl fmt::Display) -> ConfigError {
        let place = match self.place.as_str() {
            "" => "the configuration".to_owned(),
            place => place.to_owned(),
        };
        let detail = detail.to_string();
        ConfigError { place, detail }
    }

    fn no_expressions(&self) -> ConfigError {
        self.wrong("expressions are not supported yet; map and require claims by name")
    }
}
