//! Containers of a pod: regular, init and ephemeral ones.

use object::field::{FieldError, Path};
use object::{Map, Value, names};

use super::{Context, env, probes, security};
use crate::validation::check::{self, Errors, Report};
use crate::validation::quantities;
use crate::validation::read::{Read, maps};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: &[&str] = &["File", "FallbackToLogsOnError"];
const RESTART_POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;
const WITHOUT_ALWAYS: &str = "may not be set for init containers without restartPolicy=Always";
const EPHEMERAL: &str = "cannot be set for an Ephemeral Container";
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Checks the regular containers, of which there is at least one.
pub(super) fn regular(spec: &Map, context: &Context<'_>, path: &Path<'_>, errors: &mut Errors) {
    let containers = spec.list("containers");
    let path = path.field("containers");
    if containers.is_empty() {
        errors.required(&path, "");
        return;
    }
    for (index, container) in maps(containers) {
        let path = path.index(index);
        common(container, context, &path, errors);
        let name = container.text("name");
        if is_named_before(containers, index, name) {
            errors.duplicate(&path.field("name"), name);
        }
        probes::lifecycle(container, context, &path, errors);
        for probe in PROBES {
            probes::probe(container, probe, context, &path, errors);
        }
        restart_policy(container, &path, errors);
    }
    host_ports(containers, &path, errors);
}

/// Checks the init containers, which share their names with the regular ones.
pub(super) fn init(spec: &Map, context: &Context<'_>, path: &Path<'_>, errors: &mut Errors) {
    let containers = spec.list("initContainers");
    let path = path.field("initContainers");
    for (index, container) in maps(containers) {
        let at = path.index(index);
        common(container, context, &at, errors);
        let policy = container.get("restartPolicy").and_then(Value::as_str);
        init_restart_policy(container, policy, &at, errors);
        let name = container.text("name");
        if is_named(spec.list("containers"), name) || is_named_before(containers, index, name) {
            errors.duplicate(&at.field("name"), name);
        }
        host_ports(&containers[index..=index], &path, errors);
        if policy == Some("Always") {
            probes::lifecycle(container, context, &at, errors);
            for probe in PROBES {
                probes::probe(container, probe, context, &at, errors);
            }
            continue;
        }
        for key in [
            "lifecycle",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
        ] {
            if container.has(key) {
                errors.forbidden(&at.field(key), WITHOUT_ALWAYS);
            }
        }
        for (position, rule) in maps(container.list("resizePolicy")) {
            if rule.text("restartPolicy") == "RestartContainer" {
                let policies = at.field("resizePolicy");
                errors.invalid(
                    &policies.index(position).field("restartPolicy"),
                    "RestartContainer",
                    "must not be set to 'RestartContainer' for non-sidecar initContainers",
                );
            }
        }
    }
}

/// Checks the ephemeral containers, which may ask for little.
pub(super) fn ephemeral(spec: &Map, context: &Context<'_>, path: &Path<'_>, errors: &mut Errors) {
    let containers = spec.list("ephemeralContainers");
    let path = path.field("ephemeralContainers");
    for (index, container) in maps(containers) {
        let path = path.index(index);
        common(container, context, &path, errors);
        trimmed_image(container, &path, errors);
        let exists = |name: &str| {
            is_named(spec.list("containers"), name) || is_named(spec.list("initContainers"), name)
        };
        let name = container.text("name");
        if exists(name) || is_named_before(containers, index, name) {
            errors.duplicate(&path.field("name"), name);
        }
        let target = container.text("targetContainerName");
        if !target.is_empty() && !exists(target) {
            errors.not_found(&path.field("targetContainerName"), target);
        }
        ephemeral_fields(container, &path, errors);
    }
}

fn ephemeral_fields(container: &Map, path: &Path<'_>, errors: &mut Errors) {
    for key in [
        "ports",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "restartPolicyRules",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
    ] {
        let set = match container.value(key) {
            Value::Null => false,
            Value::Object(map) => !map.is_empty() || key != "resources",
            _ => true,
        };
        if set {
            errors.forbidden(&path.field(key), EPHEMERAL);
        }
    }
    let mounts = path.field("volumeMounts");
    for (index, mount) in maps(container.list("volumeMounts")) {
        for key in ["subPath", "subPathExpr"] {
            if !mount.text(key).is_empty() {
                errors.forbidden(&mounts.index(index).field(key), EPHEMERAL);
            }
        }
    }
}

fn common(container: &Map, context: &Context<'_>, path: &Path<'_>, errors: &mut Errors) {
    check::label(container.text("name"), &path.field("name"), errors);
    if container.text("image").is_empty() {
        errors.required(&path.field("image"), "");
    }
    check::choice(
        container.text("terminationMessagePolicy"),
        MESSAGE_POLICIES,
        &path.field("terminationMessagePolicy"),
        errors,
    );
    ports(container.list("ports"), &path.field("ports"), errors);
    env::variables(container.list("env"), &path.field("env"), errors);
    env::sources(container.list("envFrom"), &path.field("envFrom"), errors);
    env::mounts(container, context, &path.field("volumeMounts"), errors);
    env::devices(container, context, &path.field("volumeDevices"), errors);
    pull_policy(
        container.text("imagePullPolicy"),
        &path.field("imagePullPolicy"),
        errors,
    );
    if let Some(resources) = container.object("resources") {
        quantities::requirements(
            resources,
            quantities::container_resource_name,
            context.claims,
            &path.field("resources"),
            errors,
        );
    }
    resize_policy(container, context, &path.field("resizePolicy"), errors);
    if let Some(context_of) = container.object("securityContext") {
        let path = path.field("securityContext");
        security::container(context_of, context.host_users, &path, errors);
    }
}

