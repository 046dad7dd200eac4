//! Volumes of a pod. Each has exactly one source; a table says how each is checked.

use object::field::Path;
use object::quantity::Quantity;
use object::{Map, Value, names};

use super::{Context, containers, env};
use crate::validation::check::{self, Errors, Report};
use crate::validation::claims;
use crate::validation::read::{Read, maps};

const ISCSI_FORMAT: &str = "must be valid format";
const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const FILE_MODE_MAX: i64 = 0o777;
const DRIVER_BYTES_MAX: usize = 63;
const TOKEN_SECONDS_MIN: i64 = 600;
const VOLUME_FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

type Check = fn(source: &Map, path: &Path<'_>, errors: &mut Errors);

/// A source: its key, the key in the refusal of a second source (upstream misspells some), the
/// key that its own mistakes are reported under, and its check.
struct Source(&'static str, &'static str, &'static str, Check);

/// In the order in which upstream looks for them.
const SOURCES: &[Source] = &[
    Source("emptyDir", "emptyDir", "emptyDir", empty_dir),
    Source("hostPath", "hostPath", "hostPath", host_path),
    Source("gitRepo", "gitRepo", "gitRepo", git_repo),
    Source(
        "gcePersistentDisk",
        "gcePersistentDisk",
        "persistentDisk",
        |map, path, errors| {
            partition(map, "pdName", path, errors);
        },
    ),
    Source(
        "awsElasticBlockStore",
        "awsElasticBlockStore",
        "awsElasticBlockStore",
        |map, path, errors| {
            partition(map, "volumeID", path, errors);
        },
    ),
    Source("secret", "secret", "secret", |map, path, errors| {
        files(map, "secretName", path, errors);
    }),
    Source("nfs", "nfs", "nfs", nfs),
    Source("iscsi", "iscsi", "iscsi", iscsi),
    Source(
        "glusterfs",
        "glusterfs",
        "glusterfs",
        |map, path, errors| {
            check::require(map, &["endpoints", "path"], path, errors);
        },
    ),
    Source("flocker", "flocker", "flocker", flocker),
    Source(
        "persistentVolumeClaim",
        "persistentVolumeClaim",
        "persistentVolumeClaim",
        |map, path, errors| {
            check::require(map, &["claimName"], path, errors);
        },
    ),
    Source("rbd", "rbd", "rbd", |map, path, errors| {
        check::require(map, &["monitors", "image"], path, errors);
    }),
    Source("cinder", "cinder", "cinder", |map, path, errors| {
        check::require(map, &["volumeID"], path, errors);
        secret_name(map, path, errors);
    }),
    Source("cephfs", "cephFS", "cephfs", |map, path, errors| {
        check::require(map, &["monitors"], path, errors);
    }),
    Source("quobyte", "quobyte", "quobyte", quobyte),
    Source("downwardAPI", "downwarAPI", "downwardAPI", downward_api),
    Source("fc", "fc", "fc", fibre_channel),
    Source("flexVolume", "flexVolume", "flexVolume", flex_volume),
    Source(
        "configMap",
        "configMap",
        "configMap",
        |map, path, errors| {
            files(map, "name", path, errors);
        },
    ),
    Source(
        "azureFile",
        "azureFile",
        "azureFile",
        |map, path, errors| {
            check::require(map, &["secretName", "shareName"], path, errors);
        },
    ),
    Source(
        "vsphereVolume",
        "vsphereVolume",
        "vsphereVolume",
        |map, path, errors| {
            check::require(map, &["volumePath"], path, errors);
        },
    ),
    Source(
        "photonPersistentDisk",
        "photonPersistentDisk",
        "photonPersistentDisk",
        |map, path, errors| {
            check::require(map, &["pdID"], path, errors);
        },
    ),
    Source(
        "portworxVolume",
        "portworxVolume",
        "portworxVolume",
        |map, path, errors| {
            check::require(map, &["volumeID"], path, errors);
        },
    ),
    Source("azureDisk", "azureDisk", "azureDisk", azure_disk),
    Source(
        "storageos",
        "storageos",
        "storageos",
        |map, path, errors| {
            storage_os(map, path, errors);
            secret_name(map, path, errors);
        },
    ),
    Source("projected", "projected", "projected", projected),
    Source("scaleIO", "scaleIO", "scaleIO", |map, path, errors| {
        check::require(map, &["gateway", "system", "volumeName"], path, errors);
    }),
    Source("csi", "csi", "csi", csi),
    Source(
        "ephemeral",
        "ephemeral",
        "ephemeral",
        |map, path, errors| match map.object("volumeClaimTemplate") {
            None => errors.required(&path.field("volumeClaimTemplate"), ""),
            Some(template) => {
                claims::template(template, &path.field("volumeClaimTemplate"), errors);
            }
        },
    ),
];

/// Checks the volumes of a pod and gives back those that are good, which mounts may name.
pub(super) fn volumes<'a>(
    spec: &'a Map,
    context: &Context<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) -> Vec<&'a Map> {
    let list = spec.list("volumes");
    let mut good: Vec<&Map> = Vec::with_capacity(list.len());
    for (index, volume) in maps(list) {
        let path = path.index(index);
        let before = errors.len();
        source(volume, context, &path, errors);
        let name = volume.text("name");
        check::label(name, &path.field("name"), errors);
        if good.iter().any(|other| other.text("name") == name) {
            errors.duplicate(&path.field("name"), name);
        }
        if errors.len() == before {
            good.push(volume);
        }
        claim_of_another_volume(volume, list, context, &path, errors);
    }
    good
}

