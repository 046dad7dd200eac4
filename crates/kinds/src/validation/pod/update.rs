//! What may change in a pod once it exists, through the pod itself and through its subresources.

use object::field::{FieldError, Path, quote};
use object::{Map, Value, names};

use super::{affinity, annotations, totals};
use crate::validation::check::{self, Errors, Report};
use crate::validation::read::{Read, maps};
use crate::validation::{internal, meta, print};

const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,\
    `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const MUTABLE: &str = "only cpu and memory resources are mutable";
const ONLY_ADDED: &str = "only additions are allowed (no mutations or deletions)";

/// Checks a change of the pod itself.
pub(super) fn whole(new: &Map, old: &Map, errors: &mut Errors) {
    meta::again(new, true, errors);
    super::whole(new, errors);
    changed_annotations(new, old, errors);
    let (spec, stored) = (new.object_or_empty("spec"), old.object_or_empty("spec"));
    let root = Path::root();
    let path = root.field("spec");
    for key in ["containers", "initContainers"] {
        if !same_containers(spec.list(key), stored.list(key), &path.field(key), errors) {
            return;
        }
    }
    active_deadline(spec, stored, &path.field("activeDeadlineSeconds"), errors);
    added_tolerations(spec, stored, &path.field("tolerations"), errors);
    deleted_gates(spec, stored, &path.field("schedulingGates"), errors);
    if check::same(new.value("spec"), old.value("spec")) {
        return;
    }
    let mut munged = restore_updatable(spec, stored);
    if !stored.list("schedulingGates").is_empty() {
        gated(&mut munged, stored, &path, errors);
    }
    let munged = Value::Object(munged);
    if !check::same(&munged, old.value("spec")) {
        let munged = munged.as_object().unwrap_or(spec);
        let changed = internal::difference(stored, munged, "PodSpec");
        let detail = format!("pod updates may not change fields other than {UPDATABLE}\n{changed}");
        errors.forbidden(&path, detail);
    }
}

fn changed_annotations(new: &Map, old: &Map, errors: &mut Errors) {
    let root = Path::root();
    let path = root.field("metadata");
    let path = path.field("annotations");
    let given = new
        .object_or_empty("metadata")
        .object_or_empty("annotations");
    let stored = old
        .object_or_empty("metadata")
        .object_or_empty("annotations");
    annotations::change(given, stored, &path, errors);
    annotations::specific(given, new.object_or_empty("spec"), &path, errors);
}

fn same_containers(new: &[Value], old: &[Value], path: &Path<'_>, errors: &mut Errors) -> bool {
    if new.len() != old.len() {
        errors.forbidden(path, "pod updates may not add or remove containers");
        return false;
    }
    for (index, container) in maps(new) {
        let path = path.index(index);
        if container.text("image").is_empty() {
            errors.required(&path.field("image"), "");
        }
        super::containers::trimmed_image(container, &path, errors);
    }
    true
}

fn active_deadline(spec: &Map, stored: &Map, path: &Path<'_>, errors: &mut Errors) {
    let before = stored.int("activeDeadlineSeconds");
    match (spec.int("activeDeadlineSeconds"), before) {
        (Some(seconds), before) => {
            for complaint in names::in_range(seconds, 0, i64::from(i32::MAX)) {
                errors.invalid(path, seconds, complaint);
            }
            if before.is_some_and(|before| before < seconds) {
                let detail = "must be less than or equal to previous value";
                errors.invalid(path, seconds, detail);
            }
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.invalid_value(path, &Value::Null, detail);
        }
        (None, None) => {}
    }
}

fn added_tolerations(spec: &Map, stored: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = spec.list("tolerations");
    for (_, old) in maps(stored.list("tolerations")) {
        let kept = maps(list).any(|(_, new)| {
            let others = |map: &Map| {
                let mut map = map.clone();
                map.remove("tolerationSeconds");
                Value::Object(map)
            };
            check::same(&others(new), &others(old))
        });
        if !kept {
            let detail = "existing toleration can not be modified except its tolerationSeconds";
            errors.forbidden(path, detail);
            return;
        }
    }
    affinity::tolerations(list, path, errors);
}

fn deleted_gates(spec: &Map, stored: &Map, path: &Path<'_>, errors: &mut Errors) {
    for (index, gate) in maps(spec.list("schedulingGates")) {
        let name = gate.text("name");
        let known = maps(stored.list("schedulingGates")).any(|(_, old)| old.text("name") == name);
        if !known {
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            errors.forbidden(&path.index(index).field("name"), detail);
        }
    }
}

/// The new spec with all that may change set back to what it was.
fn restore_updatable(spec: &Map, stored: &Map) -> Map {
    let mut munged = spec.clone();
    for key in ["containers", "initContainers"] {
        let list = munged.get_mut(key).and_then(Value::as_array_mut);
        for (index, container) in list.into_iter().flatten().enumerate() {
            let image = stored.list(key).get(index).and_then(|old| old.get("image"));
            if let (Some(container), Some(image)) = (container.as_object_mut(), image) {
                container.insert("image", image.clone());
            }
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        restore(&mut munged, stored, key);
    }
    let grace = "terminationGracePeriodSeconds";
    if stored.int(grace).is_some_and(|seconds| seconds < 0) && munged.int(grace) == Some(1) {
        restore(&mut munged, stored, grace);
    }
    munged
}

fn restore(map: &mut Map, stored: &Map, key: &str) {
    match stored.get(key) {
        Some(value) => map.insert(key, value.clone()),
        None => map.remove(key),
    };
}

/// A pod that is not scheduled yet may become pickier about nodes.
fn gated(munged: &mut Map, stored: &Map, path: &Path<'_>, errors: &mut Errors) {
    let before = stored.object_or_empty("nodeSelector");
    let selector = munged.value("nodeSelector").clone();
    for (key, value) in before.iter() {
        if selector.get(key) != Some(value) {
            let detail =
                "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            errors.invalid_value(&path.field("nodeSelector"), &selector, detail);
        }
    }
    restore(munged, stored, "nodeSelector");
    gated_affinity(munged, stored, &path.field("affinity"), errors);
}

/// Checks which nodes a gated pod wants, and sets that back to what it was.
fn gated_affinity(munged: &mut Map, stored: &Map, path: &Path<'_>, errors: &mut Errors) {
    const KEY: &str = "nodeAffinity";
    let (new, old) = (
        munged.object_or_empty("affinity"),
        stored.object_or_empty("affinity"),
    );
    if check::same_field(new, old, KEY) {
        return;
    }
    let path = path.field(KEY);
    node_affinity(new.object(KEY), old.object(KEY), &path, errors);
    let is_all = !new.has("podAffinity") && !new.has("podAntiAffinity");
    if is_all && !stored.has("affinity") {
        munged.remove("affinity");
    } else {
        restore(munged.object_at("affinity"), old, KEY);
    }
}

fn node_affinity(new: Option<&Map>, old: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let selector = |affinity: Option<&Map>| {
        affinity
            .map_or(&Value::Null, |affinity| affinity.value(REQUIRED))
            .clone()
    };
    let (old, new) = (selector(old), selector(new));
    let terms = |selector: &Value| {
        let list = selector.get("nodeSelectorTerms").and_then(Value::as_array);
        list.unwrap_or_default().to_vec()
    };
    let given = new.get("nodeSelectorTerms").cloned().unwrap_or_default();
    let (old, new) = (terms(&old), terms(&new));
    let path = path.field(REQUIRED);
    let path = path.field("nodeSelectorTerms");
    if !old.is_empty() && old.len() != new.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(print_terms(&path, &given, detail));
        return;
    }
    for (index, (old, new)) in maps(&old).map(|(_, old)| old).zip(maps(&new)).enumerate() {
        if !only_adds(new.1, old) {
            let term = Value::Object(new.1.clone());
            let path = path.index(index);
            errors.push(internal::invalid(&path, &term, TERM, ONLY_ADDED));
        }
    }
}

const TERM: &str = "NodeSelectorTerm";

fn print_terms(path: &Path<'_>, terms: &Value, detail: &str) -> FieldError {
    let shown = match terms {
        Value::Array(terms) => {
            let shown: Vec<String> = terms.iter().map(|it| internal::print(it, TERM)).collect();
            format!("[{}]", shown.join(","))
        }
        _ => "null".to_owned(),
    };
    print::invalid_text(path, shown, detail)
}

fn only_adds(new: &Map, old: &Map) -> bool {
    let keys = ["matchExpressions", "matchFields"];
    let asks = |term: &Map| keys.iter().any(|key| !term.list(key).is_empty());
    if !asks(old) && asks(new) {
        return false;
    }
    keys.iter().all(|key| {
        let old = old.list(key);
        new.list(key).get(..old.len()) == Some(old)
    })
}

/// Checks a change of the status.
pub(super) fn status(new: &Map, old: &Map, errors: &mut Errors) {
    changed_annotations(new, old, errors);
    let (status, stored) = (new.object_or_empty("status"), old.object_or_empty("status"));
    let root = Path::root();
    let path = root.field("status");
    conditions(status, &path.field("conditions"), errors);
    let (spec, stored_spec) = (new.object_or_empty("spec"), old.object_or_empty("spec"));
    if spec.text("nodeName") != stored_spec.text("nodeName") {
        errors.forbidden(&path.field("nodeName"), "may not be changed directly");
    }
    let nominated = status.text("nominatedNodeName");
    if !nominated.is_empty() && nominated != stored.text("nominatedNodeName") {
        let path = path.field("nominatedNodeName");
        errors.each(&path, nominated, names::dns1123_subdomain(nominated));
        if !stored_spec.text("nodeName").is_empty() {
            let detail = "may not be set on pods that are already bound to a node";
            errors.forbidden(&path, detail);
        }
    }
    if let Some(generation) = status.int("observedGeneration").filter(|it| *it < 0) {
        let detail = "must be a non-negative integer";
        errors.invalid(&path.field("observedGeneration"), generation, detail);
    }
    if status.text("qosClass") != stored.text("qosClass") {
        let class = status.text("qosClass");
        errors.invalid(&path.field("qosClass"), class, check::IMMUTABLE);
    }
    transitions(status, stored, stored_spec, &path, errors);
    addresses(status, stored, "podIPs", &path, errors);
    let first = maps(status.list("hostIPs")).next();
    if let Some((_, first)) = first.filter(|(_, it)| it.text("ip") != status.text("hostIP")) {
        let path = path.field("hostIPs");
        let detail = "must be equal to `hostIP`";
        errors.invalid(&path.index(0).field("ip"), first.text("ip"), detail);
    }
    addresses(status, stored, "hostIPs", &path, errors);
}

fn conditions(status: &Map, path: &Path<'_>, errors: &mut Errors) {
    for (index, condition) in maps(status.list("conditions")) {
        let path = path.index(index);
        if let Some(generation) = condition.int("observedGeneration").filter(|it| *it < 0) {
            let detail = "must be a non-negative integer";
            errors.invalid(&path.field("observedGeneration"), generation, detail);
        }
        let kind = condition.text("type");
        errors.each(&path.field("Type"), kind, names::qualified_name(kind));
    }
}

/// A container that has ended starts again only if the pod says so.
fn transitions(status: &Map, stored: &Map, spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let policy = spec.text("restartPolicy");
    let has_rules = maps(spec.list("containers"))
        .chain(maps(spec.list("initContainers")))
        .any(|(_, container)| {
            container.has("restartPolicy") || container.has("restartPolicyRules")
        });
    if policy == "Always" || has_rules {
        return;
    }
    for key in ["containerStatuses", "initContainerStatuses"] {
        let path = path.field(key);
        for (index, old) in maps(stored.list(key)) {
            let Some(ended) = old.object_or_empty("state").object("terminated") else {
                continue;
            };
            if policy == "OnFailure" && ended.int("exitCode").unwrap_or_default() != 0 {
                continue;
            }
            let revived = maps(status.list(key)).any(|(_, new)| {
                new.text("name") == old.text("name")
                    && !new.object_or_empty("state").has("terminated")
            });
            if revived {
                let detail = "may not be transitioned to non-terminated state";
                errors.forbidden(&path.index(index).field("state"), detail);
            }
        }
    }
}

fn addresses(status: &Map, stored: &Map, key: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.field(key);
    let known: Vec<&str> = maps(stored.list(key))
        .map(|(_, it)| it.text("ip"))
        .collect();
    let list = status.list(key);
    for (index, address) in maps(list) {
        check::legacy_ip(address.text("ip"), &known, &path.index(index), errors);
    }
    let is_six = |index: usize| {
        maps(list)
            .nth(index)
            .is_some_and(|(_, address)| address.text("ip").contains(':'))
    };
    if list.len() > 2 || list.len() == 2 && is_six(0) == is_six(1) {
        let shown: Vec<String> = maps(list)
            .map(|(_, address)| format!("{{\"IP\":{}}}", quote(address.text("ip"))))
            .collect();
        errors.push(crate::validation::print::invalid_text(
            &path,
            format!("[{}]", shown.join(",")),
            "may specify no more than one IP for each IP family",
        ));
    }
}

/// Checks a change of the ephemeral containers.
pub(super) fn ephemeral(new: &Map, old: &Map, errors: &mut Errors) {
    meta::again(new, true, errors);
    super::whole(new, errors);
    changed_annotations(new, old, errors);
    if is_mirror(old) {
        let detail = "static pods do not support ephemeral containers";
        *errors = vec![FieldError::forbidden(&Path::root().key(""), detail)];
        return;
    }
    let root = Path::root();
    let path = root.field("spec");
    let path = path.field("ephemeralContainers");
    let list = new.object_or_empty("spec").list("ephemeralContainers");
    for before in old.object_or_empty("spec").list("ephemeralContainers") {
        let name = before
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let now = list
            .iter()
            .rfind(|it| it.get("name").and_then(Value::as_str) == Some(name));
        let problem = match now {
            None => "removed\n".to_owned(),
            Some(now) if !check::same(now, before) => "changed\n".to_owned(),
            Some(_) => continue,
        };
        let detail = format!(
            "existing ephemeral containers {} may not be {problem}",
            quote(name)
        );
        errors.forbidden(&path, detail);
    }
}

fn is_mirror(pod: &Map) -> bool {
    annotations::is_mirror(
        pod.object_or_empty("metadata")
            .object_or_empty("annotations"),
    )
}

/// Checks a change of what the containers may use.
pub(super) fn resize(new: &Map, old: &Map, errors: &mut Errors) {
    meta::again(new, true, errors);
    super::whole(new, errors);
    let (spec, stored) = (new.object_or_empty("spec"), old.object_or_empty("spec"));
    let refused = if is_mirror(old) {
        Some("static pods cannot be resized")
    } else if stored.object_or_empty("os").text("name") == "windows" {
        Some("windows pods cannot be resized")
    } else {
        None
    };
    if let Some(detail) = refused {
        *errors = vec![FieldError::forbidden(&Path::root().key(""), detail)];
        return;
    }
    let root = Path::root();
    let path = root.field("spec");
    let class = old.object_or_empty("status").text("qosClass");
    let class = if class.is_empty() {
        totals::service_class(stored)
    } else {
        class
    };
    if class != totals::service_class(spec) {
        let shown = new.object_or_empty("status").text("qosClass");
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.invalid(&path, shown, detail);
    }
    let before = errors.len();
    for key in ["containers", "initContainers"] {
        same_order(
            spec.list(key),
            stored.list(key),
            key,
            &path.field(key),
            errors,
        );
    }
    if errors.len() > before {
        return;
    }
    resized(spec, stored, &path, errors);
}

fn same_order(new: &[Value], old: &[Value], key: &str, path: &Path<'_>, errors: &mut Errors) {
    if new.len() != old.len() {
        errors.forbidden(path, format!("{key} may not be added or removed on resize"));
        return;
    }
    for ((index, new), (_, old)) in maps(new).zip(maps(old)) {
        if new.text("name") != old.text("name") {
            let detail = format!("{key} may not be renamed or reordered on resize");
            errors.forbidden(&path.index(index).field("name"), detail);
        }
    }
}

fn resized(spec: &Map, stored: &Map, path: &Path<'_>, errors: &mut Errors) {
    for key in ["initContainers", "containers"] {
        let path = path.field(key);
        for ((index, new), (_, old)) in maps(spec.list(key)).zip(maps(stored.list(key))) {
            let is_sidecar = old.text("restartPolicy") == "Always";
            if key == "initContainers" && !is_sidecar {
                continue;
            }
            removed(new, old, &path.index(index).field("resources"), errors);
        }
    }
    let mut munged = spec.clone();
    for ((_, new), (_, old)) in maps(spec.list("containers")).zip(maps(stored.list("containers"))) {
        if !check::same(&without_resources(new), &without_resources(old)) {
            errors.forbidden(path, MUTABLE);
        }
    }
    let inits = maps(spec.list("initContainers")).zip(maps(stored.list("initContainers")));
    for ((index, new), (_, old)) in inits {
        let at = path.field("initContainers");
        if new.text("restartPolicy") == "Always" {
            if !check::same(&without_resources(new), &without_resources(old)) {
                let detail =
                    "only cpu and memory resources for init or sidecar containers are mutable";
                errors.forbidden(&at.index(index), detail);
            }
        } else if new != old {
            errors.forbidden(
                path,
                "resources for non-sidecar init containers are immutable",
            );
        }
    }
    for key in ["containers", "initContainers", "resources"] {
        restore(&mut munged, stored, key);
    }
    if errors.is_empty() && !check::same(&munged.into(), &stored.clone().into()) {
        errors.forbidden(path, MUTABLE);
    }
}

fn removed(new: &Map, old: &Map, path: &Path<'_>, errors: &mut Errors) {
    let (new, old) = (
        new.object_or_empty("resources"),
        old.object_or_empty("resources"),
    );
    for key in ["requests", "limits"] {
        let now = new.object_or_empty(key);
        if old
            .object_or_empty(key)
            .keys()
            .any(|name| !now.contains_key(name))
        {
            errors.forbidden(
                &path.field(key),
                format!("resource {key} cannot be removed"),
            );
        }
    }
}

/// A container without the resources that may be resized.
fn without_resources(container: &Map) -> Value {
    let mut container = container.clone();
    if let Some(resources) = container
        .get_mut("resources")
        .and_then(Value::as_object_mut)
    {
        for key in ["requests", "limits"] {
            if let Some(list) = resources.get_mut(key).and_then(Value::as_object_mut) {
                list.remove("cpu");
                list.remove("memory");
            }
        }
    }
    container.into()
}
