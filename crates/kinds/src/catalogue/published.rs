//! The published form of the definitions: OpenAPI v3 schemas.
//!
//! Schemas are made from the compiled-in text when they are asked for and never kept: whoever
//! serves a document caches the document. They say what kube-apiserver publishes, without prose.

use object::{Map, Text, Value};

use super::Catalogue;
use super::text::{self, FieldLine, Line, Shape};

/// Where an OpenAPI v3 document has its schemas.
const SCHEMAS: &str = "#/components/schemas/";

impl Catalogue {
    /// Every published definition by its full name, as an OpenAPI v3 schema.
    pub fn published(&self) -> impl Iterator<Item = (String, Value)> {
        let mut lines = text::lines(text::DEFINITIONS).peekable();
        let mut home = usize::MAX;
        std::iter::from_fn(move || {
            loop {
                match lines.next()? {
                    Line::Package => home = home.wrapping_add(1),
                    Line::Field(_) => {}
                    Line::Definition { name, facts } => {
                        let mut fields = Vec::new();
                        while let Some(Line::Field(field)) =
                            lines.next_if(|line| matches!(line, Line::Field(_)))
                        {
                            fields.push(field);
                        }
                        if text::cells(facts).any(|cell| cell == "unpublished") {
                            continue;
                        }
                        let full = [self.definitions.packages[home].1, ".", name].concat();
                        return Some((full, self.definition_schema(home, facts, &fields)));
                    }
                }
            }
        })
    }

    /// The OpenAPI v3 schema of one published definition.
    pub fn published_schema(&self, name: &str) -> Option<Value> {
        self.definition(name)?;
        self.published()
            .find(|(known, _)| known == name)
            .map(|(_, schema)| schema)
    }

    fn definition_schema(&self, home: usize, facts: &'static str, fields: &[FieldLine]) -> Value {
        let mut schema = Map::new();
        let mut kinds = Vec::new();
        let mut unions = Vec::new();
        let mut required: Vec<Value> = fields
            .iter()
            .filter(|field| field.required)
            .map(|field| string(field.name))
            .collect();
        for cell in text::cells(facts) {
            match cell.split_once(':') {
                Some(("kind", kind)) => kinds.push(group_version_kind(kind)),
                Some(("map", relationship)) => {
                    schema.insert("x-kubernetes-map-type", string(relationship));
                }
                Some(("union", union)) => unions.push(union_of(union)),
                Some(("required", names)) => required = names.split(',').map(string).collect(),
                Some(("form", form)) => insert_form(&mut schema, form),
                _ => {}
            }
        }
        insert_list(&mut schema, "x-kubernetes-group-version-kind", kinds);
        insert_list(&mut schema, "x-kubernetes-unions", unions);
        insert_list(&mut schema, "required", required);
        if !facts.contains("form:") {
            schema.insert("type", string("object"));
        }
        if !fields.is_empty() {
            let properties = fields
                .iter()
                .map(|field| (Text::from(field.name), self.field_schema(home, field)));
            schema.insert("properties", Value::Object(properties.collect()));
        }
        Value::Object(schema)
    }

    fn field_schema(&self, home: usize, field: &FieldLine) -> Value {
        let mut schema = self.shape_schema(home, field.shape);
        if let Some(default) = field.default {
            let value = match Shape::read(field.shape) {
                Shape::Scalar("int32" | "int64") => Value::Int(text::number(default)),
                Shape::Scalar("bool") => Value::Bool(default == "true"),
                _ => string(default),
            };
            schema.insert("default", value);
        }
        if let Some((strategy, key)) = field.patch {
            schema.insert("x-kubernetes-patch-strategy", string(strategy));
            if !key.is_empty() {
                schema.insert("x-kubernetes-patch-merge-key", string(key));
            }
        }
        if let Some(list_type) = field.list_type {
            schema.insert("x-kubernetes-list-type", string(list_type));
        }
        Value::Object(with_reference_alone(schema))
    }

