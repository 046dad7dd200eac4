//! ServiceAccount: every pod runs as an account, and can reach the API with its token.
//!
//! Contract: `plugin/pkg/admission/serviceaccount/admission.go`.

use std::time::Duration;

use object::{Map, Text, Value, value};

use super::amounts::containers;
use super::lookup::Place;
use super::references::{secrets, spec_of};
use super::{forbidden, is_about};
use crate::error::Error;
use crate::meta::{meta, meta_text};
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
pub(super) const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
const LIMITS_ANNOTATION: &str = "kubernetes.io/enforce-mountable-secrets";

pub(super) async fn mutate(
    resources: &Resources,
    request: &Request<'_>,
    pod: &mut Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    if old.is_some() || !is_about(request, "", "pods") {
        return Ok(());
    }
    if is_mirror(pod) {
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
        return Err(not_found(request, pod, &name));
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
    let own = spec.get("imagePullSecrets").and_then(Value::as_array);
    let pulled = account.get("imagePullSecrets").and_then(Value::as_array);
    let pulled = pulled.unwrap_or_default();
    if own.is_none_or(<[Value]>::is_empty) && !pulled.is_empty() {
        spec.insert("imagePullSecrets", Value::Array(pulled.to_vec()));
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

/// Checks what was filled in, and guests that come later.
pub(super) async fn validate(
    resources: &Resources,
    request: &Request<'_>,
    pod: &Map,
    old: Option<&Map>,
) -> Result<(), Error> {
    let is_guest = old.is_some() && is_pods(request, "ephemeralcontainers");
    let is_new = old.is_none() && is_pods(request, "");
    if !is_new && !is_guest {
        return Ok(());
    }
    if is_new && is_mirror(pod) {
        return check_mirror(pod).map_err(|detail| forbidden(request, pod, detail));
    }
    let Some(spec) = spec_of(pod) else {
        return Ok(());
    };
    let name = spec.get("serviceAccountName").and_then(Value::as_str);
    let name = name.unwrap_or_default();
    if name.is_empty() {
        let (namespace, pod_name) = (request.namespace, meta_text(pod, "name"));
        let detail = format!("no service account specified for pod {namespace}/{pod_name}");
        return Err(forbidden(request, pod, detail));
    }
    let Some(account) = account(resources, request.namespace, name).await? else {
        return Err(not_found(request, pod, name));
    };
    if !limits_secrets(&account) {
        return Ok(());
    }
    check_secrets(&account, spec, is_guest).map_err(|detail| forbidden(request, pod, detail))
}

fn is_pods(request: &Request<'_>, subresource: &str) -> bool {
    let kind = request.kind;
    kind.resource == "pods" && kind.group.is_empty() && request.subresource == subresource
}

fn is_mirror(pod: &Map) -> bool {
    let annotations = meta(pod).get("annotations");
    annotations.is_some_and(|all| all.get(MIRROR_ANNOTATION).is_some())
}

fn not_found(request: &Request<'_>, pod: &Map, name: &str) -> Error {
    let detail = format!(
        "error looking up service account {}/{name}: serviceaccount \"{name}\" not found",
        request.namespace
    );
    forbidden(request, pod, detail)
}

/// Whether the account names all secrets that its pods may use.
fn limits_secrets(account: &Map) -> bool {
    let annotations = meta(account).get("annotations");
    let value = annotations.and_then(|all| all.str_at(&[LIMITS_ANNOTATION]));
    matches!(value, Some("1" | "t" | "T" | "TRUE" | "true" | "True"))
}

fn check_secrets(account: &Map, spec: &Map, only_guests: bool) -> Result<(), String> {
    let names = |list: &str| -> Vec<&str> {
        containers(account, list)
            .filter_map(|it| it.get("name")?.as_str())
            .collect()
    };
    let allowed = names("secrets");
    let end = format!(
        "is not allowed because service account {} does not reference that",
        meta_text(account, "name")
    );
    if only_guests {
        return check_environment(
            spec,
            "ephemeralContainers",
            "ephemeral container",
            &allowed,
            &end,
        );
    }
    for volume in containers(spec, "volumes") {
        let secret = volume.get("secret").map(|it| it.str_at(&["secretName"]));
        if let Some(name) = secret.map(Option::unwrap_or_default)
            && !allowed.contains(&name)
        {
            return Err(format!(
                "volume with secret.secretName=\"{name}\" {end} secret"
            ));
        }
    }
    check_environment(spec, "initContainers", "init container", &allowed, &end)?;
    check_environment(spec, "containers", "container", &allowed, &end)?;
    let allowed = names("imagePullSecrets");
    for (place, secret) in containers(spec, "imagePullSecrets").enumerate() {
        let name = secret
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !allowed.contains(&name) {
            return Err(format!(
                "imagePullSecrets[{place}].name=\"{name}\" {end} imagePullSecret"
            ));
        }
    }
    Ok(())
}

fn check_environment(
    spec: &Map,
    list: &str,
    what: &str,
    allowed: &[&str],
    end: &str,
) -> Result<(), String> {
    for container in containers(spec, list) {
        let text = |holder: &Map| {
            let name = holder.get("name").and_then(Value::as_str);
            name.unwrap_or_default().to_owned()
        };
        let owner = text(container);
        let refused = |name: &str| !allowed.contains(&name);
        for variable in containers(container, "env") {
            let secret = variable
                .get("valueFrom")
                .and_then(|from| from.str_at(&["secretKeyRef", "name"]));
            if let Some(secret) = secret.filter(|name| refused(name)) {
                return Err(format!(
                    "{what} {owner} with envVar {} referencing secret.secretName=\"{secret}\" \
                     {end} secret",
                    text(variable)
                ));
            }
        }
        for source in containers(container, "envFrom") {
            let secret = source
                .get("secretRef")
                .and_then(|secret| secret.str_at(&["name"]));
            if let Some(secret) = secret.filter(|name| refused(name)) {
                return Err(format!(
                    "{what} {owner} with envFrom referencing secret.secretName=\"{secret}\" {end} \
                     secret"
                ));
            }
        }
    }
    Ok(())
}

/// A mirror of a pod that a node runs by itself can use nothing of the API.
fn check_mirror(pod: &Map) -> Result<(), String> {
    let Some(spec) = spec_of(pod) else {
        return Ok(());
    };
    let account = spec.get("serviceAccountName").and_then(Value::as_str);
    if account.is_some_and(|name| !name.is_empty()) {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    if !secrets(spec).is_empty() {
        return Err("a mirror pod may not reference secrets".to_owned());
    }
    let has_token = containers(spec, "volumes").any(|volume| {
        let sources = volume.get("projected").and_then(|it| it.get("sources"));
        let sources = sources.and_then(Value::as_array).unwrap_or_default();
        sources
            .iter()
            .any(|it| it.get("serviceAccountToken").is_some())
    });
    if has_token {
        return Err("a mirror pod may not use ServiceAccountToken volume projections".to_owned());
    }
    Ok(())
}
