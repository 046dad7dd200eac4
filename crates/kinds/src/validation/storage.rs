//! Persistent volumes and the kinds of `storage.k8s.io`.

use object::field::{FieldError, Path};
use object::quantity::Quantity;
use object::{Map, Value, names};

use super::check::{self, Errors, Report};
use super::read::{Read, maps, texts};
use super::{claims, internal, meta, pod, quantities};

const PARAMETERS_MAX: usize = 512;
const PARAMETER_BYTES_MAX: usize = 256 * 1024;
const ATTACHMENT_BYTES_MAX: usize = 256 * 1024;
const NODE_ID_BYTES_MAX: usize = 256;
const INLINE: &str = "may not be specified in the context of inline volumes";
const ONE_SOURCE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
const RECLAIM: &[&str] = &["Delete", "Recycle", "Retain"];

type Check = fn(source: &Map, path: &Path<'_>, errors: &mut Errors);

/// Sources of volumes: key, key in the refusal of a second one, key of its own mistakes, check.
const SOURCES: &[(&str, &str, &str, Check)] = &[
    ("hostPath", "hostPath", "hostPath", pod::host_path),
    (
        "gcePersistentDisk",
        "gcePersistentDisk",
        "persistentDisk",
        |map, path, errors| {
            pod::partition(map, "pdName", path, errors);
        },
    ),
    (
        "awsElasticBlockStore",
        "awsElasticBlockStore",
        "awsElasticBlockStore",
        |map, path, errors| {
            pod::partition(map, "volumeID", path, errors);
        },
    ),
    (
        "glusterfs",
        "glusterfs",
        "glusterfs",
        |map, path, errors| {
            check::require(map, &["endpoints", "path"], path, errors);
            endpoints_namespace(map, path, errors);
        },
    ),
    ("flocker", "flocker", "flocker", pod::flocker),
    ("nfs", "nfs", "nfs", pod::nfs),
    ("rbd", "rbd", "rbd", |map, path, errors| {
        check::require(map, &["monitors", "image"], path, errors);
    }),
    ("quobyte", "quobyte", "quobyte", pod::quobyte),
    ("cephfs", "cephFS", "cephfs", |map, path, errors| {
        check::require(map, &["monitors"], path, errors);
    }),
    ("iscsi", "iscsi", "iscsi", pod::persistent_iscsi),
    ("cinder", "cinder", "cinder", |map, path, errors| {
        check::require(map, &["volumeID"], path, errors);
        secret_somewhere(map, path, errors);
    }),
    ("fc", "fc", "fc", pod::fibre_channel),
    ("flexVolume", "flexVolume", "flexVolume", pod::flex_volume),
    (
        "azureFile",
        "azureFile",
        "azureFile",
        |map, path, errors| {
            check::require(map, &["secretName", "shareName"], path, errors);
        },
    ),
    (
        "vsphereVolume",
        "vsphereVolume",
        "vsphereVolume",
        |map, path, errors| {
            check::require(map, &["volumePath"], path, errors);
        },
    ),
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "photonPersistentDisk",
        |map, path, errors| {
            check::require(map, &["pdID"], path, errors);
        },
    ),
    (
        "portworxVolume",
        "portworxVolume",
        "portworxVolume",
        |map, path, errors| {
            check::require(map, &["volumeID"], path, errors);
        },
    ),
    ("azureDisk", "azureDisk", "azureDisk", pod::azure_disk),
    ("scaleIO", "scaleIO", "scaleIO", |map, path, errors| {
        check::require(map, &["gateway", "system", "volumeName"], path, errors);
    }),
    ("local", "local", "local", |map, path, errors| {
        check::require(map, &["path"], path, errors);
        check::no_backsteps(map.text("path"), &path.field("path"), errors);
    }),
    (
        "storageos",
        "storageos",
        "storageos",
        |map, path, errors| {
            pod::storage_os(map, path, errors);
            secret_somewhere(map, path, errors);
        },
    ),
    ("csi", "csi", "csi", |map, path, errors| {
        pod::csi_driver_name(map.text("driver"), &path.field("driver"), errors);
        check::require(map, &["volumeHandle"], path, errors);
        for key in [
            "controllerPublishSecretRef",
            "controllerExpandSecretRef",
            "nodePublishSecretRef",
            "nodeExpandSecretRef",
        ] {
            secret_reference(map, key, path, errors);
        }
    }),
];

