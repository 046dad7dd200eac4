//! Types from a compact JSON notation.
//!
//! `"string"`, `"number"`, `"boolean"`, `"scalar"` (any scalar), `"deduced"` and `"anything"`
//! (untyped, as a whole) are the leaves; `"@name"` is a type of the `types` table. Then
//! `{"fields": {..}, "rest": T, "atomic": true}`, `{"map": T, "atomic": true}`, `{"list": T}`,
//! `{"set": T}`, `{"items": T, "keys": [..]}`, and `{"of": T, "default": V, "printed": true}` for a
//! field with a default or one that is always printed. `{"any": [T, T]}` has several alternatives.

use std::collections::BTreeMap;

use object::{Text, Value, json};
use schema::{Empty, Field, ListTopology, ListType, MapType, Scalar, Type, TypeId, Types};

pub(crate) struct Schema {
    pub(crate) types: Types,
    pub(crate) root: TypeId,
}

impl Schema {
    pub(crate) fn typing(&self) -> apply::Typing<'_> {
        apply::Typing {
            types: &self.types,
            root: self.root,
        }
    }

    /// Reads the notation from text.
    pub(crate) fn parse(text: &str) -> Schema {
        Schema::build(&json::parse(text.as_bytes()).expect(text))
    }

    /// Reads the notation; the root may be `{"types": {..}, "root": T}`.
    pub(crate) fn build(notation: &Value) -> Schema {
        let mut builder = Builder {
            types: Types::new(),
            named: BTreeMap::new(),
        };
        let named = notation.get("types").and_then(Value::as_object);
        for (name, _) in named.into_iter().flat_map(|named| named.iter()) {
            let id = builder.types.add(Type::default());
            builder.named.insert(name.clone(), id);
        }
        for (name, notation) in named.into_iter().flat_map(|named| named.iter()) {
            let made = builder.build(notation);
            let ty = builder.types.get(made).clone();
            builder.types.set(builder.named[name], ty);
        }
        let root = builder.build(notation.get("root").unwrap_or(notation));
        Schema {
            types: builder.types,
            root,
        }
    }
}

struct Builder {
    types: Types,
    named: BTreeMap<Text, TypeId>,
}

impl Builder {
    fn build(&mut self, notation: &Value) -> TypeId {
        if let Some(word) = notation.as_str() {
            return self.word(word);
        }
        let map = notation.as_object().expect("a type is a word or a map");
        let mut ty = Type::default();
        if let Some(alternatives) = map.get("any").and_then(Value::as_array) {
            for alternative in alternatives {
                let id = self.build(alternative);
                let one = self.types.get(id).clone();
                ty.scalar = ty.scalar.or(one.scalar);
                ty.list = ty.list.or(one.list);
                ty.map = ty.map.or(one.map);
            }
        } else if let Some(element) = map.get("list") {
            ty.list = Some(self.list(element, ListTopology::Atomic));
        } else if let Some(element) = map.get("set") {
            ty.list = Some(self.list(element, ListTopology::Set));
        } else if let Some(element) = map.get("items") {
            let keys = map
                .get("keys")
                .and_then(Value::as_array)
                .expect("items have keys");
            let keys = keys
                .iter()
                .filter_map(Value::as_str)
                .map(Text::from)
                .collect();
            ty.list = Some(self.list(element, ListTopology::Map(keys)));
        } else {
            let fields = map.get("fields").and_then(Value::as_object);
            let mut made = MapType {
                atomic: map.get("atomic") == Some(&Value::Bool(true)),
                ..MapType::default()
            };
            let fields = fields.into_iter().flat_map(|fields| fields.iter());
            let fields: Vec<_> = fields
                .map(|(name, notation)| self.field(name, notation))
                .collect();
            made.fields = fields.into();
            let rest = map.get("rest").or_else(|| map.get("map"));
            made.element = rest.map(|rest| self.build(rest));
            ty.map = Some(made);
        }
        self.types.add(ty)
    }

    fn word(&mut self, word: &str) -> TypeId {
        let scalar = match word {
            "string" => Scalar::String,
            "number" => Scalar::Numeric,
            "boolean" => Scalar::Boolean,
            "scalar" => Scalar::Untyped,
            "deduced" => return self.types.add_untyped_deduced(),
            "anything" => return self.types.add_untyped_atomic(),
            name => return self.named[name.strip_prefix('@').expect(name)],
        };
        self.types.add(Type {
            scalar: Some(scalar),
            ..Type::default()
        })
    }

    fn list(&mut self, element: &Value, topology: ListTopology) -> ListType {
        ListType {
            element: self.build(element),
            topology,
        }
    }

    fn field(&mut self, name: &Text, notation: &Value) -> Field {
        let printed = notation.get("printed") == Some(&Value::Bool(true));
        Field {
            name: name.clone(),
            ty: self.build(notation.get("of").unwrap_or(notation)),
            default: notation.get("default").cloned(),
            empty: if printed { Empty::Print } else { Empty::Keep },
            patch: Default::default(),
            tag: 0,
        }
    }
}
