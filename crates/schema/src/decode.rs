//! Typed reading: what a built-in kind makes of a body, and what it prints back.
//!
//! Upstream decodes a body into Go structs and encodes those again. Contract: `sigs.k8s.io/json`
//! and Go's `encoding/json`. Four rules follow, and this file keeps all of them on the value tree:
//! fields that a struct does not declare vanish (and are reported if asked), a value of the wrong
//! type is an error, `null` means the zero value, and [`Empty`] decides what is printed for a
//! field that holds nothing.
//!
//! A list or dictionary without entries is something to a struct and nothing to its printed form:
//! it is kept while the object is filled and judged, and [`Blank`] says what becomes of it then.
//!
//! The tree is changed in place and a path becomes text only when it is reported.

pub(crate) mod base64;
mod converter;
mod document;
mod error;
mod place;
mod scalar;

use std::cell::Cell;
use std::convert::Infallible;

use object::field::quote;
use object::{Map, Value};

use crate::{Empty, Field, Form, InsteadOfSchema, MapType, Scalar, SchemaOr, Type, TypeId, Types};
pub use base64::{decode as decode_base64, encode as encode_base64};
pub use converter::conversion_error;
pub use document::in_document_order;
pub use error::TypeError;
use place::Place;

/// Typed values nested deeper than this are refused, so that no stack overflows. Only recursive
/// types can get there; free-form JSON is not walked.
pub const DECODE_DEPTH_MAX: usize = 1024;

/// More unknown fields than this are dropped without being reported, as upstream stops there.
pub const REPORTS_MAX: usize = 100;

/// What to do about fields that the type does not declare, besides dropping them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Nothing.
    Drop,
    /// Say which they were.
    Report,
}

/// Reads `value` as the type `root` and gives back what that type holds ([`Blank::AsRead`]), with
/// one text such as `unknown field "spec.foo"` for each field that was dropped. The texts come in
/// the order of the sorted tree; [`in_document_order`] restores the order of a JSON body.
pub fn decode(
    types: &Types,
    root: TypeId,
    mut value: Value,
    unknown: Unknown,
) -> Result<(Value, Vec<String>), TypeError> {
    let mut reader = Reader {
        types,
        unknown,
        reports: Vec::new(),
        passes_by: false,
    };
    let read = reader.value(root, &mut value, &Place::root(), 0);
    if let Err(first) = read {
        reader.passes_by = true;
        let last = reader.value(root, &mut value, &Place::root(), 0);
        let wrong = last.err().unwrap_or(first);
        let kind = value.str_at(&["kind"]).unwrap_or_default();
        return Err(wrong.within(kind));
    }
    if is_null(&value) {
        value = zero(types, root);
    }
    Ok((value, reader.reports))
}

/// What becomes of a list or dictionary without entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blank {
    /// It stays, as it does while a request is worked on: upstream's structs tell it from an
    /// absent one.
    AsRead,
    /// It stays in fields that are always printed, as it does in the JSON of an object that is
    /// worked on.
    AsShown,
    /// It is as good as absent, as it is once it is stored.
    AsStored,
}

/// Applies only the printing rules to a value that was decoded and changed since. Tells whether
/// there is a list or dictionary without entries that prints otherwise once it is stored.
pub fn normalize(types: &Types, root: TypeId, value: &mut Value, blank: Blank) -> bool {
    let kept = Cell::new(false);
    let printer = Printer {
        types,
        blank,
        kept: &kept,
    };
    printer.value(root, value, 0);
    kept.get()
}

/// Applies the printing rules.
#[derive(Clone, Copy)]
struct Printer<'t> {
    types: &'t Types,
    blank: Blank,
    /// Set when something without entries is kept.
    kept: &'t Cell<bool>,
}

