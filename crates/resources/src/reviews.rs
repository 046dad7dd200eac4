//! Reviews: questions in the form of objects, answered at once and never stored.
//!
//! Contract: `pkg/registry/authorization` and `pkg/registry/authentication`.

use auth::{Attributes, Decision, Rule, User};
use object::fields::FieldSelector;
use object::labels::LabelSelector;
use object::{Map, Text, Value, value};

use crate::authorization::Mode;
use crate::body::{self, Body, Parsed};
use crate::error::{Error, Subject};
use crate::meta::meta_mut;
use crate::ownership::Owners;
use crate::write::{Written, WrittenObject, check_namespace};
use crate::{Request, Resources};

/// Which question a kind asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    MayI,
    MaySomebody,
    MaySomebodyHere,
    WhatMayI,
    WhoAmI,
    WhoseToken,
}

fn question(request: &Request<'_>) -> Option<Question> {
    let kind = request.kind;
    match (kind.group.as_str(), kind.resource.as_str()) {
        ("authorization.k8s.io", "selfsubjectaccessreviews") => Some(Question::MayI),
        ("authorization.k8s.io", "subjectaccessreviews") => Some(Question::MaySomebody),
        ("authorization.k8s.io", "localsubjectaccessreviews") => Some(Question::MaySomebodyHere),
        ("authorization.k8s.io", "selfsubjectrulesreviews") => Some(Question::WhatMayI),
        ("authentication.k8s.io", "selfsubjectreviews") => Some(Question::WhoAmI),
        ("authentication.k8s.io", "tokenreviews") => Some(Question::WhoseToken),
        _ => None,
    }
}

impl Resources {
    /// Answers a create that asks a question; `None` if it makes an object.
    pub(crate) async fn review(
        &self,
        request: &Request<'_>,
        body: &Body,
    ) -> Result<Option<Written>, Error> {
        let Some(question) = question(request) else {
            return Ok(None);
        };
        let Parsed { mut wanted, .. } = body::read(&self.catalogue(), request, body)?;
        let object = &mut wanted.object;
        check_namespace(request, object)?;
        let metadata = meta_mut(object);
        for field in ["uid", "creationTimestamp", "deletionTimestamp", "selfLink"] {
            metadata.remove(field);
        }
        let owners = Owners::of_created(self, request, &mut wanted);
        let mut object = wanted.object;
        owners.show_in(&mut object);
        let mut object = self.admit_sent(request, request.kind, object).await?;
        object.remove("status");
        let answer = match question {
            Question::MayI | Question::MaySomebody | Question::MaySomebodyHere => {
                check_question(request, &object)?;
                self.may(question, request, &object).await?
            }
            Question::WhatMayI => return self.rules_of(request, &object).await.map(Some),
            Question::WhoAmI => return Ok(Some(self.who_am_i(request))),
            Question::WhoseToken => self.whose_token(&object).await?,
        };
        let mut object = request.kind.print(object);
        object.insert("status", answer);
        Ok(Some(shown(object)))
    }

    async fn may(
        &self,
        question: Question,
        request: &Request<'_>,
        object: &Map,
    ) -> Result<Value, Error> {
        let spec = spec_of(object);
        let asked = asked_user(spec);
        let user = if question == Question::MayI {
            request.user
        } else {
            &asked
        };
        let part = |part: &str, field: &str| {
            let value = spec.get(part).and_then(|part| part.str_at(&[field]));
            value.unwrap_or_default().to_owned()
        };
        let verdict = if spec.contains_key("nonResourceAttributes") {
            let url = |field| part("nonResourceAttributes", field);
            let (verb, path) = (url("verb"), url("path"));
            self.explain(
                user,
                Attributes::Path {
                    verb: &verb,
                    path: &path,
                },
            )
            .await?
        } else {
            let named = |field| part("resourceAttributes", field);
            let (mut resource, subresource) = (named("resource"), named("subresource"));
            if !subresource.is_empty() {
                resource = format!("{resource}/{subresource}");
            }
            let attributes = Attributes::Resource {
                verb: &named("verb"),
                group: &named("group"),
                resource: &resource,
                namespace: &named("namespace"),
                name: &named("name"),
            };
            self.explain(user, attributes).await?
        };
        let mut status = Map::new();
        status.insert("allowed", Value::Bool(verdict.decision == Decision::Allow));
        if verdict.decision == Decision::Forbid {
            status.insert("denied", Value::Bool(true));
        }
        if !verdict.reason.is_empty() {
            status.insert("reason", Value::from(verdict.reason));
        }
        let ignored = spec.get("resourceAttributes").and_then(ignored_selectors);
        if let Some(ignored) = ignored {
            status.insert("evaluationError", Value::from(ignored));
        }
        Ok(Value::Object(status))
    }

