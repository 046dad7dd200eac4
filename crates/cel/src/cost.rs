//! What an expression can cost, before it runs.
//!
//! Contract: cel-go `checker/cost.go` with the size estimates that apiextensions takes from a
//! schema, quirks included: whether a definition is accepted hangs on these figures.

mod call;
mod range;

use crate::ast::{Comprehension, Element, Expr, Kind, Literal, MapEntry};
use crate::charge;
use crate::check::Checked;
use crate::environment::Environment;
use crate::shape::{Shape, ShapeKind};
use crate::types::Type;
pub(crate) use range::Range;

/// The least and the most that an evaluation can cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The least.
    pub min: u64,
    /// The most; `u64::MAX` if nothing bounds it.
    pub max: u64,
}

/// Estimates a checked expression.
pub(crate) fn estimate(checked: &Checked, environment: &Environment) -> Estimate {
    let nodes = checked.types.len();
    let mut coster = Coster {
        checked,
        environment,
        root: environment.data_shape(),
        paths: vec![Vec::new(); nodes],
        sizes: vec![None; nodes],
        entries: vec![None; nodes],
        locals: Vec::new(),
    };
    let Range { min, max } = coster.cost(&checked.ast.root);
    Estimate { min, max }
}

/// The way to a value from a variable, by field names; `@items`, `@values`, `@keys` and
/// `@indices` stand for what lists and maps hold.
type Path = Vec<String>;

/// What the entries of a list or map that an expression makes measure.
#[derive(Clone, Copy, Debug)]
struct EntrySize {
    is_list: bool,
    key: Range,
    value: Range,
}

impl EntrySize {
    fn union(self, other: EntrySize) -> EntrySize {
        EntrySize {
            is_list: self.is_list,
            key: self.key.union(other.key),
            value: self.value.union(other.value),
        }
    }
}

struct Local {
    name: String,
    path: Path,
    size: Option<Range>,
    entry: Option<EntrySize>,
}

struct Coster<'a> {
    checked: &'a Checked,
    environment: &'a Environment,
    /// The shape that sizes are taken from, whatever variable is named.
    root: Option<&'a Shape>,
    paths: Vec<Path>,
    sizes: Vec<Option<Range>>,
    entries: Vec<Option<EntrySize>>,
    locals: Vec<Local>,
}

