//! Deciders outside: a server that knows tokens, and one that knows what users may do.
//!
//! Contract: `apiserver/plugin/pkg/authenticator/token/webhook` and
//! `apiserver/plugin/pkg/authorizer/webhook`.

use std::sync::Arc;

use object::{Map, Text, Value, json, value};

use crate::authorize::{Attributes, Authorizer, Deciding, Decision, Verdict};
use crate::authorizers::Conditions;
use crate::jwt::texts;
use crate::outside::Outside;
use crate::tokens::{Answer, Cache, Known, Presented, TokenAuthenticator, digest_of};
use crate::user::User;

/// Answers that are remembered; see [`Cache`] for what happens at the limit.
const REMEMBERED_MAX: usize = 8192;
/// A question that is longer is not remembered.
const REMEMBERED_BYTES_MAX: usize = 10_000;

/// The form of the questions that a server understands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReviewVersion {
    /// What upstream sends unless told otherwise.
    #[default]
    V1Beta1,
    /// The form of today.
    V1,
}

impl ReviewVersion {
    fn name(self) -> &'static str {
        match self {
            ReviewVersion::V1Beta1 => "v1beta1",
            ReviewVersion::V1 => "v1",
        }
    }
}

/// Tokens that a server outside knows.
pub struct WebhookTokens {
    /// How to reach it.
    pub outside: Box<dyn Outside>,
    /// Where it is.
    pub url: String,
    /// What it understands.
    pub version: ReviewVersion,
    /// Whom a token is for whose review says nothing about that.
    pub audiences: Vec<Text>,
    /// For how long an answer counts.
    pub remember_seconds: i64,
    /// What it said.
    pub remembered: Remembered,
}

/// Answers of a server that knows tokens.
pub struct Remembered(Cache<Arc<(Vec<Text>, Option<Known>)>>);

impl Default for Remembered {
    fn default() -> Remembered {
        Remembered(Cache::new(REMEMBERED_MAX))
    }
}

impl WebhookTokens {
    async fn review(&self, presented: Presented<'_>) -> Result<Option<Known>, String> {
        let wanted: Vec<Value> = presented
            .audiences
            .iter()
            .cloned()
            .map(Value::String)
            .collect();
        let version = format!("authentication.k8s.io/{}", self.version.name());
        let review = value!({
            "kind": "TokenReview",
            "apiVersion": version,
            "metadata": {},
            "spec": {"token": (presented.token), "audiences": wanted},
            "status": {"user": {}},
        });
        let answer = self
            .outside
            .ask(&self.url, Some(json::to_vec(&review)))
            .await?;
        let answer = json::parse(&answer).map_err(|error| error.to_string())?;
        let none = Value::Null;
        let status = answer.get("status").unwrap_or(&none);
        let told = texts(status.get("audiences"));
        let own = if told.is_empty() {
            &self.audiences
        } else {
            &told
        };
        let both = presented.audiences.iter().filter(|it| own.contains(it));
        let both: Vec<Text> = both.cloned().collect();
        if both.is_empty() {
            return Ok(None);
        }
        if status.get("authenticated").and_then(Value::as_bool) != Some(true) {
            return match status.str_at(&["error"]) {
                None | Some("") => Ok(None),
                Some(error) => Err(error.to_owned()),
            };
        }
        let user = status.get("user").unwrap_or(&none);
        Ok(Some(Known {
            user: Arc::new(user_of(user)),
            audiences: both,
        }))
    }
}

impl TokenAuthenticator for WebhookTokens {
    fn who<'a>(&'a self, presented: Presented<'a>) -> Answer<'a> {
        Box::pin(async move {
            let Remembered(remembered) = &self.remembered;
            if let Some(said) = remembered.get(&presented.digest, presented.now)
                && said.0 == presented.audiences
            {
                return Ok(said.1.clone());
            }
            let said = self.review(presented).await.map_err(|error| vec![error])?;
            let until = presented.now.saturating_add(self.remember_seconds);
            let entry = Arc::new((presented.audiences.to_vec(), said.clone()));
            remembered.put(presented.digest, entry, until, presented.now);
            Ok(said)
        })
    }
}

fn user_of(info: &Value) -> User {
    let text = |field: &str| Text::from(info.str_at(&[field]).unwrap_or_default());
    let extra = info.get("extra").and_then(Value::as_object);
    let extra = extra.into_iter().flat_map(Map::iter);
    let mut user = User {
        name: text("username"),
        uid: text("uid"),
        groups: texts(info.get("groups")),
        extra: extra
            .map(|(key, values)| (key.clone(), texts(Some(values))))
            .collect(),
    };
    user.join_authenticated();
    user
}