impl Printer<'_> {
    /// What lies deeper than [`DECODE_DEPTH_MAX`] was never decoded and is left as it is.
    fn value(self, id: TypeId, value: &mut Value, depth: usize) {
        if depth > DECODE_DEPTH_MAX {
            return;
        }
        let ty = self.types.get(id);
        if is_free(ty.form) {
            if let Some(either) = self.types.schema_or(id) {
                self.schema_or(either, value, depth);
            }
            return;
        }
        match (value, &ty.map, &ty.list) {
            (Value::Object(map), Some(shape), _) => self.map(shape, map, depth),
            (Value::Array(items), _, Some(list)) => {
                for item in items {
                    match item {
                        Value::Null => *item = zero(self.types, list.element),
                        item => self.value(list.element, item, depth + 1),
                    }
                }
            }
            _ => {}
        }
    }

    fn map(self, shape: &MapType, map: &mut Map, depth: usize) {
        let Ok(()) = each_entry(self, shape, map, |entry, _, value| {
            match entry {
                Entry::Declared(field) => self.value(field.ty, value, depth + 1),
                Entry::Keyed(element) => self.value(element, value, depth + 1),
                Entry::Unknown => {}
            }
            Ok::<bool, Infallible>(true)
        });
    }

    fn schema_or(self, either: SchemaOr, value: &mut Value, depth: usize) {
        match value {
            Value::Object(_) => self.value(either.schema, value, depth + 1),
            Value::Array(items) if either.other == InsteadOfSchema::Schemas => {
                for item in items {
                    self.value(either.schema, item, depth + 1);
                }
            }
            _ => {}
        }
    }
}

/// What the shape of a map says about one of its keys.
enum Entry<'t> {
    Declared(&'t Field),
    Keyed(TypeId),
    Unknown,
}

