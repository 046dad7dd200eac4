//! Rows of the `admissionregistration.k8s.io` group.

use object::{Map, Value};

use super::Printer;
use super::row::{Row, UNSET, cells, items, text};

pub(super) fn printer(kind: &str) -> Option<Printer> {
    Some(match kind {
        "MutatingAdmissionPolicy" => |row| policy(row, "mutations"),
        "ValidatingAdmissionPolicy" => |row| policy(row, "validations"),
        "MutatingAdmissionPolicyBinding" | "ValidatingAdmissionPolicyBinding" => binding,
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => webhooks,
        _ => return None,
    })
}

fn webhooks(row: &Row<'_>) -> Vec<Value> {
    cells![row.name(), row.count(&["webhooks"]), row.age()]
}

fn policy(row: &Row<'_>, steps: &str) -> Vec<Value> {
    let kind = match row.at(&["spec", "paramKind"]) {
        Some(kind) => format!("{}/{}", text(kind, &["apiVersion"]), text(kind, &["kind"])),
        None => UNSET.to_owned(),
    };
    cells![row.name(), row.count(&["spec", steps]), kind, row.age()]
}

fn binding(row: &Row<'_>) -> Vec<Value> {
    let reference = row.at(&["spec", "paramRef"]);
    cells![
        row.name(),
        row.text(&["spec", "policyName"]),
        reference.map_or_else(|| UNSET.to_owned(), parameters),
        row.age(),
    ]
}

fn parameters(reference: &Value) -> String {
    let (namespace, name) = (text(reference, &["namespace"]), text(reference, &["name"]));
    match (namespace, name) {
        ("", "") | (_, "") => reference
            .get("selector")
            .filter(|selector| !selector.is_null())
            .map_or_else(|| UNSET.to_owned(), go_selector),
        // Whether the parameter has a namespace cannot be told from here.
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// A label selector as Go prints the struct, which upstream lets slip into this cell.
fn go_selector(selector: &Value) -> String {
    let labels: String = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter)
        .map(|(key, value)| format!("{key}: {},", value.as_str().unwrap_or_default()))
        .collect();
    let expressions: String = items(selector, &["matchExpressions"])
        .iter()
        .map(|expression| {
            let values = items(expression, &["values"]).iter();
            let values: Vec<&str> = values.filter_map(Value::as_str).collect();
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                text(expression, &["key"]),
                text(expression, &["operator"]),
                values.join(" ")
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