fn claim_of_another_volume(
    volume: &Map,
    list: &[Value],
    context: &Context<'_>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(claim) = volume.object("persistentVolumeClaim") else {
        return;
    };
    if context.pod_name.is_empty() {
        return;
    }
    let claim = claim.text("claimName");
    let created = maps(list).any(|(_, other)| {
        other.has("ephemeral")
            && claim
                .strip_prefix(context.pod_name)
                .and_then(|rest| rest.strip_prefix('-'))
                == Some(other.text("name"))
    });
    if created {
        let path = path.field("persistentVolumeClaim");
        let detail = "must not reference a PVC that gets created for an ephemeral volume";
        errors.invalid(&path.field("claimName"), claim, detail);
    }
}

fn source(volume: &Map, context: &Context<'_>, path: &Path<'_>, errors: &mut Errors) {
    let mut found = false;
    for Source(key, refused, reported, check) in SOURCES {
        let Some(source) = source_of(volume, key) else {
            continue;
        };
        if found {
            let detail = "may not specify more than 1 volume type";
            errors.forbidden(&path.field(refused), detail);
            continue;
        }
        found = true;
        check(source, &path.field(reported), errors);
        let name = volume.text("name");
        if *key == "ephemeral" && !context.pod_name.is_empty() && !name.is_empty() {
            let claim = format!("{}-{name}", context.pod_name);
            for complaint in names::dns1123_subdomain(&claim) {
                let detail = format!("PVC name {}: {complaint}", object::field::quote(&claim));
                errors.invalid(&path.field("name"), name, detail);
            }
        }
    }
    if let Some(image) = volume.object("image") {
        let path = path.field("image");
        if found {
            errors.forbidden(&path, "may not specify more than 1 volume type");
        } else {
            if context.is_pod && image.text("reference").is_empty() {
                errors.required(&path.field("reference"), "");
            }
            let policy = image.text("pullPolicy");
            containers::pull_policy(policy, &path.field("pullPolicy"), errors);
        }
        found = true;
    }
    if !found {
        errors.required(path, "must specify a volume type");
    }
}

/// A volume has two entries, its name and its source: comparing both beats searching.
fn source_of<'a>(volume: &'a Map, key: &str) -> Option<&'a Map> {
    let entry = volume.entries().iter().find(|(name, _)| name == key);
    entry.and_then(|(_, value)| value.as_object())
}

fn empty_dir(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    let negative = Quantity::from_value(source.value("sizeLimit")).is_ok_and(|it| it.sign() < 0);
    if source.has("sizeLimit") && negative {
        let detail = "SizeLimit field must be a valid resource quantity";
        errors.forbidden(&path.field("sizeLimit"), detail);
    }
}

/// Checks a path of the node.
pub(crate) fn host_path(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    if source.text("path").is_empty() {
        errors.required(&path.field("path"), "");
        return;
    }
    check::no_backsteps(source.text("path"), &path.field("path"), errors);
    if source.has("type") {
        let kind = source.text("type");
        check::choice_or_empty(kind, HOST_PATH_TYPES, &path.field("type"), errors);
    }
}