/// Walks a map and its declared fields side by side (both are sorted), calls `visit` on each value
/// that is not `null`, and then applies the printing rules. Unknown entries stay if `visit` says
/// so.
fn each_entry<'t, E>(
    printer: Printer<'_>,
    shape: &'t MapType,
    map: &mut Map,
    mut visit: impl FnMut(Entry<'t>, &str, &mut Value) -> Result<bool, E>,
) -> Result<(), E> {
    let (types, fields) = (printer.types, &shape.fields);
    let mut failed = None;
    let mut next = 0;
    let mut printed = fields.printed();
    let mut absent: Vec<&Field> = Vec::new();
    map.retain(|key, value| {
        if failed.is_some() {
            return true;
        }
        let declared = match fields.search_from(next, key) {
            Ok(at) => {
                next = at + 1;
                while let Some((first, rest)) = printed.split_first().filter(|(to, _)| **to <= at) {
                    absent.extend((*first < at).then(|| &fields[*first]));
                    printed = rest;
                }
                Some(&fields[at])
            }
            Err(at) => {
                next = at;
                None
            }
        };
        let result = match (declared, shape.element) {
            (Some(field), _) => visit_declared(printer, field, key, value, &mut visit),
            (None, Some(element)) if is_null(value) => {
                *value = zero(types, element);
                Ok(true)
            }
            (None, Some(element)) => visit(Entry::Keyed(element), key, value),
            (None, None) => visit(Entry::Unknown, key, value),
        };
        result.unwrap_or_else(|error| {
            failed = Some(error);
            true
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    absent.extend(printed.iter().map(|at| &fields[*at]));
    for field in absent {
        if let Some(value) = printed_when_absent(types, field) {
            map.insert(field.name.clone(), value);
        }
    }
    Ok(())
}

fn visit_declared<'t, E>(
    printer: Printer<'_>,
    field: &'t Field,
    key: &str,
    value: &mut Value,
    visit: &mut impl FnMut(Entry<'t>, &str, &mut Value) -> Result<bool, E>,
) -> Result<bool, E> {
    if !is_null(value) {
        visit(Entry::Declared(field), key, value)?;
    }
    let is_printed = print_declared(printer.types, field, printer.blank, value);
    if is_printed && is_blank(printer.types, field, value) {
        printer.kept.set(true);
    }
    Ok(is_printed)
}

/// Whether a field is printed; what it shows if it holds nothing is set.
#[inline(always)]
pub(crate) fn print_declared(
    types: &Types,
    field: &Field,
    blank: Blank,
    value: &mut Value,
) -> bool {
    match field.empty {
        Empty::Keep => !is_null(value),
        Empty::Drop => {
            !is_empty(value) || (blank == Blank::AsRead && is_blank(types, field, value))
        }
        Empty::Print => {
            if is_null(value) || (blank == Blank::AsStored && is_blank(types, field, value)) {
                *value = zero_field(types, field.ty);
            }
            true
        }
        Empty::Null => true,
    }
}

/// What an absent field prints, if anything.
pub(crate) fn printed_when_absent(types: &Types, field: &Field) -> Option<Value> {
    match field.empty {
        Empty::Keep | Empty::Drop => None,
        Empty::Print => Some(zero_field(types, field.ty)),
        Empty::Null => Some(Value::Null),
    }
}

pub(crate) fn prints_when_absent(field: &Field) -> bool {
    matches!(field.empty, Empty::Print | Empty::Null)
}

fn is_null(value: &Value) -> bool {
    matches!(value, Value::Null)
}

/// Whether Go's `omitempty` leaves the value out.
#[inline(always)]
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Int(number) => *number == 0,
        Value::Float(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Whether a field holds a list or dictionary without entries, or bytes that are none, which is as
/// good as absent once it is stored, because storage cannot tell them apart. What upstream keeps
/// behind a pointer is told.
fn is_blank(types: &Types, field: &Field, value: &Value) -> bool {
    let has_none = match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    };
    if !has_none || !matches!(field.empty, Empty::Drop | Empty::Print) {
        return false;
    }
    let ty = types.get(field.ty);
    match value {
        Value::Array(_) => !is_free(ty.form),
        Value::Object(_) => !is_free(ty.form) && !is_struct(ty),
        _ => ty.form == Form::Bytes,
    }
}

fn is_struct(ty: &Type) -> bool {
    ty.map.as_ref().is_some_and(|shape| shape.element.is_none())
}

/// Whether the form takes any JSON and keeps it as it came.
fn is_free(form: Form) -> bool {
    matches!(form, Form::RawExtension | Form::AnyJson | Form::FieldsV1)
}

/// Whether upstream's type of the form has a decoder of its own.
fn reads_itself(form: Form) -> bool {
    matches!(
        form,
        Form::Time | Form::MicroTime | Form::Duration | Form::Quantity | Form::IntOrString
    )
}

/// What a field that is always printed shows when it holds nothing: a nil slice or map is `null`.
fn zero_field(types: &Types, ty: TypeId) -> Value {
    match types.get(ty).form {
        Form::Bytes => Value::Null,
        _ => zero(types, ty),
    }
}

/// The zero value of a list item or of an entry in a dictionary.
pub(crate) fn zero(types: &Types, ty: TypeId) -> Value {
    let ty = types.get(ty);
    match ty.form {
        Form::Int32 | Form::Int64 | Form::Double | Form::IntOrString => Value::Int(0),
        Form::Quantity => "0".into(),
        Form::Duration => "0s".into(),
        // Storage gives back no bytes where it was given none, and no bytes print as "".
        Form::Bytes => "".into(),
        Form::Time | Form::MicroTime => Value::Null,
        Form::RawExtension | Form::AnyJson | Form::FieldsV1 => Value::Null,
        Form::Plain => match (&ty.map, &ty.list, ty.scalar) {
            (Some(shape), _, _) if shape.element.is_none() => zero_struct(types, shape),
            (Some(_), _, _) | (_, Some(_), _) => Value::Null,
            (_, _, Some(Scalar::String)) => "".into(),
            (_, _, Some(Scalar::Numeric)) => Value::Int(0),
            (_, _, Some(Scalar::Boolean)) => Value::Bool(false),
            (_, _, Some(Scalar::Untyped) | None) => Value::Null,
        },
    }
}

fn zero_struct(types: &Types, shape: &MapType) -> Value {
    let printed = shape.fields.iter().filter_map(|field| {
        let value = printed_when_absent(types, field)?;
        Some((field.name.clone(), value))
    });
    printed.collect::<Map>().into()
}

/// One walk over one body.
struct Reader<'t> {
    types: &'t Types,
    unknown: Unknown,
    reports: Vec<String>,
    /// Whether a value of the wrong type is passed by. Upstream remembers the first one and goes
    /// on; what ends its reading, and is told instead, is a value that fails to read itself.
    passes_by: bool,
}

impl<'t> Reader<'t> {
    fn value(
        &mut self,
        id: TypeId,
        value: &mut Value,
        path: &Place<'_>,
        depth: usize,
    ) -> Result<(), TypeError> {
        if depth > DECODE_DEPTH_MAX {
            return Err(TypeError::TooDeep {
                limit: DECODE_DEPTH_MAX,
            });
        }
        let ty = self.types.get(id);
        if is_free(ty.form) {
            return match self.types.schema_or(id) {
                Some(either) => self.schema_or(either, value, path, depth),
                None => Ok(()),
            };
        }
        match (value, &ty.map, &ty.list) {
            (Value::Null, _, _) => Ok(()),
            // An apply may hold anything in some of these; the type itself may not.
            (value, _, _) if ty.form != Form::Plain => self.scalar(id, value, path),
            (Value::Object(map), Some(shape), _) => self.map(id, shape, map, path, depth),
            (Value::Array(items), _, Some(list)) => self.list(list.element, items, path, depth),
            (value, _, _) => self.scalar(id, value, path),
        }
    }

    fn scalar(&self, id: TypeId, value: &mut Value, path: &Place<'_>) -> Result<(), TypeError> {
        let read = scalar::read(self.types, id, value, path);
        if self.passes_by && !reads_itself(self.types.get(id).form) {
            return Ok(());
        }
        read
    }

    fn map(
        &mut self,
        id: TypeId,
        shape: &'t MapType,
        map: &mut Map,
        path: &Place<'_>,
        depth: usize,
    ) -> Result<(), TypeError> {
        let types = self.types;
        let printer = Printer {
            types,
            blank: Blank::AsRead,
            kept: &Cell::new(false),
        };
        each_entry(printer, shape, map, |entry, key, value| match entry {
            Entry::Declared(field) => self
                .value(field.ty, value, &path.field(key), depth + 1)
                .map_err(|wrong| wrong.declared_by(types, id))
                .map(|()| true),
            Entry::Keyed(element) => self
                .value(element, value, &path.key(key), depth + 1)
                .map(|()| true),
            Entry::Unknown => {
                if self.unknown == Unknown::Report && self.reports.len() < REPORTS_MAX {
                    let at = path.field(key).to_string();
                    self.reports.push(format!("unknown field {}", quote(&at)));
                }
                Ok(false)
            }
        })
    }

    fn list(
        &mut self,
        element: TypeId,
        items: &mut [Value],
        path: &Place<'_>,
        depth: usize,
    ) -> Result<(), TypeError> {
        for (index, item) in items.iter_mut().enumerate() {
            match item {
                Value::Null => *item = zero(self.types, element),
                item => self.value(element, item, &path.index(index), depth + 1)?,
            }
        }
        Ok(())
    }

    /// Reads a JSON schema or what may stand in its place. Upstream reads these with a decoder of
    /// their own, which drops unknown fields without a word and reads what it cannot use as
    /// nothing.
    fn schema_or(
        &mut self,
        either: SchemaOr,
        value: &mut Value,
        path: &Place<'_>,
        depth: usize,
    ) -> Result<(), TypeError> {
        let outside = std::mem::replace(&mut self.unknown, Unknown::Drop);
        let passes_by = std::mem::take(&mut self.passes_by);
        let read = match (&mut *value, either.other) {
            (Value::Null, _) => Ok(()),
            (Value::Object(_), _) => self.value(either.schema, value, path, depth + 1),
            (Value::Bool(_), InsteadOfSchema::Bool) => Ok(()),
            (_, InsteadOfSchema::Bool) => Err(scalar::no_schema_or_bool(path)),
            (Value::Array(items), InsteadOfSchema::Schemas) if !items.is_empty() => {
                self.list(either.schema, items, path, depth)
            }
            (Value::Array(items), InsteadOfSchema::Strings) if !items.is_empty() => {
                scalar::read_strings(items)
            }
            _ => {
                *value = Value::Null;
                Ok(())
            }
        };
        self.unknown = outside;
        self.passes_by = passes_by;
        read
    }
}

#[cfg(test)]
mod tests;
