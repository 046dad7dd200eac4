//! Slices of pools of devices, as drivers publish them.

use object::field::{FieldError, Path};
use object::{Map, Value, names};

use super::capacity::{self, Sharing};
use super::claim::TAINT_EFFECTS;
use super::{binding, name, named_set, qualified_name, within_limit};
use crate::validation::check::{self, Errors, Report};
use crate::validation::read::{Read, maps};
use crate::validation::{internal, pod, print};

const DEVICES_MAX: usize = 128;
const ADVANCED_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;
const CONSUMED_SETS_MAX: usize = 2;
const COUNTERS_MAX: usize = 32;
const PROPERTIES_MAX: usize = 32;
const ATTRIBUTE_VALUES_MAX: usize = 48;
const TAINTS_MAX: usize = 16;
const ATTRIBUTE_BYTES_MAX: usize = 64;
const POOL_BYTES_MAX: usize = 253;
const ONE_OF_NODES: &str =
    "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";

/// Checks a slice of a pool of devices.
pub(crate) fn slice(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    pod::csi_driver_name(spec.text("driver"), &path.field("driver"), &mut errors);
    pool(
        spec.object_or_empty("pool"),
        &path.field("pool"),
        &mut errors,
    );
    if let Some(old) = old {
        let stored = old.object_or_empty("spec");
        let (pool, stored_pool) = (spec.object_or_empty("pool"), stored.object_or_empty("pool"));
        check::unchanged(pool, stored_pool, "name", &path.field("pool"), &mut errors);
        check::unchanged(spec, stored, "driver", &path, &mut errors);
        check::unchanged(spec, stored, "nodeName", &path, &mut errors);
    }
    nodes(spec, &path, &mut errors);
    if spec.has("sharedCounters") && spec.has("devices") {
        let detail = "only one of `sharedCounters` or `devices` is allowed";
        errors.invalid(&path, "", detail);
    }
    devices(spec, old, &path.field("devices"), &mut errors);
    let counters = path.field("sharedCounters");
    let sets = spec.list("sharedCounters");
    named_set(
        sets,
        ("name", COUNTER_SETS_MAX),
        &counters,
        &mut errors,
        |one, path, errors| {
            check::label(one.text("name"), &path.field("name"), errors);
            counters_of(one, path, errors);
        },
    );
    errors
}

fn devices(spec: &Map, old: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    let list = spec.list("devices");
    let advanced = maps(list)
        .any(|(_, it)| !it.list("taints").is_empty() || !it.list("consumesCounters").is_empty());
    let limit = if advanced {
        ADVANCED_DEVICES_MAX
    } else {
        DEVICES_MAX
    };
    let stored = old.map_or(&[][..], |old| old.object_or_empty("spec").list("devices"));
    named_set(list, ("name", limit), path, errors, |one, path, errors| {
        let known = maps(stored).find(|(_, it)| it.text("name") == one.text("name"));
        device(one, known.map(|(_, it)| it), path, errors);
        placement(one, spec.flag("perDeviceNodeSelection"), path, errors);
        binding::check(one, path, errors);
    });
}

fn device(device: &Map, known: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    name(device.text("name"), &path.field("name"), errors);
    let attributes = device.object_or_empty("attributes");
    let capacity = device.object_or_empty("capacity");
    for (count, limit, what) in [
        (
            attributes.len() + capacity.len(),
            PROPERTIES_MAX,
            "attributes and capacities",
        ),
        (attributes.len(), ATTRIBUTE_VALUES_MAX, "attribute values"),
    ] {
        if count > limit {
            let detail = format!("the total number of {what} must not exceed {limit}");
            errors.invalid(path, count as i64, detail);
        }
    }
    let at = path.field("attributes");
    for (key, value) in attributes.iter() {
        qualified_name(key, &at, errors);
        attribute(value, &at.key(key), errors);
    }
    let at = path.field("capacity");
    let sharing = if device.flag("allowMultipleAllocations") {
        Sharing::Allowed
    } else {
        Sharing::Refused
    };
    for (key, value) in capacity.iter() {
        qualified_name(key, &at, errors);
        capacity::check(value, sharing, &at.key(key), errors);
    }
    let taints = device.list("taints");
    if known.is_none_or(|known| known.list("taints") != taints) {
        let at = path.field("taints");
        for (index, taint) in within_limit(taints, TAINTS_MAX, &at, errors) {
            tainted(taint, &at.index(index), errors);
        }
    }
    named_set(
        device.list("consumesCounters"),
        ("counterSet", CONSUMED_SETS_MAX),
        &path.field("consumesCounters"),
        errors,
        |one, path, errors| {
            check::label(one.text("counterSet"), &path.field("counterSet"), errors);
            counters_of(one, path, errors);
        },
    );
}

fn attribute(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    let nothing = Map::new();
    let value = value.as_object().unwrap_or(&nothing);
    let set = ["bool", "int", "string", "version"]
        .iter()
        .filter(|key| value.has(key))
        .count();
    let at = path.field("string");
    if value.text("string").len() > ATTRIBUTE_BYTES_MAX {
        errors.push(FieldError::too_long(&at, ATTRIBUTE_BYTES_MAX));
    }
    if value.has("version") {
        let version = value.text("version");
        let at = path.field("version");
        if !is_semantic_version(version) {
            let detail = "must be a string compatible with semver.org spec 2.0.0";
            errors.invalid(&at, version, detail);
        }
        if version.len() > ATTRIBUTE_BYTES_MAX {
            errors.push(FieldError::too_long(&at, ATTRIBUTE_BYTES_MAX));
        }
    }
    if set == 0 {
        errors.invalid(path, "", "exactly one value must be specified");
    } else if set > 1 {
        let detail = "exactly one value must be specified";
        let shown = internal::print_map(value, "DeviceAttribute");
        errors.push(print::invalid_text(path, shown, detail));
    }
}

