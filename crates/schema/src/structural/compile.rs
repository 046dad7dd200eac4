//! From a schema to the type graph that merging works on.
//!
//! Contract: kube-openapi `pkg/schemaconv/openapi.go` over what
//! `apiextensions-apiserver/pkg/controller/openapi/builder` makes of a schema: metadata is that of
//! built-in kinds, lists are atomic unless marked, an object without declared fields takes any key,
//! and below `x-kubernetes-preserve-unknown-fields` everything undeclared is deduced.

use std::collections::HashMap;

use object::Text;

use super::{Additional, ListMarker, MapMarker, Structural, ValueType};
use crate::{Empty, Field, ListTopology, ListType, MapType, Patch, Scalar, Type, TypeId, Types};

/// Compiles the schema of a kind. `object_meta` is the type of metadata, in another arena.
pub fn compile(schema: &Structural, object_meta: (&Types, TypeId)) -> (Types, TypeId) {
    let mut types = Types::new();
    let deduced = types.add_untyped_deduced();
    let atomic = types.add_untyped_atomic();
    let string = types.add(scalar(Scalar::String));
    let metadata = types.import(object_meta.0, object_meta.1);
    let mut compiler = Compiler {
        types,
        deduced,
        atomic,
        string,
        metadata,
        scalars: HashMap::new(),
    };
    let map = compiler.map(schema, schema.preserve_unknown, Object::WithMeta);
    let root = compiler.types.add(Type {
        map: Some(map),
        ..Type::default()
    });
    (compiler.types, root)
}

/// Whether an object has a version, a kind and metadata, declared or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Object {
    WithMeta,
    Plain,
}

impl Object {
    fn of(schema: &Structural) -> Object {
        match schema.embedded_resource {
            true => Object::WithMeta,
            false => Object::Plain,
        }
    }
}

struct Compiler {
    types: Types,
    deduced: TypeId,
    atomic: TypeId,
    string: TypeId,
    metadata: TypeId,
    /// Plain scalars, which most fields are, are kept once.
    scalars: HashMap<(ValueType, bool), TypeId>,
}

fn scalar(scalar: Scalar) -> Type {
    Type {
        scalar: Some(scalar),
        ..Type::default()
    }
}

impl Compiler {
    fn add(&mut self, schema: &Structural, preserve: bool) -> TypeId {
        let plain = match schema.value_type {
            Some(ValueType::Object | ValueType::Array) | None => None,
            Some(plain) => Some((plain, is_formatted(schema))),
        };
        let Some(key) = plain else {
            let ty = self.build(schema, preserve);
            return self.types.add(ty);
        };
        if let Some(known) = self.scalars.get(&key) {
            return *known;
        }
        let ty = self.build(schema, preserve);
        let id = self.types.add(ty);
        self.scalars.insert(key, id);
        id
    }

    fn build(&mut self, schema: &Structural, preserve: bool) -> Type {
        let preserve = preserve || schema.preserve_unknown;
        match schema.value_type {
            None => Type {
                scalar: Some(Scalar::Untyped),
                list: Some(self.list(schema, preserve)),
                map: Some(self.map(schema, preserve, Object::of(schema))),
                ..Type::default()
            },
            Some(ValueType::Object) => Type {
                map: Some(self.map(schema, preserve, Object::of(schema))),
                ..Type::default()
            },
            Some(ValueType::Array) => Type {
                list: Some(self.list(schema, preserve)),
                ..Type::default()
            },
            Some(ValueType::Integer | ValueType::Number) => scalar(Scalar::Numeric),
            Some(ValueType::Boolean) => scalar(Scalar::Boolean),
            Some(ValueType::String) if is_formatted(schema) => scalar(Scalar::Untyped),
            Some(ValueType::String) => scalar(Scalar::String),
        }
    }

    fn list(&mut self, schema: &Structural, preserve: bool) -> ListType {
        let element = match &schema.items {
            Some(items) => self.add(items, preserve),
            None => self.atomic,
        };
        let topology = match schema.list_type {
            Some(ListMarker::Set) => ListTopology::Set,
            Some(ListMarker::Map) => ListTopology::Map(schema.list_map_keys.clone()),
            Some(ListMarker::Atomic) | None => ListTopology::Atomic,
        };
        ListType { element, topology }
    }

    fn map(&mut self, schema: &Structural, preserve: bool, object: Object) -> MapType {
        let mut fields = Vec::with_capacity(schema.properties.iter().len());
        for (name, property) in schema.properties.iter() {
            let ty = self.add(property, preserve);
            let mut field = field(name, ty);
            field.default = property.default.as_deref().cloned();
            fields.push(field);
        }
        if object == Object::WithMeta {
            self.add_meta_fields(&mut fields);
        }
        let element = match &schema.additional {
            None if preserve || fields.is_empty() => Some(self.deduced),
            None => None,
            Some(Additional::Schema(schema)) => Some(self.add(schema, preserve)),
            Some(Additional::Allowed(true)) => Some(self.deduced),
            Some(Additional::Allowed(false)) => None,
        };
        MapType {
            fields: fields.into(),
            element,
            atomic: schema.map_type == Some(MapMarker::Atomic),
        }
    }

    /// Declares what every object has, in place of what the schema says about it.
    fn add_meta_fields(&self, fields: &mut Vec<Field>) {
        for (name, ty) in [
            ("apiVersion", self.string),
            ("kind", self.string),
            ("metadata", self.metadata),
        ] {
            let new = field(name, ty);
            match fields.binary_search_by(|field| field.name.as_str().cmp(name)) {
                Ok(at) => fields[at] = new,
                Err(at) => fields.insert(at, new),
            }
        }
    }
}

/// Texts with a format are compared as they are, whatever their type.
fn is_formatted(schema: &Structural) -> bool {
    let format = schema.checks.as_ref().map(|checks| checks.format.as_str());
    schema.value_type == Some(ValueType::String)
        && !matches!(format.unwrap_or_default(), "" | "byte")
}

fn field(name: &str, ty: TypeId) -> Field {
    Field {
        name: Text::from(name),
        ty,
        default: None,
        empty: Empty::Keep,
        patch: Patch::default(),
        tag: 0,
    }
}
