//! From a checked tree to what the evaluator runs.
//!
//! Constants are folded, variables become slots, patterns are compiled, and each call gets the
//! rule by which it is charged. Contract: cel-go `interpreter/planner.go` with its optimizations,
//! because they change what an expression costs.

use crate::ast::{Comprehension, Element, Expr, FieldEntry, Kind, Literal, MapEntry};
use crate::charge::Charge;
use crate::check::Checked;
use crate::evaluate::{Context, Fault, Meter};
use crate::function::{self, Native};
use crate::pattern;
use crate::types::Type;
use crate::value::{Key, Value};
use crate::work::Effort;
use regex::Regex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Something to evaluate.
#[derive(Debug)]
pub(crate) enum Node {
    Constant(Value<'static>),
    Attribute(Box<Attribute>),
    /// `has(...)`: whether the last field is there.
    Test(Box<Attribute>),
    And(Box<[Node; 2]>),
    Or(Box<[Node; 2]>),
    Equal(Box<[Node; 2]>),
    NotEqual(Box<[Node; 2]>),
    /// `x in [constants]`.
    Among(Box<(Node, BTreeSet<Key>)>),
    Call(Box<Call>),
    List(Vec<(Node, bool)>),
    Map(Vec<MapItem>),
    Object(Box<Object>),
    Loop(Box<Loop>),
    Bind(Box<Bind>),
    /// `optional.or(optional)`.
    OptionalOr(Box<[Node; 2]>),
    /// `optional.orValue(value)`.
    OptionalOrValue(Box<[Node; 2]>),
}

/// A value and the way from it through fields and indices.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) base: Base,
    pub(crate) qualifiers: Vec<Qualifier>,
}

/// Where an attribute starts.
#[derive(Debug)]
pub(crate) enum Base {
    /// A variable of the environment, by its place among those the program reads.
    Variable(usize),
    /// A variable of a loop, by its slot.
    Local(usize),
    /// Any other expression.
    Relative(Node),
    /// One of two attributes. Reading through a condition, or a plain attribute in one, is free.
    Conditional(Box<(Node, Attribute, Attribute)>),
}

/// One step of an attribute.
#[derive(Debug)]
pub(crate) struct Qualifier {
    pub(crate) key: QualifierKey,
    /// `a.?b` and `a[?b]`.
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) enum QualifierKey {
    Field(Arc<str>),
    Constant(Value<'static>),
    Attribute(Attribute),
    Node(Node),
}

/// A call of a function.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: &'static str,
    /// What may run it; more than one where types are not known.
    pub(crate) natives: Vec<Native>,
    pub(crate) arguments: Vec<Node>,
    pub(crate) charge: Charge,
    pub(crate) effort: Effort,
    /// The second argument, compiled, if it is a pattern that does not change.
    pub(crate) pattern: Option<Regex>,
    /// Runs even if an argument failed.
    pub(crate) takes_failures: bool,
}

/// An entry of a map to make.
#[derive(Debug)]
pub(crate) struct MapItem {
    pub(crate) key: Node,
    pub(crate) value: Node,
    pub(crate) optional: bool,
}

/// An object to make.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) name: Arc<str>,
    pub(crate) fields: Vec<(String, Node, bool)>,
}

/// A name for a value, which is evaluated when it is first read.
#[derive(Debug)]
pub(crate) struct Bind {
    pub(crate) slot: usize,
    pub(crate) value: Node,
    pub(crate) result: Node,
}

/// A loop over a list or a map. The first variable is in `slot`, the second in the one after it.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) range: Node,
    pub(crate) slot: usize,
    pub(crate) two_variables: bool,
    pub(crate) body: Body,
}

/// What a loop computes.
#[derive(Debug)]
pub(crate) enum Body {
    All(Node),
    Exists(Node),
    ExistsOne(Node),
    List {
        filter: Option<Node>,
        value: Node,
    },
    Map {
        filter: Option<Node>,
        /// Absent if the value is a map to merge.
        key: Option<Node>,
        value: Node,
    },
}

/// What a program runs.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) root: Node,
    pub(crate) slots: usize,
}

/// Plans a checked tree.
///
/// # Errors
/// A constant that cannot be converted, or a pattern that is none.
pub(crate) fn plan(checked: &Checked) -> Result<Plan, String> {
    let mut planner = Planner {
        checked,
        scopes: Vec::new(),
        slots: 0,
    };
    let root = planner.plan(&checked.ast.root)?;
    Ok(Plan {
        root,
        slots: planner.slots,
    })
}

