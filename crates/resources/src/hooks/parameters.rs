//! The parameters of policies: which objects a binding means.
//!
//! Contract: `CollectParams` in `apiserver/pkg/admission/plugin/policy/generic`.

use std::sync::Arc;

use admission::policy::{Binding, ParamRef, Policy, Which};
use kinds::Kind;
use object::fields::FieldSelector;
use object::{Map, Value};

use crate::Resources;
use crate::error::Error;
use crate::options::{ListOptions, Selection};

impl Resources {
    /// The kind of a policy's parameters, if it has any.
    pub(super) fn param_kind(&self, policy: &Policy) -> Result<Option<Arc<Kind>>, String> {
        let Some((api_version, kind)) = &policy.param_kind else {
            return Ok(None);
        };
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let catalogue = self.catalogue.load();
        match catalogue.by_kind(group, version, kind) {
            Some(kind) => Ok(Some(Arc::clone(kind))),
            None => Err(format!(
                "failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'"
            )),
        }
    }

    /// The parameters that a binding means; one that is `None` if it needs none.
    pub(super) async fn parameters(
        &self,
        kind: Option<&Arc<Kind>>,
        binding: &Binding,
        namespace: &str,
    ) -> Result<Vec<Option<Map>>, String> {
        let (Some(kind), Some(reference)) = (kind, &binding.params) else {
            return Ok(vec![None]);
        };
        let namespace = match (kind.namespaced, reference.namespace.as_str()) {
            (true, "") if namespace.is_empty() => {
                let text = "cannot use namespaced paramRef in policy binding that matches \
                            cluster-scoped resources";
                return Err(text.to_owned());
            }
            (true, "") => namespace,
            (true, named) => named,
            (false, "") => "",
            (false, _) => {
                let text = "paramRef.namespace must not be provided for a cluster-scoped \
                            `paramKind`";
                return Err(text.to_owned());
            }
        };
        let found = self.referenced(kind, reference, namespace).await?;
        if found.is_empty() && reference.required {
            let text = "no params found for policy binding with `Deny` parameterNotFoundAction";
            return Err(text.to_owned());
        }
        Ok(found.into_iter().map(Some).collect())
    }

    async fn referenced(
        &self,
        kind: &Arc<Kind>,
        reference: &ParamRef,
        namespace: &str,
    ) -> Result<Vec<Map>, String> {
        let failed = |error: Error| error.to_string();
        let records = match &reference.which {
            Which::Named(name) => match self.get(kind, namespace, name, None).await {
                Ok(record) => vec![record],
                Err(Error::NotFound(_)) => Vec::new(),
                Err(error) => return Err(failed(error)),
            },
            Which::Selected(selector) => {
                let everything = ListOptions {
                    selection: Selection {
                        labels: selector.clone()?,
                        fields: FieldSelector::everything(),
                    },
                    limit: 0,
                    continue_token: None,
                    version: None,
                    version_match: None,
                };
                let listed = self.list(kind, namespace, &everything).await;
                listed.map_err(failed)?.records
            }
        };
        let tree = |record| match self.take_apart(kind, record).map_err(failed)?.object {
            Value::Object(object) => Ok(object),
            _ => Ok(Map::new()),
        };
        records.into_iter().map(tree).collect()
    }
}
