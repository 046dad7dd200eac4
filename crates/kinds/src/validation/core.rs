//! The smaller kinds of the core group.

use object::field::{FieldError, Path};
use object::{Map, Value, json, names};
use schema::decode::decode_base64;

use super::check::{self, Errors, Report};
use super::meta;
use super::read::{Read, texts};

const DATA_BYTES_MAX: usize = 1024 * 1024;
const WHEN_IMMUTABLE: &str = "field is immutable when `immutable` is set";
const REDACTED: &str = "<secret contents redacted>";
const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

/// Checks a config map.
pub(crate) fn config_map(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if let Some(old) = old {
        frozen(new, old, &["data", "binaryData"], &mut errors);
        meta::again(new, true, &mut errors);
    }
    let (data, binary) = (
        new.object_or_empty("data"),
        new.object_or_empty("binaryData"),
    );
    let mut bytes = 0;
    let path = root.field("data");
    for (key, value) in data.iter() {
        errors.each(&path.key(key), key, names::config_map_key(key));
        if binary.contains_key(key) {
            let detail = "duplicate of key present in binaryData";
            errors.invalid(&path.key(key), key.as_str(), detail);
        }
        bytes += value.as_str().map_or(0, str::len);
    }
    let path = root.field("binaryData");
    for (key, value) in binary.iter() {
        errors.each(&path.key(key), key, names::config_map_key(key));
        bytes += decoded_length(value);
    }
    if bytes > DATA_BYTES_MAX {
        errors.push(FieldError::too_long(&root.key(""), DATA_BYTES_MAX));
    }
    errors
}

/// What was declared immutable stays so, and so do these fields.
fn frozen(new: &Map, old: &Map, keys: &[&str], errors: &mut Errors) {
    if !old.flag("immutable") {
        return;
    }
    let root = Path::root();
    if !new.flag("immutable") {
        errors.forbidden(&root.field("immutable"), WHEN_IMMUTABLE);
    }
    for key in keys {
        if !check::same_field(new, old, key) {
            errors.forbidden(&root.field(key), WHEN_IMMUTABLE);
        }
    }
}

/// Checks a secret.
pub(crate) fn secret(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if let Some(old) = old {
        if new.text("type") != old.text("type") {
            errors.invalid(&root.field("type"), new.text("type"), check::IMMUTABLE);
        }
        frozen(new, old, &["data"], &mut errors);
        meta::again(new, true, &mut errors);
    }
    let data = new.object_or_empty("data");
    let path = root.field("data");
    let mut bytes = 0;
    for (key, value) in data.iter() {
        errors.each(&path.key(key), key, names::config_map_key(key));
        bytes += decoded_length(value);
    }
    if bytes > DATA_BYTES_MAX {
        errors.push(FieldError::too_long(&path, DATA_BYTES_MAX));
    }
    secret_type(new, data, &path, &mut errors);
    errors
}

fn secret_type(secret: &Map, data: &Map, path: &Path<'_>, errors: &mut Errors) {
    let mut require = |keys: &[&str]| {
        for key in keys.iter().filter(|key| !data.contains_key(key)) {
            errors.required(&path.key(key), "");
        }
    };
    match secret.text("type") {
        "kubernetes.io/service-account-token" => {
            let annotations = secret
                .object_or_empty("metadata")
                .object_or_empty("annotations");
            if annotations.text(ACCOUNT_NAME).is_empty() {
                let root = Path::root();
                let path = root.field("metadata");
                errors.required(&path.field("annotations").key(ACCOUNT_NAME), "");
            }
        }
        "kubernetes.io/dockercfg" => json_under(data, ".dockercfg", path, errors),
        "kubernetes.io/dockerconfigjson" => json_under(data, ".dockerconfigjson", path, errors),
        "kubernetes.io/basic-auth"
            if !data.contains_key("username") && !data.contains_key("password") =>
        {
            require(&["username", "password"]);
        }
        "kubernetes.io/ssh-auth" if data.text("ssh-privatekey").is_empty() => {
            errors.required(&path.key("ssh-privatekey"), "");
        }
        "kubernetes.io/tls" => require(&["tls.crt", "tls.key"]),
        _ => {}
    }
}

fn json_under(data: &Map, key: &str, path: &Path<'_>, errors: &mut Errors) {
    let Some(value) = data.get(key) else {
        errors.required(&path.key(key), "");
        return;
    };
    let bytes = decode_base64(value.as_str().unwrap_or_default()).unwrap_or_default();
    let detail = match json::parse(&bytes) {
        Err(error) => error.to_string(),
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => {
            let kind = match other {
                Value::Bool(_) => "bool",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                _ => "number",
            };
            format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
        }
    };
    errors.invalid(&path.key(key), REDACTED, detail);
}

/// How many bytes a base64 text stands for.
fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    text.len() / 4 * 3 - padding.min(2)
}

/// Checks a namespace.
pub(crate) fn namespace(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    let spec = root.field("spec");
    let path = spec.field("finalizers");
    let finalizers = new.object_or_empty("spec").list("finalizers");
    match (old, subresource) {
        (old, "") => {
            if old.is_some() {
                meta::again_named(new, false, names::name_is_dns_label, &mut errors);
            }
            for (_, name) in texts(finalizers) {
                finalizer(name, &path, &mut errors);
            }
        }
        (Some(_), "finalize") => {
            for (index, name) in texts(finalizers) {
                finalizer(name, &path.index(index), &mut errors);
            }
        }
        (Some(_), "status") => {
            let deleting = new.object_or_empty("metadata").has("deletionTimestamp");
            let phase = new.object_or_empty("status").text("phase");
            let (wanted, state) = if deleting {
                ("Terminating", "not empty")
            } else {
                ("Active", "empty")
            };
            if phase != wanted {
                let path = root.field("status");
                let detail = format!("may only be '{wanted}' if `deletionTimestamp` is {state}");
                errors.invalid(&path.field("Phase"), phase, detail);
            }
        }
        _ => {}
    }
    errors
}

fn finalizer(name: &str, path: &Path<'_>, errors: &mut Errors) {
    errors.each(path, name, names::qualified_name(name));
    meta::qualified_finalizer(name, path, errors);
}

/// Checks a service account.
pub(crate) fn service_account(new: &Map, old: Option<&Map>, _: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if old.is_some() {
        meta::again(new, true, &mut errors);
    }
    errors
}

#[cfg(test)]
mod tests;
