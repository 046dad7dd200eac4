//! The file of `--authentication-config`: which issuers are trusted, and how claims become users.
//!
//! Contract: `apiserver/pkg/apis/apiserver` and its validation.

use object::field::{Path, summary};
use object::{Text, Value, names, value};

use crate::document::{self, ConfigError, Node};

use super::expressions::{Condition, Expression};

/// What a configuration says.
#[derive(Clone, Debug, Default)]
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
#[derive(Clone, Debug)]
pub struct IssuerConfig {
    /// The issuer as its tokens name it.
    pub url: String,
    /// Where it tells about itself.
    pub discovery_url: String,
    /// Who signs its certificate, as PEM; the authorities of the system if empty.
    pub authority: String,
    /// A token has to be meant for one of these.
    pub audiences: Vec<Text>,
    /// A token has to be signed with one of these; any that is known if empty.
    pub(super) algorithms: Vec<Text>,
    pub(super) username: Prefixed,
    pub(super) groups: Option<Prefixed>,
    pub(super) uid: Option<Mapping>,
    pub(super) extra: Vec<(String, Expression)>,
    pub(super) required_claims: Vec<(String, String)>,
    pub(super) claim_rules: Vec<Condition>,
    pub(super) user_rules: Vec<Condition>,
}

/// The algorithms that tokens may be signed with.
const ALGORITHMS: [&str; 9] = [
    "RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512",
];

/// An issuer as upstream's flags describe one.
#[derive(Clone, Debug, Default)]
pub struct OidcFlags {
    /// The issuer as its tokens name it.
    pub issuer_url: String,
    /// Whom tokens have to be meant for.
    pub client_id: String,
    /// Who signs its certificate, as PEM; the authorities of the system if empty.
    pub authority: String,
    /// The claim that names the user.
    pub username_claim: String,
    /// What stands before it: the issuer if this is empty, nothing if it is `-`.
    pub username_prefix: String,
    /// The claim that names the groups, or empty.
    pub groups_claim: String,
    /// What stands before them.
    pub groups_prefix: String,
    /// The algorithms that may have signed a token.
    pub signing_algorithms: Vec<String>,
    /// Claims and the values that they must have.
    pub required_claims: Vec<(String, String)>,
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub(super) enum Mapping {
    Claim(String),
    Expression(Expression),
}

/// A value with something in front.
#[derive(Clone, Debug)]
pub(super) struct Prefixed {
    pub from: Mapping,
    pub prefix: String,
}

impl AuthenticationConfig {
    /// Reads a configuration in YAML or JSON. `own_issuers` sign the tokens of service accounts,
    /// so nobody else may.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read(text: &[u8], own_issuers: &[String]) -> Result<AuthenticationConfig, ConfigError> {
        let document = document::read(text)?;
        let root = Node::root(&document);
        root.only(&["apiVersion", "kind", "jwt", "anonymous"])?;
        root.is_a("AuthenticationConfiguration")?;
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

