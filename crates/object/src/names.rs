//! Which texts may name things: objects, labels, keys, ports, variables.
//!
//! Contract: apimachinery `util/validation`, `api/validate/content` and `api/validation`. Each
//! function gives the complaints in the words that clients know; an empty list means the text is
//! fine. Lengths are bytes, although the older messages say characters.

use crate::field::{FieldError, Path};

const LABEL_BYTES_MAX: usize = 63;
const SUBDOMAIN_BYTES_MAX: usize = 253;
const PORT_NAME_BYTES_MAX: usize = 15;

const LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_PATTERN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character";
const KEY_EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];

/// Checks the name of an object, or with `prefix` its `generateName`.
pub type NameRule = fn(name: &str, prefix: bool) -> Vec<String>;

/// Objects named by DNS subdomains: most kinds.
pub fn name_is_dns_subdomain(name: &str, prefix: bool) -> Vec<String> {
    dns1123_subdomain(&masked(name, prefix))
}

/// Objects named by DNS labels, such as namespaces.
pub fn name_is_dns_label(name: &str, prefix: bool) -> Vec<String> {
    dns1123_label(&masked(name, prefix))
}

/// Objects named by the older DNS labels, which start with a letter.
pub fn name_is_dns1035_label(name: &str, prefix: bool) -> Vec<String> {
    dns1035_label(&masked(name, prefix))
}

/// Objects named by whatever fits into a path, such as roles.
pub fn name_is_path_segment(name: &str, prefix: bool) -> Vec<String> {
    if prefix {
        path_segment_prefix(name)
    } else {
        path_segment(name)
    }
}

/// A prefix may end in a dash because more follows. Upstream replaces the last two bytes, so a
/// prefix is allowed one byte more than a name.
fn masked(name: &str, prefix: bool) -> std::borrow::Cow<'_, str> {
    match name.len().checked_sub(2).and_then(|end| name.get(..end)) {
        Some(kept) if prefix && name.ends_with('-') => format!("{kept}a").into(),
        _ => name.into(),
    }
}

/// A DNS label after RFC 1123.
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut complaints = too_long(text, LABEL_BYTES_MAX);
    if !is_label(text) {
        complaints.push(if is_subdomain(text) {
            "must not contain dots".to_owned()
        } else {
            pattern_complaint(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters \
                 or '-', and must start and end with an alphanumeric character",
                LABEL_PATTERN,
                &["my-name", "123-abc"],
            )
        });
    }
    complaints
}

/// A DNS subdomain after RFC 1123: labels joined by dots.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut complaints = too_long(text, SUBDOMAIN_BYTES_MAX);
    complaints.extend(subdomain_shape(text));
    complaints
}

fn subdomain_shape(text: &str) -> Option<String> {
    if is_subdomain(text) {
        return None;
    }
    Some(pattern_complaint(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
         '-' or '.', and must start and end with an alphanumeric character",
        SUBDOMAIN_PATTERN,
        &["example.com"],
    ))
}

/// A DNS subdomain whose labels may also hold underscores.
pub fn dns1123_subdomain_with_underscore(text: &str) -> Vec<String> {
    let mut complaints = too_long(text, SUBDOMAIN_BYTES_MAX);
    let fits = text.split('.').all(|part| {
        let part = part.strip_prefix('_').unwrap_or(part);
        encloses(
            part,
            is_lower,
            |byte| is_lower(byte) || byte == b'-' || byte == b'_',
            is_lower,
        )
    });
    if !fits {
        complaints.push(pattern_complaint(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '_', '-' or '.', and must start and end with an alphanumeric character",
            r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*",
            &["example.com"],
        ));
    }
    complaints
}

/// A DNS label after RFC 1035: the first character is a letter.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut complaints = too_long(text, LABEL_BYTES_MAX);
    if !encloses(
        text,
        |byte| byte.is_ascii_lowercase(),
        is_lower_or_dash,
        is_lower,
    ) {
        complaints.push(pattern_complaint(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    complaints
}

/// A DNS subdomain behind `*.`.
pub fn wildcard_dns1123_subdomain(text: &str) -> Vec<String> {
    let mut complaints = too_long(text, SUBDOMAIN_BYTES_MAX);
    if !text.strip_prefix("*.").is_some_and(is_subdomain) {
        complaints.push(pattern_complaint(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS \
             subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and \
             end with an alphanumeric character",
            &format!(r"\*\.{SUBDOMAIN_PATTERN}"),
            &["*.example.com"],
        ));
    }
    complaints
}

/// A name that can stand in a URL path.
pub fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => path_segment_prefix(text),
    }
}

