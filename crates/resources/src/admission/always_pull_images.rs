//! AlwaysPullImages: nobody runs an image that is on a node by chance.
//!
//! Contract: `plugin/pkg/admission/alwayspullimages/admission.go`. Off by default.

use object::field::{FieldError, Path};
use object::{Map, Value};

use super::references::spec_of;
use super::{amounts, forbidden, is_about};
use crate::Request;
use crate::error::Error;

const ALWAYS: &str = "Always";
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

pub(super) fn mutate(request: &Request<'_>, pod: &mut Map, old: Option<&Map>) {
    if !applies(request, pod, old) {
        return;
    }
    let spec = pod.object_at("spec");
    for list in LISTS {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.insert("imagePullPolicy", ALWAYS.into());
            }
        }
    }
    let volumes = spec.get_mut("volumes").and_then(Value::as_array_mut);
    for volume in volumes.into_iter().flatten() {
        if let Some(image) = volume.get_mut("image").and_then(Value::as_object_mut) {
            image.insert("pullPolicy", ALWAYS.into());
        }
    }
}

pub(super) fn validate(request: &Request<'_>, pod: &Map, old: Option<&Map>) -> Result<(), Error> {
    let Some(spec) = spec_of(pod).filter(|_| applies(request, pod, old)) else {
        return Ok(());
    };
    let root = Path::root();
    let path = root.field("spec");
    for list in LISTS {
        let list_path = path.field(list);
        for (place, container) in amounts::containers(spec, list).enumerate() {
            let policy = container.get("imagePullPolicy");
            if policy.and_then(Value::as_str) != Some(ALWAYS) {
                let place = list_path.index(place);
                let field = place.field("imagePullPolicy");
                let found = policy.cloned().unwrap_or_else(|| "".into());
                let error = FieldError::not_supported(&field, &found, &[ALWAYS]);
                return Err(forbidden(request, pod, error.to_string()));
            }
        }
    }
    Ok(())
}

/// A change that brings no new image is none of this plugin's business.
fn applies(request: &Request<'_>, pod: &Map, old: Option<&Map>) -> bool {
    let images = |pod: &Map| {
        let mut images = Vec::new();
        for list in LISTS {
            let containers = spec_of(pod)
                .into_iter()
                .flat_map(|spec| amounts::containers(spec, list));
            images.extend(containers.filter_map(|it| it.get("image").cloned()));
        }
        images
    };
    is_about(request, "", "pods")
        && old.is_none_or(|old| {
            let known = images(old);
            images(pod).iter().any(|image| !known.contains(image))
        })
}
