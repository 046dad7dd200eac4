//! Security contexts of pods and containers.

use std::sync::atomic::{AtomicBool, Ordering};

use object::field::{FieldError, Path};
use object::{Map, Value, names};

use crate::validation::check::{self, Errors, Report};
use crate::validation::print::{self, Field, Shape};
use crate::validation::read::{Read, maps};

const SECCOMP_TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
const SYSCTL_BYTES_MAX: usize = 253;
const PROFILE_BYTES_MAX: usize = 4095;
const CREDENTIAL_BYTES_MAX: usize = 64 * 1024;
const DOMAIN_BYTES_MAX: usize = 256;
const USER_BYTES_MAX: usize = 104;

/// Structs of containers print without JSON names.
const SECCOMP: Shape = Shape(&[
    Field::plain("type", "Type", "\"\""),
    Field::plain("localhostProfile", "LocalhostProfile", "null"),
]);
const SECURITY_CONTEXT: Shape = Shape(&[
    Field::plain("capabilities", "Capabilities", "null").of(&Shape(&[
        Field::plain("add", "Add", "null"),
        Field::plain("drop", "Drop", "null"),
    ])),
    Field::plain("privileged", "Privileged", "null"),
    Field::plain("seLinuxOptions", "SELinuxOptions", "null").of(&Shape(&[
        Field::plain("user", "User", "\"\""),
        Field::plain("role", "Role", "\"\""),
        Field::plain("type", "Type", "\"\""),
        Field::plain("level", "Level", "\"\""),
    ])),
    Field::plain("windowsOptions", "WindowsOptions", "null").of(&Shape(&[
        Field::plain("gmsaCredentialSpecName", "GMSACredentialSpecName", "null"),
        Field::plain("gmsaCredentialSpec", "GMSACredentialSpec", "null"),
        Field::plain("runAsUserName", "RunAsUserName", "null"),
        Field::plain("hostProcess", "HostProcess", "null"),
    ])),
    Field::plain("runAsUser", "RunAsUser", "null"),
    Field::plain("runAsGroup", "RunAsGroup", "null"),
    Field::plain("runAsNonRoot", "RunAsNonRoot", "null"),
    Field::plain("readOnlyRootFilesystem", "ReadOnlyRootFilesystem", "null"),
    Field::plain(
        "allowPrivilegeEscalation",
        "AllowPrivilegeEscalation",
        "null",
    ),
    Field::plain("procMount", "ProcMount", "null"),
    Field::plain("seccompProfile", "SeccompProfile", "null").of(&SECCOMP),
    Field::plain("appArmorProfile", "AppArmorProfile", "null").of(&SECCOMP),
]);

/// Whether containers may be privileged; like upstream's, one decision for the whole process.
static PRIVILEGED_ALLOWED: AtomicBool = AtomicBool::new(false);

/// Decides whether containers may be privileged, before anything is served. They may not until
/// somebody says so.
pub fn allow_privileged(allowed: bool) {
    PRIVILEGED_ALLOWED.store(allowed, Ordering::Relaxed);
}

/// Whether containers may be privileged.
pub(super) fn privileged_allowed() -> bool {
    PRIVILEGED_ALLOWED.load(Ordering::Relaxed)
}