fn path_segment_prefix(text: &str) -> Vec<String> {
    ["/", "%"]
        .into_iter()
        .filter(|banned| text.contains(banned))
        .map(|banned| format!("may not contain '{banned}'"))
        .collect()
}

/// A label key, annotation key or finalizer: a name with an optional DNS prefix.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            complaints.extend(prefix_complaints(prefix));
            name
        }
        _ => {
            let rule = pattern_complaint(KEY_RULE, KEY_PATTERN, KEY_EXAMPLES);
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        complaints.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_BYTES_MAX {
        complaints.push(format!(
            "name part must be no more than {LABEL_BYTES_MAX} bytes"
        ));
    }
    if !is_key(name) {
        let rule = pattern_complaint(KEY_RULE, KEY_PATTERN, KEY_EXAMPLES);
        complaints.push(format!("name part {rule}"));
    }
    complaints
}

fn prefix_complaints(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let mut complaints = Vec::new();
    if prefix.len() > SUBDOMAIN_BYTES_MAX {
        complaints.push(format!(
            "prefix part must be no more than {SUBDOMAIN_BYTES_MAX} bytes"
        ));
    }
    complaints.extend(subdomain_shape(prefix).map(|complaint| format!("prefix part {complaint}")));
    complaints
}

/// The value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.len() > LABEL_BYTES_MAX {
        complaints.push(format!("must be no more than {LABEL_BYTES_MAX} bytes"));
    }
    if !(text.is_empty() || is_key(text)) {
        complaints.push(pattern_complaint(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', \
             '_' or '.', and must start and end with an alphanumeric character",
            &format!("({KEY_PATTERN})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    complaints
}

/// A key in the data of a ConfigMap or Secret.
pub fn config_map_key(text: &str) -> Vec<String> {
    let mut complaints = too_long(text, SUBDOMAIN_BYTES_MAX);
    if !consists_of(text, |byte| {
        byte.is_ascii_alphanumeric() || b"-._".contains(&byte)
    }) {
        complaints.push(pattern_complaint(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    complaints.extend(parent_folder(text));
    complaints
}

/// An environment variable after the older, stricter rule.
pub fn env_var_name(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if !consists_of(text, allowed) || text.starts_with(|first: char| first.is_ascii_digit()) {
        complaints.push(pattern_complaint(
            "a valid environment variable name must consist of alphabetic characters, digits, \
             '_', '-', or '.', and must not start with a digit",
            "[-._a-zA-Z][-._a-zA-Z0-9]*",
            &["my.env-name", "MY_ENV.NAME", "MyEnvName1"],
        ));
    }
    complaints.extend(parent_folder(text));
    complaints
}

/// An environment variable after the relaxed rule: printable ASCII but the equals sign.
pub fn relaxed_env_var_name(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    if text.is_empty() {
        complaints.push("environment variable name must be non-empty".to_owned());
    }
    if !text
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'~') && byte != b'=')
    {
        complaints.push(
            "a valid environment variable name must consist only of printable ASCII characters \
             other than '='"
                .to_owned(),
        );
    }
    complaints
}

/// An identifier of the C language.
pub fn c_identifier(text: &str) -> Vec<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if consists_of(text, allowed) && !text.starts_with(|first: char| first.is_ascii_digit()) {
        return Vec::new();
    }
    vec![pattern_complaint(
        "a valid C identifier must start with alphabetic character or '_', followed by a string \
         of alphanumeric characters or '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// The name of an HTTP header.
pub fn http_header_name(text: &str) -> Vec<String> {
    if consists_of(text, |byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Vec::new();
    }
    vec![pattern_complaint(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// A whole percentage such as `25%`.
pub fn percent(text: &str) -> Vec<String> {
    let digits = text.strip_suffix('%').unwrap_or_default();
    if consists_of(digits, |byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    vec![pattern_complaint(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// The name of a port, after RFC 6335 in lower case.
pub fn port_name(text: &str) -> Vec<String> {
    let mut complaints = too_long(text, PORT_NAME_BYTES_MAX);
    let mut complain = |wrong: bool, complaint: &str| {
        if wrong {
            complaints.push(complaint.to_owned());
        }
    };
    complain(
        !consists_of(text, is_lower_or_dash),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    complain(
        !text.bytes().any(|byte| byte.is_ascii_lowercase()),
        "must contain at least one letter (a-z)",
    );
    complain(text.contains("--"), "must not contain consecutive hyphens");
    complain(
        text.starts_with('-') || text.ends_with('-'),
        "must not begin or end with a hyphen",
    );
    complaints
}

/// The number of a port; zero is none.
pub fn port_number(number: i64) -> Vec<String> {
    in_range(number, 1, 65535)
}

/// A number of a Unix user or group.
pub fn unix_id(number: i64) -> Vec<String> {
    in_range(number, 0, i64::from(i32::MAX))
}

/// A number between two bounds, both included.
pub fn in_range(number: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&number) {
        return Vec::new();
    }
    vec![format!("must be between {low} and {high}, inclusive")]
}

/// A domain of at least three labels.
pub fn fully_qualified_name(path: &Path<'_>, name: &str) -> Vec<FieldError> {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let complaints = dns1123_subdomain(name);
    if !complaints.is_empty() {
        return vec![FieldError::invalid(
            path,
            &name.into(),
            complaints.join(","),
        )];
    }
    if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        return vec![FieldError::invalid(path, &name.into(), detail)];
    }
    Vec::new()
}

/// A domain of at least two labels; a dot may end it.
pub fn fully_qualified_domain_name(path: &Path<'_>, name: &str) -> Vec<FieldError> {
    if name.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let complaints = dns1123_subdomain(name);
    if !complaints.is_empty() {
        return vec![FieldError::invalid(
            path,
            &name.into(),
            complaints.join(","),
        )];
    }
    if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        return vec![FieldError::invalid(path, &name.into(), detail)];
    }
    let wrong = name.split('.').map(|label| (label, dns1123_label(label)));
    wrong
        .filter(|(_, complaints)| !complaints.is_empty())
        .map(|(label, complaints)| FieldError::invalid(path, &label.into(), complaints.join(",")))
        .take(1)
        .collect()
}

/// A path behind a domain, such as `acme.io/foo`.
pub fn domain_prefixed_path(path: &Path<'_>, text: &str) -> Vec<FieldError> {
    if text.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let (host, rest) = match text.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => (host, rest),
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            return vec![FieldError::invalid(path, &text.into(), detail)];
        }
    };
    let mut errors: Vec<FieldError> = dns1123_subdomain(host)
        .into_iter()
        .map(|complaint| FieldError::invalid(path, &host.into(), complaint))
        .collect();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !consists_of(rest, allowed) {
        let detail = pattern_complaint("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", &[]);
        errors.push(FieldError::invalid(path, &rest.into(), detail));
    }
    errors
}

/// A qualified name that must have its prefix.
pub fn domain_prefixed_key(path: &Path<'_>, key: &str) -> Vec<FieldError> {
    if key.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let mut complaints = qualified_name(key);
    if complaints.is_empty() && !key.contains('/') {
        complaints.push("must be a domain-prefixed key (such as \"acme.io/foo\")".to_owned());
    }
    complaints
        .into_iter()
        .map(|text| FieldError::invalid(path, &key.into(), text))
        .collect()
}

/// The words for a text that does not fit a pattern.
pub fn pattern_complaint(rule: &str, pattern: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{pattern}')");
    }
    // The separator has two spaces before "or": upstream's words, which clients compare.
    let examples: Vec<String> = examples
        .iter()
        .map(|example| format!("'{example}', "))
        .collect();
    format!(
        "{rule} (e.g. {}regex used for validation is '{pattern}')",
        examples.join(" or ")
    )
}

fn too_long(text: &str, limit: usize) -> Vec<String> {
    if text.len() <= limit {
        return Vec::new();
    }
    vec![format!("must be no more than {limit} characters")]
}

fn parent_folder(text: &str) -> Option<String> {
    match text {
        "." | ".." => Some(format!("must not be '{text}'")),
        _ if text.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

fn is_label(text: &str) -> bool {
    encloses(text, is_lower, is_lower_or_dash, is_lower)
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_key(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    encloses(
        text,
        |byte| byte.is_ascii_alphanumeric(),
        inner,
        |byte| byte.is_ascii_alphanumeric(),
    )
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_lower_or_dash(byte: u8) -> bool {
    is_lower(byte) || byte == b'-'
}

fn consists_of(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(allowed)
}

/// Whether the first byte, the bytes between and the last byte each are of their set; a single
/// byte is a first one.
fn encloses(
    text: &str,
    first: impl Fn(u8) -> bool,
    inner: impl Fn(u8) -> bool,
    last: impl Fn(u8) -> bool,
) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => first(*only),
        [start, middle @ .., end] => {
            first(*start) && middle.iter().all(|byte| inner(*byte)) && last(*end)
        }
    }
}

#[cfg(test)]
mod tests;
