//! What an object uses of the resources that quotas limit.
//!
//! Contract: `pkg/quota/v1/evaluator/core` and `apiserver/pkg/quota/v1/generic/evaluator.go`.

use std::collections::BTreeSet;

use kinds::Kind;
use object::quantity::{Format, Quantity};
use object::time::Time;
use object::{Map, Text, Value, names};

use super::scope::Scopes;
use crate::admission::amounts::{self, Amounts, Side};
use crate::meta::{meta, meta_text};

/// Kinds that no quota counts: questions, actions and events.
const IGNORED: &[(&str, &str)] = &[
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("events.k8s.io", "events"),
];
const IGNORED_GROUPS: &[&str] = &["authentication.k8s.io", "authorization.k8s.io"];
/// Kinds whose number has a name of its own beside `count/...`.
const ALIASES: &[&str] = &[
    "configmaps",
    "resourcequotas",
    "replicationcontrollers",
    "secrets",
];

const POD_RESOURCES: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
/// What every container has to state if a quota limits it.
const STATED: &[&str] = &[
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];
const HUGE_PAGES: &str = "hugepages-";
const REQUESTS: &str = "requests.";
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
const SERVICE_RESOURCES: &[&str] = &["services", "services.nodeports", "services.loadbalancers"];
const CLAIM_RESOURCES: &[&str] = &["persistentvolumeclaims", "requests.storage"];
const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";
const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";
/// Devices that a claim of all of a class counts for.
const DEVICES_MAX: i64 = 32;

/// How objects of a kind are measured.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    /// `count/resource.group`, and an alias where there is one.
    counts: Vec<Text>,
    measure: Measure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    Number,
    Pods,
    Services,
    Claims,
    DeviceClaims,
}

impl Meter {
    /// The meter of a kind; `None` if no quota ever counts it.
    pub(crate) fn of(kind: &Kind) -> Option<Meter> {
        let (group, resource) = (kind.group.as_str(), kind.resource.as_str());
        let ignored = IGNORED.contains(&(group, resource)) || IGNORED_GROUPS.contains(&group);
        if !kind.namespaced || ignored {
            return None;
        }
        let mut count = Text::from("count/");
        count.push_str(&kind.group_resource());
        let mut counts = vec![count];
        if group.is_empty() && ALIASES.contains(&resource) {
            counts.push(kind.resource.clone());
        }
        let measure = match (group, resource) {
            ("", "pods") => Measure::Pods,
            ("", "services") => Measure::Services,
            ("", "persistentvolumeclaims") => Measure::Claims,
            ("resource.k8s.io", "resourceclaims") => Measure::DeviceClaims,
            _ => Measure::Number,
        };
        Some(Meter { counts, measure })
    }

    /// Whether objects are merely counted, so that nothing has to be read of them.
    pub(crate) fn only_counts(&self) -> bool {
        self.measure == Measure::Number
    }

    /// Whether a write can change what is used.
    pub(crate) fn handles(&self, subresource: &str, object: &Map, old: Option<&Map>) -> bool {
        match (self.measure, subresource) {
            (Measure::Number, "") => old.is_none(),
            (Measure::Pods, "") => {
                old.is_none_or(|old| is_terminating(old) != is_terminating(object))
            }
            (Measure::Pods, "resize") => old.is_some(),
            (Measure::Claims, "status") => old.is_some(),
            (Measure::Services | Measure::Claims | Measure::DeviceClaims, "") => true,
            _ => false,
        }
    }

