//! Requests for certificates.
//!
//! Whether the request inside its armour is well formed and signed is for the code that reads
//! certificates.

use object::field::{FieldError, Path, quote};
use object::{Map, Value, names};
use schema::decode::decode_base64;

use super::check::{self, Errors, Report};
use super::read::{Read, maps, texts};
use super::{meta, pem};

const SUBDOMAIN_BYTES_MAX: usize = 253;
const SIGNER_PATH_BYTES_MAX: usize = 253 + 63 + 1;
const SECONDS_MIN: i64 = 600;
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
const VERDICTS: [&str; 3] = ["Approved", "Denied", "Failed"];

/// Checks a request for a certificate.
pub(crate) fn validate(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    if old.is_some() {
        meta::again_named(new, false, names::name_is_path_segment, &mut errors);
    }
    let root = Path::root();
    let spec = new.object_or_empty("spec");
    let path = root.field("spec");
    let stored = old.map(|old| old.object_or_empty("spec"));
    request(spec, &path.field("request"), &mut errors);
    check_usages(spec, stored, &path.field("usages"), &mut errors);
    let signer = spec.text("signerName");
    let kept = stored.is_some_and(|stored| stored.text("signerName") == LEGACY_SIGNER);
    if signer == LEGACY_SIGNER && !kept {
        let detail = "the legacy signerName is not allowed via this API version";
        errors.invalid(&path.field("signerName"), signer, detail);
    } else {
        signer_name(signer, &path.field("signerName"), &mut errors);
    }
    if let Some(seconds) = spec.int("expirationSeconds").filter(|it| *it < SECONDS_MIN) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.invalid(&path.field("expirationSeconds"), seconds, detail);
    }
    let status_path = root.field("status");
    let conditions_path = status_path.field("conditions");
    let list = new.object_or_empty("status").list("conditions");
    conditions(list, &conditions_path, &mut errors);
    let issued = |object: &Map| {
        object
            .object_or_empty("status")
            .text("certificate")
            .to_owned()
    };
    if old.is_some_and(|old| issued(new) != issued(old))
        && let Some(detail) = certificate_mistake(&issued(new))
    {
        let path = status_path.field("certificate");
        errors.invalid(&path, "<certificate data>", detail);
    }
    if let Some(old) = old {
        let before = old.object_or_empty("status").list("conditions");
        verdicts(list, before, subresource, &conditions_path, &mut errors);
        certificate(
            new,
            old,
            subresource,
            &status_path.field("certificate"),
            &mut errors,
        );
    }
    errors
}

/// The request must be in the right armour; what it asks for is read elsewhere.
fn request(spec: &Map, path: &Path<'_>, errors: &mut Errors) {
    let text = decoded(spec.text("request"));
    let first = pem::blocks(&text);
    if first
        .first()
        .is_none_or(|it| it.label != "CERTIFICATE REQUEST")
    {
        let detail = "PEM block type must be CERTIFICATE REQUEST";
        errors.invalid_value(path, spec.value("request"), detail);
    }
}

fn decoded(base64: &str) -> String {
    let bytes = decode_base64(base64).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn check_usages(spec: &Map, stored: Option<&Map>, path: &Path<'_>, errors: &mut Errors) {
    let list = spec.list("usages");
    if list.is_empty() {
        errors.required(path, "");
    }
    let known = |list: &[Value]| texts(list).all(|(_, usage)| USAGES.contains(&usage));
    if stored.is_none_or(|stored| known(stored.list("usages"))) {
        for (index, usage) in texts(list) {
            check::choice_or_empty(usage, USAGES, &path.index(index), errors);
        }
    }
    for (index, usage) in texts(list) {
        if texts(&list[..index]).any(|(_, other)| other == usage) {
            errors.duplicate(&path.index(index), usage);
        }
    }
}

/// Checks the name of a signer: a domain and a path.
fn signer_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let parts: Vec<&str> = name.split('/').collect();
    let [domain, rest] = parts.as_slice() else {
        let detail =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.invalid(path, name, detail);
        return;
    };
    if domain.len() > SUBDOMAIN_BYTES_MAX {
        errors.push(FieldError::too_long(path, SUBDOMAIN_BYTES_MAX));
    }
    labels(domain, names::dns1123_label, path, errors);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.invalid(path, *domain, detail);
    }
    labels(rest, names::dns1123_subdomain, path, errors);
    if rest.len() > SIGNER_PATH_BYTES_MAX {
        errors.push(FieldError::too_long(path, SIGNER_PATH_BYTES_MAX));
    }
}

