//! ServiceAccount: every pod runs as an account, and can reach the API with its token.
//!
//! Contract: `plugin/pkg/admission/serviceaccount/admission.go`.

use std::time::Duration;

use object::{Map, Text, Value, value};

use super::lookup::Place;
use super::{forbidden, is_about};
use crate::error::Error;
use crate::meta::meta;
use crate::{Request, Resources, ids};

const ACCOUNTS: Place = ("", "v1", "serviceaccounts");
const DEFAULT_ACCOUNT: &str = "default";
/// A controller makes the default account shortly after its namespace; a first pod waits for it.
const DEFAULT_ACCOUNT_ATTEMPTS: u32 = 10;
const DEFAULT_ACCOUNT_WAIT: Duration = Duration::from_millis(100);

const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// A token lives this long; the odd seconds tell the server that a kubelet will renew it.
const TOKEN_SECONDS: i64 = 60 * 60 + 7;
/// Files of the volume are readable by everyone in the pod.
const FILE_MODE: i64 = 0o644;
const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";

pub(super) async fn mutate(
    resources: &Resources,
    request: &Request<'_>,
    pod: &mut Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if old.is_some() || !is_about(request, "", "pods") {
        return Ok(());
    }
    let annotations = meta(pod).get("annotations");
    if annotations.is_some_and(|all| all.get(MIRROR_ANNOTATION).is_some()) {
        return check_mirror(pod).map_err(|detail| forbidden(request, pod, detail));
    }
    let spec = pod.object_at("spec");
    let name = spec
        .get("serviceAccountName")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let name = Text::from(if name.is_empty() {
        DEFAULT_ACCOUNT
    } else {
        name
    });
    spec.insert("serviceAccountName", Value::String(name.clone()));
    let Some(account) = account(resources, request.namespace, &name).await? else {
        let detail = format!(
            "error looking up service account {}/{name}: serviceaccount \"{name}\" not found",
            request.namespace
        );
        return Err(forbidden(request, pod, detail));
    };
    let spec = pod.object_at("spec");
    let mounts = |holder: &Map| {
        holder
            .get("automountServiceAccountToken")
            .and_then(Value::as_bool)
    };
    if mounts(spec).or_else(|| mounts(&account)).unwrap_or(true) {
        mount_token(spec);
    }
    let has_secrets = spec.get("imagePullSecrets").and_then(Value::as_array);
    let secrets = account
        .get("imagePullSecrets")
        .and_then(Value::as_array)
        .unwrap_or_default();
    if has_secrets.is_none_or(<[Value]>::is_empty) && !secrets.is_empty() {
        spec.insert("imagePullSecrets", Value::Array(secrets.to_vec()));
    }
    Ok(())
}

async fn account(resources: &Resources, namespace: &str, name: &str) -> Result<Option<Map>, Error> {
    let attempts = if name == DEFAULT_ACCOUNT {
        DEFAULT_ACCOUNT_ATTEMPTS
    } else {
        1
    };
    for attempt in 0..attempts {
        if attempt > 0 {
            tokio::time::sleep(DEFAULT_ACCOUNT_WAIT).await;
        }
        if let Some(account) = resources.find(ACCOUNTS, namespace, name).await? {
            return Ok(Some(account));
        }
    }
    Ok(None)
}

/// Gives every container the token, unless something is mounted in its place.
fn mount_token(spec: &mut Map) {
    let volumes = spec
        .get("volumes")
        .and_then(Value::as_array)
        .unwrap_or_default();
    let known = volumes
        .iter()
        .filter_map(|volume| volume.str_at(&["name"]))
        .find(|name| name.starts_with(VOLUME_PREFIX));
    let is_new = known.is_none();
    let name = known.map_or_else(|| ids::generated_name(VOLUME_PREFIX), str::to_owned);
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            mounted |= mount(container, &name);
        }
    }
    if mounted && is_new {
        let volumes = spec.get_or_insert_with("volumes", || Value::Array(Vec::new()));
        if let Some(volumes) = volumes.as_array_mut() {
            volumes.push(volume(&name));
        }
    }
}

fn mount(container: &mut Map, name: &str) -> bool {
    let mounts = container.get_or_insert_with("volumeMounts", || Value::Array(Vec::new()));
    let Some(mounts) = mounts.as_array_mut() else {
        return false;
    };
    if mounts
        .iter()
        .any(|mount| mount.str_at(&["mountPath"]) == Some(MOUNT_PATH))
    {
        return false;
    }
    mounts.push(value!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH}));
    true
}

/// The token, who signed the server's certificate, and the pod's namespace.
fn volume(name: &str) -> Value {
    value!({
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
                {"configMap": {
                    "name": "kube-root-ca.crt",
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
            "defaultMode": FILE_MODE,
        },
    })
}

/// A mirror of a pod that a node runs by itself can use nothing of the API.
fn check_mirror(pod: &Map) -> Result<(), String> {
    let Some(spec) = pod.get("spec") else {
        return Ok(());
    };
    if spec
        .str_at(&["serviceAccountName"])
        .is_some_and(|name| !name.is_empty())
    {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    let volumes = spec
        .get("volumes")
        .and_then(Value::as_array)
        .unwrap_or_default();
    if volumes.iter().any(|volume| volume.get("secret").is_some()) {
        return Err("a mirror pod may not reference secrets".to_owned());
    }
    if volumes
        .iter()
        .any(|volume| volume.get("persistentVolumeClaim").is_some())
    {
        return Err("a mirror pod may not reference persistentvolumeclaims".to_owned());
    }
    Ok(())
}