fn git_repo(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    check::require(source, &["repository"], path, errors);
    check::descending_path(source.text("directory"), &path.field("directory"), errors);
}

/// Checks a cloud's disk, named under `key`.
pub(crate) fn partition(source: &Map, key: &str, path: &Path<'_>, errors: &mut Errors) {
    check::require(source, &[key], path, errors);
    let number = source.int("partition").unwrap_or_default();
    if !(0..=255).contains(&number) {
        let detail = "must be between 1 and 255, inclusive";
        errors.invalid(&path.field("partition"), number, detail);
    }
}

fn files(source: &Map, name: &str, path: &Path<'_>, errors: &mut Errors) {
    check::require(source, &[name], path, errors);
    mode(source, "defaultMode", path, errors);
    let items = path.field("items");
    for (index, item) in maps(source.list("items")) {
        key_to_path(item, &items.index(index), errors);
    }
}

fn mode(source: &Map, key: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(mode) = source.int(key)
        && !(0..=FILE_MODE_MAX).contains(&mode)
    {
        errors.invalid(&path.field(key), mode, FILE_MODE);
    }
}

fn key_to_path(item: &Map, path: &Path<'_>, errors: &mut Errors) {
    check::require(item, &["key", "path"], path, errors);
    check::unreserved_path(item.text("path"), &path.field("path"), errors);
    mode(item, "mode", path, errors);
}

/// Checks a share of the network file system.
pub(crate) fn nfs(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    check::require(source, &["server", "path"], path, errors);
    let share = source.text("path");
    if !share.starts_with('/') {
        errors.invalid(&path.field("path"), share, "must be an absolute path");
    }
}

/// Checks an iSCSI disk.
pub(crate) fn iscsi(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    let detail = "must be valid format starting with iqn, eui, or naa";
    iscsi_source(source, Persistence::Pod, detail, path, errors);
}

/// Checks the same in a volume of the cluster, which says less.
pub(crate) fn persistent_iscsi(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    iscsi_source(source, Persistence::Cluster, ISCSI_FORMAT, path, errors);
}

/// Whose volume a source is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Persistence {
    Pod,
    Cluster,
}

fn iscsi_source(
    source: &Map,
    persistence: Persistence,
    strange: &str,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    check::require(source, &["targetPortal"], path, errors);
    let name = source.text("iqn");
    if name.is_empty() {
        errors.required(&path.field("iqn"), "");
    } else {
        iscsi_name(name, strange, &path.field("iqn"), errors);
    }
    let number = source.int("lun").unwrap_or_default();
    for complaint in names::in_range(number, 0, 255) {
        errors.invalid(&path.field("lun"), number, complaint);
    }
    let authenticates = source.flag("chapAuthDiscovery") || source.flag("chapAuthSession");
    if authenticates && !source.has("secretRef") {
        errors.required(&path.field("secretRef"), "");
    }
    if persistence == Persistence::Cluster {
        secret_name(source, path, errors);
    }
    if source.has("initiatorName") {
        let name = source.text("initiatorName");
        iscsi_name(name, strange, &path.field("initiatorname"), errors);
    }
}

/// Checks the name of a target or an initiator; `strange` is said of one of no known sort.
fn iscsi_name(name: &str, strange: &str, path: &Path<'_>, errors: &mut Errors) {
    let detail = match name.get(..3) {
        Some("iqn") if !is_qualified_iscsi_name(name) => ISCSI_FORMAT,
        Some("eui") if !has_alphanumeric_tail(name, 16) => ISCSI_FORMAT,
        Some("naa") if !has_alphanumeric_tail(name, 32) => ISCSI_FORMAT,
        Some("iqn" | "eui" | "naa") => return,
        _ => strange,
    };
    errors.invalid(path, name, detail);
}

/// Whether the text is such as `iqn.2001-04.com.example:disk`.
fn is_qualified_iscsi_name(name: &str) -> bool {
    let Some((authority, unique)) = name.strip_prefix("iqn.").and_then(|it| it.split_once(':'))
    else {
        return false;
    };
    let shape = "0000-00.";
    let Some((date, domain)) = authority.split_at_checked(shape.len()) else {
        return false;
    };
    let is_date = date
        .bytes()
        .zip(shape.bytes())
        .all(|(byte, shape)| match shape {
            b'0' => byte.is_ascii_digit(),
            _ => byte == shape,
        });
    let is_domain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let is_unique = |byte: u8| !b",;*&$|\t\n\x0c\r ".contains(&byte);
    is_date
        && !domain.is_empty()
        && domain.bytes().all(is_domain)
        && !unique.is_empty()
        && unique.bytes().all(is_unique)
}

