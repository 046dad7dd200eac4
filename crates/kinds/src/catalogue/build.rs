//! From the published schemas to the type graph.
//!
//! The rules are those by which upstream reads its own schemas for merging
//! (kube-openapi `pkg/schemaconv/openapi.go`): quantities and texts with a format are untyped
//! scalars, a definition without a type takes anything, an object without properties takes any
//! key. Equal inline types are kept once.

use std::collections::HashMap;

use object::{Text, Value};
use schema::{
    Field, Form, InsteadOfSchema, ListTopology, ListType, MapType, Patch, Scalar, SchemaOr, Type,
    TypeId, Types,
};

use super::Definitions;
use super::names::ByName;
use super::text::{self, FieldLine, Line, Shape};

/// Builds the types of a document of definitions.
pub(super) fn build(document: &'static str) -> (Types, Definitions) {
    let mut types = Types::new();
    let deduced = types.add_untyped_deduced();
    let atomic = types.add_untyped_atomic();
    let definitions = declare(document, &mut types);
    let mut builder = Builder {
        types,
        definitions,
        inline: HashMap::default(),
        overrides: HashMap::new(),
        deduced,
        atomic,
    };
    builder.define(document);
    for (id, (target, atomic)) in std::mem::take(&mut builder.overrides) {
        let mut ty = builder.types.get(target).clone();
        if let Some(map) = &mut ty.map {
            map.atomic = atomic;
        }
        builder.types.set(id, ty);
    }
    (builder.types, builder.definitions)
}

struct Builder {
    types: Types,
    definitions: Definitions,
    /// Inline types by the package that they are seen from and their text.
    inline: ByName<TypeId>,
    /// Types that are copies of a definition with another way of merging.
    overrides: HashMap<TypeId, (TypeId, bool)>,
    deduced: TypeId,
    atomic: TypeId,
}

/// A definition whose fields are being read.
struct Open {
    id: TypeId,
    /// The package that it belongs to.
    home: usize,
    facts: &'static str,
    fields: Vec<Field>,
}

/// Gives every definition its place, so that they can refer to each other.
fn declare(document: &'static str, types: &mut Types) -> Definitions {
    let mut definitions = Definitions {
        packages: Vec::new(),
        ids: HashMap::default(),
    };
    for line in document.lines() {
        if let Some(package) = line.strip_prefix('@') {
            definitions.packages.extend(package.split_once('\t'));
        } else if let Some(definition) = line.strip_prefix('=') {
            let name = text::cells(definition).next().unwrap_or(definition);
            let home = definitions.packages.len().wrapping_sub(1);
            definitions
                .ids
                .insert((home, name), types.add(Type::default()));
        }
    }
    definitions
}

impl Builder {
    /// Fills the declared places.
    fn define(&mut self, document: &'static str) {
        let mut home = usize::MAX;
        let mut current: Option<Open> = None;
        for line in text::lines(document) {
            match line {
                Line::Package => {
                    self.finish(current.take());
                    home = home.wrapping_add(1);
                }
                Line::Definition { name, facts } => {
                    self.finish(current.take());
                    let id = self.resolve(home, name);
                    current = Some(Open {
                        id,
                        home,
                        facts,
                        fields: Vec::new(),
                    });
                }
                Line::Field(field) => {
                    let field = self.field(home, &field);
                    if let Some(open) = &mut current {
                        open.fields.push(field);
                    }
                }
            }
        }
        self.finish(current);
    }

    fn finish(&mut self, definition: Option<Open>) {
        let Some(Open {
            id,
            home,
            facts,
            fields,
        }) = definition
        else {
            return;
        };
        let mut cells = facts.split('\t');
        if let Some(form) = cells.clone().find_map(|cell| cell.strip_prefix("form:")) {
            let ty = self.special(id, form);
            self.types.set(id, ty);
            if let Some(other) = instead_of_schema(form) {
                let schema = self.resolve(home, "JSONSchemaProps");
                self.types.set_schema_or(id, SchemaOr { schema, other });
            }
            return;
        }
        let element = if fields.is_empty() {
            Some(self.deduced)
        } else {
            None
        };
        let atomic = cells.any(|cell| cell == "map:atomic");
        let map = Some(MapType {
            fields: fields.into(),
            element,
            atomic,
        });
        self.types.set(
            id,
            Type {
                map,
                ..Type::default()
            },
        );
    }

