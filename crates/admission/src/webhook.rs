//! Admission webhooks, read from their configurations once.

use std::time::Duration;

use object::{Map, Text, Value};

use crate::client::{CallError, Endpoint};
use crate::expression::Conditions;
use crate::matching::Criteria;
use crate::review::Version;

/// How long a webhook may take if its configuration does not say.
const TIMEOUT_SECONDS: i64 = 10;
const TIMEOUT_SECONDS_MAX: i64 = 30;

/// Whether a webhook may change objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It may change them.
    Mutating,
    /// It only looks.
    Validating,
}

impl Role {
    /// The name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Mutating => "admit",
            Role::Validating => "validating",
        }
    }
}

/// What a failure to decide means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// The request is refused.
    Refuse,
    /// The request goes on as if nobody had been asked.
    Ignore,
}

impl OnFailure {
    /// Reads a `failurePolicy`.
    pub fn read(policy: Option<&str>) -> OnFailure {
        match policy {
            Some("Ignore") => OnFailure::Ignore,
            _ => OnFailure::Refuse,
        }
    }
}

/// One webhook of a configuration.
#[derive(Debug)]
pub struct Webhook {
    /// The configuration that it stands in.
    pub configuration: Text,
    /// Its name.
    pub name: Text,
    /// What tells it from all others, also from one of the same name.
    pub id: String,
    /// Which requests it is asked about.
    pub criteria: Criteria,
    /// What must hold for it to be asked.
    pub conditions: Conditions,
    /// Where it is.
    pub endpoint: Result<Endpoint, CallError>,
    /// What happens when it cannot be asked.
    pub on_failure: OnFailure,
    /// How long it may take.
    pub timeout: Duration,
    /// Whether a dry run may ask it.
    pub dry_run_safe: bool,
    /// The version of reviews that it understands, if we know one of them.
    pub version: Option<Version>,
    /// Whether it is asked again about what others changed after it.
    pub reinvoked: bool,
}

impl Webhook {
    /// Every webhook of a configuration, in its order.
    pub fn of_configuration(configuration: &Map) -> Vec<Webhook> {
        let name = configuration.get("metadata");
        let name = name.and_then(|metadata| metadata.str_at(&["name"]));
        let webhooks = configuration.get("webhooks").and_then(Value::as_array);
        let webhooks = webhooks.unwrap_or_default().iter().enumerate();
        webhooks
            .map(|(place, webhook)| Webhook::read(name.unwrap_or_default(), place, webhook))
            .collect()
    }

    fn read(configuration: &str, place: usize, webhook: &Value) -> Webhook {
        let text = |field| webhook.str_at(&[field]);
        let name = text("name").unwrap_or_default();
        let timeout = webhook.get("timeoutSeconds").and_then(Value::as_int);
        let timeout = timeout
            .unwrap_or(TIMEOUT_SECONDS)
            .clamp(1, TIMEOUT_SECONDS_MAX);
        let versions = webhook
            .get("admissionReviewVersions")
            .and_then(Value::as_array);
        let mut versions = versions
            .unwrap_or_default()
            .iter()
            .filter_map(Value::as_str);
        Webhook {
            configuration: configuration.into(),
            name: name.into(),
            id: format!("{configuration}/{place}/{name}"),
            criteria: Criteria::of_webhook(webhook),
            conditions: Conditions::of_webhook(webhook.get("matchConditions")),
            endpoint: Endpoint::of_client_config(
                webhook.get("clientConfig").unwrap_or(&Value::Null),
            ),
            on_failure: OnFailure::read(text("failurePolicy")),
            timeout: Duration::from_secs(timeout.unsigned_abs()),
            dry_run_safe: matches!(text("sideEffects"), Some("None" | "NoneOnDryRun")),
            version: versions.find_map(Version::read),
            reinvoked: text("reinvocationPolicy") == Some("IfNeeded"),
        }
    }

    /// The text of a failure to ask.
    pub fn failed_calling(&self, reason: &str) -> String {
        format!(
            "failed calling webhook {}: {reason}",
            object::field::quote(&self.name)
        )
    }
}
