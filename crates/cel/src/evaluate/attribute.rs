//! Variables, fields and indices.
//!
//! Contract: cel-go `interpreter/attributes.go`. Each step is charged, also one that fails; a step
//! into an optional that finds nothing is free.

use super::{Context, Fault, Outcome, Slot};
use crate::plan::{Attribute, Base, Qualifier, QualifierKey};
use crate::value::{List, Map, Value};

impl<'p, 'v> Context<'p, 'v> {
    /// The value at the end of an attribute, without the charge for its start.
    pub(super) fn resolve(&mut self, attribute: &'p Attribute) -> Outcome<'v> {
        let base = self.base(&attribute.base)?;
        match attribute.qualifiers.is_empty() {
            true => Ok(base),
            false => self.qualify_all(base, &attribute.qualifiers),
        }
    }

    fn base(&mut self, base: &'p Base) -> Outcome<'v> {
        match base {
            Base::Variable(at) => match self.variables.get(*at) {
                Some((_, Some(value))) => Ok(Value::clone(value)),
                Some((name, None)) => Err(Fault::from(format!("no such attribute(s): {name}"))),
                None => Err(Fault::new("no such attribute(s)")),
            },
            Base::Local(slot) => self.local(*slot),
            Base::Relative(node) => self.evaluate(node),
            Base::Conditional(parts) => match self.evaluate(&parts.0)? {
                Value::Bool(true) => self.resolve(&parts.1),
                Value::Bool(false) => self.resolve(&parts.2),
                _ => Err(Fault::NoOverload),
            },
        }
    }

    fn local(&mut self, slot: usize) -> Outcome<'v> {
        if let Slot::Pending(node) = self.slots[slot] {
            self.slots[slot] = match self.evaluate(node) {
                Ok(value) => Slot::Value(value),
                Err(fault) => Slot::Failed(fault),
            };
        }
        match &self.slots[slot] {
            Slot::Value(value) => Ok(value.clone()),
            Slot::Failed(fault) => Err(fault.clone()),
            _ => Err(Fault::new("no such attribute(s)")),
        }
    }

    fn qualify_all(&mut self, base: Value<'v>, qualifiers: &'p [Qualifier]) -> Outcome<'v> {
        let (mut value, mut optional) = match base {
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => (Value::clone(&inner), true),
            other => (other, false),
        };
        for qualifier in qualifiers {
            optional |= qualifier.optional;
            let found = self.step(&value, qualifier);
            if found == Err(Fault::OverLimit) {
                return Err(Fault::OverLimit);
            }
            if !matches!(found, Ok(None)) || !optional {
                self.meter.charge(1)?;
            }
            value = match found? {
                Some(found) => found,
                None if optional => return Ok(Value::Optional(None)),
                None => return Err(self.missing(&value, qualifier)?),
            };
        }
        match optional {
            true => Ok(Value::some(value)),
            false => Ok(value),
        }
    }

    /// Whether the last field of the attribute is there.
    pub(super) fn test(&mut self, attribute: &'p Attribute) -> Outcome<'v> {
        let base = self.base(&attribute.base)?;
        let (last, way) = match attribute.qualifiers.split_last() {
            Some(parts) => parts,
            None => return Err(Fault::NoOverload),
        };
        let value = match way.is_empty() {
            true => base,
            false => self.qualify_all(base, way)?,
        };
        let value = match value {
            Value::Optional(None) => return Ok(Value::Bool(false)),
            Value::Optional(Some(inner)) => Value::clone(&inner),
            other => other,
        };
        let found = self.step(&value, last);
        self.meter.charge(1)?;
        Ok(Value::Bool(found?.is_some()))
    }

    fn step(
        &mut self,
        value: &Value<'v>,
        qualifier: &'p Qualifier,
    ) -> Result<Option<Value<'v>>, Fault> {
        match &qualifier.key {
            QualifierKey::Field(name) => match value {
                Value::Map(map) => map.find_text(name),
                Value::List(_) => Err(bad_index(&Value::text(name))),
                _ => Ok(None),
            },
            QualifierKey::Constant(key) => element(value, key),
            QualifierKey::Attribute(attribute) => {
                let key = self.resolve(attribute)?;
                element(value, &key)
            }
            QualifierKey::Node(node) => {
                let key = self.evaluate(node)?;
                element(value, &key)
            }
        }
    }

    /// The error for a key or index that is not there.
    fn missing(&mut self, value: &Value<'v>, qualifier: &'p Qualifier) -> Result<Fault, Fault> {
        let key = match &qualifier.key {
            QualifierKey::Field(name) => return Ok(Fault::from(format!("no such key: {name}"))),
            QualifierKey::Constant(key) => key.clone(),
            QualifierKey::Attribute(attribute) => self.resolve(attribute)?,
            QualifierKey::Node(node) => self.evaluate(node)?,
        };
        Ok(Fault::from(match value {
            Value::List(_) => format!("index out of bounds: {key}"),
            _ => format!("no such key: {key}"),
        }))
    }
}

fn bad_index(key: &Value<'_>) -> Fault {
    let of = key.type_of().name();
    Fault::from(format!("unsupported index type '{of}' in list"))
}

fn element<'v>(value: &Value<'v>, key: &Value<'v>) -> Result<Option<Value<'v>>, Fault> {
    match value {
        Value::Map(map) => find(map, key),
        Value::List(list) => at_index(list, key),
        _ => Ok(None),
    }
}

fn find<'v>(map: &Map<'v>, key: &Value<'v>) -> Result<Option<Value<'v>>, Fault> {
    map.find(key)
}

fn at_index<'v>(list: &List<'v>, key: &Value<'v>) -> Result<Option<Value<'v>>, Fault> {
    let index = match key {
        Value::Int(index) => u64::try_from(*index).ok(),
        Value::Uint(index) => Some(*index),
        Value::Double(index) if index.fract() == 0.0 => (*index >= 0.0).then_some(*index as u64),
        Value::Double(index) => {
            let shown = crate::value::print_double(*index);
            return Err(Fault::from(format!(
                "unsupported index value {shown} in list"
            )));
        }
        other => return Err(bad_index(other)),
    };
    let is_schema = matches!(list, List::Data(_, shape) if !shape.is_any());
    match index {
        Some(index) if is_schema && !matches!(key, Value::Int(_)) && index < list.len() => {
            Err(Fault::from(format!("unsupported index: {key}")))
        }
        Some(index) => list.get(index),
        None => Ok(None),
    }
}
