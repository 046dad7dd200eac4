//! The status of validating policies: which of their expressions do not fit the kinds they match.
//!
//! Contract: upstream's `pkg/controller/validatingadmissionpolicystatus`. The status is applied, so
//! that the controller owns it and nothing else of the policy.

use std::sync::Arc;

use kinds::type_checking::{self, ExpressionWarning};
use kinds::{Catalogue, Kind};
use object::{Map, Value, json, value};
use store::{Range, Record};
use tracing::{debug, warn};

use super::{Identity, again_and_again};
use crate::body::{Body, Media};
use crate::error::Error;
use crate::record::Stored;
use crate::{Request, Resources, Warnings};

const GROUP: &str = "admissionregistration.k8s.io";
const NAME: &str = "validatingadmissionpolicy-status";

/// Checks policies until the store is closed.
pub(super) async fn run(resources: Resources) {
    let kind = Catalogue::builtin().resource(GROUP, "v1", "validatingadmissionpolicies");
    let Some(kind) = kind else {
        return warn!("policies are not checked: they are not served");
    };
    let mut identity = Identity::new(NAME);
    identity.options.force = true;
    let policies = Policies {
        kind: Arc::clone(kind),
        identity,
        resources: resources.clone(),
    };
    again_and_again(NAME, || policies.run()).await;
}

struct Policies {
    resources: Resources,
    kind: Arc<Kind>,
    identity: Identity,
}

impl Policies {
    async fn run(&self) -> Result<(), store::Error> {
        let store = self.resources.store();
        loop {
            let page = store.range(&self.kind.collection, Range::default()).await?;
            for record in &page.records {
                // Whatever is refused is tried again with the next change of any policy.
                if let Err(error) = self.check(record).await {
                    debug!(policy = %record.name, %error, "a policy has no status");
                }
            }
            let mut watch = store.watch(&self.kind.collection, page.revision).await?;
            watch.next().await?;
        }
    }

    async fn check(&self, record: &Record) -> Result<(), Error> {
        let Ok(policy) = Stored::new(&record.value).and_then(|stored| stored.tree(None)) else {
            return Ok(());
        };
        let number = |part: &str, field: &str| {
            let value = policy.get(part).and_then(|it| it.get(field));
            value.and_then(Value::as_int).unwrap_or(0)
        };
        let generation = number("metadata", "generation");
        if generation <= number("status", "observedGeneration") {
            return Ok(());
        }
        let warnings = type_checking::check(&self.resources.catalogue(), &policy);
        self.write(&record.name, status(generation, &warnings))
            .await
    }

    async fn write(&self, name: &str, status: Value) -> Result<(), Error> {
        let warnings = Warnings::default();
        let request = Request {
            subresource: "status",
            ..self.identity.request(&self.kind, name, &warnings)
        };
        if !self.resources.has_server_side_apply() {
            let change = |policy: &mut Map| {
                policy.insert("status", status.clone());
                true
            };
            return self.resources.edit(&request, change).await;
        }
        let policy = value!({
            "apiVersion": (self.kind.api_version().as_str()),
            "kind": (self.kind.kind.as_str()),
            "metadata": {"name": name},
            "status": status,
        });
        let body = Body {
            media: Media::Json,
            bytes: json::to_vec(&policy).into(),
        };
        self.resources.apply(&request, &body).await.map(|_| ())
    }
}

fn status(generation: i64, warnings: &[ExpressionWarning]) -> Value {
    let shown = warnings
        .iter()
        .map(|it| value!({"fieldRef": (it.field.as_str()), "warning": (it.warning.as_str())}));
    let shown: Vec<Value> = shown.collect();
    let mut checking = Map::new();
    if !shown.is_empty() {
        checking.insert("expressionWarnings", Value::Array(shown));
    }
    value!({"observedGeneration": generation, "typeChecking": checking})
}