/// Whether so many letters and digits follow the sort and one more character.
fn has_alphanumeric_tail(name: &str, length: usize) -> bool {
    let mut tail = name.chars().skip(3);
    tail.next().is_some_and(|it| it != '\n')
        && tail.clone().count() == length
        && tail.all(|it| it.is_ascii_alphanumeric())
}

/// Checks a volume of Quobyte.
pub(crate) fn quobyte(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    let registry = source.text("registry");
    let detail = "must be a host:port pair or multiple pairs separated by commas";
    if registry.is_empty() {
        errors.required(&path.field("registry"), detail);
    } else if source.text("tenant").len() > 64 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.required(&path.field("tenant"), detail);
    } else {
        for _ in registry.split(',').filter(|pair| !pair.contains(':')) {
            errors.invalid(&path.field("registry"), registry, detail);
        }
    }
    check::require(source, &["volume"], path, errors);
}

/// Checks a volume of Flocker.
pub(crate) fn flocker(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    let (name, id) = (source.text("datasetName"), source.text("datasetUUID"));
    match (name.is_empty(), id.is_empty()) {
        (true, true) => {
            errors.required(path, "one of datasetName and datasetUUID is required");
        }
        (false, false) => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            errors.invalid(path, "resource", detail);
        }
        _ => {}
    }
    if name.contains('/') {
        errors.invalid(&path.field("datasetName"), name, "must not contain '/'");
    }
}

/// Checks what names a volume of StorageOS.
pub(crate) fn storage_os(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    check::label(source.text("volumeName"), &path.field("volumeName"), errors);
    let namespace = source.text("volumeNamespace");
    if !namespace.is_empty() {
        check::label(namespace, &path.field("volumeNamespace"), errors);
    }
}

fn secret_name(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    if let Some(reference) = source.object("secretRef")
        && reference.text("name").is_empty()
    {
        errors.required(&path.field("secretRef").field("name"), "");
    }
}

fn downward_api(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    mode(source, "defaultMode", path, errors);
    for (_, file) in maps(source.list("items")) {
        downward_file(file, path, errors);
    }
}

fn downward_file(file: &Map, path: &Path<'_>, errors: &mut Errors) {
    check::require(file, &["path"], path, errors);
    check::unreserved_path(file.text("path"), &path.field("path"), errors);
    if let Some(field) = file.object("fieldRef") {
        env::field_reference(field, VOLUME_FIELDS, &path.field("fieldRef"), errors);
        if file.has("resourceFieldRef") {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.invalid(path, "resource", detail);
        }
    } else if let Some(resource) = file.object("resourceFieldRef") {
        env::resource_reference(resource, true, &path.field("resourceFieldRef"), errors);
    } else {
        errors.required(path, "one of fieldRef and resourceFieldRef is required");
    }
    mode(file, "mode", path, errors);
}

/// Checks a disk behind fibre channel.
pub(crate) fn fibre_channel(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    let targets = source.list("targetWWNs");
    let identifiers = source.list("wwids");
    if targets.is_empty() && identifiers.is_empty() {
        let detail = "must specify either targetWWNs or wwids, but not both";
        errors.required(&path.field("targetWWNs"), detail);
    }
    if targets.is_empty() {
        return;
    }
    if !identifiers.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.invalid_value(
            &path.field("targetWWNs"),
            source.value("targetWWNs"),
            detail,
        );
    }
    match source.int("lun") {
        None => {
            let detail = "lun is required if targetWWNs is specified";
            errors.required(&path.field("lun"), detail);
        }
        Some(number) => {
            for complaint in names::in_range(number, 0, 255) {
                errors.invalid(&path.field("lun"), number, complaint);
            }
        }
    }
}

