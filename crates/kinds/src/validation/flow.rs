//! Which requests wait for which: flow schemas and priority levels.

use object::field::{FieldError, Path};
use object::{Map, Value, names, value};

use super::check::{self, Errors, Report};
use super::meta;
use super::read::{Read, maps, texts};

const PRECEDENCE_MAX: i64 = 10_000;
/// What a hash can tell apart at most.
const ENTROPY_BITS_MAX: i64 = 60;
const QUEUES_MAX: i64 = 10_000_000;
const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "proxy",
    "update",
    "watch",
];
const NOT_NEGATIVE: &str = "must be a non-negative integer";

/// Checks which requests belong together.
pub(crate) fn schema(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_none() || subresource != "status" {
        if old.is_some() {
            meta::again(new, false, &mut errors);
        }
        let name = new.object_or_empty("metadata").text("name");
        schema_spec(
            new.object_or_empty("spec"),
            name,
            &root.field("spec"),
            &mut errors,
        );
    }
    conditions(new, &root.field("status"), &mut errors);
    errors
}

fn conditions(new: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = new.object_or_empty("status").list("conditions");
    let path = path.field("conditions");
    for (index, condition) in maps(list) {
        let path = path.index(index);
        let kind = condition.text("type");
        if maps(&list[..index]).any(|(_, other)| other.text("type") == kind) {
            errors.duplicate(&path.field("type"), kind);
        }
        check::require(condition, &["type"], &path, errors);
    }
}

fn schema_spec(spec: &Map, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let precedence = spec.int("matchingPrecedence").unwrap_or_default();
    let at = path.field("matchingPrecedence");
    if precedence <= 0 {
        errors.invalid(&at, precedence, "must be a positive value");
    }
    if precedence > PRECEDENCE_MAX {
        errors.invalid(
            &at,
            precedence,
            format!("must not be greater than {PRECEDENCE_MAX}"),
        );
    }
    if precedence == 1 && name != "exempt" {
        let detail = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.invalid(&at, precedence, detail);
    }
    if let Some(method) = spec.object("distinguisherMethod") {
        let path = path.field("distinguisherMethod");
        let kind = method.text("type");
        distinguisher(kind, &path.field("type"), errors);
    }
    let level = spec
        .object_or_empty("priorityLevelConfiguration")
        .text("name");
    let at = path.field("priorityLevelConfiguration");
    if level.is_empty() {
        errors.required(&at.field("name"), "must reference a priority level");
    }
    check::optional_subdomain(level, &at.field("name"), errors);
    let rules = path.field("rules");
    for (index, rule) in maps(spec.list("rules")) {
        schema_rule(rule, &rules.index(index), errors);
    }
}

