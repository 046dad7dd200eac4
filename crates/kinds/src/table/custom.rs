//! Rows of custom resources: the name, and what the paths of their columns lead to.
//!
//! Contract: `apiextensions-apiserver/pkg/registry/customresource/tableconvertor`.

use object::time::Time;
use object::{Map, Text, Value, json};

use super::row::{Row, UNKNOWN};
use crate::json_path::{Found, JsonPath};
use crate::kind::Column;

/// The columns of a version of a custom resource, given its `additionalPrinterColumns`.
///
/// Without any there is the age. A path that cannot be read ends the columns: there is no one to
/// tell, because the definition was accepted before.
pub fn custom_columns(printer_columns: &[Value]) -> Vec<Column> {
    let mut columns = vec![Column {
        name: "Name".into(),
        kind: "string".into(),
        format: "name".into(),
        description: Text::default(),
        priority: 0,
        path: None,
    }];
    if printer_columns.is_empty() {
        let age = column("Age", "date", ".metadata.creationTimestamp");
        columns.extend(age.map(|age| Column {
            description: Text::default(),
            ..age
        }));
    }
    for printed in printer_columns {
        let text = |field: &str| printed.str_at(&[field]).unwrap_or_default();
        let Some(column) = column(text("name"), text("type"), text("jsonPath")) else {
            break;
        };
        let priority = printed.get("priority").and_then(Value::as_int);
        columns.push(Column {
            format: text("format").into(),
            description: match text("description") {
                "" => column.description,
                given => given.into(),
            },
            priority: priority.and_then(|it| it.try_into().ok()).unwrap_or(0),
            ..column
        });
    }
    columns
}

fn column(name: &str, kind: &str, path: &str) -> Option<Column> {
    Some(Column {
        name: name.into(),
        kind: kind.into(),
        format: Text::default(),
        description: format!("Custom resource definition column (in JSONPath format): {path}")
            .into(),
        priority: 0,
        path: Some(JsonPath::parse(path).ok()?),
    })
}

/// The cells of a row whose columns have paths; the one that has none is the name.
pub(super) fn cells(columns: &[Column], row: &Row<'_>) -> Vec<Value> {
    let cell = |column: &Column| match &column.path {
        None => row.name().into(),
        Some(path) => path
            .first(row.object())
            .map_or(Value::Null, |found| cell(&column.kind, found, row)),
    };
    columns.iter().map(cell).collect()
}

/// A value as its column wants it; one of another type is left out.
fn cell(kind: &str, found: Found<'_>, row: &Row<'_>) -> Value {
    let value = match found {
        Found::Inside(value) => value,
        Found::Root(object) if kind == "string" => return whole(object),
        Found::Root(_) => return Value::Null,
    };
    match (kind, value) {
        ("string", value) => printed(value).into(),
        ("integer", Value::Int(number)) => Value::Int(*number),
        ("integer", Value::Float(number)) => Value::Int(*number as i64),
        ("number", value) => value.as_float().map_or(Value::Null, Value::Float),
        ("boolean", Value::Bool(flag)) => Value::Bool(*flag),
        ("date", Value::String(time)) => date(time, row).into(),
        _ => Value::Null,
    }
}

fn whole(object: &Map) -> Value {
    printed(&Value::Object(object.clone())).into()
}

fn date(time: &str, row: &Row<'_>) -> String {
    if matches!(time, "" | "null") {
        return UNKNOWN.to_owned();
    }
    match Time::parse(time) {
        Ok(time) if time.is_zero() => UNKNOWN.to_owned(),
        Ok(time) => row.elapsed(time.unix_seconds()),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// A value as Go prints it.
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => schema::structural::go_float(*number),
        Value::String(text) => text.to_string(),
        Value::Array(_) | Value::Object(_) => {
            String::from_utf8_lossy(&json::to_vec(value)).into_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use object::{Value, json, value};

    use super::*;

    const NOW: i64 = 1_577_934_245 + 3600;

    fn row(columns: &Value, object: &Value) -> Value {
        let columns = custom_columns(columns.as_array().expect("a list"));
        let object = object.as_object().expect("a map");
        Value::Array(cells(&columns, &Row::new(object, NOW)))
    }

    #[test]
    fn cells_follow_the_type_of_their_column() {
        let object = value!({
            "metadata": {"name": "one"},
            "spec": {
                "text": "t<", "int": 3, "float": 2.5, "yes": true, "null": null,
                "list": ["x", "<"], "map": {"b": 1, "a": 0.00001}, "time": "2020-01-02T03:04:05Z",
                "zero": "0001-01-01T00:00:00Z", "empty": "",
            },
        });
        let cases = [
            ("string", ".spec.text", value!("t<")),
            ("string", ".spec.int", value!("3")),
            ("string", ".spec.float", value!("2.5")),
            ("string", ".spec.map.a", value!("1e-05")),
            ("string", ".spec.yes", value!("true")),
            ("string", ".spec.null", value!("<no value>")),
            ("string", ".spec.list", value!("[\"x\",\"\\u003c\"]")),
            ("string", ".spec.map", value!("{\"a\":0.00001,\"b\":1}")),
            ("string", ".spec.absent", Value::Null),
            ("integer", ".spec.int", value!(3)),
            ("integer", ".spec.float", value!(2)),
            ("integer", ".spec.text", Value::Null),
            ("number", ".spec.int", value!(3.0)),
            ("number", ".spec.float", value!(2.5)),
            ("number", ".spec.text", Value::Null),
            ("boolean", ".spec.yes", value!(true)),
            ("boolean", ".spec.text", Value::Null),
            ("date", ".spec.time", value!("60m")),
            ("date", ".spec.zero", value!("<unknown>")),
            ("date", ".spec.empty", value!("<unknown>")),
            ("date", ".spec.text", value!("<invalid>")),
            ("date", ".spec.int", Value::Null),
            ("date", ".spec.null", Value::Null),
            ("other", ".spec.text", Value::Null),
        ];
        for (kind, path, expected) in cases {
            let columns = value!([{"name": "X", "type": kind, "jsonPath": path}]);
            let expected = Value::Array(vec!["one".into(), expected]);
            assert_eq!(row(&columns, &object), expected, "{kind} {path}");
        }
    }

    #[test]
    fn without_columns_there_is_the_age() {
        let created = value!({
            "metadata": {"name": "one", "creationTimestamp": "2020-01-02T03:04:05Z"},
        });
        assert_eq!(row(&value!([]), &created), value!(["one", "60m"]));
    }

    #[test]
    fn a_column_that_cannot_be_read_ends_the_columns() {
        let columns = value!([
            {"name": "A", "type": "integer", "format": "int32", "priority": 1, "jsonPath": ".a"},
            {"name": "B", "type": "string", "jsonPath": ".b[x]"},
            {"name": "C", "type": "string", "jsonPath": ".c"},
        ]);
        let columns = custom_columns(columns.as_array().expect("a list"));
        let names: Vec<&str> = columns.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["Name", "A"]);
        let [name, a] = columns.as_slice() else {
            panic!("two columns");
        };
        assert_eq!((name.format.as_str(), name.priority), ("name", 0));
        assert_eq!((a.format.as_str(), a.priority), ("int32", 1));
    }

    #[test]
    fn a_path_to_everything_prints_the_object() {
        let columns = value!([{"name": "X", "type": "string", "jsonPath": "@"}]);
        let object = value!({"metadata": {"name": "one"}});
        let text = String::from_utf8(json::to_vec(&object)).expect("UTF-8");
        assert_eq!(row(&columns, &object), value!(["one", text]));
    }
}
