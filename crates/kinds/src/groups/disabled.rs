//! Fields of pods behind feature gates that are closed by default.
//!
//! They are published in the schema, so clients can send them; they are dropped without a word,
//! unless the stored object uses them already.

use object::{Map, Value};

use crate::defaults::fill::{at, each, is_unset, items, object, within};

const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
const PROJECTIONS: [&str; 2] = ["clusterTrustBundle", "podCertificate"];

/// Drops them from the template of a workload.
pub(super) fn drop_from_template(new: &mut Map, old: Option<&Map>) {
    drop_at(new, old, &["spec", "template", "spec"]);
}

/// Drops them from the pod spec at this path.
pub(super) fn drop_at(new: &mut Map, old: Option<&Map>, path: &[&str]) {
    let old = old.and_then(|old| at(old, path)?.as_object());
    let spec = path.iter().try_fold(new, |map, key| {
        map.get_mut(key).and_then(Value::as_object_mut)
    });
    if let Some(spec) = spec {
        drop_from_spec(spec, old);
    }
}

/// Drops them from a pod spec.
pub(super) fn drop_from_spec(spec: &mut Map, old: Option<&Map>) {
    if old.is_none_or(|old| is_unset(old, "schedulingGroup")) {
        spec.remove("schedulingGroup");
    }
    if !old.is_some_and(uses_stop_signals) {
        for containers in CONTAINERS {
            each(spec, containers, drop_stop_signal);
        }
    }
    for projection in PROJECTIONS {
        if !old.is_some_and(|old| uses_projection(old, projection)) {
            drop_projection(spec, projection);
        }
    }
}

fn uses_stop_signals(spec: &Map) -> bool {
    CONTAINERS
        .iter()
        .flat_map(|containers| items(spec, containers))
        .any(|container| {
            object(container, "lifecycle").is_some_and(|hooks| !is_unset(hooks, "stopSignal"))
        })
}

fn drop_stop_signal(container: &mut Map) {
    let Some(lifecycle) = container
        .get_mut("lifecycle")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    if lifecycle.remove("stopSignal").is_some() && lifecycle.is_empty() {
        container.remove("lifecycle");
    }
}

fn uses_projection(spec: &Map, projection: &str) -> bool {
    items(spec, "volumes")
        .filter_map(|volume| object(volume, "projected"))
        .flat_map(|projected| items(projected, "sources"))
        .any(|source| !is_unset(source, projection))
}

fn drop_projection(spec: &mut Map, projection: &str) {
    each(spec, "volumes", |volume| {
        within(volume, "projected", |projected| {
            each(projected, "sources", |source| {
                source.remove(projection);
            });
        });
    });
}
