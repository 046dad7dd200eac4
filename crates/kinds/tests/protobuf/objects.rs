//! Objects made from a type: with every field set, or with some of them, told by a seed.

use object::{Map, Text, Value, value};
use schema::{Form, InsteadOfSchema, Scalar, TypeId, Types};

/// Makes objects.
pub(crate) struct Objects<'t> {
    types: &'t Types,
    state: u64,
    /// Of ten fields, how many are set.
    tenths: u64,
    /// The structs that are being made. One inside itself stays empty, or it would never end.
    open: Vec<TypeId>,
}

impl<'t> Objects<'t> {
    /// Sets every field.
    pub(crate) fn full(types: &'t Types, salt: u64) -> Objects<'t> {
        Objects {
            types,
            state: salt,
            tenths: 10,
            open: Vec::new(),
        }
    }

    /// Sets about half of the fields.
    pub(crate) fn some(types: &'t Types, seed: u64) -> Objects<'t> {
        Objects {
            types,
            state: seed,
            tenths: 5,
            open: Vec::new(),
        }
    }

    /// The next number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % bound
    }

    fn pick(&mut self, choices: &[&str]) -> Value {
        let at = self.below(choices.len() as u64);
        choices[usize::try_from(at).expect("few choices")].into()
    }

    /// A value of the type.
    pub(crate) fn value(&mut self, id: TypeId) -> Value {
        let ty = self.types.get(id);
        match ty.form {
            Form::Int32 => Value::Int(i64::from(self.below(1 << 32) as u32 as i32)),
            Form::Int64 => Value::Int((self.below(1 << 31) as i64 - (1 << 30)) << self.below(33)),
            Form::Double => [value!(2.5), value!(7), value!(-1.0e30)]
                .into_iter()
                .nth(usize::try_from(self.below(3)).expect("small"))
                .expect("one of three"),
            Form::Bytes => self.pick(&["", "AAE=", "YWJj", "/+8="]),
            Form::Time => self.pick(&["2026-01-02T03:04:05Z", "1969-12-31T23:59:59Z"]),
            Form::MicroTime => {
                self.pick(&["2026-01-02T03:04:05.000006Z", "1960-01-01T00:00:00.100000Z"])
            }
            Form::Duration => self.pick(&["1h2m3s", "-5ms", "0s"]),
            Form::Quantity => self.pick(&["0", "100m", "1Gi", "3", "1500000n"]),
            Form::IntOrString => match self.below(3) {
                0 => self.pick(&["", "25%", "http"]),
                1 => value!(-1),
                _ => value!(8080),
            },
            Form::RawExtension | Form::AnyJson | Form::FieldsV1 => self.free(id),
            Form::Plain => self.plain(id),
        }
    }

    fn free(&mut self, id: TypeId) -> Value {
        let object = value!({"f:a": {".": {}}, "f:b<": {}});
        let Some(either) = self.types.schema_or(id) else {
            return match (self.types.get(id).form, self.below(3)) {
                (Form::AnyJson, 0) => value!([1, "two", true, 0.5]),
                (Form::AnyJson, 1) => value!("text"),
                _ => object,
            };
        };
        match (either.other, self.below(2)) {
            (InsteadOfSchema::Bool, 0) => value!(self.below(2) == 0),
            (InsteadOfSchema::Strings, 0) => value!(["a", ""]),
            (InsteadOfSchema::Schemas, 0) => {
                let item = self.value(either.schema);
                Value::Array(vec![item])
            }
            _ => self.value(either.schema),
        }
    }

    fn plain(&mut self, id: TypeId) -> Value {
        let ty = self.types.get(id);
        if let Some(list) = &ty.list {
            let length = 1 + self.below(2);
            let items = (0..length).map(|_| self.value(list.element));
            return Value::Array(items.collect());
        }
        if let Some(map) = &ty.map {
            let mut fields = Map::new();
            let is_open = self.open.contains(&id);
            self.open.push(id);
            for field in map.fields.iter() {
                let is_set = field.numbers().next().is_some() && self.below(10) < self.tenths;
                if is_set && !is_open {
                    fields.insert(field.name.clone(), self.value(field.ty));
                }
            }
            self.open.pop();
            let element = map.element.filter(|element| {
                // A struct without fields takes nothing.
                let is_free = self.types.get(*element).form == Form::AnyJson;
                !is_free || self.types.schema_or(*element).is_some()
            });
            if let Some(element) = element {
                for key in ["", "b/c", "a"] {
                    fields.insert(Text::from(key), self.value(element));
                }
            }
            return Value::Object(fields);
        }
        match ty.scalar {
            Some(Scalar::Boolean) => Value::Bool(self.below(2) == 0),
            Some(Scalar::Numeric) => Value::Int(1),
            _ => self.pick(&[
                "",
                "a",
                "text with spaces",
                "ünïcode \u{1f600} <&>",
                "0123456789",
            ]),
        }
    }
}