fn schema_rule(rule: &Map, path: &Path<'_>, errors: &mut Errors) {
    let subjects = path.field("subjects");
    if rule.list("subjects").is_empty() {
        errors.required(&subjects, "subjects must contain at least one value");
    }
    for (index, subject) in maps(rule.list("subjects")) {
        check_subject(subject, &subjects.index(index), errors);
    }
    let (resources, others) = (rule.list("resourceRules"), rule.list("nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.required(path, detail);
    }
    let at = path.field("resourceRules");
    for (index, rule) in maps(resources) {
        resource_rule(rule, &at.index(index), errors);
    }
    let at = path.field("nonResourceRules");
    for (index, rule) in maps(others) {
        other_rule(rule, &at.index(index), errors);
    }
}

fn check_subject(subject: &Map, path: &Path<'_>, errors: &mut Errors) {
    let kinds = [
        ("ServiceAccount", "serviceAccount"),
        ("User", "user"),
        ("Group", "group"),
    ];
    let kind = subject.text("kind");
    let Some((_, own)) = kinds.iter().find(|(known, _)| *known == kind) else {
        let supported = ["Group", "ServiceAccount", "User"];
        errors.unsupported(&path.field("kind"), kind, &supported);
        return;
    };
    let at = path.field(own);
    match subject.object(own) {
        None => {
            errors.required(
                &at,
                &format!("{own} is required when subject kind is '{kind}'"),
            );
        }
        Some(named) => {
            let name = named.text("name");
            check::require(named, &["name"], &at, errors);
            if kind == "ServiceAccount" {
                if name != "*" {
                    check::optional_subdomain(name, &at.field("name"), errors);
                }
                let namespace = named.text("namespace");
                let at = at.field("namespace");
                if namespace.is_empty() {
                    errors.required(&at, "must specify namespace for service account");
                } else {
                    errors.each(&at, namespace, names::dns1123_label(namespace));
                }
            }
        }
    }
    for (other, key) in kinds.iter().filter(|(other, _)| *other != kind) {
        if subject.has(key) {
            let detail = format!("{key} is forbidden when subject kind is not '{other}'");
            errors.forbidden(&path.field(key), detail);
        }
    }
}

fn has_wildcard(list: &[Value]) -> bool {
    texts(list).any(|(_, text)| text == "*")
}

fn verbs(rule: &Map, path: &Path<'_>, errors: &mut Errors) {
    let list = rule.list("verbs");
    let path = path.field("verbs");
    if list.is_empty() {
        errors.required(&path, "verbs must contain at least one value");
    } else if has_wildcard(list) {
        if list.len() > 1 {
            let detail = "if '*' is present, must not specify other verbs";
            errors.invalid_value(&path, rule.value("verbs"), detail);
        }
    } else if !texts(list).all(|(_, verb)| VERBS.contains(&verb)) {
        errors.push(FieldError::not_supported(&path, rule.value("verbs"), VERBS));
    }
}

fn resource_rule(rule: &Map, path: &Path<'_>, errors: &mut Errors) {
    verbs(rule, path, errors);
    for (key, one, many) in [
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ] {
        let list = rule.list(key);
        if list.is_empty() {
            let detail = format!("resource rules must supply at least one {one}");
            errors.required(&path.field(key), &detail);
        } else if list.len() > 1 && has_wildcard(list) {
            let detail = format!("if '*' is present, must not specify other {many}");
            errors.invalid_value(&path.field(key), rule.value(key), detail);
        }
    }
    let list = rule.list("namespaces");
    let path = path.field("namespaces");
    if list.is_empty() && !rule.flag("clusterScope") {
        let detail =
            "resource rules that are not cluster scoped must supply at least one namespace";
        errors.required(&path, detail);
    } else if has_wildcard(list) {
        if list.len() > 1 {
            let detail = "if '*' is present, must not specify other namespaces";
            errors.invalid_value(&path, rule.value("namespaces"), detail);
        }
    } else {
        for (index, namespace) in texts(list) {
            for complaint in names::dns1123_label(namespace) {
                let detail = format!(
                    "each member of this list must be '*' or a DNS-1123 label; {complaint}"
                );
                errors.invalid(&path.index(index), namespace, detail);
            }
        }
    }
}

fn other_rule(rule: &Map, path: &Path<'_>, errors: &mut Errors) {
    verbs(rule, path, errors);
    let list = rule.list("nonResourceURLs");
    let path = path.field("nonResourceURLs");
    if list.is_empty() {
        errors.required(&path, "nonResourceURLs must contain at least one value");
    } else if has_wildcard(list) {
        if list.len() > 1 {
            let detail = "if '*' is present, must not specify other non-resource URLs";
            errors.invalid_value(&path, rule.value("nonResourceURLs"), detail);
        }
    } else {
        for (index, url) in texts(list) {
            let detail = match url {
                "" => "must not be empty",
                "/" => continue,
                _ if !url.starts_with('/') => "must start with slash",
                _ if url.contains(' ') => "must not contain white-space",
                _ if url.contains("//") => "must not contain double slash",
                _ if url.matches('*').count() > 1 || url.contains('*') && !url.ends_with("/*") => {
                    "wildcard can only do suffix matching"
                }
                _ => continue,
            };
            errors.invalid(&path.index(index), url, detail);
        }
    }
}

/// Checks how many requests are served at once, and what the rest does.
pub(crate) fn level(new: &Map, old: Option<&Map>, subresource: &str) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let root = Path::root();
    if old.is_none() || subresource != "status" {
        if old.is_some() {
            meta::again(new, false, &mut errors);
        }
        let name = new.object_or_empty("metadata").text("name");
        level_spec(
            new.object_or_empty("spec"),
            name,
            &root.field("spec"),
            &mut errors,
        );
    }
    conditions(new, &root.field("status"), &mut errors);
    errors
}

/// Upstream shows the struct where it means the text inside.
fn distinguisher(kind: &str, path: &Path<'_>, errors: &mut Errors) {
    let supported = ["ByNamespace", "ByUser"];
    if !supported.contains(&kind) {
        let shown = value!({"Type": (kind)});
        errors.push(FieldError::not_supported(path, &shown, &supported));
    }
}