fn labels(text: &str, rule: fn(&str) -> Vec<String>, path: &Path<'_>, errors: &mut Errors) {
    let bad = text.split('.').map(|label| (label, rule(label)));
    let Some((label, complaints)) = bad.into_iter().find(|(_, it)| !it.is_empty()) else {
        return;
    };
    for complaint in complaints {
        let detail = format!("validating label {}: {complaint}", quote(label));
        errors.invalid(path, text, detail);
    }
}

fn conditions(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, condition) in maps(list) {
        let at = path.index(index);
        let (kind, state) = (condition.text("type"), condition.text("status"));
        if kind.is_empty() {
            errors.required(&at.field("type"), "");
        }
        let allowed: &[&str] = if VERDICTS.contains(&kind) {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        check::choice(state, allowed, &at.field("status"), errors);
        let opposite = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        let before = |wanted: &str| maps(&list[..index]).any(|(_, it)| it.text("type") == wanted);
        if !opposite.is_empty() && before(opposite) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.invalid(path, kind, detail);
        }
        if before(kind) {
            errors.duplicate(&at.field("type"), kind);
        }
    }
}

/// A verdict that was given stays; only the approval endpoint gives one.
fn verdicts(new: &[Value], old: &[Value], subresource: &str, path: &Path<'_>, errors: &mut Errors) {
    fn of<'a>(list: &'a [Value], kind: &str) -> Vec<&'a Map> {
        maps(list)
            .map(|(_, it)| it)
            .filter(|it| it.text("type") == kind)
            .collect()
    }
    for kind in VERDICTS {
        if of(new, kind).len() < of(old, kind).len() {
            let detail = format!("updates may not remove a condition of type {}", quote(kind));
            errors.forbidden(path, detail);
        }
    }
    if subresource == "approval" {
        return;
    }
    for kind in ["Approved", "Denied"] {
        let (new, old) = (of(new, kind), of(old, kind));
        if new.len() > old.len() {
            let detail = format!("updates may not add a condition of type {}", quote(kind));
            errors.forbidden(path, detail);
        } else if new.len() == old.len() && new != old {
            let detail = format!(
                "updates may not modify a condition of type {}\n",
                quote(kind)
            );
            errors.forbidden(path, detail);
        }
    }
}

fn certificate_mistake(base64: &str) -> Option<String> {
    if base64.is_empty() {
        return None;
    }
    let text = decoded(base64);
    let blocks = pem::blocks(&text);
    if blocks.is_empty() {
        return Some("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    blocks.iter().find_map(|block| {
        if block.label != "CERTIFICATE" {
            let found = quote(block.label);
            Some(format!(
                "only CERTIFICATE PEM blocks are allowed, found {found}"
            ))
        } else if block.has_headers {
            Some("no PEM block headers are permitted".to_owned())
        } else {
            None
        }
    })
}

fn certificate(new: &Map, old: &Map, subresource: &str, path: &Path<'_>, errors: &mut Errors) {
    let of = |object: &Map| {
        object
            .object_or_empty("status")
            .text("certificate")
            .to_owned()
    };
    let (new, old) = (of(new), of(old));
    if new == old {
        return;
    }
    if subresource != "status" {
        errors.forbidden(path, "updates may not set certificate content");
    } else if !old.is_empty() {
        errors.forbidden(path, "updates may not modify existing certificate content");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_come_in_their_armour() {
        // `hi`, and a block of each label around it.
        let cases = [
            ("", None),
            (
                "aGk=",
                Some("must contain at least one CERTIFICATE PEM block"),
            ),
            (
                "LS0tLS1CRUdJTiBYLS0tLS0KYUdrPQotLS0tLUVORCBYLS0tLS0K",
                Some("only CERTIFICATE PEM blocks are allowed, found \"X\""),
            ),
        ];
        for (base64, expected) in cases {
            assert_eq!(certificate_mistake(base64).as_deref(), expected, "{base64}");
        }
    }
}