/// Whether a text is a version of three numbers, perhaps with a pre-release and a build.
fn is_semantic_version(text: &str) -> bool {
    let (text, build) = text
        .split_once('+')
        .map_or((text, None), |(a, b)| (a, Some(b)));
    let (core, release) = text
        .split_once('-')
        .map_or((text, None), |(a, b)| (a, Some(b)));
    let number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let word = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !part.is_empty() && part.bytes().all(allowed)
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    core.split('.').count() == 3
        && core.split('.').all(number)
        && release.is_none_or(|it| {
            it.split('.')
                .all(|it| word(it) && (!digits(it) || number(it)))
        })
        && build.is_none_or(|it| it.split('.').all(word))
}

fn tainted(taint: &Map, path: &Path<'_>, errors: &mut Errors) {
    let (key, value) = (taint.text("key"), taint.text("value"));
    errors.each(&path.field("key"), key, names::qualified_name(key));
    if !value.is_empty() {
        errors.each(&path.field("value"), value, names::label_value(value));
    }
    let effect = taint.text("effect");
    check::choice(effect, &TAINT_EFFECTS, &path.field("effect"), errors);
}

fn counters_of(holder: &Map, path: &Path<'_>, errors: &mut Errors) {
    let counters = holder.object_or_empty("counters");
    let path = path.field("counters");
    if counters.is_empty() {
        errors.required(&path, "");
    }
    if counters.len() > COUNTERS_MAX {
        errors.push(FieldError::too_many(&path, counters.len(), COUNTERS_MAX));
        return;
    }
    for key in counters.keys() {
        errors.each(&path, key, names::dns1123_label(key));
    }
}

/// Checks where a device is, if every one says it for itself.
fn placement(device: &Map, each_its_own: bool, path: &Path<'_>, errors: &mut Errors) {
    if !each_its_own {
        let places = ["nodeName", "nodeSelector", "allNodes"];
        if places.into_iter().any(|key| device.has(key)) {
            let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if \
                          `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            errors.invalid_value(path, &Value::Null, detail);
        }
        return;
    }
    let mut set: Vec<&str> = Vec::new();
    if device.has("nodeName") {
        let name = device.text("nodeName");
        let at = path.field("nodeName");
        if name.is_empty() {
            errors.invalid(&at, name, "must not be empty");
        } else {
            set.push("`nodeName`");
            errors.each(&at, name, names::dns1123_subdomain(name));
        }
    }
    if let Some(selector) = device.object("nodeSelector") {
        set.push("`nodeSelector`");
        pod::node_selector(selector, &path.field("nodeSelector"), errors);
    }
    match device.choice("allNodes") {
        Some(true) => set.push("`allNodes`"),
        Some(false) => {
            let detail = "must be either unset or set to true";
            errors.invalid(&path.field("allNodes"), false, detail);
        }
        None => {}
    }
    let detail = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                  `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    match set.len() {
        0 => errors.required(path, detail),
        1 => {}
        _ => errors.invalid(path, format!("{{{}}}", set.join(", ")), detail),
    }
}

fn pool(pool: &Map, path: &Path<'_>, errors: &mut Errors) {
    pool_name(pool.text("name"), &path.field("name"), errors);
    let count = pool.int("resourceSliceCount").unwrap_or_default();
    check::above_zero(count, &path.field("resourceSliceCount"), errors);
    if let Some(generation) = pool.int("generation").filter(|it| *it < 0) {
        let detail = "must be greater than or equal to zero";
        errors.invalid(&path.field("generation"), generation, detail);
    }
}

fn nodes(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let mut set: Vec<&str> = Vec::new();
    if spec.has("nodeName") {
        let name = spec.text("nodeName");
        if name.is_empty() {
            let detail = "must be either unset or set to a non-empty string";
            errors.invalid(&path.field("nodeName"), name, detail);
        } else {
            set.push("`nodeName`");
            errors.each(
                &path.field("nodeName"),
                name,
                names::dns1123_subdomain(name),
            );
        }
    }
    if let Some(selector) = spec.object("nodeSelector") {
        set.push("`nodeSelector`");
        pod::node_selector(selector, &path.field("nodeSelector"), errors);
        if selector.list("nodeSelectorTerms").len() != 1 {
            let path = path.field("nodeSelector");
            let terms = selector.value("nodeSelectorTerms");
            let detail = "must have exactly one node selector term";
            errors.invalid_value(&path.field("nodeSelectorTerms"), terms, detail);
        }
    }
    for (key, shown) in [
        ("allNodes", "`allNodes`"),
        ("perDeviceNodeSelection", "`perDeviceNodeSelection`"),
    ] {
        match spec.choice(key) {
            Some(true) => set.push(shown),
            Some(false) => {
                let detail = "must be either unset or set to true";
                errors.invalid(&path.field(key), false, detail);
            }
            None => {}
        }
    }
    match set.len() {
        0 => errors.required(path, ONE_OF_NODES),
        1 => {}
        _ => {
            let detail = format!("{ONE_OF_NODES}, but multiple fields are set");
            errors.invalid(path, format!("{{{}}}", set.join(", ")), detail);
        }
    }
}

/// Checks the name of a pool: subdomains between slashes.
pub(super) fn pool_name(text: &str, path: &Path<'_>, errors: &mut Errors) {
    if text.is_empty() {
        errors.required(path, "");
        return;
    }
    if text.len() > POOL_BYTES_MAX {
        errors.push(FieldError::too_long(path, POOL_BYTES_MAX));
    }
    for part in text.split('/') {
        errors.each(path, part, names::dns1123_subdomain(part));
    }
}