fn endpoints_namespace(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    if !source.has("endpointsNamespace") {
        return;
    }
    let namespace = source.text("endpointsNamespace");
    let path = path.field("endpointsNamespace");
    if namespace.is_empty() {
        let detail = "if the endpointnamespace is set, it must be a valid namespace name";
        errors.invalid(&path, namespace, detail);
    } else {
        errors.each(&path, namespace, names::dns1123_label(namespace));
    }
}

/// Checks that a secret is named with its namespace; their form is not looked at.
fn secret_somewhere(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    if let Some(reference) = source.object("secretRef") {
        let path = path.field("secretRef");
        check::require(reference, &["name", "namespace"], &path, errors);
    }
}

fn secret_reference(source: &Map, key: &str, path: &Path<'_>, errors: &mut Errors) {
    let Some(reference) = source.object(key) else {
        return;
    };
    let path = path.field(key);
    check::subdomain(reference.text("name"), &path.field("name"), errors);
    check::label(
        reference.text("namespace"),
        &path.field("namespace"),
        errors,
    );
}

/// Checks a persistent volume.
pub(crate) fn volume(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if old.is_some() && subresource == "status" {
        return errors;
    }
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    if old.is_some() {
        meta::again(new, false, &mut errors);
        volume_spec(spec, false, &path, &mut errors);
        meta::again(new, false, &mut errors);
    }
    volume_spec(spec, false, &path, &mut errors);
    let Some(old) = old else {
        return errors;
    };
    let stored = old.object_or_empty("spec");
    let source = |spec: &Map| {
        let mut source = spec.clone();
        source.retain(|key, _| SOURCES.iter().any(|(known, ..)| *known == key));
        source
    };
    let (mut now, before) = (source(spec), source(stored));
    let expands = |source: &Map| {
        source
            .object_or_empty("csi")
            .has("controllerExpandSecretRef")
    };
    if before.has("csi") && now.has("csi") && !expands(&before) && expands(&now) {
        now.object_at("csi").remove("controllerExpandSecretRef");
    }
    if !check::same(&now.clone().into(), &before.clone().into()) {
        let difference = internal::difference(&before, &now, "PersistentVolumeSource");
        let detail =
            format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.forbidden(&path.field("persistentvolumesource"), detail);
    }
    check::unchanged(spec, stored, "volumeMode", &root, &mut errors);
    if stored.has("nodeAffinity")
        && !check::same(
            spec.value("nodeAffinity"),
            &renamed_labels(stored.value("nodeAffinity"), spec.value("nodeAffinity")),
        )
    {
        let detail = "field is immutable, except for updating from beta label to GA";
        let affinity = spec.value("nodeAffinity");
        let path = root.field("nodeAffinity");
        errors.push(internal::invalid(
            &path,
            affinity,
            "VolumeNodeAffinity",
            detail,
        ));
    }
    let class = "volumeAttributesClassName";
    if stored.has(class) && !spec.has(class) {
        let detail = "update from non-nil value to nil is forbidden";
        errors.forbidden(&path.field(class), detail);
    }
    errors
}

