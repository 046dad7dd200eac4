//! Conversion between the served versions of one stored object.
//!
//! Two built-in kinds have more than one form: horizontal pod autoscalers (`autoscaling/v1` and
//! `v2`) and events (the core group and `events.k8s.io`). Every other object only changes the
//! version it names. Nothing is lost on the way: what a version has no field for travels in
//! annotations, as upstream does it.

pub(crate) mod autoscaling;
mod events;
mod metrics;

use object::Map;

use crate::Kind;

/// The object in the form of another kind that shares its storage.
///
/// Custom resources keep their fields; a webhook that changes them is called elsewhere.
pub fn convert(kind_from: &Kind, kind_to: &Kind, mut object: Map) -> Map {
    let from = (&*kind_from.group, &*kind_from.version);
    let to = (&*kind_to.group, &*kind_to.version);
    if from == to {
        return object;
    }
    if !kind_from.is_custom() {
        match (&*kind_from.kind, from, to) {
            ("HorizontalPodAutoscaler", (_, "v1"), (_, "v2")) => autoscaling::to_v2(&mut object),
            ("HorizontalPodAutoscaler", (_, "v2"), (_, "v1")) => autoscaling::to_v1(&mut object),
            ("Event", ("", _), _) => events::from_core(&mut object),
            ("Event", _, ("", _)) => events::to_core(&mut object),
            _ => {}
        }
    }
    object.insert("apiVersion", kind_to.api_version().into());
    object
}

#[cfg(test)]
mod tests;
