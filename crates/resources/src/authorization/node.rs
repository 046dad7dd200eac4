//! What nodes may do: read what their own pods need, and write about themselves.
//!
//! What a node may read is found by looking at the pods bound to it, at the time of the question,
//! instead of keeping a graph. What concerns every node alike are the rules of the ClusterRole
//! `system:node`. Contract: `plugin/pkg/auth/authorizer/node`; one difference: nodes may list all
//! pods and slices, since a question does not tell which fields the list is limited to.

use std::sync::Arc;

use auth::{Attributes, Authorizer, Deciding, Decision, RoleRef, User, Verdict};
use object::fields::{Comparison, FieldSelector, Term};
use object::labels::LabelSelector;
use object::{Map, Value};

use crate::Resources;
use crate::admission::Place;
use crate::error::Error;
use crate::meta::{meta, meta_text};
use crate::options::{ListOptions, Selection};

const PODS: Place = ("", "v1", "pods");
const CLAIMS: Place = ("", "v1", "persistentvolumeclaims");
const VOLUMES: Place = ("", "v1", "persistentvolumes");
const ATTACHMENTS: Place = ("storage.k8s.io", "v1", "volumeattachments");
const SLICES: Place = ("resource.k8s.io", "v1", "resourceslices");
const LEASES: &str = "kube-node-lease";
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
/// Secrets that only controllers read.
const CONTROLLER_SECRETS: [&str; 2] = ["controllerPublishSecretRef", "controllerExpandSecretRef"];

/// Decides for users in the group `system:nodes`.
struct NodeAuthorizer {
    resources: Resources,
}

/// What a node wants of an object.
struct Wish<'a> {
    node: &'a str,
    verb: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
}

/// A refusal in upstream's words, or permission.
type Outcome = Result<(), String>;

impl NodeAuthorizer {
    /// Looks at the pods among these objects.
    fn new(resources: Resources) -> NodeAuthorizer {
        NodeAuthorizer { resources }
    }

    async fn authorize(&self, user: &User, attributes: Attributes<'_>) -> Option<Outcome> {
        let node = node_of(user)?;
        if node.is_empty() {
            let name = object::field::quote(&user.name);
            return Some(Err(format!("unknown node for user {name}")));
        }
        let outcome = match attributes {
            Attributes::Path { .. } => self.by_rules(attributes).await,
            Attributes::Resource {
                verb,
                group,
                resource,
                namespace,
                name,
            } => {
                let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                let wish = Wish {
                    node,
                    verb,
                    subresource,
                    namespace,
                    name,
                };
                match self.of_resource(group, resource, &wish).await {
                    Some(outcome) => outcome,
                    None => self.by_rules(attributes).await,
                }
            }
        };
        Some(outcome)
    }

    /// Decides about what is divided among nodes; `None` for what is not.
    async fn of_resource(&self, group: &str, resource: &str, wish: &Wish<'_>) -> Option<Outcome> {
        Some(match (group, resource) {
            ("", "secrets" | "configmaps") => match wish.may_read() {
                Ok(()) => self.related(resource, wish).await,
                refused => refused,
            },
            ("", "persistentvolumeclaims") if wish.subresource == "status" => match wish.verb {
                "update" | "patch" => self.related(resource, wish).await,
                _ => Err("can only get/update/patch this type".to_owned()),
            },
            ("", "persistentvolumeclaims" | "persistentvolumes")
            | ("resource.k8s.io", "resourceclaims")
            | ("storage.k8s.io", "volumeattachments") => match wish.may_get() {
                Ok(()) => self.related(resource, wish).await,
                refused => refused,
            },
            ("", "serviceaccounts") => match wish.may_use_account() {
                Ok(()) => self.related(resource, wish).await,
                refused => refused,
            },
            ("coordination.k8s.io", "leases") => wish.may_lease(),
            ("storage.k8s.io", "csinodes") => wish.may_csi_node(),
            ("resource.k8s.io", "resourceslices") => match wish.may_slice() {
                Ok(true) => Ok(()),
                Ok(false) => self.related(resource, wish).await,
                Err(refused) => Err(refused),
            },
            ("", "nodes") => wish.may_node(),
            ("", "pods") if wish.subresource.is_empty() && wish.verb == "get" => {
                self.related(resource, wish).await
            }
            _ => return None,
        })
    }