fn level_spec(spec: &Map, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let kind = spec.text("type");
    if (name == "exempt") != (kind == "Exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.invalid(&path.field("type"), kind, detail);
    }
    let (limited, exempt) = (spec.object("limited"), spec.object("exempt"));
    match kind {
        "Exempt" => {
            if limited.is_some() {
                let detail = "must be nil if the type is not Limited";
                errors.forbidden(&path.field("limited"), detail);
            }
            if let Some(exempt) = exempt {
                shares(exempt, &path.field("exempt"), errors);
                lendable(exempt, &path.field("exempt"), errors);
            }
        }
        "Limited" => {
            if exempt.is_some() {
                let detail = "must be nil if the type is Limited";
                errors.forbidden(&path.field("exempt"), detail);
            }
            match limited {
                None => {
                    let detail = "must not be empty when type is Limited";
                    errors.required(&path.field("limited"), detail);
                }
                Some(limited) => limited_level(limited, &path.field("limited"), errors),
            }
        }
        "" => errors.required(&path.field("type"), ""),
        _ => errors.unsupported(&path.field("type"), kind, &["Exempt", "Limited"]),
    }
}

fn shares(level: &Map, path: &Path<'_>, errors: &mut Errors) {
    if let Some(number) = level.int("nominalConcurrencyShares").filter(|it| *it < 0) {
        errors.invalid(
            &path.field("nominalConcurrencyShares"),
            number,
            NOT_NEGATIVE,
        );
    }
}

fn lendable(level: &Map, path: &Path<'_>, errors: &mut Errors) {
    if let Some(percent) = level.int("lendablePercent")
        && !(0..=100).contains(&percent)
    {
        let detail = "must be between 0 and 100, inclusive";
        errors.invalid(&path.field("lendablePercent"), percent, detail);
    }
}

fn limited_level(level: &Map, path: &Path<'_>, errors: &mut Errors) {
    shares(level, path, errors);
    let response = level.object_or_empty("limitResponse");
    let at = path.field("limitResponse");
    match (response.text("type"), response.object("queuing")) {
        ("Reject", Some(_)) => {
            let detail = "must be nil if limited.limitResponse.type is not Limited";
            errors.forbidden(&at.field("queuing"), detail);
        }
        ("Reject", None) => {}
        ("Queue", None) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            errors.required(&at.field("queuing"), detail);
        }
        ("Queue", Some(queuing)) => check_queuing(queuing, &at.field("queuing"), errors),
        ("", _) => errors.required(&at.field("type"), ""),
        (other, _) => errors.unsupported(&at.field("type"), other, &["Queue", "Reject"]),
    }
    lendable(level, path, errors);
    if let Some(percent) = level.int("borrowingLimitPercent").filter(|it| *it < 0) {
        let detail = "if specified, must be a non-negative integer";
        errors.invalid(&path.field("borrowingLimitPercent"), percent, detail);
    }
}

fn check_queuing(queuing: &Map, path: &Path<'_>, errors: &mut Errors) {
    let number = |key: &str| queuing.int(key).unwrap_or_default();
    let (queues, hand) = (number("queues"), number("handSize"));
    if number("queueLengthLimit") <= 0 {
        let path = path.field("queueLengthLimit");
        errors.invalid(&path, number("queueLengthLimit"), "must be positive");
    }
    if queues <= 0 {
        errors.invalid(&path.field("queues"), queues, "must be positive");
    } else if queues > QUEUES_MAX {
        let detail = format!("must not be greater than {QUEUES_MAX}");
        errors.invalid(&path.field("queues"), queues, detail);
    }
    if hand <= 0 {
        errors.invalid(&path.field("handSize"), hand, "must be positive");
    } else if hand > queues {
        let detail = format!("should not be greater than queues ({queues})");
        errors.invalid(&path.field("handSize"), hand, detail);
    } else if entropy_bits(queues, hand) > ENTROPY_BITS_MAX {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater \
             than {ENTROPY_BITS_MAX}"
        );
        errors.invalid(&path.field("handSize"), hand, detail);
    }
}

/// How many bits it takes to tell every hand apart that can be dealt from so many queues.
fn entropy_bits(queues: i64, hand: i64) -> i64 {
    ((queues as f64).log2() * hand as f64).ceil() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_need_no_more_bits_than_a_hash_has() {
        for (queues, hand, bits) in [(64, 6, 36), (128, 6, 42), (70_000, 6, 97), (1, 1, 0)] {
            assert_eq!(entropy_bits(queues, hand), bits, "{hand} of {queues}");
        }
        let level = value!({"spec": {"type": "Limited", "limited": {"limitResponse": {
            "type": "Queue", "queuing": {"queues": 70_000, "handSize": 6, "queueLengthLimit": 1}}}}});
        let level_of = level.as_object().expect("an object is a map");
        let found: Vec<String> = super::level(level_of, None, "")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "spec.limited.limitResponse.queuing.handSize: Invalid value: 6: required entropy \
                 bits of deckSize 70000 and handSize 6 should not be greater than 60"
            ]
        );
    }
}