/// Checks the security context of a container.
pub(super) fn container(context: &Map, host_users: bool, path: &Path<'_>, errors: &mut Errors) {
    if context.flag("privileged") && !privileged_allowed() {
        errors.forbidden(&path.field("privileged"), "disallowed by cluster policy");
    }
    ids(context, &["runAsUser", "runAsGroup"], path, errors);
    if context.has("procMount") {
        let mount = context.text("procMount");
        check::choice_or_empty(
            mount,
            &["Default", "Unmasked"],
            &path.field("procMount"),
            errors,
        );
        if host_users && mount == "Unmasked" {
            let detail = "`hostUsers` must be false to use `Unmasked`";
            errors.invalid(&path.field("procMount"), mount, detail);
        }
    }
    seccomp(context, path, errors);
    if context.choice("allowPrivilegeEscalation") == Some(false) {
        let mut refuse = |detail: &str| {
            let value = Value::Object(context.clone());
            errors.push(print::invalid(path, &value, &SECURITY_CONTEXT, detail));
        };
        if context.flag("privileged") {
            refuse("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
        }
        for added in context.object_or_empty("capabilities").list("add") {
            if added.as_str() == Some("CAP_SYS_ADMIN") {
                refuse(
                    "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                     CAP_SYS_ADMIN",
                );
            }
        }
    }
    windows_options(context, path, errors);
    app_armor(context, path, errors);
}

/// Checks the security context of a pod and the switches of the spec that belong to it.
pub(super) fn pod(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let Some(context) = spec.object("securityContext") else {
        return;
    };
    if context.is_empty() && !spec.has("shareProcessNamespace") {
        return;
    }
    ids(
        context,
        &["fsGroup", "runAsUser", "runAsGroup"],
        path,
        errors,
    );
    let groups = path.field("supplementalGroups");
    for (index, group) in context.list("supplementalGroups").iter().enumerate() {
        let group = group.as_int().unwrap_or_default();
        for complaint in names::unix_id(group) {
            errors.invalid(&groups.index(index), group, complaint);
        }
    }
    if spec.flag("shareProcessNamespace") && spec.flag("hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.invalid(&path.field("shareProcessNamespace"), true, detail);
    }
    sysctls(spec, context, &path.field("sysctls"), errors);
    let mut policy = |key: &str, supported: &[&str]| {
        if context.has(key) {
            check::choice_or_empty(context.text(key), supported, &path.field(key), errors);
        }
    };
    policy("fsGroupChangePolicy", &["Always", "OnRootMismatch"]);
    seccomp(context, path, errors);
    windows_options(context, path, errors);
    app_armor(context, path, errors);
    let mut policy = |key: &str, supported: &[&str]| {
        if context.has(key) {
            check::choice_or_empty(context.text(key), supported, &path.field(key), errors);
        }
    };
    policy("supplementalGroupsPolicy", &["Merge", "Strict"]);
    policy("seLinuxChangePolicy", &["Recursive"]);
}

fn ids(context: &Map, keys: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for key in keys {
        if let Some(id) = context.int(key) {
            for complaint in names::unix_id(id) {
                errors.invalid(&path.field(key), id, complaint);
            }
        }
    }
}

fn sysctls(spec: &Map, context: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = context.list("sysctls");
    for (index, sysctl) in maps(list) {
        let path = path.index(index);
        let path = path.field("name");
        let name = sysctl.text("name");
        if name.is_empty() {
            errors.required(&path, "");
        } else if !is_sysctl(name) {
            let detail = format!(
                "must have at most {SYSCTL_BYTES_MAX} characters and match regex \
                 ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            );
            errors.invalid(&path, name, detail);
        } else if maps(&list[..index]).any(|(_, other)| other.text("name") == name) {
            errors.duplicate(&path, name);
        }
        let dotted = name.replace('/', ".");
        if spec.flag("hostNetwork") && dotted.starts_with("net.") {
            errors.invalid(
                &path,
                name,
                "may not be specified when 'hostNetwork' is true",
            );
        } else if spec.flag("hostIPC") && is_ipc(&dotted) {
            errors.invalid(&path, name, "may not be specified when 'hostIPC' is true");
        }
    }
}

fn is_ipc(name: &str) -> bool {
    name == "kernel.sem"
        || ["kernel.shm", "kernel.msg", "fs.mqueue."]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

fn is_sysctl(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= SYSCTL_BYTES_MAX
        && name.split(['.', '/']).all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(|byte| plain(*byte))
                && bytes.last().is_some_and(|byte| plain(*byte))
                && bytes
                    .iter()
                    .all(|byte| plain(*byte) || b"-_".contains(byte))
        })
}

fn seccomp(context: &Map, path: &Path<'_>, errors: &mut Errors) {
    let Some(profile) = context.object("seccompProfile") else {
        return;
    };
    let path = path.field("seccompProfile");
    let kind = profile.text("type");
    if kind.is_empty() {
        let detail = "type is required when seccompProfile is set";
        errors.required(&path.field("type"), detail);
    } else {
        check::choice_or_empty(kind, SECCOMP_TYPES, &path.field("type"), errors);
    }
    let path = path.field("localhostProfile");
    match (
        kind == "Localhost",
        profile.get("localhostProfile").and_then(Value::as_str),
    ) {
        (true, None) => {
            errors.required(&path, "must be set when seccomp type is Localhost");
        }
        (true, Some(file)) => check::descending_path(file, &path, errors),
        (false, Some(_)) => {
            let value = context.value("seccompProfile");
            let detail = "can only be set when seccomp type is Localhost";
            errors.push(print::invalid(&path, value, &SECCOMP, detail));
        }
        (false, None) => {}
    }
}

fn app_armor(context: &Map, path: &Path<'_>, errors: &mut Errors) {
    let Some(profile) = context.object("appArmorProfile") else {
        return;
    };
    let path = path.field("appArmorProfile");
    let file = profile.get("localhostProfile").and_then(Value::as_str);
    let file_path = path.field("localhostProfile");
    match (profile.text("type"), file) {
        ("Localhost", None | Some("")) => {
            errors.required(&file_path, "must be set when AppArmor type is Localhost");
        }
        ("Localhost", Some(file)) => {
            if file.trim() != file {
                errors.invalid(&file_path, file, "must not be padded with whitespace");
            }
            if file.len() > PROFILE_BYTES_MAX {
                errors.push(FieldError::too_long(&file_path, PROFILE_BYTES_MAX));
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(file)) => {
            let detail = "can only be set when AppArmor type is Localhost";
            errors.invalid(&file_path, file, detail);
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => {
            let detail = "type is required when appArmorProfile is set";
            errors.required(&path.field("type"), detail);
        }
        (other, _) => errors.unsupported(&path.field("type"), other, SECCOMP_TYPES),
    }
}

fn windows_options(context: &Map, path: &Path<'_>, errors: &mut Errors) {
    let Some(options) = context.object("windowsOptions") else {
        return;
    };
    let path = path.field("windowsOptions");
    if options.has("gmsaCredentialSpecName") {
        let name = options.text("gmsaCredentialSpecName");
        let complaints = names::dns1123_subdomain(name);
        errors.each(&path.field("gmsaCredentialSpecName"), name, complaints);
    }
    if options.has("gmsaCredentialSpec") {
        let spec = options.text("gmsaCredentialSpec");
        let at = path.field("gmsaCredentialSpec");
        if spec.is_empty() {
            errors.invalid(&at, spec, "gmsaCredentialSpec cannot be an empty string");
        } else if spec.len() > CREDENTIAL_BYTES_MAX {
            errors.invalid(&at, spec, "gmsaCredentialSpec size must be under 64 KiB");
        }
    }
    if options.has("runAsUserName") {
        let name = options.text("runAsUserName");
        windows_user(name, &path.field("runAsUserName"), errors);
    }
}

fn windows_user(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let mut refuse = |detail: &str| errors.invalid(path, name, detail);
    if name.is_empty() {
        return refuse("runAsUserName cannot be an empty string");
    }
    if name.bytes().any(|byte| byte.is_ascii_control()) {
        return refuse("runAsUserName cannot contain control characters");
    }
    let (domain, user) = match name.split_once('\\') {
        Some((_, user)) if user.contains('\\') => {
            return refuse("runAsUserName cannot contain more than one backslash");
        }
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_BYTES_MAX) {
        refuse("runAsUserName's Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_net_bios(domain) && !is_dns(domain)) {
        refuse("runAsUserName's Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        refuse("runAsUserName's User cannot be empty");
    } else if user.len() > USER_BYTES_MAX {
        refuse("runAsUserName's User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|character| ". ".contains(character)) {
        refuse("runAsUserName's User cannot contain only periods or spaces");
    }
    if user.contains(|character: char| "\"/\\:;|=,+*?<>@[]".contains(character)) {
        refuse("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
}

fn is_net_bios(domain: &str) -> bool {
    (1..=15).contains(&domain.chars().count())
        && !domain.starts_with('.')
        && !domain.contains(|character: char| "\\/:*?\"<>|".contains(character))
}

fn is_dns(domain: &str) -> bool {
    domain.split('.').all(|label| {
        names::dns1123_label(&label.to_ascii_lowercase()).is_empty() && label.is_ascii()
    })
}