    /// The type of a definition that is no struct.
    fn special(&self, id: TypeId, form: &str) -> Type {
        let scalar = |form| Type {
            scalar: Some(Scalar::Untyped),
            form,
            ..Type::default()
        };
        let any_key = MapType {
            fields: Default::default(),
            element: Some(self.deduced),
            atomic: false,
        };
        let anything = |form| Type {
            scalar: Some(Scalar::Untyped),
            list: Some(ListType {
                element: self.atomic,
                topology: ListTopology::Atomic,
            }),
            map: Some(any_key.clone()),
            form,
        };
        match form {
            "quantity" => scalar(Form::Quantity),
            "time" => scalar(Form::Time),
            "micro-time" => scalar(Form::MicroTime),
            "int-or-string" => anything(Form::IntOrString),
            "json" | "schema-or-array" | "schema-or-bool" | "schema-or-strings" => {
                anything(Form::AnyJson)
            }
            "fields" => Type {
                map: Some(any_key),
                form: Form::FieldsV1,
                ..Type::default()
            },
            "raw-extension" => Type {
                form: Form::RawExtension,
                ..self.types.get(self.atomic).clone()
            },
            _ => text::malformed(&format!("{id:?} {form}")),
        }
    }

    fn field(&mut self, home: usize, line: &FieldLine) -> Field {
        let ty = self.shape(home, line.shape);
        Field {
            // Every object copies these; long names would be allocated each time.
            name: Text::const_new(line.name),
            ty,
            default: line.default.map(|default| self.default_value(ty, default)),
            empty: line.empty,
            patch: line
                .patch
                .map_or_else(Patch::default, |(strategy, key)| patch(strategy, key)),
            tag: line.tag,
        }
    }

    fn default_value(&self, ty: TypeId, default: &'static str) -> Value {
        match self.types.get(ty).scalar {
            Some(Scalar::Numeric) => Value::Int(text::number(default)),
            Some(Scalar::Boolean) => Value::Bool(default == "true"),
            _ => Value::String(Text::from(default)),
        }
    }

    fn resolve(&self, home: usize, name: &'static str) -> TypeId {
        self.definitions
            .by_short_name(home, name)
            .unwrap_or_else(|| text::malformed(name))
    }

    fn shape(&mut self, home: usize, shape: &'static str) -> TypeId {
        let parsed = Shape::read(shape);
        if let Shape::Reference { name, atomic: None } = parsed {
            return self.resolve(home, name);
        }
        // Scalars mean the same everywhere, so all packages share them.
        let key = match &parsed {
            Shape::Scalar(name) => (usize::MAX, *name),
            _ => (home, shape),
        };
        if let Some(known) = self.inline.get(&key) {
            return *known;
        }
        let id = self.types.add(Type::default());
        self.inline.insert(key, id);
        let ty = self.inline_type(home, id, parsed);
        self.types.set(id, ty);
        id
    }

    fn inline_type(&mut self, home: usize, id: TypeId, shape: Shape) -> Type {
        match shape {
            Shape::Scalar(name) => scalar(name),
            Shape::Reference { name, atomic } => {
                let target = self.resolve(home, name);
                self.overrides
                    .insert(id, (target, atomic.unwrap_or_default()));
                Type::default()
            }
            Shape::List { topology, element } => {
                let topology = match topology {
                    "!" | "" => ListTopology::Atomic,
                    "=" => ListTopology::Set,
                    keys => ListTopology::Map(text::list(keys)),
                };
                let element = self.shape(home, element);
                Type {
                    list: Some(ListType { element, topology }),
                    ..Type::default()
                }
            }
            Shape::Dictionary {
                relationship,
                element,
            } => {
                let element = Some(self.shape(home, element));
                let atomic = relationship == "!";
                let map = Some(MapType {
                    fields: Default::default(),
                    element,
                    atomic,
                });
                Type {
                    map,
                    ..Type::default()
                }
            }
        }
    }
}

fn instead_of_schema(form: &str) -> Option<InsteadOfSchema> {
    match form {
        "schema-or-array" => Some(InsteadOfSchema::Schemas),
        "schema-or-bool" => Some(InsteadOfSchema::Bool),
        "schema-or-strings" => Some(InsteadOfSchema::Strings),
        _ => None,
    }
}

fn scalar(name: &str) -> Type {
    let (scalar, form) = match name {
        "string" => (Scalar::String, Form::Plain),
        "bytes" => (Scalar::String, Form::Bytes),
        "bool" => (Scalar::Boolean, Form::Plain),
        "int32" => (Scalar::Numeric, Form::Int32),
        "int64" => (Scalar::Numeric, Form::Int64),
        "double" => (Scalar::Numeric, Form::Double),
        _ => text::malformed(name),
    };
    Type {
        scalar: Some(scalar),
        form,
        ..Type::default()
    }
}

fn patch(strategy: &str, key: &str) -> Patch {
    let mut parts = strategy.split(',');
    Patch {
        merge: parts.clone().any(|part| part == "merge"),
        merge_key: key.into(),
        retain_keys: parts.clone().any(|part| part == "retainKeys"),
        replace: parts.any(|part| part == "replace"),
    }
}