fn volume_spec(spec: &Map, inline: bool, path: &Path<'_>, errors: &mut Errors) {
    if inline {
        if spec.has("claimRef") {
            errors.forbidden(&path.field("claimRef"), INLINE);
        }
        if !spec.object_or_empty("capacity").is_empty() {
            errors.forbidden(&path.field("capacity"), INLINE);
        }
        if !spec.has("csi") {
            let detail = "has to be specified in the context of inline volumes";
            errors.required(&path.field("csi"), detail);
        }
    }
    claims::access_modes(spec, "", path, errors, |_| {});
    if !inline {
        capacity(spec, &path.field("capacity"), errors);
        let policy = spec.text("persistentVolumeReclaimPolicy");
        if !policy.is_empty() {
            let path = path.field("persistentVolumeReclaimPolicy");
            check::choice_or_empty(policy, RECLAIM, &path, errors);
        }
        if let Some(affinity) = spec.object("nodeAffinity") {
            let path = path.field("nodeAffinity");
            match affinity.object("required") {
                Some(selector) => pod::node_selector(selector, &path.field("required"), errors),
                None => {
                    let detail = "must specify required node constraints";
                    errors.required(&path.field("required"), detail);
                }
            }
        }
    } else if spec.has("nodeAffinity") {
        errors.forbidden(&path.field("nodeAffinity"), INLINE);
    }
    source(spec, path, errors);
    let root_path = spec
        .object_or_empty("hostPath")
        .text("path")
        .trim_end_matches('/')
        .is_empty();
    if spec.has("hostPath") && root_path && spec.text("persistentVolumeReclaimPolicy") == "Recycle"
    {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.forbidden(&path.field("persistentVolumeReclaimPolicy"), detail);
    }
    check::optional_subdomain(
        spec.text("storageClassName"),
        &path.field("storageClassName"),
        errors,
    );
    if spec.has("volumeMode") && !inline {
        let mode = spec.text("volumeMode");
        check::choice_or_empty(
            mode,
            claims::VOLUME_MODES,
            &path.field("volumeMode"),
            errors,
        );
    }
    changeable_class(spec, path, errors);
}

fn changeable_class(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    if !spec.has("volumeAttributesClassName") {
        return;
    }
    let class = spec.text("volumeAttributesClassName");
    let at = path.field("volumeAttributesClassName");
    if class.is_empty() {
        errors.required(&at, "an empty string is disallowed");
    }
    check::optional_subdomain(class, &at, errors);
    if !spec.has("csi") {
        let detail = "has to be specified when using volumeAttributesClassName";
        errors.required(&path.field("csi"), detail);
    }
}

fn capacity(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let capacity = spec.object_or_empty("capacity");
    if capacity.is_empty() {
        errors.required(path, "");
    }
    if !capacity.contains_key("storage") || capacity.len() > 1 {
        let shown = match spec.value("capacity") {
            Value::Null => Value::Null,
            value => value.clone(),
        };
        errors.push(FieldError::not_supported(path, &shown, &["storage"]));
    }
    for (name, amount) in capacity.iter() {
        claims::basic_amount(amount, &path.key(name), errors);
        quantities::positive(amount, &path.key(name), errors);
    }
}

fn source(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let mut found = false;
    for (key, refused, reported, check) in SOURCES {
        let Some(source) = spec.object(key) else {
            continue;
        };
        if found && *key != "flexVolume" {
            let detail = "may not specify more than 1 volume type";
            errors.forbidden(&path.field(refused), detail);
            continue;
        }
        found = true;
        check(source, &path.field(reported), errors);
        if *key == "local" && !spec.has("nodeAffinity") {
            let detail = "Local volume requires node affinity";
            errors.required(&path.field("nodeAffinity"), detail);
        }
    }
    if !found {
        errors.required(path, "must specify a volume type");
    }
}

/// Checks a class of storage.
pub(crate) fn class(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() {
        meta::again(new, false, &mut errors);
    }
    provisioner(
        new.text("provisioner"),
        &root.field("provisioner"),
        &mut errors,
    );
    parameters(new, true, &root.field("parameters"), &mut errors);
    let policy = new.text("reclaimPolicy");
    if !policy.is_empty() {
        let path = root.field("reclaimPolicy");
        check::choice_or_empty(policy, &["Delete", "Retain"], &path, &mut errors);
    }
    let modes = ["Immediate", "WaitForFirstConsumer"];
    check::choice_of(new, "volumeBindingMode", &modes, &root, &mut errors);
    topologies(
        new.list("allowedTopologies"),
        &root.field("allowedTopologies"),
        &mut errors,
    );
    if let Some(old) = old {
        for key in [
            "parameters",
            "provisioner",
            "reclaimPolicy",
            "volumeBindingMode",
        ] {
            check::unchanged(new, old, key, &root, &mut errors);
        }
    }
    errors
}

fn provisioner(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let name = name.to_lowercase();
    errors.each(path, &name, names::qualified_name(&name));
}

