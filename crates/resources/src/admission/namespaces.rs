//! NamespaceLifecycle, NamespaceAutoProvision and NamespaceExists: an object needs its namespace.

use std::future::Future;
use std::pin::Pin;

use auth::User;
use kinds::Catalogue;
use object::{Map, Text, value};

use super::refused_subject;
use crate::body::Wanted;
use crate::error::{Cause, Error, Subject};
use crate::options::WriteOptions;
use crate::record::Stored;
use crate::{Request, Resources, Warnings, subject};

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// An object needs its namespace, and a new one needs it alive.
pub(super) async fn check_alive(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if !request.kind.namespaced {
        return Ok(());
    }
    let Some(namespace) = resources.namespace(request.namespace).await? else {
        return Err(missing(request.namespace));
    };
    if old.is_some() || namespace == Namespace::Alive {
        return Ok(());
    }
    let namespace = request.namespace;
    Err(Error::Forbidden {
        subject: refused_subject(request, object),
        detail: format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        ),
        causes: vec![Cause {
            reason: "NamespaceTerminating".into(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        }],
    })
}

/// Some namespaces stay.
pub(super) fn check_deletable(request: &Request<'_>) -> Result<(), Error> {
    let namespace = request.kind.resource == "namespaces" && request.kind.group.is_empty();
    if !namespace || !IMMORTAL.contains(&request.name) {
        return Ok(());
    }
    Err(Error::Forbidden {
        subject: subject(request.kind, request.name),
        detail: "this namespace may not be deleted".to_owned(),
        causes: Vec::new(),
    })
}

/// An object needs its namespace, whatever is done with it.
pub(super) async fn check_exists(
    resources: &Resources,
    request: &Request<'_>,
) -> Result<(), Error> {
    if !request.kind.namespaced || resources.namespace(request.namespace).await?.is_some() {
        return Ok(());
    }
    Err(missing(request.namespace))
}

/// Makes the namespace of a new object if it is missing.
pub(super) async fn provide(
    resources: &Resources,
    request: &Request<'_>,
    old: Option<&Map>,
) -> Result<(), Error> {
    if !request.kind.namespaced || old.is_some() || request.options.dry_run {
        return Ok(());
    }
    if resources.namespace(request.namespace).await?.is_some() {
        return Ok(());
    }
    make(resources.clone(), request.namespace.into()).await
}

/// The type is spelled out because a create is admitted, and admission creates here.
fn make(
    resources: Resources,
    name: Text,
) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> {
    Box::pin(async move {
        let kind = resources.built_in(("", "v1", "namespaces"))?;
        let options = WriteOptions {
            manager: "kube-apiserver".into(),
            ..WriteOptions::default()
        };
        let request = Request {
            kind,
            namespace: "",
            name: "",
            subresource: "",
            user: &User::server(),
            options: &options,
            warnings: &Warnings::default(),
        };
        let object::Value::Object(object) = value!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name},
        }) else {
            unreachable!("it was made of a map just above")
        };
        match resources
            .create_object(&request, Wanted::by_server(object))
            .await
        {
            Ok(_) | Err(Error::AlreadyExists(_)) => Ok(()),
            Err(error) => Err(error),
        }
    })
}

fn missing(namespace: &str) -> Error {
    Error::NotFound(Subject {
        group: Text::default(),
        resource: "namespaces".into(),
        name: namespace.into(),
    })
}

/// What counts about a namespace.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Alive,
    Terminating,
}

impl Resources {
    /// The state of a namespace, if it exists. Every write asks, so nothing is parsed.
    async fn namespace(&self, name: &str) -> Result<Option<Namespace>, Error> {
        let kind = Catalogue::builtin().resource("", "v1", "namespaces");
        let kind = kind.expect("namespaces are built in");
        let found = self.store.get(&kind.collection, name).await;
        let found = found.map_err(|error| Error::from_store(error, || subject(kind, name)))?;
        Ok(found.map(|record| match Stored::new(&record.value) {
            Ok(stored) if stored.is_deleting() => Namespace::Terminating,
            _ => Namespace::Alive,
        }))
    }
}
