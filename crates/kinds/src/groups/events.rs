//! Events, which two groups serve: `events.k8s.io` and the core group, which stores them.

use object::{Map, Text};

use super::strategy::{select_text, unselectable};
use crate::defaults::fill::{is_unset, text_at};
use crate::{NameRule, Rules};

/// How long an event is kept, as `--event-ttl` has it.
const TTL_SECONDS: u32 = 3600;

/// The rules of events in `events.k8s.io`.
pub(super) fn rules(kind: &str) -> Rules {
    match kind {
        "Event" => Rules {
            selectable: &[
                "reason",
                "regarding.kind",
                "regarding.namespace",
                "regarding.name",
                "regarding.uid",
                "regarding.apiVersion",
                "regarding.resourceVersion",
                "regarding.fieldPath",
                "reportingController",
                "type",
            ],
            ..event()
        },
        _ => Rules::default(),
    }
}

/// The rules of events in the core group.
pub(super) fn core_rules() -> Rules {
    Rules {
        name: NameRule::PathSegment,
        selectable: &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ..event()
    }
}

fn event() -> Rules {
    Rules {
        create_on_update: true,
        garbage_collected: false,
        ttl_seconds: Some(TTL_SECONDS),
        select,
        unselectable,
        ..Rules::default()
    }
}

/// Reads a field by its name in either group from an event in the form of either group.
fn select(event: &Map, field: &str) -> Text {
    let is_core = !is_unset(event, "involvedObject");
    let (regarding, source, reporting) = if is_core {
        ("involvedObject", "source", "reportingComponent")
    } else {
        ("regarding", "deprecatedSource", "reportingController")
    };
    if let Some(inner) = field
        .strip_prefix("involvedObject.")
        .or_else(|| field.strip_prefix("regarding."))
    {
        return text_at(event, &[regarding, inner]).into();
    }
    match field {
        "reportingComponent" | "reportingController" => text_at(event, &[reporting]).into(),
        "source" => match text_at(event, &[source, "component"]) {
            "" => text_at(event, &[reporting]).into(),
            component => component.into(),
        },
        _ => select_text(event, field),
    }
}