    /// Those resources of a quota that this kind uses.
    pub(crate) fn matching<'a>(&self, names: impl Iterator<Item = &'a Text>) -> Vec<Text> {
        let own = |name: &&Text| self.counts.contains(name) || self.measures(name);
        names.filter(own).cloned().collect()
    }

    fn measures(&self, name: &str) -> bool {
        match self.measure {
            Measure::Number => false,
            Measure::Pods => {
                POD_RESOURCES.contains(&name)
                    || name.starts_with(HUGE_PAGES)
                    || name
                        .strip_prefix(REQUESTS)
                        .is_some_and(|it| it.starts_with(HUGE_PAGES) || is_extended_for_quota(it))
            }
            Measure::Services => SERVICE_RESOURCES.contains(&name),
            Measure::Claims => {
                let of_class = name.split_once(STORAGE_CLASS).map(|(_, it)| it);
                CLAIM_RESOURCES.contains(&of_class.unwrap_or(name))
            }
            Measure::DeviceClaims => name.ends_with(DEVICES),
        }
    }

    /// What an object uses; `now` in seconds since 1970.
    pub(crate) fn usage(&self, object: &Map, now: i64) -> Amounts {
        let mut usage: Amounts = self
            .counts
            .iter()
            .map(|name| (name.clone(), amounts::one()))
            .collect();
        match self.measure {
            Measure::Number => {}
            Measure::Pods if is_over(object, now) => {}
            Measure::Pods => {
                let requests = amounts::used_by_pod(object, Side::Requests);
                let limits = amounts::used_by_pod(object, Side::Limits);
                usage.extend(compute(&requests, &limits));
            }
            Measure::Services => usage.extend(of_service(object)),
            Measure::Claims => usage.extend(of_claim(object)),
            Measure::DeviceClaims => usage.extend(of_device_claim(object)),
        }
        usage
    }

    /// What scopes of quotas look at.
    pub(crate) fn scopes(&self, object: &Map) -> Scopes {
        match self.measure {
            Measure::Pods => Scopes::of_pod(object, is_terminating(object)),
            Measure::Claims => Scopes::of_claim(object),
            _ => Scopes::None,
        }
    }

    /// For each container of a pod, what it states of the resources that have to be stated.
    pub(crate) fn stated(&self, object: &Map) -> Vec<(Text, BTreeSet<Text>)> {
        let spec = object.get("spec").and_then(Value::as_object);
        let Some(spec) = spec.filter(|_| self.measure == Measure::Pods) else {
            return Vec::new();
        };
        // A pod that states its resources as a whole need not state those of its containers.
        if amounts::has_pod_level(spec) {
            return Vec::new();
        }
        let containers = ["containers", "initContainers"]
            .into_iter()
            .flat_map(|list| amounts::containers(spec, list));
        containers
            .map(|container| {
                let requests = amounts::of_container(container, Side::Requests);
                let limits = amounts::of_container(container, Side::Limits);
                let stated = compute(&requests, &limits).into_keys();
                let name = container.get("name").and_then(Value::as_str);
                (name.unwrap_or_default().into(), stated.collect())
            })
            .collect()
    }
}

/// Whether a quota of this resource obliges containers to state it.
pub(super) fn must_be_stated(name: &str) -> bool {
    STATED.contains(&name)
}

fn compute(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([(Text::from("pods"), amounts::one())]);
    let prefixed = |prefix: &str, name: &str| {
        let mut text = Text::from(prefix);
        text.push_str(name);
        text
    };
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(amount) = requests.get(name) {
            usage.insert(name.into(), amount.clone());
            usage.insert(prefixed(REQUESTS, name), amount.clone());
        }
        if let Some(amount) = limits.get(name) {
            usage.insert(prefixed("limits.", name), amount.clone());
        }
    }
    for (name, amount) in requests {
        if name.starts_with(HUGE_PAGES) {
            usage.insert(name.clone(), amount.clone());
            usage.insert(prefixed(REQUESTS, name), amount.clone());
        }
        if is_extended(name) || name.starts_with(DEVICE_CLASS) {
            usage.insert(prefixed(REQUESTS, name), amount.clone());
        }
    }
    usage
}

/// Whether a resource is one that neither Kubernetes nor a prefix of its own names.
pub(crate) fn is_extended(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    !native
        && !name.starts_with(REQUESTS)
        && names::qualified_name(&format!("{REQUESTS}{name}")).is_empty()
}

/// Whether what stands after `requests.` in a quota is not one of Kubernetes' own resources.
fn is_extended_for_quota(name: &str) -> bool {
    name.starts_with(DEVICE_CLASS) || (name.contains('/') && !name.contains("kubernetes.io/"))
}

/// Whether a pod has a time after which it ends.
fn is_terminating(pod: &Map) -> bool {
    let seconds = pod
        .get("spec")
        .and_then(|spec| spec.get("activeDeadlineSeconds"))
        .and_then(Value::as_int);
    seconds.is_some_and(|seconds| seconds >= 0)
}

