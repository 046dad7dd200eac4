//! Each field that a level is about, with a value that it refuses and the text of the refusal.

use object::{Map, Text, Value, value};

use super::checks::{Pod, evaluate};
use super::{ANYTHING, Level, Policy, Standard, Version};

/// A pod that satisfies every level.
fn model() -> Value {
    value!({
        "metadata": {"name": "one", "annotations": {}},
        "spec": {
            "securityContext": {
                "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "main",
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                },
            }],
        },
    })
}

/// Sets what stands at a path; numbers are places in lists.
fn set(target: &mut Value, path: &[&str], new: Value) {
    let Some((first, rest)) = path.split_first() else {
        *target = new;
        return;
    };
    match target {
        Value::Array(items) => set(&mut items[first.parse::<usize>().unwrap()], rest, new),
        Value::Object(map) => {
            let next = map.get_or_insert_with(first, || Value::Object(Map::new()));
            set(next, rest, new);
        }
        other => panic!("{other:?} has no {first}"),
    }
}

const POD: &str = "spec/securityContext";
const CONTAINER: &str = "spec/containers/0/securityContext";

fn with(path: &str, new: Value) -> Value {
    let mut pod = model();
    let path: Vec<&str> = path.split('/').collect();
    set(&mut pod, &path, new);
    pod
}

fn details(pod: &Value, level: Level, version: Version) -> String {
    let pod = Pod::new(pod.as_object().unwrap()).expect("a pod has a spec");
    evaluate(Standard { level, version }, &pod).details()
}

