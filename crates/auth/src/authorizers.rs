//! The file of `--authorization-config`: who decides what users may do, in order.
//!
//! Contract: `apiserver/pkg/apis/apiserver` and its validation.

mod conditions;

use std::path::Path;
use std::time::Duration;

use object::field::summary;
use object::{Value, names, time};

use crate::authorize::Decision;
use crate::document::{self, ConfigError, Node};
use crate::webhook::ReviewVersion;
pub use conditions::Conditions;

/// The longest time that a webhook may be given.
const TIMEOUT_MAX: Duration = Duration::from_secs(30);
const KINDS: [&str; 5] = ["AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];

/// Who decides, in order.
#[derive(Clone, Debug)]
pub struct AuthorizationConfig {
    /// The authorizers.
    pub authorizers: Vec<AuthorizerConfig>,
}

/// One way to decide.
#[derive(Clone, Debug)]
pub enum AuthorizerConfig {
    /// Everything is allowed.
    AlwaysAllow,
    /// Nothing is allowed.
    AlwaysDeny,
    /// Nodes may read what their pods need.
    Node,
    /// Roles and their bindings.
    Rbac,
    /// A server outside decides.
    Webhook(Box<WebhookConfig>),
}

/// A server outside, and when it is asked.
#[derive(Clone, Debug)]
pub struct WebhookConfig {
    /// The file that says where it is.
    pub kubeconfig: String,
    /// What it understands.
    pub version: ReviewVersion,
    /// It is given this long.
    pub timeout: Duration,
    /// For how long a permission counts, in seconds.
    pub allowed_seconds: i64,
    /// For how long a refusal counts, in seconds.
    pub denied_seconds: i64,
    /// What counts when it does not answer, or a condition fails.
    pub on_failure: Decision,
    /// It is asked if all of these hold.
    pub conditions: Conditions,
}

impl AuthorizationConfig {
    /// Reads a configuration in YAML or JSON.
    ///
    /// # Errors
    /// The first mistake.
    pub fn read(text: &[u8]) -> Result<AuthorizationConfig, ConfigError> {
        let document = document::read(text)?;
        let root = Node::root(&document);
        root.only(&["apiVersion", "kind", "authorizers"])?;
        root.is_a("AuthorizationConfiguration")?;
        let list = root.at("authorizers");
        let items = list.items()?;
        if items.is_empty() {
            let text = "Required value: at least one authorization mode must be defined";
            return Err(list.wrong(text));
        }
        let (mut kinds, mut named) = (Vec::new(), Vec::new());
        let mut authorizers = Vec::new();
        for item in items {
            item.only(&["type", "name", "webhook"])?;
            authorizers.push(authorizer(&item, &mut kinds)?);
            check_name(&item.at("name"), &mut named)?;
        }
        Ok(AuthorizationConfig { authorizers })
    }
}

fn authorizer(node: &Node<'_>, seen: &mut Vec<String>) -> Result<AuthorizerConfig, ConfigError> {
    let place = node.at("type");
    let kind = place.required()?;
    if !KINDS.contains(&kind.as_str()) {
        return Err(unsupported(&place, &kind, &KINDS));
    }
    if kind != "Webhook" && seen.contains(&kind) {
        return Err(place.wrong(format!("Duplicate value: \"{kind}\"")));
    }
    let webhook = node.at("webhook");
    if kind != "Webhook" && !webhook.is_absent() {
        let text = "Invalid value: \"non-null\": may only be specified when type=Webhook";
        return Err(webhook.wrong(text));
    }
    let authorizer = match kind.as_str() {
        "AlwaysAllow" => AuthorizerConfig::AlwaysAllow,
        "AlwaysDeny" => AuthorizerConfig::AlwaysDeny,
        "Node" => AuthorizerConfig::Node,
        "RBAC" => AuthorizerConfig::Rbac,
        _ if webhook.is_absent() => {
            return Err(webhook.wrong("Required value: required when type=Webhook"));
        }
        _ => AuthorizerConfig::Webhook(Box::new(webhook_config(&webhook)?)),
    };
    seen.push(kind);
    Ok(authorizer)
}

fn check_name(place: &Node<'_>, seen: &mut Vec<String>) -> Result<(), ConfigError> {
    let name = place.required()?;
    let problems = names::name_is_dns_subdomain(&name, false);
    if seen.contains(&name) {
        return Err(place.wrong(format!("Duplicate value: \"{name}\"")));
    }
    if !problems.is_empty() {
        let problems = problems.join(", ");
        return Err(place.wrong(format!(
            "Invalid value: \"{name}\": authorizer name is invalid: {problems}"
        )));
    }
    seen.push(name);
    Ok(())
}

fn webhook_config(node: &Node<'_>) -> Result<WebhookConfig, ConfigError> {
    node.only(&[
        "authorizedTTL",
        "cacheAuthorizedRequests",
        "unauthorizedTTL",
        "cacheUnauthorizedRequests",
        "timeout",
        "subjectAccessReviewVersion",
        "matchConditionSubjectAccessReviewVersion",
        "failurePolicy",
        "connectionInfo",
        "matchConditions",
    ])?;
    let timeout = duration(&node.at("timeout"))?.unwrap_or_default();
    if timeout.is_zero() {
        return Err(node.at("timeout").wrong("Required value"));
    }
    if timeout > TIMEOUT_MAX {
        return Err(node.at("timeout").wrong("must be > 0s and <= 30s"));
    }
    let place = node.at("subjectAccessReviewVersion");
    let version = match place.required()?.as_str() {
        "v1" => ReviewVersion::V1,
        "v1beta1" => ReviewVersion::V1Beta1,
        other => return Err(unsupported(&place, other, &["v1", "v1beta1"])),
    };
    let place = node.at("failurePolicy");
    let on_failure = match place.required()?.as_str() {
        "NoOpinion" => Decision::Deny,
        "Deny" => Decision::Forbid,
        other => return Err(unsupported(&place, other, &["NoOpinion", "Deny"])),
    };
    let conditions = Conditions::read(&node.at("matchConditions"))?;
    let place = node.at("matchConditionSubjectAccessReviewVersion");
    match place.text()?.as_str() {
        "" if !conditions.is_empty() => {
            let text = "Required value: required if match conditions are specified";
            return Err(place.wrong(text));
        }
        "" | "v1" => {}
        other => return Err(unsupported(&place, other, &["v1"])),
    }
    Ok(WebhookConfig {
        kubeconfig: kubeconfig(&node.at("connectionInfo"))?,
        version,
        timeout,
        allowed_seconds: kept(node, "authorizedTTL", "cacheAuthorizedRequests", 300)?,
        denied_seconds: kept(node, "unauthorizedTTL", "cacheUnauthorizedRequests", 30)?,
        on_failure,
        conditions,
    })
}

/// For how many seconds an answer is kept.
fn kept(node: &Node<'_>, field: &str, switch: &str, default: u64) -> Result<i64, ConfigError> {
    let duration = duration(&node.at(field))?.filter(|it| !it.is_zero());
    let seconds = duration.map_or(default, |it| it.as_secs().max(1));
    if !node.at(switch).flag(true)? {
        return Ok(0);
    }
    Ok(i64::try_from(seconds).unwrap_or(i64::MAX))
}

fn duration(node: &Node<'_>) -> Result<Option<Duration>, ConfigError> {
    let text = node.text()?;
    if text.is_empty() {
        return Ok(None);
    }
    let nanos = time::go_duration_parse(&text).map_err(|error| node.wrong(error))?;
    match u64::try_from(nanos) {
        Ok(nanos) => Ok(Some(Duration::from_nanos(nanos))),
        Err(_) => Err(node.wrong(format!("Invalid value: \"{text}\": must be > 0s"))),
    }
}

/// The file that says how a webhook is reached.
fn kubeconfig(node: &Node<'_>) -> Result<String, ConfigError> {
    node.only(&["type", "kubeConfigFile"])?;
    let (kind, place) = (node.at("type"), node.at("kubeConfigFile"));
    match kind.required()?.as_str() {
        "KubeConfigFile" => {}
        "InClusterConfig" => {
            let text = "InClusterConfig is not supported: this server runs in no pod; use \
                        KubeConfigFile";
            return Err(kind.wrong(text));
        }
        other => {
            let known = ["InClusterConfig", "KubeConfigFile"];
            return Err(unsupported(&kind, other, &known));
        }
    }
    let file = place.required()?;
    if !Path::new(&file).is_absolute() {
        let text = format!("Invalid value: \"{file}\": must be an absolute path");
        return Err(place.wrong(text));
    }
    Ok(file)
}

fn unsupported(place: &Node<'_>, found: &str, known: &[&str]) -> ConfigError {
    let path = object::field::Path::root();
    let error = object::field::FieldError::not_supported(&path, &Value::from(found), known);
    let text = summary(&[error]);
    place.wrong(text.trim_start_matches("<nil>: "))
}

#[cfg(test)]
mod tests;
