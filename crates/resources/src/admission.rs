//! The admission chain: what may change or refuse a write between the merge and the commit.
//!
//! Plugins run in the order in which [`Chain`] calls them, and each can be switched off by its
//! upstream name.

use object::{Map, Value};

use crate::error::{Cause, Error, Subject};
use crate::meta::{meta, meta_text};
use crate::{Request, Resources, subject};

/// Namespaces that cannot be deleted.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The plugins that are switched on.
#[derive(Clone, Debug)]
pub struct Chain {
    namespace_lifecycle: bool,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { namespace_lifecycle: true }
    }
}

impl Chain {
    /// The names of all plugins.
    pub const PLUGINS: &[&str] = &["NamespaceLifecycle"];

    /// Every plugin but these.
    pub fn without(disabled: &[String]) -> Chain {
        let on = |name: &str| !disabled.iter().any(|disabled| disabled == name);
        Chain { namespace_lifecycle: on("NamespaceLifecycle") }
    }

    /// Plugins that may change the object; `old` is the stored one when it is an update.
    pub(crate) async fn mutate(
        &self,
        resources: &Resources,
        request: &Request<'_>,
        object: &mut Map,
        old: Option<&Map>,
    ) -> Result<(), Error> {
        if self.namespace_lifecycle && request.kind.namespaced {
            check_namespace(resources, request, object, old).await?;
        }
        Ok(())
    }

    /// Plugins that only look.
    pub(crate) async fn validate(
        &self,
        _resources: &Resources,
        _request: &Request<'_>,
        _object: &Map,
        _old: Option<&Map>,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Plugins that may refuse a deletion.
    pub(crate) async fn delete(
        &self,
        _resources: &Resources,
        request: &Request<'_>,
        _object: &Map,
    ) -> Result<(), Error> {
        let namespace = request.kind.resource == "namespaces" && request.kind.group.is_empty();
        if self.namespace_lifecycle && namespace && IMMORTAL_NAMESPACES.contains(&request.name) {
            return Err(Error::Forbidden {
                subject: subject(request.kind, request.name),
                detail: "this namespace may not be deleted".to_owned(),
                causes: Vec::new(),
            });
        }
        Ok(())
    }
}

/// An object needs its namespace, and a new one needs it alive.
async fn check_namespace(
    resources: &Resources,
    request: &Request<'_>,
    object: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let namespace = resources.namespace(request.namespace).await?;
    let Some(namespace) = namespace else {
        return Err(Error::NotFound(Subject {
            group: object::Text::default(),
            resource: "namespaces".into(),
            name: request.namespace.into(),
        }));
    };
    let terminating = meta(&namespace).contains_key("deletionTimestamp")
        || namespace.get("status").and_then(|status| status.str_at(&["phase"]))
            == Some("Terminating");
    if old.is_some() || !terminating {
        return Ok(());
    }
    let name = match (meta_text(object, "name"), meta_text(object, "generateName")) {
        ("", "") => "Unknown",
        ("", base) => base,
        (name, _) => name,
    };
    let namespace = request.namespace;
    Err(Error::Forbidden {
        subject: subject(request.kind, name),
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

impl Resources {
    /// A namespace, if it exists.
    async fn namespace(&self, name: &str) -> Result<Option<Map>, Error> {
        let kind = self.catalogue.resource("", "v1", "namespaces");
        let kind = kind.expect("namespaces are built in");
        match self.get(kind, "", name, None).await {
            Ok(record) => {
                let live = self.take_apart(kind, record)?;
                match live.object {
                    Value::Object(namespace) => Ok(Some(namespace)),
                    _ => Ok(None),
                }
            }
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