fn parameters(map: &Map, may_be_empty: bool, path: &Path<'_>, errors: &mut Errors) {
    let given = map.object_or_empty("parameters");
    if given.len() > PARAMETERS_MAX {
        errors.push(FieldError::too_long(path, PARAMETERS_MAX));
    }
    if given.contains_key("") {
        errors.invalid(path, "", "field can not be empty.");
    }
    if weight(given) > PARAMETER_BYTES_MAX {
        errors.push(FieldError::too_long(path, PARAMETER_BYTES_MAX));
    }
    if !may_be_empty && given.is_empty() {
        errors.required(path, "must contain at least one key/value pair");
    }
}

fn weight(map: &Map) -> usize {
    map.iter()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum()
}

fn topologies(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, term) in maps(list) {
        let path = path.index(index);
        let path = path.field("matchLabelExpressions");
        let expressions = term.list("matchLabelExpressions");
        for (position, expression) in maps(expressions) {
            let path = path.index(position);
            let values = expression.list("values");
            if values.is_empty() {
                errors.required(&path.field("values"), "");
            }
            for (position, value) in texts(values) {
                if texts(&values[..position]).any(|(_, other)| other == value) {
                    errors.duplicate(&path.field("values").index(position), value);
                }
            }
            let key = expression.text("key");
            errors.each(&path.field("key"), key, names::qualified_name(key));
            if maps(&expressions[..position]).any(|(_, other)| other.text("key") == key) {
                errors.duplicate(&path.field("key"), key);
            }
        }
        // Upstream compares with as many empty terms as there are terms.
        let same = list[..index]
            .iter()
            .filter(|it| **it == list[index])
            .count();
        let blank = if expressions.is_empty() {
            list.len()
        } else {
            0
        };
        for _ in 0..same + blank {
            errors.duplicate(&path, "");
        }
    }
}

/// Checks the attachment of a volume to a node.
pub(crate) fn attachment(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() {
        meta::again(new, false, &mut errors);
    }
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    pod::csi_driver_name(spec.text("attacher"), &path.field("attacher"), &mut errors);
    let source = spec.object_or_empty("source");
    let source_path = path.field("source");
    match (
        source.object("inlineVolumeSpec"),
        source.has("persistentVolumeName"),
    ) {
        (None, false) => errors.required(&source_path, ONE_SOURCE),
        (Some(_), true) => errors.forbidden(&source_path, ONE_SOURCE),
        (None, true) => {
            if source.text("persistentVolumeName").is_empty() {
                let detail = "must specify non empty persistentVolumeName";
                errors.required(&source_path.field("persistentVolumeName"), detail);
            }
        }
        (Some(inline), false) => {
            volume_spec(
                inline,
                true,
                &source_path.field("inlineVolumeSpec"),
                &mut errors,
            );
        }
    }
    let node = spec.text("nodeName");
    errors.each(
        &path.field("nodeName"),
        node,
        names::dns1123_subdomain(node),
    );
    attachment_status(
        new.object_or_empty("status"),
        &root.field("status"),
        &mut errors,
    );
    if source.has("persistentVolumeName") {
        let name = source.text("persistentVolumeName");
        let path = root.field("spec.source.persistentVolumeName");
        errors.each(&path, name, names::dns1123_subdomain(name));
    }
    if let Some(old) = old
        && !check::same(new.value("spec"), old.value("spec"))
    {
        let spec = new.value("spec");
        let structure = "VolumeAttachmentSpec";
        errors.push(internal::invalid(&path, spec, structure, check::IMMUTABLE));
    }
    errors
}

fn attachment_status(status: &Map, path: &Path<'_>, errors: &mut Errors) {
    let metadata = status.object_or_empty("attachmentMetadata");
    if weight(metadata) > ATTACHMENT_BYTES_MAX {
        let path = path.field("attachmentMetadata");
        errors.push(FieldError::too_long(&path, ATTACHMENT_BYTES_MAX));
    }
    for key in ["attachError", "detachError"] {
        let error = status.object_or_empty(key);
        let path = path.field(key);
        if error.text("message").len() > ATTACHMENT_BYTES_MAX {
            let path = path.field("message");
            errors.push(FieldError::too_long(&path, ATTACHMENT_BYTES_MAX));
        }
        if let Some(code) = error.int("errorCode").filter(|code| *code < 0) {
            let detail = "must be between 0 and 2147483647, inclusive";
            errors.invalid(&path.field("errorCode"), code, detail);
        }
    }
}