/// Path, value, and what the latest baseline and restricted say; `same` means like baseline.
fn table() -> Vec<(String, Value, &'static str, &'static str)> {
    let row =
        |path: &str, new: Value, baseline, restricted| (path.to_owned(), new, baseline, restricted);
    let pod = |field: &str| format!("{POD}/{field}");
    let own = |field: &str| format!("{CONTAINER}/{field}");
    let same = "same";
    vec![
        row(
            "spec/hostNetwork",
            true.into(),
            "host namespaces (hostNetwork=true)",
            same,
        ),
        row(
            "spec/hostPID",
            true.into(),
            "host namespaces (hostPID=true)",
            same,
        ),
        row(
            "spec/hostIPC",
            true.into(),
            "host namespaces (hostIPC=true)",
            same,
        ),
        row(
            &own("privileged"),
            true.into(),
            "privileged (container \"main\" must not set securityContext.privileged=true)",
            same,
        ),
        row(
            &own("capabilities"),
            value!({"drop": ["ALL"], "add": ["NET_RAW", "CHOWN", "SYS_ADMIN"]}),
            "non-default capabilities (container \"main\" must not include \"NET_RAW\", \
             \"SYS_ADMIN\" in securityContext.capabilities.add)",
            "unrestricted capabilities (container \"main\" must not include \"CHOWN\", \
             \"NET_RAW\", \"SYS_ADMIN\" in securityContext.capabilities.add)",
        ),
        row(
            &own("capabilities"),
            value!({"drop": ["NET_RAW"], "add": ["NET_BIND_SERVICE"]}),
            "",
            "unrestricted capabilities (container \"main\" must set \
             securityContext.capabilities.drop=[\"ALL\"])",
        ),
        row(
            "spec/volumes",
            value!([{"name": "a", "hostPath": {"path": "/"}}]),
            "hostPath volumes (volume \"a\")",
            "restricted volume types (volume \"a\" uses restricted volume type \"hostPath\")",
        ),
        row(
            "spec/volumes",
            value!([
                {"name": "a", "nfs": {}}, {"name": "b", "gitRepo": {}}, {"name": "c", "secret": {}},
            ]),
            "",
            "restricted volume types (volumes \"a\", \"b\" use restricted volume types \
             \"gitRepo\", \"nfs\")",
        ),
        row(
            "spec/containers/0/ports",
            value!([{"containerPort": 80, "hostPort": 80}, {"hostPort": 0}, {"hostPort": 443}]),
            "hostPort (container \"main\" uses hostPorts 443, 80)",
            same,
        ),
        row(
            "spec/containers/0/livenessProbe",
            value!({"httpGet": {"host": "example.com", "port": 80}}),
            "probe or lifecycle host (container \"main\" uses probe or lifecycle host \
             \"example.com\")",
            same,
        ),
        row(
            "spec/containers/0/lifecycle",
            value!({"preStop": {"tcpSocket": {"host": "b"}}, "postStart": {"httpGet": {"host": "a"}}}),
            "probe or lifecycle host (container \"main\" uses probe or lifecycle hosts \"a\", \
             \"b\")",
            same,
        ),
        row(
            &own("procMount"),
            "Unmasked".into(),
            "procMount (container \"main\" must not set securityContext.procMount to \
             \"Unmasked\")",
            same,
        ),
        row(
            &own("appArmorProfile"),
            value!({"type": "Unconfined"}),
            "forbidden AppArmor profile (container \"main\" must not set AppArmor profile type to \
             \"Unconfined\")",
            same,
        ),
        row(
            &pod("appArmorProfile"),
            value!({"type": "Unconfined"}),
            "forbidden AppArmor profile (pod must not set AppArmor profile type to \
             \"Unconfined\")",
            same,
        ),
        row(
            "metadata/annotations",
            value!({"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}),
            "forbidden AppArmor profile (annotation must not set AppArmor profile type to \
             \"container.apparmor.security.beta.kubernetes.io/main=\"unconfined\"\")",
            same,
        ),
        row(
            &pod("seLinuxOptions"),
            value!({"type": "spc_t", "user": "u", "role": "r"}),
            "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"spc_t\"; \
             user may not be set; role may not be set)",
            same,
        ),
        row(
            &own("seLinuxOptions"),
            value!({"type": "container_engine_t"}),
            "",
            "",
        ),
        row(
            &pod("seccompProfile"),
            value!({"type": "Unconfined"}),
            "seccompProfile (pod must not set securityContext.seccompProfile.type to \
             \"Unconfined\")",
            same,
        ),
        row(
            &own("seccompProfile"),
            value!({"type": "Unconfined"}),
            "seccompProfile (container \"main\" must not set securityContext.seccompProfile.type \
             to \"Unconfined\")",
            same,
        ),
        row(
            &pod("seccompProfile"),
            Value::Null,
            "",
            "seccompProfile (pod or container \"main\" must set \
             securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
        ),
        row(
            &pod("sysctls"),
            value!([{"name": "kernel.msgmax"}, {"name": "net.ipv4.tcp_rmem"}, {"name": "net.a"}]),
            "forbidden sysctls (kernel.msgmax, net.a)",
            same,
        ),
        row(
            &pod("windowsOptions"),
            value!({"hostProcess": true}),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
            same,
        ),
        row(
            &own("windowsOptions"),
            value!({"hostProcess": true}),
            "hostProcess (container \"main\" must not set \
             securityContext.windowsOptions.hostProcess=true)",
            same,
        ),
        row(
            &own("allowPrivilegeEscalation"),
            Value::Null,
            "",
            "allowPrivilegeEscalation != false (container \"main\" must set \
             securityContext.allowPrivilegeEscalation=false)",
        ),
        row(
            &pod("runAsNonRoot"),
            Value::Null,
            "",
            "runAsNonRoot != true (pod or container \"main\" must set \
             securityContext.runAsNonRoot=true)",
        ),
        row(
            &pod("runAsNonRoot"),
            false.into(),
            "",
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
        ),
        row(
            &own("runAsNonRoot"),
            false.into(),
            "",
            "runAsNonRoot != true (container \"main\" must not set \
             securityContext.runAsNonRoot=false)",
        ),
        row(
            &pod("runAsUser"),
            0.into(),
            "",
            "runAsUser=0 (pod must not set runAsUser=0)",
        ),
        row(
            &own("runAsUser"),
            0.into(),
            "",
            "runAsUser=0 (container \"main\" must not set runAsUser=0)",
        ),
        row(&own("runAsUser"), 1000.into(), "", ""),
    ]
}

#[test]
fn what_each_level_says_about_each_field() {
    for (path, new, baseline, restricted) in table() {
        let pod = with(&path, new);
        let restricted = if restricted == "same" {
            baseline
        } else {
            restricted
        };
        let case = format!("{path}: {pod:?}");
        assert_eq!(
            details(&pod, Level::Privileged, Version::Latest),
            "",
            "{case}"
        );
        assert_eq!(
            details(&pod, Level::Baseline, Version::Latest),
            baseline,
            "{case}"
        );
        assert_eq!(
            details(&pod, Level::Restricted, Version::Latest),
            restricted,
            "{case}"
        );
    }
    assert_eq!(details(&model(), Level::Restricted, Version::Latest), "");
}

#[test]
fn init_containers_and_guests_count_too() {
    for list in ["initContainers", "ephemeralContainers"] {
        let bad = value!([{"name": "x", "securityContext": {"privileged": true}}]);
        let pod = with(&format!("spec/{list}"), bad);
        assert_eq!(
            details(&pod, Level::Baseline, Version::Latest),
            "privileged (container \"x\" must not set securityContext.privileged=true)",
            "{list}"
        );
    }
}

/// Since when a check holds: path, value, level, the last version without it, the first with it.
#[test]
fn checks_hold_since_the_release_that_made_them() {
    let (base, strict) = (Level::Baseline, Level::Restricted);
    let host = value!({"httpGet": {"host": "example.com"}});
    let escalation = format!("{CONTAINER}/allowPrivilegeEscalation");
    let user = format!("{POD}/runAsUser");
    let profile = format!("{POD}/seccompProfile");
    for (path, new, level, without, since) in [
        ("spec/containers/0/livenessProbe", host, base, 33, 34),
        (escalation.as_str(), Value::Null, strict, 7, 8),
        (user.as_str(), 0.into(), strict, 22, 23),
        (profile.as_str(), Value::Null, strict, 18, 19),
    ] {
        let pod = with(path, new);
        assert_eq!(details(&pod, level, Version::Minor(without)), "", "{path}");
        assert_ne!(details(&pod, level, Version::Minor(since)), "", "{path}");
        assert_ne!(details(&pod, level, Version::Minor(999)), "", "{path}");
    }
    let sysctls = format!("{POD}/sysctls");
    let selinux = format!("{POD}/seLinuxOptions");
    for (path, new, since) in [
        (
            &sysctls,
            value!([{"name": "net.ipv4.ip_local_reserved_ports"}]),
            27,
        ),
        (&sysctls, value!([{"name": "net.ipv4.tcp_fin_timeout"}]), 29),
        (&sysctls, value!([{"name": "net.ipv4.tcp_wmem"}]), 32),
        (&selinux, value!({"type": "container_engine_t"}), 31),
    ] {
        let pod = with(path, new);
        assert_ne!(details(&pod, base, Version::Minor(since - 1)), "", "{path}");
        assert_eq!(details(&pod, base, Version::Minor(since)), "", "{path}");
    }
}

#[test]
fn pods_with_users_of_their_own_may_be_root_inside() {
    let mut pod = with(&format!("{POD}/runAsUser"), 0.into());
    set(&mut pod, &["spec", "hostUsers"], false.into());
    assert_eq!(details(&pod, Level::Restricted, Version::Latest), "");
    assert_ne!(details(&pod, Level::Restricted, Version::Minor(34)), "");
    let mut pod = with(&format!("{CONTAINER}/procMount"), "Unmasked".into());
    set(&mut pod, &["spec", "hostUsers"], false.into());
    assert_eq!(details(&pod, Level::Baseline, Version::Latest), "");
    assert_ne!(details(&pod, Level::Restricted, Version::Latest), "");
}

#[test]
fn windows_pods_need_not_set_what_windows_has_not() {
    let mut pod = model();
    set(&mut pod, &["spec", "os"], value!({"name": "windows"}));
    set(
        &mut pod,
        &["spec", "securityContext"],
        value!({"runAsNonRoot": true}),
    );
    set(
        &mut pod,
        &["spec", "containers", "0", "securityContext"],
        value!({}),
    );
    assert_eq!(details(&pod, Level::Restricted, Version::Latest), "");
    assert_ne!(details(&pod, Level::Restricted, Version::Minor(24)), "");
}

#[test]
fn annotations_named_the_profile_before_v1_19() {
    let key = "container.seccomp.security.alpha.kubernetes.io/main";
    let mut annotations = Map::new();
    annotations.insert(Text::from(key), "unconfined".into());
    let pod = with("metadata/annotations", annotations.into());
    assert_eq!(
        details(&pod, Level::Baseline, Version::Minor(18)),
        format!("seccompProfile (forbidden annotation {key}=\"unconfined\")")
    );
    assert_eq!(details(&pod, Level::Baseline, Version::Minor(19)), "");
}

#[test]
fn what_labels_mean() {
    let read = |labels: &[(&str, &'static str)]| {
        let labels: Vec<(String, &'static str)> = labels
            .iter()
            .map(|(key, value)| (format!("pod-security.kubernetes.io/{key}"), *value))
            .collect();
        let (policy, errors) =
            Policy::read(|key| labels.iter().find(|(known, _)| known == key).map(|it| it.1));
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        (policy, errors)
    };
    let shown = |labels: &[(&str, &'static str)]| {
        let (policy, errors) = read(labels);
        assert_eq!(errors, Vec::<String>::new());
        format!("{} {}", policy.enforce, policy.warn)
    };
    assert_eq!(
        read(&[]).0,
        Policy {
            enforce: ANYTHING,
            audit: ANYTHING,
            warn: ANYTHING
        }
    );
    for (labels, expected) in [
        (
            vec![("enforce", "baseline")],
            "baseline:latest baseline:latest",
        ),
        (
            vec![("enforce", "restricted"), ("enforce-version", "v1.25")],
            "restricted:v1.25 restricted:v1.25",
        ),
        (
            vec![("enforce", "baseline"), ("warn", "privileged")],
            "baseline:latest privileged:latest",
        ),
        (
            vec![("enforce", "baseline"), ("warn-version", "v1.30")],
            "baseline:latest baseline:v1.30",
        ),
        (
            vec![("warn", "restricted")],
            "privileged:latest restricted:latest",
        ),
    ] {
        assert_eq!(shown(&labels), expected, "{labels:?}");
    }
    let (policy, errors) = read(&[("enforce", "none"), ("audit-version", "1.2"), ("warn", "x")]);
    assert_eq!(policy.enforce.level, Level::Restricted);
    assert_eq!(policy.warn.level, Level::Privileged);
    assert_eq!(
        errors,
        [
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"none\": must be \
             one of privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: \"1.2\": \
             must be \"latest\" or \"v1.x\"",
            "metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: \"x\": must be one \
             of privileged, baseline, restricted",
        ]
    );
}
