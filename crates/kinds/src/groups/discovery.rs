//! `discovery.k8s.io`: slices of endpoints.

use object::Map;

use crate::defaults::cluster::endpoint_slice;
use crate::defaults::fill::each;
use crate::validation::check::same_field;
use crate::{Generation, Rules};

pub(super) fn rules(kind: &str) -> Rules {
    match kind {
        "EndpointSlice" => Rules {
            defaults: endpoint_slice,
            prepare_create: drop_topology,
            prepare_update: |new, old, _| {
                if !same_field(new, old, "endpoints") {
                    drop_topology(new);
                }
            },
            generation: Generation::AllAndLabels,
            ..Rules::default()
        },
        _ => Rules::default(),
    }
}

/// The topology of older versions is read-only in this one.
fn drop_topology(slice: &mut Map) {
    each(slice, "endpoints", |endpoint| {
        endpoint.remove("deprecatedTopology");
    });
}