/// Labels of nodes that once were in beta, and what they are called now.
const RENAMED_LABELS: [(&str, &str); 5] = [
    (
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    (
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
    ),
];

/// The affinity `old` with the label of each requirement renamed if `new` renames it so. To
/// upstream, every other label may be renamed to nothing.
fn renamed_labels(old: &Value, new: &Value) -> Value {
    match (old, new) {
        (Value::Array(old), Value::Array(new)) => {
            let paired = old.iter().enumerate();
            let renamed = paired
                .map(|(index, old)| renamed_labels(old, new.get(index).unwrap_or(&Value::Null)));
            Value::Array(renamed.collect())
        }
        (Value::Object(old), Value::Object(new)) => {
            let renamed = old.iter().map(|(key, value)| {
                let after = new.value(key);
                let renamed = match (key.as_str(), value.as_str()) {
                    ("key", Some(label)) => {
                        let found = RENAMED_LABELS.iter().find(|(beta, _)| *beta == label);
                        let allowed = found.map_or("", |(_, stable)| stable);
                        let is_renamed = after.as_str().unwrap_or_default() == allowed;
                        if is_renamed { after } else { value }.clone()
                    }
                    _ => renamed_labels(value, after),
                };
                (key.clone(), renamed)
            });
            Value::Object(renamed.collect())
        }
        _ => old.clone(),
    }
}

/// Checks what storage drivers a node has.
pub(crate) fn csi_node(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if old.is_some() {
        meta::again(new, false, &mut errors);
    }
    let root = Path::root();
    let path = root.field("spec");
    let path = path.field("drivers");
    let list = new.object_or_empty("spec").list("drivers");
    for (index, driver) in maps(list) {
        let path = path.index(index);
        let name = driver.text("name");
        pod::csi_driver_name(name, &path.field("name"), &mut errors);
        let id = driver.text("nodeID");
        if id.is_empty() {
            errors.required(&path.field("nodeID"), "");
        }
        if id.len() > NODE_ID_BYTES_MAX {
            let detail = format!("must be {NODE_ID_BYTES_MAX} characters or less");
            errors.invalid(&path.field("nodeID"), id, detail);
        }
        let allocatable = driver.object_or_empty("allocatable");
        check::not_negative(
            allocatable,
            &["count"],
            &path.field("allocatable"),
            &mut errors,
        );
        if maps(&list[..index]).any(|(_, other)| other.text("name") == name) {
            errors.duplicate(&path.field("name"), name);
        }
        let keys = driver.list("topologyKeys");
        for (position, key) in texts(keys) {
            if key.is_empty() {
                errors.required(&path, "");
            }
            if texts(&keys[..position]).any(|(_, other)| other == key) {
                errors.duplicate(&path, key);
            }
            errors.each(&path, key, names::qualified_name(key));
        }
    }
    if let Some(old) = old {
        changed_drivers(
            list,
            old.object_or_empty("spec").list("drivers"),
            &path,
            &mut errors,
        );
    }
    errors
}

/// A driver that stays on a node may only change how much it can attach.
fn changed_drivers(new: &[Value], old: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let fixed = |driver: &Map| {
        let mut driver = driver.clone();
        driver.remove("allocatable");
        Value::Object(driver)
    };
    for (_, before) in maps(old) {
        let is_same = |(_, driver): &(usize, &Map)| driver.text("name") == before.text("name");
        for (_, now) in maps(new).filter(is_same) {
            let now = fixed(now);
            if !check::same(&now, &fixed(before)) {
                let structure = "CSINodeDriver";
                errors.push(internal::invalid(path, &now, structure, check::IMMUTABLE));
            }
        }
    }
}

/// Checks what a storage driver can do.
pub(crate) fn csi_driver(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let path = root.field("spec");
    let spec = new.object_or_empty("spec");
    for (key, shown) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !spec.has(key) {
            errors.required(&path.field(shown), "");
        }
    }
    if spec.has("fsGroupPolicy") {
        let policies = ["File", "None", "ReadWriteOnceWithFSType"];
        let policy = spec.text("fsGroupPolicy");
        check::choice_or_empty(policy, &policies, &path.field("fsGroupPolicy"), &mut errors);
    }
    token_requests(
        spec.list("tokenRequests"),
        &path.field("tokenRequests"),
        &mut errors,
    );
    for (_, mode) in texts(spec.list("volumeLifecycleModes")) {
        let path = path.field("volumeLifecycleModes");
        check::choice_or_empty(mode, &["Persistent", "Ephemeral"], &path, &mut errors);
    }
    if !spec.has("seLinuxMount") {
        errors.required(&path.field("seLinuxMount"), "");
    }
    let period = spec.int("nodeAllocatableUpdatePeriodSeconds");
    if let Some(period) = period.filter(|period| *period < 10) {
        let path = path.field("nodeAllocatableUpdatePeriodSeconds");
        errors.invalid(&path, period, "must be greater than or equal to 10 seconds");
    }
    if let (Some(flag), []) = (
        spec.choice("serviceAccountTokenInSecrets"),
        spec.list("tokenRequests"),
    ) {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.invalid(&path.field("serviceAccountTokenInSecrets"), flag, detail);
    }
    if let Some(old) = old {
        let stored = old.object_or_empty("spec");
        if spec.value("attachRequired") != stored.value("attachRequired") {
            let value = spec.value("attachRequired");
            errors.invalid_value(&path.field("attachedRequired"), value, check::IMMUTABLE);
        }
        check::unchanged(spec, stored, "volumeLifecycleModes", &path, &mut errors);
    }
    errors
}

