//! Binding: a scheduler says on which node a pod runs.
//!
//! Contract: `pkg/registry/core/pod/storage/storage.go`.

use object::field::{FieldError, Path};
use object::{Map, Text, Value, value};

use super::done;
use crate::admission::{Place, Plugin};
use crate::body::{self, Body, Parsed};
use crate::error::{Error, Subject};
use crate::meta::{meta, meta_mut, meta_text};
use crate::ownership::Owners;
use crate::write::{Written, check_namespace};
use crate::{Request, Resources, subject};

const PODS: Place = ("", "v1", "pods");
const BINDINGS: Place = ("", "v1", "bindings");
const NODES: Place = ("", "v1", "nodes");
/// Labels of a node that its pods carry too.
const TOPOLOGY_LABELS: [&str; 2] = [
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
];

impl Resources {
    /// `POST` of a Binding, to a pod or to the collection of old.
    pub(super) async fn bind(&self, request: &Request<'_>, body: &Body) -> Result<Written, Error> {
        let kind = self.built_in(BINDINGS)?;
        let sent = Request { kind, ..*request };
        let Parsed { mut wanted, .. } = body::read(&self.catalogue(), &sent, body)?;
        let binding = &mut wanted.object;
        check_namespace(&sent, binding)?;
        self.admission.receive(self, request, binding).await?;
        let name = Text::from(meta_text(binding, "name"));
        if !request.name.is_empty() && name != request.name {
            let text = "name in URL does not match name in Binding object";
            return Err(Error::BadRequest(text.to_owned()));
        }
        let owners = Owners::of_created(self, &sent, &mut wanted);
        let mut binding = wanted.object;
        owners.show_in(&mut binding);
        let binding = self.admit_sent(request, kind, binding).await?;
        check_target(&binding)?;
        let pods = self.built_in(PODS)?;
        let pod = Request {
            kind: pods,
            name: &name,
            subresource: "",
            ..*request
        };
        let node = binding
            .get("target")
            .and_then(|target| target.str_at(&["name"]));
        let labels = if self.admission.has(Plugin::PodTopologyLabels) {
            self.topology(node.unwrap_or_default()).await?
        } else {
            Vec::new()
        };
        loop {
            let Some(live) = self.live(&pod).await? else {
                return Err(Error::NotFound(subject(pods, &name)));
            };
            check_preconditions(&binding, live.map(), &name)?;
            let mut bound = live.map().clone();
            assign(&mut bound, &binding, &labels, &self.now_text()).map_err(|detail| {
                let resource = "pods/binding".into();
                let subject = Subject {
                    group: Text::default(),
                    resource,
                    name: name.clone(),
                };
                Error::Conflict { subject, detail }
            })?;
            if request.options.dry_run || self.commit_action(pods, live, bound).await?.is_some() {
                return Ok(done());
            }
        }
    }

    /// The labels of a node that tell where it is.
    pub(crate) async fn topology(&self, node: &str) -> Result<Vec<(Text, Value)>, Error> {
        let node = self.find(NODES, "", node).await?.unwrap_or_default();
        let labels = meta(&node).get("labels").and_then(Value::as_object);
        let found = TOPOLOGY_LABELS.iter().filter_map(|key| {
            let value = labels?.get(key)?;
            Some((Text::from(*key), value.clone()))
        });
        Ok(found.collect())
    }
}

fn check_target(binding: &Map) -> Result<(), Error> {
    let target = binding.get("target");
    let text = |field| {
        target
            .and_then(|target| target.str_at(&[field]))
            .unwrap_or_default()
    };
    let root = Path::root();
    let path = root.field("target");
    let mut errors = Vec::new();
    let kind = text("kind");
    if !matches!(kind, "" | "Node") {
        let known = &["Node", "<empty>"];
        errors.push(FieldError::not_supported(
            &path.field("kind"),
            &Value::from(kind),
            known,
        ));
    }
    if text("name").is_empty() {
        errors.push(FieldError::required(&path.field("name"), ""));
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Error::BadRequest(object::field::summary(&errors)))
}

fn check_preconditions(binding: &Map, pod: &Map, name: &str) -> Result<(), Error> {
    for (field, what) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
        let (wanted, found) = (meta_text(binding, field), meta_text(pod, field));
        if !wanted.is_empty() && wanted != found {
            let resource = "pods".into();
            let subject = Subject {
                group: Text::default(),
                resource,
                name: name.into(),
            };
            let detail = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: \
                 {found}"
            );
            return Err(Error::Conflict { subject, detail });
        }
    }
    Ok(())
}

fn assign(pod: &mut Map, binding: &Map, labels: &[(Text, Value)], now: &str) -> Result<(), String> {
    let name = meta_text(pod, "name").to_owned();
    if meta(pod).contains_key("deletionTimestamp") {
        return Err(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ));
    }
    let spec = pod.object_at("spec");
    let node = spec
        .get("nodeName")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !node.is_empty() {
        return Err(format!("pod {name} is already assigned to node \"{node}\""));
    }
    let gates = spec.get("schedulingGates").and_then(Value::as_array);
    if gates.is_some_and(|gates| !gates.is_empty()) {
        return Err(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    let node = binding.get("target").and_then(|target| target.get("name"));
    spec.insert("nodeName", node.cloned().unwrap_or_default());
    let copied = meta(binding).get("annotations").and_then(Value::as_object);
    for (key, value) in copied.into_iter().flat_map(Map::iter) {
        meta_mut(pod)
            .object_at("annotations")
            .insert(key.clone(), value.clone());
    }
    for (key, value) in labels {
        meta_mut(pod)
            .object_at("labels")
            .insert(key.clone(), value.clone());
    }
    set_condition(pod, value!({"type": "PodScheduled", "status": "True"}), now);
    Ok(())
}

/// Sets a condition of a pod, and when it changed.
pub(super) fn set_condition(pod: &mut Map, mut condition: Value, now: &str) {
    let status = pod.object_at("status");
    let conditions = status.get_or_insert_with("conditions", || Value::Array(Vec::new()));
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };
    let kind = condition.str_at(&["type"]).map(Text::from);
    let before = conditions
        .iter_mut()
        .find(|known| known.str_at(&["type"]) == kind.as_deref());
    let unchanged = before
        .as_ref()
        .is_some_and(|before| before.str_at(&["status"]) == condition.str_at(&["status"]));
    let since = before
        .as_ref()
        .and_then(|before| before.get("lastTransitionTime"));
    let since = since
        .filter(|_| unchanged)
        .cloned()
        .unwrap_or_else(|| Value::from(now));
    if let Some(fields) = condition.as_object_mut() {
        fields.insert("lastTransitionTime", since);
        fields.insert("lastProbeTime", Value::Null);
    }
    match before {
        Some(before) => *before = condition,
        None => conditions.push(condition),
    }
}
