//! Where webhooks are: a URL or a service.

use object::field::Path;
use object::{Map, Value, names};

use crate::validation::check::{Errors, Report};
use crate::validation::read::{Read, texts};

const FORM: &str = "; desired format: https://host[/path]";

/// Checks how a webhook is reached.
pub(crate) fn client_config(config: &Map, path: &Path<'_>, errors: &mut Errors) {
    match (config.has("url"), config.object("service")) {
        (true, None) => url(config.text("url"), &path.field("url"), errors),
        (false, Some(called)) => service(called, &path.field("service"), errors),
        _ => errors.required(path, "exactly one of url or service is required"),
    }
}

fn url(text: &str, path: &Path<'_>, errors: &mut Errors) {
    let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (before, query) = before.split_once('?').unwrap_or((before, ""));
    let (scheme, rest) = match before.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        Some(("", _)) => {
            let problem = format!(
                "parse {}: missing protocol scheme",
                object::field::quote(text)
            );
            errors.required(path, &format!("url must be a valid URL: {problem}{FORM}"));
            return;
        }
        _ => ("", before),
    };
    if scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.invalid(path, scheme.to_lowercase(), detail);
    }
    let authority = rest
        .strip_prefix("//")
        .map_or("", |rest| rest.split('/').next().unwrap_or(""));
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if host.is_empty() {
        errors.invalid(path, "", format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        errors.invalid(path, user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        errors.invalid(path, fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        errors.invalid(path, query, "query parameters are not permitted in the URL");
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|character: char| character.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// Upstream calls this with name and namespace exchanged, so each is reported for the other.
fn service(service: &Map, path: &Path<'_>, errors: &mut Errors) {
    if service.text("namespace").is_empty() {
        errors.required(&path.field("name"), "");
    }
    if service.text("name").is_empty() {
        errors.required(&path.field("namespace"), "");
    }
    let port = service.int("port").unwrap_or_default();
    let complaints = names::port_number(port);
    if !complaints.is_empty() {
        let detail = format!("port is not valid: {}", complaints.join(", "));
        errors.invalid(&path.field("port"), port, detail);
    }
    service_path(service.text("path"), &path.field("path"), errors);
}

fn service_path(text: &str, path: &Path<'_>, errors: &mut Errors) {
    match text {
        "" | "/" => return,
        "//" => {
            errors.invalid(path, text, "segment[0] may not be empty");
            return;
        }
        _ => {}
    }
    if !text.starts_with('/') {
        errors.invalid(path, text, "must start with a '/'");
    }
    let mut rest = text.chars();
    rest.next();
    let rest = rest.as_str();
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    for (index, step) in rest.split('/').enumerate() {
        if step.is_empty() {
            errors.invalid(path, text, format!("segment[{index}] may not be empty"));
            continue;
        }
        for complaint in names::dns1123_subdomain(step) {
            errors.invalid(path, text, format!("segment[{index}]: {complaint}"));
        }
    }
}

/// Checks the versions of reviews that a webhook reads.
pub(crate) fn review_versions(list: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (index, version) in texts(list) {
        let path = path.index(index);
        if texts(&list[..index]).any(|(_, other)| other == version) {
            errors.invalid(&path, version, "duplicate version");
            continue;
        }
        errors.each(&path, version, names::dns1035_label(version));
    }
}