    /// The configuration that flags describe.
    ///
    /// # Errors
    /// The first mistake, with the place that it would have in a file.
    pub fn of_flags(
        flags: &OidcFlags,
        own_issuers: &[String],
    ) -> Result<AuthenticationConfig, ConfigError> {
        let username = match flags.username_prefix.as_str() {
            // An address is its owner's wherever it comes from; other names are the issuer's.
            "" if flags.username_claim == "email" => String::new(),
            "" => format!("{}#", flags.issuer_url),
            "-" => String::new(),
            prefix => prefix.to_owned(),
        };
        let mut mappings = value!({
            "username": {"claim": (flags.username_claim.as_str()), "prefix": username},
        });
        if let (false, Some(mappings)) = (flags.groups_claim.is_empty(), mappings.as_object_mut()) {
            let prefix = flags.groups_prefix.as_str();
            let groups = value!({"claim": (flags.groups_claim.as_str()), "prefix": prefix});
            mappings.insert("groups", groups);
        }
        let rules = flags.required_claims.iter().map(|(claim, required)| {
            value!({"claim": (claim.as_str()), "requiredValue": (required.as_str())})
        });
        let document = value!({
            "issuer": {
                "url": (flags.issuer_url.as_str()),
                "audiences": [(flags.client_id.as_str())],
                "certificateAuthority": (flags.authority.as_str()),
            },
            "claimMappings": mappings,
            "claimValidationRules": (Value::Array(rules.collect())),
        });
        let root = Node::root(&document);
        let mut issuer = issuer(&root, own_issuers)?;
        for algorithm in &flags.signing_algorithms {
            if !ALGORITHMS.contains(&algorithm.as_str()) {
                let text = format!("oidc: unsupported signing alg: \"{algorithm}\"");
                return Err(root.wrong(text));
            }
            issuer.algorithms.push(algorithm.as_str().into());
        }
        Ok(AuthenticationConfig {
            issuers: vec![issuer],
            anonymous: None,
        })
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
    let username = prefixed(&mappings.at("username"))?.ok_or_else(|| {
        mappings
            .at("username")
            .wrong("claim or expression is required")
    })?;
    let (required_claims, claim_rules) = claim_rules(&node.at("claimValidationRules"))?;
    check_email(node, &mappings)?;
    Ok(IssuerConfig {
        url,
        discovery_url,
        authority: about.at("certificateAuthority").text()?,
        audiences: audiences(&about)?,
        algorithms: Vec::new(),
        username,
        groups: prefixed(&mappings.at("groups"))?,
        uid: mapping(&mappings.at("uid"), &["claim", "expression"])?,
        extra: extra(&mappings.at("extra"))?,
        required_claims,
        claim_rules,
        user_rules: user_rules(&node.at("userValidationRules"))?,
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

/// Claims that must have a value, and conditions.
type ClaimRules = (Vec<(String, String)>, Vec<Condition>);

fn claim_rules(node: &Node<'_>) -> Result<ClaimRules, ConfigError> {
    let mut claims: Vec<(String, String)> = Vec::new();
    let mut conditions = Vec::new();
    for rule in node.items()? {
        rule.only(&["claim", "requiredValue", "expression", "message"])?;
        let (claim, text) = (rule.at("claim").text()?, rule.at("expression").text()?);
        match (claim.is_empty(), text.is_empty()) {
            (true, true) => return Err(rule.wrong("claim or expression is required")),
            (false, false) => return Err(rule.wrong("claim and expression can't both be set")),
            (false, true) => {
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
            (true, false) => {
                if !rule.at("requiredValue").is_absent() {
                    let text = "may not be specified when expression is set";
                    return Err(rule.at("requiredValue").wrong(text));
                }
                let expression = Expression::condition_of_claims(&text);
                conditions.push(rule.condition(expression)?);
            }
        }
    }
    Ok((claims, conditions))
}

fn user_rules(node: &Node<'_>) -> Result<Vec<Condition>, ConfigError> {
    let mut conditions = Vec::new();
    for rule in node.items()? {
        rule.only(&["expression", "message"])?;
        let text = rule.at("expression").required()?;
        let expression = Expression::condition_of_user(&text);
        conditions.push(rule.condition(expression)?);
    }
    Ok(conditions)
}

fn extra(node: &Node<'_>) -> Result<Vec<(String, Expression)>, ConfigError> {
    let mut all: Vec<(String, Expression)> = Vec::new();
    for item in node.items()? {
        item.only(&["key", "valueExpression"])?;
        let key = item.at("key").required()?;
        let root = Path::root();
        let problems = names::domain_prefixed_path(&root.field("key"), &key);
        let domain = key.split('/').next().unwrap_or_default();
        let is_reserved = ["k8s.io", "kubernetes.io"]
            .iter()
            .any(|own| domain == *own || domain.ends_with(&format!(".{own}")));
        let problem = if !problems.is_empty() {
            summary(&problems)
        } else if key.chars().any(char::is_uppercase) {
            "must be lowercase".to_owned()
        } else if is_reserved {
            "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use".to_owned()
        } else if all.iter().any(|(other, _)| *other == key) {
            format!("Duplicate value: \"{key}\"")
        } else {
            let place = item.at("valueExpression");
            let value = Expression::of_claims(&place.required()?);
            all.push((key, value.map_err(|error| place.wrong(error))?));
            continue;
        };
        return Err(item.at("key").wrong(problem));
    }
    Ok(all)
}

/// Who maps an address to a name has to look whether it was verified.
fn check_email(node: &Node<'_>, mappings: &Node<'_>) -> Result<(), ConfigError> {
    let reads = |text: &str, claim: &str| {
        let text: String = text.chars().filter(|it| !it.is_whitespace()).collect();
        let wanted = format!("claims.{claim}");
        let mut ends = text.match_indices(&wanted).map(|(at, _)| at + wanted.len());
        ends.any(|end| {
            let next = text[end..].chars().next();
            next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
        })
    };
    let place = mappings.at("username").at("expression");
    let username = place.text()?;
    let mut texts = vec![username.clone()];
    for item in mappings.at("extra").items()? {
        texts.push(item.at("valueExpression").text()?);
    }
    for rule in node.at("claimValidationRules").items()? {
        texts.push(rule.at("expression").text()?);
    }
    if reads(&username, "email") && !texts.iter().any(|it| reads(it, "email_verified")) {
        return Err(place.wrong(
            "claims.email_verified must be used in claimMappings.username.expression or \
             claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when \
             claims.email is used in claimMappings.username.expression",
        ));
    }
    Ok(())
}

fn prefixed(node: &Node<'_>) -> Result<Option<Prefixed>, ConfigError> {
    let Some(from) = mapping(node, &["claim", "prefix", "expression"])? else {
        return Ok(None);
    };
    let prefix = node.at("prefix");
    if matches!(from, Mapping::Expression(_)) {
        if !prefix.is_absent() {
            let text = "prefix can't be set when expression is set";
            return Err(prefix.wrong(text));
        }
        let prefix = String::new();
        return Ok(Some(Prefixed { from, prefix }));
    }
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
    let (claim, place) = (node.at("claim").text()?, node.at("expression"));
    let text = place.text()?;
    match (claim.is_empty(), text.is_empty()) {
        (true, true) => Ok(None),
        (false, false) => Err(node.wrong("claim and expression can't both be set")),
        (false, true) => Ok(Some(Mapping::Claim(claim))),
        (true, false) => {
            let expression = Expression::of_claims(&text);
            let expression = expression.map_err(|error| place.wrong(error))?;
            Ok(Some(Mapping::Expression(expression)))
        }
    }
}

impl Node<'_> {
    /// The condition of this rule.
    fn condition(&self, expression: Result<Expression, String>) -> Result<Condition, ConfigError> {
        let expression = expression.map_err(|error| self.at("expression").wrong(error))?;
        let message = self.at("message").text()?;
        Ok(Condition {
            expression,
            message,
        })
    }
}