fn token_requests(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, request) in maps(list) {
        let path = path.index(index);
        let audience = request.text("audience");
        if maps(&list[..index]).any(|(_, other)| other.text("audience") == audience) {
            errors.duplicate(&path.field("audience"), audience);
            continue;
        }
        let Some(seconds) = request.int("expirationSeconds") else {
            continue;
        };
        let path = path.field("expirationSeconds");
        if seconds < 600 {
            errors.invalid(
                &path,
                seconds,
                "may not specify a duration less than 10 minutes",
            );
        }
        if seconds > 1 << 32 {
            let detail = "may not specify a duration larger than 2^32 seconds";
            errors.invalid(&path, seconds, detail);
        }
    }
}

/// Checks how much a storage driver has left.
pub(crate) fn csi_capacity(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_some() {
        meta::again(new, true, &mut errors);
    }
    check::label_selector(
        new.object("nodeTopology"),
        &root.field("nodeTopology"),
        &mut errors,
    );
    let class = new.text("storageClassName");
    errors.each(
        &root.field("storageClassName"),
        class,
        names::dns1123_subdomain(class),
    );
    if let Ok(amount) = Quantity::from_value(new.value("capacity"))
        && amount.sign() < 0
    {
        let detail = "must be greater than or equal to 0";
        errors.invalid(&root.field("capacity"), amount.to_string(), detail);
    }
    if let Some(old) = old {
        if !check::same(new.value("nodeTopology"), old.value("nodeTopology")) {
            let path = root.field("nodeTopology");
            let value = new.value("nodeTopology");
            check::invalid_selector(&path, value, check::IMMUTABLE, &mut errors);
        }
        check::unchanged(new, old, "storageClassName", &root, &mut errors);
    }
    errors
}

/// Checks a class of what can be changed on volumes.
pub(crate) fn attributes_class(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if let Some(old) = old {
        for key in ["driverName", "parameters"] {
            if !check::same_field(new, old, key) {
                errors.forbidden(&root.field(key), format!("updates to {key} are forbidden."));
            }
        }
        meta::again(new, false, &mut errors);
    }
    provisioner(
        new.text("driverName"),
        &root.field("driverName"),
        &mut errors,
    );
    parameters(new, false, &root.field("parameters"), &mut errors);
    errors
}

#[cfg(test)]
mod tests;