/// Checks when an image is pulled.
pub(super) fn pull_policy(policy: &str, path: &Path<'_>, errors: &mut Errors) {
    check::choice(policy, PULL_POLICIES, path, errors);
}

/// Checks that an image has no spaces around it; templates were never checked for that.
pub(super) fn trimmed_image(container: &Map, path: &Path<'_>, errors: &mut Errors) {
    let image = container.text("image");
    if image.trim().len() != image.len() {
        let detail = "must not have leading or trailing whitespace";
        errors.invalid(&path.field("image"), image, detail);
    }
}

fn ports(ports: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (index, port) in maps(ports) {
        let path = path.index(index);
        let name = port.text("name");
        if !name.is_empty() {
            let complaints = names::port_name(name);
            if !complaints.is_empty() {
                errors.each(&path.field("name"), name, complaints);
            } else if seen.contains(&name) {
                errors.duplicate(&path.field("name"), name);
            } else {
                seen.push(name);
            }
        }
        match port.int("containerPort").unwrap_or_default() {
            0 => errors.required(&path.field("containerPort"), ""),
            number => check::port_number(number, &path.field("containerPort"), errors),
        }
        if let Some(number) = port.int("hostPort").filter(|number| *number != 0) {
            check::port_number(number, &path.field("hostPort"), errors);
        }
        let protocol = port.text("protocol");
        check::choice(protocol, PROTOCOLS, &path.field("protocol"), errors);
    }
}

fn host_ports(containers: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<(&str, &str, i64)> = Vec::new();
    for (index, container) in maps(containers) {
        let path = path.index(index);
        let path = path.field("ports");
        for (position, port) in maps(container.list("ports")) {
            let Some(number) = port.int("hostPort").filter(|number| *number != 0) else {
                continue;
            };
            let taken = (port.text("protocol"), port.text("hostIP"), number);
            if seen.contains(&taken) {
                let text = format!("{}/{}/{}", taken.0, taken.1, taken.2);
                errors.duplicate(&path.index(position).field("hostPort"), &text);
            } else {
                seen.push(taken);
            }
        }
    }
}

fn resize_policy(container: &Map, context: &Context<'_>, path: &Path<'_>, errors: &mut Errors) {
    let policies = container.list("resizePolicy");
    for (index, policy) in maps(policies) {
        let resource = policy.text("resourceName");
        let before = maps(&policies[..index]);
        if before
            .into_iter()
            .any(|(_, one)| one.text("resourceName") == resource)
        {
            errors.duplicate(&path.index(index), resource);
        }
        check::choice(resource, &["cpu", "memory"], path, errors);
        let restart = policy.text("restartPolicy");
        check::choice(restart, &["NotRequired", "RestartContainer"], path, errors);
        if context.restart_policy == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.invalid(path, restart, detail);
        }
    }
}

fn init_restart_policy(
    container: &Map,
    policy: Option<&str>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if policy.is_some() {
        restart_policy(container, path, errors);
    } else if !container.list("restartPolicyRules").is_empty() {
        let detail = "must specify restartPolicy when restart rules are used";
        errors.required(&path.field("restartPolicy"), detail);
    }
}

fn restart_policy(container: &Map, path: &Path<'_>, errors: &mut Errors) {
    let rules = container.list("restartPolicyRules");
    match container.get("restartPolicy").and_then(Value::as_str) {
        None if rules.is_empty() => return,
        None => {
            let detail = "must specify restartPolicy when restart rules are used";
            errors.required(&path.field("restartPolicy"), detail);
        }
        Some(policy) => check::choice_or_empty(
            policy,
            RESTART_POLICIES,
            &path.field("restartPolicy"),
            errors,
        ),
    }
    let path = path.field("restartPolicyRules");
    if rules.len() > RULES_MAX {
        errors.push(FieldError::too_many(&path, rules.len(), RULES_MAX));
    }
    for (index, rule) in maps(rules) {
        restart_rule(rule, &path.index(index), errors);
    }
}

fn restart_rule(rule: &Map, path: &Path<'_>, errors: &mut Errors) {
    check::choice_or_empty(
        rule.text("action"),
        &["Restart", "RestartAllContainers"],
        &path.field("action"),
        errors,
    );
    let path = path.field("exitCodes");
    let Some(codes) = rule.object("exitCodes") else {
        errors.required(&path, "must be specified");
        return;
    };
    check::choice_or_empty(
        codes.text("operator"),
        &["In", "NotIn"],
        &path.field("operator"),
        errors,
    );
    let count = codes.list("values").len();
    if count > EXIT_CODES_MAX {
        let error = FieldError::too_many(&path.field("values"), count, EXIT_CODES_MAX);
        errors.push(error);
    }
}

fn is_named(containers: &[Value], name: &str) -> bool {
    maps(containers).any(|(_, container)| container.text("name") == name)
}

fn is_named_before(containers: &[Value], index: usize, name: &str) -> bool {
    is_named(&containers[..index], name)
}
