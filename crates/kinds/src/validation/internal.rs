//! Values inside messages, printed as upstream's unversioned structs print.
//!
//! Where upstream reports a whole struct, clients see it with the fields of the server's own form:
//! every field, under its Go name, in the order of its declaration. `internal/structs.txt` says
//! that order, one struct a line: its name, then `Field=key:sort` for each field, where the key is
//! left out if it is the field's name with a small first letter. Sorts: `s` text, `n` number, `b`
//! flag, `q` amount, `p` anything that prints as `null` when it is absent, `{X` a struct, `*X` a
//! struct that may be absent, `[X` a list of structs, `+X` the fields of a struct among its own,
//! `M` the fields of the metadata among its own. A key with `^` stands in the struct outside.

mod diff;

use std::collections::HashMap;
use std::sync::LazyLock;

use object::field::{FieldError, Mistake, Path};
use object::{Map, Value, json};

use super::print::{LABEL_SELECTOR, MANAGED_FIELDS, OWNER_REFERENCE};
use super::read::{Read, empty};

type Fields = Vec<(&'static str, &'static str, &'static str)>;

/// The fields of every struct: name, key and sort.
static STRUCTS: LazyLock<HashMap<&'static str, Fields>> = LazyLock::new(|| {
    include_str!("internal/structs.txt")
        .lines()
        .filter_map(|line| {
            let (name, fields) = line.split_once(' ')?;
            Some((name, fields.split(' ').filter_map(field).collect()))
        })
        .collect()
});

/// Metadata prints under its JSON names, and what is absent does not print.
const METADATA: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

fn field(text: &'static str) -> Option<(&'static str, &'static str, &'static str)> {
    let (name, sort) = text.split_once(':')?;
    let (name, key) = name.split_once('=').unwrap_or((name, ""));
    Some((name, key, sort))
}

/// Reports a value that prints as the struct of this name.
pub(crate) fn invalid(
    path: &Path<'_>,
    value: &Value,
    name: &str,
    detail: impl Into<String>,
) -> FieldError {
    FieldError {
        mistake: Mistake::Invalid,
        field: path.to_string(),
        value: Some(print(value, name)),
        detail: detail.into(),
    }
}

/// Prints a value as the struct of this name; what is absent as `null`.
pub(crate) fn print(value: &Value, name: &str) -> String {
    match value.as_object() {
        Some(map) => print_map(map, name),
        None => "null".to_owned(),
    }
}

/// Prints a map as the struct of this name.
pub(crate) fn print_map(map: &Map, name: &str) -> String {
    let mut out = String::new();
    write_struct(map, empty(), name, &mut out);
    out
}

/// The lines that differ between two maps that print as the struct of this name.
pub(crate) fn difference(old: &Map, new: &Map, name: &str) -> String {
    diff::unified(
        &indented(&print_map(old, name)),
        &indented(&print_map(new, name)),
    )
}

fn write_struct(map: &Map, outside: &Map, name: &str, out: &mut String) {
    out.push('{');
    let mut separator = "";
    write_fields(map, outside, name, &mut separator, out);
    out.push('}');
}

fn write_fields(
    map: &Map,
    outside: &Map,
    name: &str,
    separator: &mut &'static str,
    out: &mut String,
) {
    for &(field, key, sort) in STRUCTS.get(name).into_iter().flatten() {
        let (what, inner) = sort.split_at(1);
        match what {
            "+" => {
                write_fields(map, outside, inner, separator, out);
                continue;
            }
            "M" => {
                write_metadata(map.object_or_empty("metadata"), separator, out);
                continue;
            }
            _ => {}
        }
        out.push_str(separator);
        *separator = ",";
        out.push('"');
        out.push_str(field);
        out.push_str("\":");
        let own_key;
        let value = match key.strip_prefix('^') {
            Some(key) => outside.value(key),
            None if key.is_empty() => {
                own_key = uncapitalized(field);
                map.value(&own_key)
            }
            None => map.value(key),
        };
        write_value(value, map, what, inner, out);
    }
}

fn write_value(value: &Value, outside: &Map, what: &str, inner: &str, out: &mut String) {
    match (what, value) {
        ("{", _) => {
            let inside = value.as_object().unwrap_or(empty());
            write_struct(inside, outside, inner, out);
        }
        ("*", Value::Object(_)) if inner == "LabelSelector" => {
            out.push_str(&super::print::print(value, Some(&LABEL_SELECTOR)));
        }
        ("*", Value::Object(inside)) => write_struct(inside, outside, inner, out),
        ("[", Value::Array(items)) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                let inside = item.as_object().unwrap_or(empty());
                write_struct(inside, outside, inner, out);
            }
            out.push(']');
        }
        ("s", Value::Null) => out.push_str("\"\""),
        ("n", Value::Null) => out.push('0'),
        ("b", Value::Null) => out.push_str("false"),
        ("q", Value::Null) => out.push_str("\"0\""),
        _ => out.push_str(&plain(value)),
    }
}

