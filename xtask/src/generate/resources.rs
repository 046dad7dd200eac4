//! Groups, kinds, subresources and table columns, in discovery order.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::Value;

use super::schemas::short_name;
use super::{items, text, texts};

/// Renders `resources.txt`.
pub(super) fn render(
    groups: &Value,
    resources: &Value,
    tables: &Value,
    schemas: &Value,
) -> Result<String, String> {
    let definitions = definitions_by_kind(schemas);
    let mut out = String::new();
    for group in items(Some(groups)) {
        line(
            &mut out,
            &[
                "group",
                text(group, "group"),
                &texts(group, "versions").join(","),
            ],
        );
    }
    for resource in items(Some(resources)) {
        let (group, version) = (text(resource, "group"), text(resource, "version"));
        let (name, kind) = (text(resource, "resource"), text(resource, "kind"));
        let definition = definitions
            .get(&(group, version, kind))
            .ok_or_else(|| format!("no schema for {group}/{version} {kind}"))?;
        line(
            &mut out,
            &[
                "kind",
                group,
                version,
                name,
                kind,
                text(resource, "singular"),
                text(resource, "scope"),
                &texts(resource, "shortNames").join(","),
                &texts(resource, "categories").join(","),
                &texts(resource, "verbs").join(","),
                &short_name(definition),
            ],
        );
        for subresource in items(resource.get("subresources")) {
            line(
                &mut out,
                &[
                    "sub",
                    text(subresource, "name"),
                    text(subresource, "group"),
                    text(subresource, "version"),
                    text(subresource, "kind"),
                    &texts(subresource, "verbs").join(","),
                ],
            );
        }
        let key = format!("{group}/{version}/{name}");
        for column in items(tables.get(&key)) {
            let priority = column
                .get("priority")
                .and_then(Value::as_i64)
                .unwrap_or_default();
            line(
                &mut out,
                &[
                    "column",
                    text(column, "name"),
                    text(column, "type"),
                    text(column, "format"),
                    &priority.to_string(),
                ],
            );
        }
    }
    Ok(out)
}

fn definitions_by_kind(schemas: &Value) -> HashMap<(&str, &str, &str), &str> {
    let mut found = HashMap::new();
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        for kind in items(schema.get("x-kubernetes-group-version-kind")) {
            found.insert(
                (
                    text(kind, "group"),
                    text(kind, "version"),
                    text(kind, "kind"),
                ),
                &**name,
            );
        }
    }
    found
}

fn line(out: &mut String, cells: &[&str]) {
    let _ = writeln!(out, "{}", cells.join("\t"));
}