    /// Everything that the asking user may do.
    async fn rules_of(&self, request: &Request<'_>, object: &Map) -> Result<Written, Error> {
        let namespace = spec_of(object).get("namespace").and_then(Value::as_str);
        let namespace = namespace.unwrap_or_default();
        if namespace.is_empty() {
            return Err(Error::BadRequest("no namespace on request".to_owned()));
        }
        let (mut resource_rules, mut path_rules) = (Vec::new(), Vec::new());
        let mut problems = Vec::new();
        for mode in self.modes.now().iter() {
            match mode {
                Mode::Rbac => {
                    let rules = self.rules().await?;
                    let held = rules.rules_for(request.user, namespace);
                    let with_resources = held.rules.iter().filter(|it| !it.resources.is_empty());
                    resource_rules.extend(with_resources.map(|rule| resource_rule(rule)));
                    let with_paths = held.rules.iter().filter(|it| !it.paths.is_empty());
                    path_rules.extend(with_paths.map(|rule| path_rule(rule)));
                    problems.extend(held.problems());
                }
                Mode::AlwaysAllow => {
                    let all = Rule {
                        groups: vec!["*".into()],
                        resources: vec!["*".into()],
                        paths: vec!["*".into()],
                        names: Vec::new(),
                        verbs: vec!["*".into()],
                    };
                    resource_rules.push(resource_rule(&all));
                    path_rules.push(path_rule(&all));
                }
                Mode::AlwaysDeny => {}
                Mode::Asked(other) => {
                    let problem = other.incomplete_rules(request.user);
                    problems.extend(problem.map(str::to_owned));
                }
            }
        }
        let mut status = Map::new();
        status.insert("resourceRules", Value::Array(resource_rules));
        status.insert("nonResourceRules", Value::Array(path_rules));
        status.insert("incomplete", Value::Bool(!problems.is_empty()));
        if !problems.is_empty() {
            status.insert("evaluationError", Value::from(problems.join(", ")));
        }
        let mut answer = request.kind.empty_object();
        answer.insert("metadata", value!({}));
        answer.insert("spec", value!({}));
        answer.insert("status", Value::Object(status));
        Ok(shown(answer))
    }

    fn who_am_i(&self, request: &Request<'_>) -> Written {
        let mut object = request.kind.empty_object();
        object.insert("metadata", value!({"creationTimestamp": (self.now_text())}));
        object.insert("status", value!({"userInfo": (user_info(request.user))}));
        shown(object)
    }

    async fn whose_token(&self, object: &Map) -> Result<Value, Error> {
        let spec = spec_of(object);
        let token = spec.get("token").and_then(Value::as_str);
        let token = token.unwrap_or_default();
        if token.is_empty() {
            let text = "token is required for TokenReview in authentication";
            return Err(Error::BadRequest(text.to_owned()));
        }
        let Some(authenticator) = &self.authenticator else {
            return Ok(value!({"user": {}}));
        };
        let audiences = spec.get("audiences").and_then(Value::as_array);
        let audiences: Vec<Text> = audiences
            .unwrap_or_default()
            .iter()
            .filter_map(Value::as_str)
            .map(Text::from)
            .collect();
        let known = authenticator.review(token, &audiences, self.now()).await;
        Ok(match known {
            Ok(known) => value!({
                "authenticated": true,
                "user": (user_info(&known.user)),
                "audiences": (texts(&known.audiences)),
            }),
            Err(wrong) => value!({"user": {}, "error": (wrong.to_string())}),
        })
    }
}

fn shown(object: Map) -> Written {
    Written {
        object: WrittenObject::Virtual(object),
        created: true,
    }
}