/// Seconds since the start of 1970.
pub type Now = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A server outside that knows what users may do.
pub struct WebhookAuthorizer {
    /// How to reach it.
    pub outside: Box<dyn Outside>,
    /// Where it is.
    pub url: String,
    /// What it understands.
    pub version: ReviewVersion,
    /// For how long a permission counts.
    pub allowed_seconds: i64,
    /// For how long a refusal counts.
    pub denied_seconds: i64,
    /// What counts when it does not answer: that of others, or a refusal.
    pub on_failure: Decision,
    /// It is asked if all of these hold.
    pub conditions: Conditions,
    /// What time it is.
    pub now: Now,
    /// What it said.
    pub verdicts: Verdicts,
}

/// Answers of a server that knows what users may do.
pub struct Verdicts(Cache<Arc<Verdict>>);

impl Default for Verdicts {
    fn default() -> Verdicts {
        Verdicts(Cache::new(REMEMBERED_MAX))
    }
}

impl WebhookAuthorizer {
    async fn ask(&self, user: &User, attributes: Attributes<'_>) -> Verdict {
        match self.conditions.hold(user, attributes) {
            Ok(true) => {}
            Ok(false) => {
                return Verdict {
                    decision: Decision::Deny,
                    reason: String::new(),
                };
            }
            Err(reason) => {
                return Verdict {
                    decision: self.on_failure,
                    reason,
                };
            }
        }
        let spec = question(user, attributes, self.version);
        let version = format!("authorization.k8s.io/{}", self.version.name());
        let review = value!({
            "kind": "SubjectAccessReview",
            "apiVersion": version,
            "metadata": {},
            "spec": spec,
            "status": {"allowed": false},
        });
        let question = json::to_vec(&review);
        let Verdicts(verdicts) = &self.verdicts;
        let now = (self.now)();
        let text = String::from_utf8_lossy(&question);
        let (key, is_short) = (digest_of(&text), question.len() < REMEMBERED_BYTES_MAX);
        if let Some(verdict) = verdicts.get(&key, now) {
            return Verdict::clone(&verdict);
        }
        let answer = self.outside.ask(&self.url, Some(question.clone())).await;
        let answer = answer.and_then(|it| json::parse(&it).map_err(|error| error.to_string()));
        let verdict = match answer {
            Ok(answer) => verdict(answer.get("status").unwrap_or(&Value::Null)),
            // Nothing is known, so nothing is remembered.
            Err(error) => {
                return Verdict {
                    decision: self.on_failure,
                    reason: format!("the authorization webhook does not answer: {error}"),
                };
            }
        };
        let seconds = match verdict.decision {
            Decision::Allow => self.allowed_seconds,
            _ => self.denied_seconds,
        };
        if is_short && seconds > 0 {
            let until = now.saturating_add(seconds);
            verdicts.put(key, Arc::new(verdict.clone()), until, now);
        }
        verdict
    }
}

impl Authorizer for WebhookAuthorizer {
    fn decide<'a>(&'a self, user: &'a User, attributes: Attributes<'a>) -> Deciding<'a> {
        Box::pin(self.ask(user, attributes))
    }

    fn incomplete_rules(&self, _: &User) -> Option<&'static str> {
        Some("webhook authorizer does not support user rule resolution")
    }
}

fn verdict(status: &Value) -> Verdict {
    let flag = |field: &str| status.get(field).and_then(Value::as_bool) == Some(true);
    let decision = match (flag("denied"), flag("allowed")) {
        (true, _) => Decision::Forbid,
        (false, true) => Decision::Allow,
        (false, false) => Decision::Deny,
    };
    let reason = status.str_at(&["reason"]).unwrap_or_default().to_owned();
    Verdict { decision, reason }
}

fn question(user: &User, attributes: Attributes<'_>, version: ReviewVersion) -> Value {
    let list = |texts: &[Text]| Value::Array(texts.iter().cloned().map(Value::String).collect());
    let mut spec = Map::new();
    let mut part = Map::new();
    let mut note = |key: &str, text: &str| {
        if !text.is_empty() {
            part.insert(key, Value::from(text));
        }
    };
    note("verb", attributes.verb());
    let kind = match attributes {
        Attributes::Resource {
            group,
            resource,
            namespace,
            name,
            ..
        } => {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            note("group", group);
            note("resource", resource);
            note("subresource", subresource);
            note("namespace", namespace);
            note("name", name);
            "resourceAttributes"
        }
        Attributes::Path { path, .. } => {
            note("path", path);
            "nonResourceAttributes"
        }
    };
    spec.insert(kind, Value::Object(part));
    spec.insert("user", Value::String(user.name.clone()));
    let groups = match version {
        ReviewVersion::V1Beta1 => "group",
        ReviewVersion::V1 => "groups",
    };
    spec.insert(groups, list(&user.groups));
    if !user.uid.is_empty() {
        spec.insert("uid", Value::String(user.uid.clone()));
    }
    if !user.extra.is_empty() {
        let extra = user.extra.iter();
        let extra = extra.map(|(key, values)| (key.clone(), list(values)));
        spec.insert("extra", Value::Object(extra.collect()));
    }
    Value::Object(spec)
}

#[cfg(test)]
mod tests;