/// Checks a volume of an exec driver.
pub(crate) fn flex_volume(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    check::require(source, &["driver"], path, errors);
    let options = path.field("options");
    for (key, _) in source.object_or_empty("options").iter() {
        let domain = key
            .split_once('/')
            .map_or(key.as_str(), |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.invalid(&options.key(key), key.as_str(), detail);
        }
    }
}

/// Checks an Azure disk.
pub(crate) fn azure_disk(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    check::require(source, &["diskName", "diskURI"], path, errors);
    if source.has("cachingMode") {
        let modes = ["None", "ReadOnly", "ReadWrite"];
        let mode = source.text("cachingMode");
        check::choice_or_empty(mode, &modes, &path.field("cachingMode"), errors);
    }
    if !source.has("kind") {
        return;
    }
    let kind = source.text("kind");
    let kinds = ["Dedicated", "Managed", "Shared"];
    check::choice_or_empty(kind, &kinds, &path.field("kind"), errors);
    let uri = source.text("diskURI");
    let (prefix, form) = if kind == "Managed" {
        (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/\
             disks/{disk-id}",
        )
    } else {
        (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        )
    };
    if !uri.starts_with(prefix) {
        errors.unsupported(&path.field("diskURI"), uri, &[form]);
    }
}

fn csi(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    csi_driver_name(source.text("driver"), &path.field("driver"), errors);
    if let Some(reference) = source.object("nodePublishSecretRef") {
        let name = reference.text("name");
        if name.is_empty() {
            errors.required(&path.field("nodePublishSecretRef").field("name"), "");
        } else {
            errors.each(&path.field("name"), name, names::dns1123_subdomain(name));
        }
    }
}

/// Checks the name of a storage driver.
pub(crate) fn csi_driver_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    if name.len() > DRIVER_BYTES_MAX {
        errors.push(object::field::FieldError::too_long(path, DRIVER_BYTES_MAX));
    }
    errors.each(path, name, names::dns1123_subdomain(&name.to_lowercase()));
}

/// Sources that are gathered in one folder; their files must not collide.
fn projected(source: &Map, path: &Path<'_>, errors: &mut Errors) {
    mode(source, "defaultMode", path, errors);
    let mut taken: Vec<&str> = Vec::new();
    let sources = path.field("sources");
    for (index, projection) in maps(source.list("sources")) {
        let at = sources.index(index);
        let mut count = 0;
        for key in ["secret", "configMap"] {
            let Some(files) = projection.object(key) else {
                continue;
            };
            count += 1;
            let at = at.field(key);
            check::require(files, &["name"], &at, errors);
            let items = at.field("items");
            for (index, item) in maps(files.list("items")) {
                key_to_path(item, &items.index(index), errors);
                let name = files.text("name");
                collides(&mut taken, item.text("path"), name, path, errors);
            }
        }
        if let Some(downward) = projection.object("downwardAPI") {
            count += 1;
            for (_, file) in maps(downward.list("items")) {
                downward_file(file, &at.field("downwardAPI"), errors);
                let text = file.text("path");
                collides(&mut taken, text, text, path, errors);
            }
        }
        if let Some(token) = projection.object("serviceAccountToken") {
            count += 1;
            service_account_token(token, &at.field("serviceAccountToken"), path, errors);
        }
        if count > 1 {
            let detail = "may not specify more than 1 volume type per source";
            errors.forbidden(&at, detail);
        }
    }
}

fn service_account_token(token: &Map, at: &Path<'_>, path: &Path<'_>, errors: &mut Errors) {
    let seconds = token.int("expirationSeconds").unwrap_or_default();
    if seconds < TOKEN_SECONDS_MIN {
        let detail = "may not specify a duration less than 10 minutes";
        errors.invalid(&at.field("expirationSeconds"), seconds, detail);
    }
    if seconds > 1 << 32 {
        let detail = "may not specify a duration larger than 2^32 seconds";
        errors.invalid(&at.field("expirationSeconds"), seconds, detail);
    }
    let file = token.text("path");
    if file.is_empty() {
        errors.required(&path.field("path"), "");
    } else {
        check::unreserved_path(file, &path.field("path"), errors);
    }
}

fn collides<'a>(
    taken: &mut Vec<&'a str>,
    file: &'a str,
    shown: &str,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if file.is_empty() {
        return;
    }
    if taken.contains(&file) {
        errors.invalid(path, shown, "conflicting duplicate paths");
    } else {
        taken.push(file);
    }
}