/// Whether a pod has ended, or should have.
fn is_over(pod: &Map, now: i64) -> bool {
    let phase = pod
        .get("status")
        .and_then(|status| status.str_at(&["phase"]));
    if matches!(phase, Some("Failed" | "Succeeded")) {
        return true;
    }
    let grace = meta(pod)
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_int);
    match (Time::parse(meta_text(pod, "deletionTimestamp")), grace) {
        (Ok(time), Some(grace)) => now > time.unix_seconds().saturating_add(grace),
        _ => false,
    }
}

fn of_service(service: &Map) -> Amounts {
    let spec = service.get("spec");
    let ports = spec.and_then(|spec| spec.get("ports"));
    let ports = ports.and_then(Value::as_array).unwrap_or_default();
    let kind = spec.and_then(|spec| spec.str_at(&["type"]));
    let node_ports = match kind {
        Some("NodePort") => ports.len(),
        Some("LoadBalancer") => {
            let allocates = spec.and_then(|spec| spec.get("allocateLoadBalancerNodePorts"));
            if allocates.and_then(Value::as_bool) == Some(false) {
                let has = |port: &&Value| {
                    let number = port.get("nodePort").and_then(Value::as_int);
                    number.is_some_and(|number| number != 0)
                };
                ports.iter().filter(has).count()
            } else {
                ports.len()
            }
        }
        _ => 0,
    };
    let balancers = usize::from(kind == Some("LoadBalancer"));
    Amounts::from([
        ("services".into(), amounts::one()),
        ("services.nodeports".into(), amounts::count(node_ports)),
        ("services.loadbalancers".into(), amounts::count(balancers)),
    ])
}

/// The class that a claim names, by annotation or by field.
pub(crate) fn storage_class(claim: &Map) -> &str {
    let annotation = meta(claim)
        .get("annotations")
        .and_then(|all| all.str_at(&["volume.beta.kubernetes.io/storage-class"]));
    let field = claim
        .get("spec")
        .and_then(|spec| spec.str_at(&["storageClassName"]));
    annotation.or(field).unwrap_or_default()
}

fn of_claim(claim: &Map) -> Amounts {
    let class = storage_class(claim);
    let mut usage = Amounts::new();
    let mut charge = |name: &str, amount: Quantity| {
        if !class.is_empty() {
            let mut of_class = Text::from(class);
            of_class.push_str(STORAGE_CLASS);
            of_class.push_str(name);
            usage.insert(of_class, amount.clone());
        }
        usage.insert(name.into(), amount);
    };
    charge("persistentvolumeclaims", amounts::one());
    let resources = claim.get("spec").and_then(|spec| spec.get("resources"));
    let requests = amounts::read(resources.and_then(|it| it.get("requests")));
    let allocated = claim
        .get("status")
        .and_then(|status| status.get("allocatedResources"));
    let allocated = amounts::read(allocated);
    if let Some(requested) = requests.get("storage") {
        let given = allocated.get("storage").filter(|it| *it > requested);
        let mut amount = given.unwrap_or(requested).clone();
        // Quotas of storage are whole bytes.
        amount.round_up(0);
        charge("requests.storage", amount);
    }
    usage
}

fn of_device_claim(claim: &Map) -> Amounts {
    let requests = claim
        .get("spec")
        .and_then(|spec| spec.at(&["devices", "requests"]))
        .and_then(Value::as_array)
        .unwrap_or_default();
    let mut usage = Amounts::new();
    for request in requests {
        let alternatives = request.get("firstAvailable").and_then(Value::as_array);
        let alternatives = alternatives.unwrap_or_default();
        let mut largest = Amounts::new();
        for wanted in alternatives.iter().chain(request.get("exactly")) {
            let class = wanted.str_at(&["deviceClassName"]).unwrap_or_default();
            let number = match wanted.str_at(&["allocationMode"]) {
                Some("ExactCount") => wanted.get("count").and_then(Value::as_int).unwrap_or(0),
                Some("All") => DEVICES_MAX,
                _ => 0,
            };
            let mut name = Text::from(class);
            name.push_str(DEVICES);
            let number = Quantity::from_int(number, Format::DecimalSi);
            if largest.get(&name).is_none_or(|known| number > *known) {
                largest.insert(name, number);
            }
        }
        amounts::add(&mut usage, &largest);
    }
    usage
}