fn write_metadata(metadata: &Map, separator: &mut &'static str, out: &mut String) {
    for key in METADATA {
        let value = metadata.value(key);
        let absent = match value {
            Value::Null => true,
            Value::Object(map) => map.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::String(text) => text.is_empty(),
            _ => false,
        };
        if !absent {
            out.push_str(separator);
            *separator = ",";
            let shown = match key {
                "ownerReferences" => super::print::print(value, Some(&OWNER_REFERENCE)),
                "managedFields" => super::print::print(value, Some(&MANAGED_FIELDS)),
                _ => plain(value),
            };
            out.push_str(&format!("\"{key}\":{shown}"));
        }
    }
}

/// A value as upstream's encoder writes it, which hides the characters of markup.
fn plain(value: &Value) -> String {
    let text = String::from_utf8_lossy(&json::to_vec(value)).into_owned();
    if !text.contains(['<', '>', '&']) {
        return text;
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

fn uncapitalized(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_ascii_lowercase() + rest
}

/// The same JSON with one value a line, one blank deeper in each level.
fn indented(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let mut depth = 0;
    let (mut in_text, mut escaped) = (false, false);
    let mut rest = compact.chars().peekable();
    while let Some(next) = rest.next() {
        if in_text {
            out.push(next);
            in_text = escaped || next != '"';
            escaped = next == '\\' && !escaped;
            continue;
        }
        match next {
            '{' | '[' => {
                out.push(next);
                if let Some(end) = rest.next_if(|end| matches!(end, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    new_line(depth, &mut out);
                }
            }
            '}' | ']' => {
                depth -= 1;
                new_line(depth, &mut out);
                out.push(next);
            }
            ',' => {
                out.push(next);
                new_line(depth, &mut out);
            }
            ':' => out.push_str(": "),
            _ => {
                in_text = next == '"';
                out.push(next);
            }
        }
    }
    out
}

fn new_line(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', depth));
}

#[cfg(test)]
mod tests {
    use object::value;

    use super::*;

    #[test]
    fn structs_print_every_field_in_their_order() {
        let cases = [
            (
                value!({"kind": "Node", "name": "n"}),
                "ObjectReference",
                r#"{"Kind":"Node","Namespace":"","Name":"n","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}"#,
            ),
            (
                value!({"required": {"nodeSelectorTerms": [{}]}}),
                "VolumeNodeAffinity",
                r#"{"Required":{"NodeSelectorTerms":[{"MatchExpressions":null,"MatchFields":null}]}}"#,
            ),
            (
                value!({"key": "<k>", "operator": "Exists"}),
                "Toleration",
                r#"{"Key":"\u003ck\u003e","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null}"#,
            ),
            (value!(null), "Toleration", "null"),
        ];
        for (value, name, expected) in cases {
            assert_eq!(print(&value, name), expected);
        }
    }

    #[test]
    fn fields_of_the_pod_stand_inside_its_security_context() {
        let pod = value!({"hostNetwork": true, "securityContext": {"runAsUser": 1}});
        let text = print(&pod, "PodSpec");
        assert!(
            text.contains(r#""SecurityContext":{"HostNetwork":true,"#),
            "{text}"
        );
        let template = value!({"metadata": {"labels": {"a": "b"}}});
        let text = print(&template, "PodTemplateSpec");
        assert!(
            text.starts_with(r#"{"labels":{"a":"b"},"Spec":{"Volumes":null,"#),
            "{text}"
        );
    }

    #[test]
    fn every_struct_that_is_named_is_known() {
        for (name, fields) in STRUCTS.iter() {
            for (_, _, sort) in fields {
                let inner = &sort[1..];
                let known =
                    inner.is_empty() || inner == "LabelSelector" || STRUCTS.contains_key(inner);
                assert!(known, "{name} has a field of {inner}");
            }
        }
    }

    #[test]
    fn json_is_set_out_line_by_line() {
        let cases = [
            (r#"{}"#, "{}"),
            (
                r#"{"a":[],"b":{"c":"x,{"}}"#,
                "{\n \"a\": [],\n \"b\": {\n  \"c\": \"x,{\"\n }\n}",
            ),
            (r#"["a\"]",1]"#, "[\n \"a\\\"]\",\n 1\n]"),
        ];
        for (compact, expected) in cases {
            assert_eq!(indented(compact), expected);
        }
    }
}