    /// Decides by the rules that every node has.
    async fn by_rules(&self, attributes: Attributes<'_>) -> Outcome {
        let rules = self.resources.rules().await.map_err(|it| it.to_string())?;
        let role = RoleRef::ClusterRole("system:node".into());
        let held = rules.role_rules(&role, "").unwrap_or_default();
        match held.iter().any(|rule| rule.allows(attributes)) {
            true => Ok(()),
            false => Err(String::new()),
        }
    }

    /// Whether an object has to do with the node.
    async fn related(&self, resource: &str, wish: &Wish<'_>) -> Outcome {
        if wish.name.is_empty() {
            return Err("No Object name found".to_owned());
        }
        match self.is_related(resource, wish).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!(
                "no relationship found between node '{}' and this object",
                wish.node
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn is_related(&self, resource: &str, wish: &Wish<'_>) -> Result<bool, Error> {
        let own_node = |place: Place| async move {
            let found = self.resources.find(place, "", wish.name).await?;
            let node = found
                .as_ref()
                .and_then(|object| object.get("spec")?.str_at(&["nodeName"]));
            Ok(node == Some(wish.node))
        };
        match resource {
            "volumeattachments" => return own_node(ATTACHMENTS).await,
            "resourceslices" => return own_node(SLICES).await,
            "persistentvolumes" => return self.uses_volume(wish).await,
            _ => {}
        }
        let pods = self.pods(wish.node, wish.namespace).await?;
        if resource == "pods" {
            return Ok(pods.iter().any(|pod| meta_text(pod, "name") == wish.name));
        }
        // What a kubelet made itself opens nothing.
        let mut pods = pods.iter().filter(|pod| !is_mirror(pod));
        let uses = |pod: &Map| {
            let spec = pod.get("spec").unwrap_or(&Value::Null);
            match resource {
                "serviceaccounts" => spec.str_at(&["serviceAccountName"]) == Some(wish.name),
                "secrets" => names_secret(spec, wish.name),
                "configmaps" => names_config_map(spec, wish.name),
                "persistentvolumeclaims" => claims(pod).iter().any(|it| it == wish.name),
                "resourceclaims" => resource_claims(pod).iter().any(|it| it == wish.name),
                _ => false,
            }
        };
        if pods.any(uses) {
            return Ok(true);
        }
        if resource == "secrets" {
            return self.volume_uses_secret(wish).await;
        }
        Ok(false)
    }

    /// Whether a pod of the node claims a volume.
    async fn uses_volume(&self, wish: &Wish<'_>) -> Result<bool, Error> {
        let Some(volume) = self.resources.find(VOLUMES, "", wish.name).await? else {
            return Ok(false);
        };
        let claim = volume.get("spec").and_then(|spec| spec.get("claimRef"));
        let text = |field: &str| claim.and_then(|claim| claim.str_at(&[field]));
        let (Some(namespace), Some(name)) = (text("namespace"), text("name")) else {
            return Ok(false);
        };
        let pods = self.pods(wish.node, namespace).await?;
        let mut pods = pods.iter().filter(|pod| !is_mirror(pod));
        Ok(pods.any(|pod| claims(pod).iter().any(|own| own == name)))
    }

    /// Whether a volume that a pod of the node claims needs the secret, in whichever namespace.
    async fn volume_uses_secret(&self, wish: &Wish<'_>) -> Result<bool, Error> {
        for pod in self.pods(wish.node, "").await? {
            if is_mirror(&pod) {
                continue;
            }
            let namespace = meta_text(&pod, "namespace");
            for claim in claims(&pod) {
                let claim = self.resources.find(CLAIMS, namespace, &claim).await?;
                let volume = claim
                    .as_ref()
                    .and_then(|claim| claim.get("spec")?.str_at(&["volumeName"]));
                let Some(volume) = volume else { continue };
                let volume = self.resources.find(VOLUMES, "", volume).await?;
                let spec = volume.as_ref().and_then(|volume| volume.get("spec"));
                if spec.is_some_and(|spec| volume_names_secret(spec, namespace, wish)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The pods that are bound to a node.
    async fn pods(&self, node: &str, namespace: &str) -> Result<Vec<Map>, Error> {
        let kind = self.resources.built_in(PODS)?;
        let fields = FieldSelector::from_terms(vec![Term {
            field: "spec.nodeName".into(),
            comparison: Comparison::Equal,
            value: node.into(),
        }]);
        let options = ListOptions {
            selection: Selection {
                labels: LabelSelector::everything(),
                fields,
            },
            limit: 0,
            continue_token: None,
            version: None,
            version_match: None,
        };
        let listed = self.resources.list(kind, namespace, &options).await?;
        let trees = listed.records.into_iter();
        let trees = trees.map(|record| self.resources.tree(kind, record));
        trees.collect()
    }
}

impl Authorizer for NodeAuthorizer {
    fn decide<'a>(&'a self, user: &'a User, attributes: Attributes<'a>) -> Deciding<'a> {
        Box::pin(async move {
            let (decision, reason) = match self.authorize(user, attributes).await {
                Some(Ok(())) => (Decision::Allow, String::new()),
                Some(Err(reason)) => (Decision::Deny, reason),
                None => (Decision::Deny, String::new()),
            };
            Verdict { decision, reason }
        })
    }

    fn incomplete_rules(&self, user: &User) -> Option<&'static str> {
        node_of(user).map(|_| "node authorizer does not support user rule resolution")
    }
}

/// The node that a user is, if they are one.
fn node_of(user: &User) -> Option<&str> {
    let name = user.name.strip_prefix("system:node:")?;
    user.is_in("system:nodes").then_some(name)
}

impl Wish<'_> {
    fn refuse(reason: &str) -> Outcome {
        Err(reason.to_owned())
    }

    fn may_get(&self) -> Outcome {
        match (self.verb, self.subresource) {
            ("get", "") => Ok(()),
            ("get", _) => Wish::refuse("cannot get subresource"),
            _ => Wish::refuse("can only get individual resources of this type"),
        }
    }

    fn may_read(&self) -> Outcome {
        if !matches!(self.verb, "get" | "list" | "watch") {
            return Wish::refuse("can only read resources of this type");
        }
        if !self.subresource.is_empty() {
            return Wish::refuse("cannot read subresource");
        }
        if self.namespace.is_empty() {
            return Wish::refuse("can only read namespaced object of this type");
        }
        Ok(())
    }

    fn may_use_account(&self) -> Outcome {
        if self.verb == "get" && self.subresource.is_empty() {
            return self.may_read();
        }
        if self.verb != "create" || self.name.is_empty() {
            return Wish::refuse("can only create tokens for individual service accounts");
        }
        if self.subresource != "token" {
            return Wish::refuse("can only create token subresource of serviceaccount");
        }
        Ok(())
    }

    fn may_lease(&self) -> Outcome {
        if !self.changes_one() {
            let text = "can only get, create, update, patch, or delete a node lease";
            return Wish::refuse(text);
        }
        if self.namespace != LEASES {
            return Err(format!(
                "can only access leases in the \"{LEASES}\" system namespace"
            ));
        }
        if self.verb != "create" && self.name != self.node {
            let text = "can only access node lease with the same name as the requesting node";
            return Wish::refuse(text);
        }
        Ok(())
    }

    fn may_csi_node(&self) -> Outcome {
        if !self.changes_one() {
            return Wish::refuse("can only get, create, update, patch, or delete a CSINode");
        }
        if !self.subresource.is_empty() {
            return Wish::refuse("cannot authorize CSINode subresources");
        }
        if self.verb != "create" && self.name != self.node {
            let text = "can only access CSINode with the same name as the requesting node";
            return Wish::refuse(text);
        }
        Ok(())
    }

    /// Whether a slice may be used as it is; if not, it has to be the node's own.
    fn may_slice(&self) -> Result<bool, String> {
        if !self.subresource.is_empty() {
            return Err("cannot authorize ResourceSlice subresources".to_owned());
        }
        match self.verb {
            "create" => Ok(true),
            "get" | "update" | "patch" | "delete" => Ok(false),
            "watch" | "list" => Ok(true),
            "deletecollection" => Err("can only list/watch/deletecollection resourceslices with \
                                       nodeName field selector"
                .to_owned()),
            _ => Err(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, \
                 create, update, patch, delete, deletecollection"
                    .to_owned(),
            ),
        }
    }

    fn may_node(&self) -> Outcome {
        let node = self.node;
        match (self.subresource, self.verb) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
            ("", "get" | "list" | "watch") => match self.name {
                name if name == node => Ok(()),
                "" => Err(format!(
                    "node '{node}' cannot read all nodes, only its own Node object"
                )),
                name => Err(format!(
                    "node '{node}' cannot read '{name}', only its own Node object"
                )),
            },
            _ => Wish::refuse(""),
        }
    }

    fn changes_one(&self) -> bool {
        matches!(self.verb, "get" | "create" | "update" | "patch" | "delete")
    }
}

fn is_mirror(pod: &Map) -> bool {
    let annotations = meta(pod).get("annotations");
    annotations.is_some_and(|all| all.get(MIRROR_ANNOTATION).is_some())
}

/// Whether something in a pod names a secret of its namespace.
fn names_secret(spec: &Value, name: &str) -> bool {
    any_field(spec, &mut |key, value| match key {
        "secret" | "azureFile" => {
            value.str_at(&["secretName"]) == Some(name) || value.str_at(&["name"]) == Some(name)
        }
        "imagePullSecrets" => {
            let all = value.as_array().unwrap_or_default();
            all.iter().any(|one| one.str_at(&["name"]) == Some(name))
        }
        "secretKeyRef" | "secretRef" | "nodePublishSecretRef" => {
            value.str_at(&["name"]) == Some(name)
        }
        _ => false,
    })
}

fn names_config_map(spec: &Value, name: &str) -> bool {
    any_field(spec, &mut |key, value| {
        matches!(key, "configMap" | "configMapRef" | "configMapKeyRef")
            && value.str_at(&["name"]) == Some(name)
    })
}

/// Whether a volume names a secret that nodes read.
fn volume_names_secret(spec: &Value, claim_namespace: &str, wish: &Wish<'_>) -> bool {
    any_field(spec, &mut |key, value| {
        let (name, namespace) = match key {
            "azureFile" => ("secretName", "secretNamespace"),
            key if CONTROLLER_SECRETS.contains(&key) => return false,
            key if key.ends_with("ecretRef") => ("name", "namespace"),
            _ => return false,
        };
        let namespace = value.str_at(&[namespace]).unwrap_or(claim_namespace);
        value.str_at(&[name]) == Some(wish.name) && namespace == wish.namespace
    })
}

/// Whether a field at any depth is as asked for.
fn any_field(value: &Value, is_it: &mut impl FnMut(&str, &Value) -> bool) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| is_it(key, value) || any_field(value, is_it)),
        Value::Array(items) => items.iter().any(|item| any_field(item, is_it)),
        _ => false,
    }
}