    fn shape_schema(&self, home: usize, shape: &'static str) -> Map {
        let mut schema = Map::new();
        match Shape::read(shape) {
            Shape::Scalar(name) => insert_scalar(&mut schema, name),
            Shape::Reference { name, atomic } => {
                let target = [SCHEMAS, &self.full_name(home, name)].concat();
                schema.insert("$ref", Value::String(target.into()));
                if let Some(atomic) = atomic {
                    let relationship = if atomic { "atomic" } else { "granular" };
                    schema.insert("x-kubernetes-map-type", string(relationship));
                }
            }
            Shape::List { topology, element } => {
                schema.insert("type", string("array"));
                let items = with_reference_alone(self.shape_schema(home, element));
                schema.insert("items", Value::Object(items));
                insert_topology(&mut schema, topology);
                return schema;
            }
            Shape::Dictionary {
                relationship,
                element,
            } => {
                schema.insert("type", string("object"));
                let values = with_reference_alone(self.shape_schema(home, element));
                schema.insert("additionalProperties", Value::Object(values));
                match relationship {
                    "!" => schema.insert("x-kubernetes-map-type", string("atomic")),
                    ":" => schema.insert("x-kubernetes-map-type", string("granular")),
                    _ => None,
                };
                return schema;
            }
        }
        if let Some(choices) = text::choices(shape) {
            let choices = choices.split('|').map(string).collect();
            schema.insert("enum", Value::Array(choices));
        }
        if shape.ends_with('~') {
            schema.insert("default", zero(shape));
        }
        schema
    }

    fn full_name(&self, home: usize, name: &'static str) -> String {
        let packages = &self.definitions.packages;
        match text::split_at_byte(name, b'.') {
            None => [packages[home].1, ".", name].concat(),
            Some((alias, short)) => {
                let package = packages.iter().find(|(known, _)| *known == alias);
                let (_, full) = package.unwrap_or_else(|| text::malformed(name));
                [full, ".", short].concat()
            }
        }
    }
}

/// A reference stands alone; with anything beside it, it is wrapped as OpenAPI v3 wants it.
fn with_reference_alone(mut schema: Map) -> Map {
    if schema.len() < 2 {
        return schema;
    }
    if let Some(target) = schema.remove("$ref") {
        let reference: Map = [(Text::from("$ref"), target)].into_iter().collect();
        schema.insert("allOf", Value::Array(vec![Value::Object(reference)]));
    }
    schema
}

fn insert_scalar(schema: &mut Map, name: &str) {
    let (kind, format) = match name {
        "string" => ("string", ""),
        "bytes" => ("string", "byte"),
        "bool" => ("boolean", ""),
        "double" => ("number", "double"),
        integer => ("integer", integer),
    };
    schema.insert("type", string(kind));
    if !format.is_empty() {
        schema.insert("format", string(format));
    }
}

fn insert_topology(schema: &mut Map, topology: &str) {
    let list_type = match topology {
        "" => return,
        "!" => "atomic",
        "=" => "set",
        keys => {
            let keys = keys.split(',').map(string).collect();
            schema.insert("x-kubernetes-list-map-keys", Value::Array(keys));
            "map"
        }
    };
    schema.insert("x-kubernetes-list-type", string(list_type));
}

fn insert_form(schema: &mut Map, form: &str) {
    let one_of = |kinds: [&str; 2]| {
        let choice = |kind| Value::Object([("type".into(), string(kind))].into_iter().collect());
        Value::Array(kinds.into_iter().map(choice).collect())
    };
    match form {
        "quantity" => {
            schema.insert("oneOf", one_of(["string", "number"]));
        }
        "int-or-string" => {
            schema.insert("format", string("int-or-string"));
            schema.insert("oneOf", one_of(["integer", "string"]));
        }
        "time" | "micro-time" => {
            schema.insert("format", string("date-time"));
            schema.insert("type", string("string"));
        }
        "fields" | "raw-extension" => {
            schema.insert("type", string("object"));
        }
        _ => {}
    }
}

fn insert_list(schema: &mut Map, key: &str, items: Vec<Value>) {
    if !items.is_empty() {
        schema.insert(key, Value::Array(items));
    }
}

fn group_version_kind(cell: &str) -> Value {
    let mut parts = cell.rsplitn(3, '/');
    ["kind", "version", "group"]
        .into_iter()
        .map(|name| (Text::from(name), string(parts.next().unwrap_or_default())))
        .collect::<Map>()
        .into()
}

fn union_of(cell: &str) -> Value {
    let (discriminator, fields) = cell.split_once(':').unwrap_or(("", cell));
    let fields: Map = fields
        .split(',')
        .filter_map(|field| field.split_once('='))
        .map(|(field, value)| (Text::from(field), string(value)))
        .collect();
    let mut union = Map::new();
    if !discriminator.is_empty() {
        union.insert("discriminator", string(discriminator));
    }
    union.insert("fields-to-discriminateBy", Value::Object(fields));
    Value::Object(union)
}

fn zero(shape: &'static str) -> Value {
    match Shape::read(shape) {
        Shape::Scalar("string" | "bytes") => string(""),
        Shape::Scalar("bool") => Value::Bool(false),
        Shape::Scalar(_) => Value::Int(0),
        _ => Value::Object(Map::new()),
    }
}

fn string(text: &str) -> Value {
    Value::String(text.into())
}