struct Planner<'a> {
    checked: &'a Checked,
    /// Loop variables by name; the slot of each is its place.
    scopes: Vec<String>,
    slots: usize,
}

type Planned = Result<Node, String>;

impl Planner<'_> {
    fn plan(&mut self, expr: &Expr) -> Planned {
        match &expr.kind {
            Kind::Unspecified => Err("unsupported expr".to_owned()),
            Kind::Literal(literal) => Ok(Node::Constant(constant(literal))),
            Kind::Ident(name) => self.ident(expr, name),
            Kind::Select {
                operand,
                field,
                test_only,
            } => self.select(operand, field, *test_only),
            Kind::Call {
                function,
                target,
                arguments,
            } => self.call(expr, function, target.as_deref(), arguments),
            Kind::List(elements) => self.list(elements),
            Kind::Map(entries) => self.map(entries),
            Kind::Struct { name, fields } => self.object(name, fields),
            Kind::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    fn ident(&mut self, expr: &Expr, name: &str) -> Planned {
        let local = self.scopes.iter().rposition(|it| it == name);
        let base = match local {
            Some(slot) => Base::Local(slot),
            None => {
                let names = &self.checked.variables;
                match names.iter().position(|it| it == name) {
                    Some(at) => Base::Variable(at),
                    None => return self.type_constant(expr, name),
                }
            }
        };
        Ok(Node::Attribute(Box::new(Attribute {
            base,
            qualifiers: Vec::new(),
        })))
    }

    fn type_constant(&self, expr: &Expr, name: &str) -> Planned {
        match self.checked.type_of(expr) {
            Type::Type(Some(of)) => Ok(Node::Constant(Value::Type(of.clone()))),
            _ => Err(format!("reference to undefined type: {name}")),
        }
    }

    fn attribute(&mut self, expr: &Expr) -> Result<Attribute, String> {
        Ok(into_attribute(self.plan(expr)?))
    }

    fn select(&mut self, operand: &Expr, field: &str, test_only: bool) -> Planned {
        let mut attribute = Box::new(self.attribute(operand)?);
        attribute.qualifiers.push(Qualifier {
            key: QualifierKey::Field(field.into()),
            optional: false,
        });
        Ok(match test_only {
            true => Node::Test(attribute),
            false => Node::Attribute(attribute),
        })
    }

    fn call(
        &mut self,
        expr: &Expr,
        name: &str,
        target: Option<&Expr>,
        arguments: &[Expr],
    ) -> Planned {
        match (name, arguments) {
            ("_?_:_", [condition, truthy, falsy]) => {
                let condition = self.plan(condition)?;
                let branches = (condition, self.attribute(truthy)?, self.attribute(falsy)?);
                return Ok(Node::Attribute(Box::new(Attribute {
                    base: Base::Conditional(Box::new(branches)),
                    qualifiers: Vec::new(),
                })));
            }
            ("_[_]", [operand, index]) => return self.index(operand, index, false),
            ("_[?_]", [operand, index]) => return self.index(operand, index, true),
            ("_?._", [operand, field]) => return self.index(operand, field, true),
            _ => {}
        }
        let all = target.into_iter().chain(arguments);
        let mut planned = all
            .map(|argument| self.plan(argument))
            .collect::<Result<Vec<_>, _>>()?;
        let overloads = &self.checked.overloads[expr.id as usize];
        let overload = match overloads.as_slice() {
            [one] => *one,
            _ => "",
        };
        let pair = |planned: &mut Vec<Node>| {
            let second = planned.pop().expect("an operator has two operands");
            let first = planned.pop().expect("an operator has two operands");
            Box::new([first, second])
        };
        Ok(match name {
            "_&&_" => Node::And(pair(&mut planned)),
            "_||_" => Node::Or(pair(&mut planned)),
            "_==_" => Node::Equal(pair(&mut planned)),
            "_!=_" => Node::NotEqual(pair(&mut planned)),
            "or" if planned.len() == 2 => Node::OptionalOr(pair(&mut planned)),
            "orValue" if planned.len() == 2 => Node::OptionalOrValue(pair(&mut planned)),
            "@in" if overload == "in_list" => self.membership(planned)?,
            _ => plan_call(name, overload, overloads, planned)?,
        })
    }

    fn index(&mut self, operand: &Expr, index: &Expr, optional: bool) -> Planned {
        let mut attribute = Box::new(self.attribute(operand)?);
        let key = match self.plan(index)? {
            Node::Constant(Value::String(text)) => QualifierKey::Field((&*text).into()),
            Node::Constant(value) => QualifierKey::Constant(value),
            Node::Attribute(attribute) => QualifierKey::Attribute(*attribute),
            other => QualifierKey::Node(other),
        };
        attribute.qualifiers.push(Qualifier { key, optional });
        Ok(Node::Attribute(attribute))
    }

    /// Looking for something in a list of constants takes no walk.
    fn membership(&self, mut planned: Vec<Node>) -> Planned {
        let keys = match &planned[1] {
            Node::Constant(Value::List(list)) if list.len() == 0 => {
                return Ok(Node::Constant(Value::Bool(false)));
            }
            Node::Constant(Value::List(list)) => {
                let items = list.iter().collect::<Result<Vec<_>, _>>();
                let items = items.map_err(|fault| fault.to_string())?;
                // A float among them needs the comparison of numbers.
                let plain = |it: &Value<'_>| {
                    matches!(
                        it,
                        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::String(_)
                    )
                };
                items
                    .iter()
                    .map(|it| Key::from_value(it).filter(|_| plain(it)))
                    .collect::<Option<BTreeSet<Key>>>()
            }
            _ => None,
        };
        match keys {
            Some(keys) => {
                planned.pop();
                let wanted = planned.pop().expect("`in` has two operands");
                Ok(Node::Among(Box::new((wanted, keys))))
            }
            None => plan_call("@in", "in_list", &["in_list"], planned),
        }
    }

    fn list(&mut self, elements: &[Element]) -> Planned {
        let mut nodes = Vec::with_capacity(elements.len());
        for element in elements {
            nodes.push((self.plan(&element.value)?, element.optional));
        }
        let folded = nodes.iter().map(|(node, optional)| match node {
            Node::Constant(value) if !optional => Some(value.clone()),
            _ => None,
        });
        match folded.collect::<Option<Vec<_>>>() {
            Some(items) => Ok(Node::Constant(Value::list(items))),
            None => Ok(Node::List(nodes)),
        }
    }

    fn map(&mut self, entries: &[MapEntry]) -> Planned {
        let mut items = Vec::with_capacity(entries.len());
        for entry in entries {
            items.push(MapItem {
                key: self.plan(&entry.key)?,
                value: self.plan(&entry.value)?,
                optional: entry.optional,
            });
        }
        let is_constant = |node: &Node| matches!(node, Node::Constant(_));
        let foldable = items
            .iter()
            .all(|it| is_constant(&it.key) && is_constant(&it.value) && !it.optional);
        let node = Node::Map(items);
        // A key that a map cannot have is a mistake of each evaluation.
        match foldable {
            true => fold(&node).or(Ok(node)),
            false => Ok(node),
        }
    }

    fn object(&mut self, name: &str, fields: &[FieldEntry]) -> Planned {
        let mut planned = Vec::with_capacity(fields.len());
        for field in fields {
            let value = self.plan(&field.value)?;
            planned.push((field.field.clone(), value, field.optional));
        }
        Ok(Node::Object(Box::new(Object {
            name: name.into(),
            fields: planned,
        })))
    }

    fn scope<T>(&mut self, names: &[&str], inner: impl FnOnce(&mut Self) -> T) -> T {
        let depth = self.scopes.len();
        self.scopes.extend(names.iter().map(|it| (*it).to_owned()));
        self.slots = self.slots.max(self.scopes.len());
        let result = inner(self);
        self.scopes.truncate(depth);
        result
    }

    fn comprehension(&mut self, it: &Comprehension) -> Planned {
        let is_bind = matches!(&it.range.kind, Kind::List(elements) if elements.is_empty())
            && matches!(it.condition.kind, Kind::Literal(Literal::Bool(false)));
        let slot = self.scopes.len();
        if is_bind {
            let value = self.plan(&it.initial)?;
            let result = self.scope(&[&it.accumulator], |this| this.plan(&it.result))?;
            return Ok(Node::Bind(Box::new(Bind {
                slot,
                value,
                result,
            })));
        }
        let range = self.plan(&it.range)?;
        let mut names: Vec<&str> = vec![&it.variable];
        names.extend(it.second_variable.as_deref());
        let body = self.scope(&names, |this| this.body(it))?;
        Ok(Node::Loop(Box::new(Loop {
            range,
            slot,
            two_variables: it.second_variable.is_some(),
            body,
        })))
    }

    fn body(&mut self, it: &Comprehension) -> Result<Body, String> {
        let unknown = || "unsupported comprehension".to_owned();
        let Kind::Call {
            function,
            arguments,
            ..
        } = &it.step.kind
        else {
            return Err(unknown());
        };
        let counts = matches!(it.initial.kind, Kind::Literal(Literal::Int(_)));
        match (function.as_ref(), arguments.as_slice()) {
            ("_&&_", [_, predicate]) => self.plan(predicate).map(Body::All),
            ("_||_", [_, predicate]) => self.plan(predicate).map(Body::Exists),
            ("_?_:_", [predicate, ..]) if counts => self.plan(predicate).map(Body::ExistsOne),
            ("_?_:_", [filter, step, _]) => {
                let filter = self.plan(filter)?;
                self.collect(Some(filter), step)
            }
            _ => self.collect(None, &it.step),
        }
    }

    fn collect(&mut self, filter: Option<Node>, step: &Expr) -> Result<Body, String> {
        let unknown = || "unsupported comprehension".to_owned();
        let Kind::Call {
            function,
            arguments,
            ..
        } = &step.kind
        else {
            return Err(unknown());
        };
        match (function.as_ref(), arguments.as_slice()) {
            ("_+_", [_, single]) => match &single.kind {
                Kind::List(elements) if elements.len() == 1 => {
                    let value = self.plan(&elements[0].value)?;
                    Ok(Body::List { filter, value })
                }
                _ => Err(unknown()),
            },
            ("cel.@mapInsert", [_, rest @ ..]) => {
                let mut planned = rest
                    .iter()
                    .map(|part| self.plan(part))
                    .collect::<Result<Vec<_>, _>>()?;
                let value = planned.pop().ok_or_else(unknown)?;
                Ok(Body::Map {
                    filter,
                    key: planned.pop(),
                    value,
                })
            }
            _ => Err(unknown()),
        }
    }
}

