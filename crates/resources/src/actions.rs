//! What is created and never stored: bindings, evictions, and what else acts on another object.

mod binding;
mod certificates;
mod connect;
mod eviction;
mod token;

use std::sync::Arc;

use kinds::{Catalogue, Kind, Rules};
use object::{Map, value};
use store::{Change, Expect, Revision};

use crate::body::Body;
use crate::error::Error;
use crate::options::DeleteOptions;
use crate::write::{Draft, Live, Work, Written, WrittenObject};
use crate::{Request, Resources, subject};

pub(crate) use certificates::name_requester;
pub use connect::is_connection;

impl Resources {
    /// Does what a create asks for, if it asks for an action; `None` if it makes an object.
    pub(crate) async fn act(
        &self,
        request: &Request<'_>,
        body: &Body,
    ) -> Result<Option<Written>, Error> {
        let kind = request.kind;
        let place = (
            kind.group.as_str(),
            kind.resource.as_str(),
            request.subresource,
        );
        // In boxes: every create comes by here, and few are actions.
        let action: Work<'_, Written> = match place {
            ("", "pods", "binding") | ("", "bindings", "") => Box::pin(self.bind(request, body)),
            ("", "pods", "eviction") => Box::pin(self.evict(request, body)),
            ("", "serviceaccounts", "token") => Box::pin(self.issue_token(request, body)),
            _ => return Ok(None),
        };
        action.await.map(Some)
    }

    /// Replaces a stored object by what an action makes of it; nobody comes to own what changed.
    ///
    /// `None` if somebody else was faster.
    async fn commit_action(
        &self,
        kind: &Arc<Kind>,
        live: Live,
        mut object: Map,
    ) -> Result<Option<Revision>, Error> {
        crate::meta::meta_mut(&mut object).remove("resourceVersion");
        let object = kind.print(object);
        let owners = live.owners;
        let value = self.encode(kind, Draft::by_server(object, owners)).await?;
        let change = Change::Put {
            value,
            ttl_seconds: kind.rules.ttl_seconds,
        };
        let expect = Expect::At(live.record.revision);
        match self
            .store
            .commit(&kind.collection, &live.record.name, expect, change)
            .await
        {
            Ok(committed) => Ok(Some(committed.revision)),
            Err(store::Error::Conflict { .. }) => Ok(None),
            Err(error) => Err(Error::from_store(error, || {
                subject(kind, &live.record.name)
            })),
        }
    }

    /// A kind that is only ever sent to a subresource of `parent`.
    pub(crate) fn sent_kind(
        &self,
        parent: &Arc<Kind>,
        (group, version, kind): (&str, &str, &str),
        definition: &str,
    ) -> Result<Arc<Kind>, Error> {
        let root = Catalogue::builtin().definition(definition);
        let root = root.ok_or_else(|| Error::Internal(format!("{definition} is not defined")))?;
        Ok(Arc::new(Kind {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            types: Arc::clone(Catalogue::builtin().types()),
            root,
            rules: Rules::default(),
            custom: None,
            ..Kind::clone(parent)
        }))
    }
}

/// The advice that comes with a deletion.
pub(crate) fn delete_warning(request: &Request<'_>, options: &DeleteOptions) -> Option<String> {
    let is_job = request.kind.group == "batch" && request.kind.resource == "jobs";
    let is_said = options.propagation.is_some() || options.orphan_dependents.is_some();
    let text = "child pods are preserved by default when jobs are deleted; set \
                propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
                suppress this warning";
    (is_job && !is_said && request.kind.rules.orphan_by_default).then(|| text.to_owned())
}

/// Classes that the server itself depends on stay.
pub(crate) fn check_deletable(request: &Request<'_>) -> Result<(), Error> {
    const SYSTEM_CLASSES: [&str; 2] = ["system-node-critical", "system-cluster-critical"];
    let kind = request.kind;
    let is_class = kind.group == "scheduling.k8s.io" && kind.resource == "priorityclasses";
    if !is_class || !SYSTEM_CLASSES.contains(&request.name) {
        return Ok(());
    }
    Err(Error::Forbidden {
        subject: subject(kind, request.name),
        detail: "this is a system priority class and cannot be deleted".to_owned(),
        causes: Vec::new(),
    })
}

/// That an action is done.
fn done() -> Written {
    let status = value!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    });
    let object::Value::Object(status) = status else {
        unreachable!("it was made of a map above")
    };
    Written {
        object: WrittenObject::Virtual(status),
        created: true,
    }
}
