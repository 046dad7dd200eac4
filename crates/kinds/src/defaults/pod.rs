//! Defaults of pods and of everything that holds a pod template.
//!
//! Follows `pkg/apis/core/v1/defaults.go`, and the paired fields of `conversion.go` (service
//! account, pod addresses), because upstream's answers show both.

use object::{Map, Value, value};

use super::fill::{
    at, each, fill, fill_number, fill_text, fill_texts, is_true, items, list, number, text, within,
};
use super::image::pull_policy;
use super::quantities::round_up_list;
use super::{pod_resources, volumes};

/// Fills a pod.
pub(crate) fn pod(pod: &mut Map) {
    let spec = pod.object_at("spec");
    pod_spec(spec);
    for containers in ["containers", "initContainers"] {
        each(spec, containers, pod_resources::requests_from_limits);
    }
    pod_resources::pod_level(spec);
    fill(spec, "enableServiceLinks", true);
    if is_true(spec, "hostNetwork") {
        host_ports(spec);
    }
    if number(spec, "terminationGracePeriodSeconds") < 0 {
        spec.insert("terminationGracePeriodSeconds", 1.into());
    }
    drop_legacy_annotations(pod);
    within(pod, "status", pod_status);
}

/// Fills the template under `key`, making it if it is missing.
pub(crate) fn template(owner: &mut Map, key: &str) {
    let template = owner.object_at(key);
    drop_legacy_annotations(template);
    pod_spec(template.object_at("spec"));
}

/// Fills a pod spec, be it of a pod or of a template.
pub(crate) fn pod_spec(spec: &mut Map) {
    fill_texts(
        spec,
        &[
            ("dnsPolicy", "ClusterFirst"),
            ("restartPolicy", "Always"),
            ("schedulerName", "default-scheduler"),
        ],
    );
    fill(spec, "securityContext", value!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    pair_service_account(spec);
    each(spec, "volumes", volumes::volume);
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, containers, container);
    }
    round_up_list(spec, "overhead");
    within(spec, "resources", resources);
}

/// Keeps the two names of the service account equal; the newer field wins.
pub(crate) fn pair_service_account(spec: &mut Map) {
    let older = text(spec, "serviceAccount").to_owned();
    if text(spec, "serviceAccountName").is_empty() && !older.is_empty() {
        spec.insert("serviceAccountName", older.into());
    } else if let Some(name) = spec.get("serviceAccountName").cloned() {
        spec.insert("serviceAccount", name);
    }
}

fn container(container: &mut Map) {
    if text(container, "imagePullPolicy").is_empty() {
        let policy = pull_policy(text(container, "image"));
        container.insert("imagePullPolicy", policy.into());
    }
    fill_text(container, "terminationMessagePath", "/dev/termination-log");
    fill_text(container, "terminationMessagePolicy", "File");
    each(container, "ports", |port| {
        fill_text(port, "protocol", "TCP")
    });
    each(container, "env", |variable| {
        within(variable, "valueFrom", variable_source)
    });
    within(container, "resources", resources);
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        within(container, name, probe);
    }
    within(container, "lifecycle", |lifecycle| {
        for hook in ["postStart", "preStop"] {
            within(lifecycle, hook, |handler| {
                within(handler, "httpGet", http_get)
            });
        }
    });
}

fn variable_source(source: &mut Map) {
    within(source, "fieldRef", field_reference);
    within(source, "fileKeyRef", |key| fill(key, "optional", false));
}

/// Fills a reference to a field of the pod.
pub(super) fn field_reference(reference: &mut Map) {
    fill_text(reference, "apiVersion", "v1");
}

/// Rounds limits and requests.
pub(super) fn resources(resources: &mut Map) {
    round_up_list(resources, "limits");
    round_up_list(resources, "requests");
}

fn probe(probe: &mut Map) {
    fill_number(probe, "timeoutSeconds", 1);
    fill_number(probe, "periodSeconds", 10);
    fill_number(probe, "successThreshold", 1);
    fill_number(probe, "failureThreshold", 3);
    within(probe, "httpGet", http_get);
    within(probe, "grpc", |grpc| fill(grpc, "service", ""));
}

fn http_get(action: &mut Map) {
    fill_texts(action, &[("path", "/"), ("scheme", "HTTP")]);
}

/// With the network of the host, a port of the container is a port of the host.
fn host_ports(spec: &mut Map) {
    for containers in ["containers", "initContainers"] {
        each(spec, containers, |container| {
            each(container, "ports", |port| {
                if number(port, "hostPort") == 0
                    && let Some(inner) = port.get("containerPort").cloned()
                {
                    port.insert("hostPort", inner);
                }
            });
        });
    }
}

/// Annotations that carried init containers before they had fields; they are never shown.
const LEGACY_ANNOTATIONS: [&str; 4] = [
    "pod.alpha.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.beta.kubernetes.io/init-containers",
];

fn drop_legacy_annotations(owner: &mut Map) {
    within(owner, "metadata", |metadata| {
        let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
        else {
            return;
        };
        let before = annotations.len();
        annotations.retain(|key, _| !LEGACY_ANNOTATIONS.contains(&key));
        if before > 0 && annotations.is_empty() {
            metadata.remove("annotations");
        }
    });
}

fn pod_status(status: &mut Map) {
    pair_first(status, "podIP", "podIPs");
    for statuses in [
        "initContainerStatuses",
        "containerStatuses",
        "ephemeralContainerStatuses",
    ] {
        each(status, statuses, |container| {
            round_up_list(container, "allocatedResources");
            within(container, "resources", resources);
        });
    }
    round_up_list(status, "allocatedResources");
    within(status, "resources", resources);
}

/// Keeps `single` equal to the first `ip` of `plural`; `single` wins when they differ.
fn pair_first(status: &mut Map, single: &str, plural: &str) {
    let first = items(status, plural)
        .next()
        .map(|item| text(item, "ip").to_owned());
    let address = text(status, single).to_owned();
    if !address.is_empty() && first.as_deref() != Some(address.as_str()) {
        status.insert(plural, value!([{"ip": address}]));
    } else if let Some(first) = first.filter(|_| address.is_empty()) {
        status.insert(single, first.into());
    }
}

/// Whether a pod spec waits for gates before it is scheduled.
pub(crate) fn is_gated(spec: &Map) -> bool {
    !list(spec, "schedulingGates").is_empty()
}

/// The labels of a template, if it has any.
pub(super) fn template_labels(spec: &Map) -> Option<&Map> {
    at(spec, &["template", "metadata", "labels"])?.as_object()
}