/// A node as the start of an attribute.
fn into_attribute(node: Node) -> Attribute {
    match node {
        Node::Attribute(attribute) => *attribute,
        other => Attribute {
            base: Base::Relative(other),
            qualifiers: Vec::new(),
        },
    }
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(flag) => Value::Bool(*flag),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::String(text) => Value::owned_text(text.as_str()),
        Literal::Bytes(bytes) => Value::Bytes(bytes.as_slice().into()),
    }
}

fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool"
            | "bytes"
            | "double"
            | "duration"
            | "dyn"
            | "int"
            | "string"
            | "timestamp"
            | "type"
            | "uint"
    )
}

fn plan_call(
    name: &str,
    overload: &'static str,
    overloads: &[&'static str],
    arguments: Vec<Node>,
) -> Planned {
    let function = function::find(name).ok_or_else(|| format!("no such overload: {name}"))?;
    let mut natives: Vec<Native> = Vec::new();
    for candidate in &function.overloads {
        let known = natives
            .iter()
            .any(|it| std::ptr::fn_addr_eq(*it, candidate.native));
        if overloads.contains(&candidate.id) && !known {
            natives.push(candidate.native);
        }
    }
    let pattern = match (name, arguments.get(1)) {
        ("matches" | "find" | "findAll", Some(Node::Constant(Value::String(text)))) => {
            Some(pattern::compile(text).map_err(|error| error.to_string())?)
        }
        _ => None,
    };
    let foldable =
        is_conversion(name) && arguments.len() == 1 && matches!(arguments[0], Node::Constant(_));
    let node = Node::Call(Box::new(Call {
        function: function.name,
        natives,
        arguments,
        charge: Charge::of(name, overload),
        effort: Effort::of(name),
        pattern,
        takes_failures: name == "@not_strictly_false",
    }));
    match foldable {
        true => fold(&node),
        false => Ok(node),
    }
}

/// Evaluates a node that reads no variable.
fn fold(node: &Node) -> Planned {
    let mut context = Context::new(&[], 0, Meter::new(u64::MAX));
    let value = context.evaluate(node);
    value
        .map(Node::Constant)
        .map_err(|fault: Fault| fault.to_string())
}