impl<'a> Coster<'a> {
    fn cost(&mut self, expr: &'a Expr) -> Range {
        match &expr.kind {
            Kind::Unspecified | Kind::Literal(_) => Range::fixed(0),
            Kind::Ident(name) => {
                let path = match self.local(name) {
                    Some(local) => local.path.clone(),
                    None => vec![name.to_string()],
                };
                self.paths[expr.id as usize] = path;
                Range::fixed(1)
            }
            Kind::Select {
                operand,
                field,
                test_only,
            } => self.select(expr, operand, field, *test_only),
            Kind::Call { .. } => self.call(expr),
            Kind::List(elements) => self.list(expr, elements),
            Kind::Map(entries) => self.map(expr, entries),
            Kind::Struct { fields, .. } => {
                let values = fields.iter().map(|field| self.cost(&field.value));
                values.fold(Range::fixed(charge::OBJECT), Range::plus)
            }
            Kind::Comprehension(it) => {
                let is_bind = matches!(&it.range.kind, Kind::List(list) if list.is_empty())
                    && matches!(it.condition.kind, Kind::Literal(Literal::Bool(false)));
                match is_bind {
                    true => self.bind(expr, it),
                    false => self.comprehension(expr, it),
                }
            }
        }
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|it| it.name == name)
    }

    fn path(&self, expr: &Expr) -> Path {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths[expr.id as usize].clone()
    }

    fn set_path(&mut self, expr: &Expr, mut from: Path, step: &str) {
        from.push(step.to_owned());
        self.paths[expr.id as usize] = from;
    }

    fn set_size(&mut self, expr: &Expr, size: Option<Range>) {
        if size.is_some() {
            self.sizes[expr.id as usize] = size;
        }
    }

    fn set_entry(&mut self, expr: &Expr, entry: Option<EntrySize>) {
        if entry.is_some() {
            self.entries[expr.id as usize] = entry;
        }
    }

    fn select(&mut self, expr: &Expr, operand: &'a Expr, field: &str, test_only: bool) -> Range {
        let cost = self.cost(operand);
        if test_only {
            return cost;
        }
        let path = self.path(operand);
        self.set_path(expr, path, field);
        match self.checked.type_of(operand) {
            Type::Map(_) | Type::Object(_) | Type::Parameter(_) => cost.plus(Range::fixed(1)),
            _ => cost,
        }
    }

    fn list(&mut self, expr: &Expr, elements: &'a [Element]) -> Range {
        let mut cost = Range::fixed(charge::LIST);
        let mut value = Range::EMPTY;
        for element in elements {
            cost = cost.plus(self.cost(&element.value));
            value = value.union(self.size_or_unknown(&element.value));
        }
        if elements.is_empty() {
            value = Range::fixed(0);
        }
        let key = Range::fixed(1);
        self.set_entry(
            expr,
            Some(EntrySize {
                is_list: true,
                key,
                value,
            }),
        );
        cost
    }

    fn map(&mut self, expr: &Expr, entries: &'a [MapEntry]) -> Range {
        let mut cost = Range::fixed(charge::MAP);
        let (mut key, mut value) = (Range::EMPTY, Range::EMPTY);
        for entry in entries {
            cost = cost.plus(self.cost(&entry.key));
            cost = cost.plus(self.cost(&entry.value));
            key = key.union(self.size_or_unknown(&entry.key));
            value = value.union(self.size_or_unknown(&entry.value));
        }
        if entries.is_empty() {
            (key, value) = (Range::fixed(0), Range::fixed(0));
        }
        self.set_entry(
            expr,
            Some(EntrySize {
                is_list: false,
                key,
                value,
            }),
        );
        cost
    }

    fn push_local(&mut self, name: &str, value: &Expr) {
        let local = Local {
            name: name.to_owned(),
            path: self.path(value),
            size: self.size(value),
            entry: self.entry(value),
        };
        self.locals.push(local);
    }

    /// A variable that takes the items, keys or values of a range.
    fn push_loop(&mut self, name: &str, range: &Expr, part: Part) {
        let entry = self.entry(range);
        let is_list = match entry {
            Some(entry) => entry.is_list,
            None => matches!(self.checked.type_of(range), Type::List(_)),
        };
        let (step, size) = match (part, is_list) {
            (Part::Key, true) => ("@indices", entry.map(|it| it.key)),
            (Part::Key | Part::Single, false) => ("@keys", entry.map(|it| it.key)),
            (Part::Value | Part::Single, true) => ("@items", entry.map(|it| it.value)),
            (Part::Value, false) => ("@values", entry.map(|it| it.value)),
        };
        let mut path = self.path(range);
        path.push(step.to_owned());
        self.locals.push(Local {
            name: name.to_owned(),
            path,
            size,
            entry: None,
        });
    }

    fn bind(&mut self, expr: &Expr, it: &'a Comprehension) -> Range {
        let cost = self.cost(&it.range).plus(self.cost(&it.initial));
        self.push_local(&it.accumulator, &it.initial);
        let cost = cost.plus(self.cost(&it.result));
        let (size, entry) = (self.size(&it.result), self.entry(&it.result));
        self.locals.pop();
        self.set_size(expr, size);
        self.set_entry(expr, entry);
        cost
    }

    fn comprehension(&mut self, expr: &Expr, it: &'a Comprehension) -> Range {
        let mut cost = self.cost(&it.range).plus(self.cost(&it.initial));
        self.push_local(&it.accumulator, &it.initial);
        let depth = self.locals.len();
        match &it.second_variable {
            Some(second) => {
                self.push_loop(&it.variable, &it.range, Part::Key);
                self.push_loop(second, &it.range, Part::Value);
            }
            None => self.push_loop(&it.variable, &it.range, Part::Single),
        }
        let condition = self.cost(&it.condition);
        let step = self.cost(&it.step);
        let step_entry = self.entry(&it.step);
        self.locals.truncate(depth);
        cost = cost.plus(self.cost(&it.result));
        self.locals.pop();
        let count = self.size_or_unknown(&it.range);
        cost = cost.plus(count.times(step.plus(condition)));
        match &it.initial.kind {
            Kind::Literal(_) => {
                let size = self.size(&it.initial);
                self.set_size(expr, size);
            }
            Kind::List(_) | Kind::Map(_) => {
                self.set_size(expr, Some(count));
                self.set_entry(expr, step_entry);
            }
            _ => {}
        }
        cost
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    fn size(&mut self, expr: &Expr) -> Option<Range> {
        let at = expr.id as usize;
        if let Some(size) = self.sizes[at] {
            return Some(size);
        }
        if let Some(size) = written_size(expr) {
            return Some(Range::fixed(size));
        }
        if let Some(size) = self.declared_size(&self.path(expr)) {
            self.sizes[at] = Some(size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(expr)) {
            return Some(Range::fixed(1));
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|it| it.size),
            _ => None,
        }
    }

    fn entry(&self, expr: &Expr) -> Option<EntrySize> {
        if let Some(entry) = self.entries[expr.id as usize] {
            return Some(entry);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name).and_then(|it| it.entry),
            _ => None,
        }
    }

    /// What the schema says of the size of the value at a path. The first step is the variable;
    /// with a schema of rules, it is whatever a path without one starts with.
    fn declared_size(&self, path: &[String]) -> Option<Range> {
        let (first, steps) = path.split_first()?;
        let mut shape = match self.root {
            Some(shape) => shape,
            None => self.environment.variable_shape(first)?,
        };
        let mut steps = steps.iter();
        while let Some(step) = steps.next() {
            shape = match (step.as_str(), &shape.kind) {
                ("@items" | "@values", ShapeKind::List(of, _) | ShapeKind::Map(of)) => of,
                ("@items" | "@values" | "@indices", _) => return None,
                ("@keys", ShapeKind::Map(_)) => {
                    let max = u64::from(shape.key_bytes_max);
                    return steps.next().is_none().then_some(Range { min: 0, max });
                }
                // What lies in a map that is declared by type is as large under any name.
                (_, ShapeKind::Map(of)) if matches!(of.kind, ShapeKind::Declared(Type::Any)) => of,
                (name, _) => shape.field(name)?,
            };
        }
        Some(Range {
            min: 0,
            max: shape.elements_max,
        })
    }
}

#[derive(Clone, Copy)]
enum Part {
    Key,
    Value,
    Single,
}

/// The size of what stands in the text.
fn written_size(expr: &Expr) -> Option<u64> {
    Some(match &expr.kind {
        Kind::Literal(Literal::String(text)) => text.chars().count() as u64,
        Kind::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
        Kind::Literal(_) => 1,
        Kind::List(elements) => elements.len() as u64,
        Kind::Map(entries) => entries.len() as u64,
        _ => return None,
    })
}

fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => {
            true
        }
        other => {
            let (inner, is_optional) = other.unwrapped();
            is_optional && is_scalar(inner)
        }
    }
}

impl Environment {
    /// The shape of the data that the environment is about.
    fn data_shape(&self) -> Option<&Shape> {
        self.variable_shape("self").map(|it| &**it)
    }
}