/// The claims of volumes that a pod names.
fn claims(pod: &Map) -> Vec<String> {
    let volumes = pod.get("spec").and_then(|spec| spec.get("volumes"));
    let volumes = volumes.and_then(Value::as_array).unwrap_or_default();
    let claim = |volume: &Value| {
        let named = volume.str_at(&["persistentVolumeClaim", "claimName"]);
        if let Some(named) = named {
            return Some(named.to_owned());
        }
        volume.get("ephemeral")?;
        let name = volume.str_at(&["name"])?;
        Some(format!("{}-{name}", meta_text(pod, "name")))
    };
    volumes.iter().filter_map(claim).collect()
}

/// The claims of devices that a pod names, or that were made for it.
fn resource_claims(pod: &Map) -> Vec<String> {
    let list = |part: &str, field: &str| {
        let list = pod.get(part).and_then(|part| part.get(field));
        list.and_then(Value::as_array).unwrap_or_default()
    };
    let named = list("spec", "resourceClaims").iter();
    let made = list("status", "resourceClaimStatuses").iter();
    let extended = pod
        .get("status")
        .and_then(|status| status.get("extendedResourceClaimStatus"));
    named
        .chain(made)
        .chain(extended)
        .filter_map(|claim| claim.str_at(&["resourceClaimName"]))
        .map(str::to_owned)
        .collect()
}

/// The mode in which nodes may do what nodes do.
pub fn node_mode(resources: &Resources) -> super::Mode {
    super::Mode::Asked(Arc::new(NodeAuthorizer::new(resources.clone())))
}