fn user_info(user: &User) -> Value {
    let mut info = Map::new();
    info.insert("username", Value::String(user.name.clone()));
    if !user.uid.is_empty() {
        info.insert("uid", Value::String(user.uid.clone()));
    }
    if !user.groups.is_empty() {
        let groups = user.groups.iter().cloned().map(Value::String).collect();
        info.insert("groups", Value::Array(groups));
    }
    if !user.extra.is_empty() {
        let extra = user
            .extra
            .iter()
            .map(|(key, values)| (key.clone(), texts(values)));
        info.insert("extra", Value::Object(extra.collect()));
    }
    Value::Object(info)
}

fn texts(texts: &[Text]) -> Value {
    Value::Array(texts.iter().cloned().map(Value::String).collect())
}

fn resource_rule(rule: &Rule) -> Value {
    let mut out = Map::new();
    out.insert("verbs", texts(&rule.verbs));
    out.insert("apiGroups", texts(&rule.groups));
    out.insert("resources", texts(&rule.resources));
    if !rule.names.is_empty() {
        out.insert("resourceNames", texts(&rule.names));
    }
    Value::Object(out)
}

fn path_rule(rule: &Rule) -> Value {
    value!({"verbs": (texts(&rule.verbs)), "nonResourceURLs": (texts(&rule.paths))})
}

/// The user that an access review is about.
fn asked_user(spec: &Map) -> User {
    let text = |field: &str| spec.get(field).and_then(Value::as_str).unwrap_or_default();
    let list = |value: &Value| {
        let items = value.as_array().unwrap_or_default().iter();
        items
            .filter_map(Value::as_str)
            .map(Text::from)
            .collect::<Vec<Text>>()
    };
    let extra = spec
        .get("extra")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter);
    User {
        name: text("user").into(),
        uid: text("uid").into(),
        groups: spec.get("groups").map(list).unwrap_or_default(),
        extra: extra
            .map(|(key, values)| (key.clone(), list(values)))
            .collect(),
    }
}

fn spec_of(object: &Map) -> &Map {
    static NONE: std::sync::LazyLock<Map> = std::sync::LazyLock::new(Map::new);
    object
        .get("spec")
        .and_then(Value::as_object)
        .unwrap_or(&NONE)
}

fn check_question(request: &Request<'_>, object: &Map) -> Result<(), Error> {
    let errors = request.kind.validate(object, None, "");
    if errors.is_empty() {
        return Ok(());
    }
    let group = request.kind.group.clone();
    let subject = Subject {
        group,
        resource: Text::default(),
        name: Text::default(),
    };
    Err(Error::Invalid { subject, errors })
}

/// What is said about selectors that cannot be understood, and so do not count.
fn ignored_selectors(resource: &Value) -> Option<String> {
    let mut notes = Vec::new();
    for (key, check) in [
        ("fieldSelector", field_requirement as fn(&Value) -> bool),
        ("labelSelector", label_requirement),
    ] {
        let Some(selector) = resource.get(key) else {
            continue;
        };
        let raw = selector.str_at(&["rawSelector"]).unwrap_or_default();
        let is_raw_good = match key {
            _ if raw.is_empty() => true,
            "fieldSelector" => FieldSelector::parse(raw).is_ok(),
            _ => LabelSelector::parse(raw).is_ok(),
        };
        let all = selector.get("requirements").and_then(Value::as_array);
        let all = all.unwrap_or_default();
        let good = all.iter().filter(|it| check(it)).count();
        if !is_raw_good || good < all.len() {
            let partly = if good > 0 { "partially " } else { "" };
            notes.push(format!(
                "spec.resourceAttributes.{key} {partly}ignored due to parse error"
            ));
        }
    }
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Whether a requirement on a field is one that field selectors can express.
fn field_requirement(requirement: &Value) -> bool {
    let values = requirement.get("values").and_then(Value::as_array);
    let operator = requirement.str_at(&["operator"]);
    matches!(operator, Some("In" | "NotIn")) && values.is_some_and(|values| values.len() == 1)
}

fn label_requirement(requirement: &Value) -> bool {
    let selector = value!({"matchExpressions": [(requirement.clone())]});
    LabelSelector::from_label_selector_value(&selector).is_ok()
}
