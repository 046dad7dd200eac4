//! Runs a plan.
//!
//! Contract: cel-go `interpreter`: errors are values that `&&`, `||`, `all` and `exists` absorb
//! where the other side decides; every step is counted, and the first one past the limit ends the
//! evaluation, whatever surrounds it. Recursion follows the plan, whose depth the parser bounds.

mod attribute;
mod repeat;

use crate::charge;
use crate::plan::{Base, Call, MapItem, Node, Object};
use crate::value::{Entries, Key, Map, Text, Value};
use crate::work::Work;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// In the words of upstream.
    Message(Cow<'static, str>),
    /// The types of the arguments fit no overload.
    NoOverload,
    /// The evaluation costs too much; nothing absorbs this.
    OverLimit,
}

impl Fault {
    pub(crate) fn new(message: &'static str) -> Fault {
        Fault::Message(Cow::Borrowed(message))
    }

    pub(crate) fn no_overload() -> Fault {
        Fault::NoOverload
    }
}

impl From<String> for Fault {
    fn from(message: String) -> Fault {
        Fault::Message(Cow::Owned(message))
    }
}

impl From<crate::Error> for Fault {
    fn from(error: crate::Error) -> Fault {
        match error {
            crate::Error::Evaluation(message) => Fault::from(message),
            crate::Error::CallLimit | crate::Error::Budget => Fault::OverLimit,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Fault::Message(message) => message,
            Fault::NoOverload => "no such overload",
            Fault::OverLimit => "operation cancelled: actual cost limit exceeded",
        })
    }
}

/// Counts what an evaluation costs.
#[derive(Debug)]
pub(crate) struct Meter {
    cost: u64,
    limit: u64,
    patterns: HashMap<String, regex::Regex>,
    pub(crate) work: Work,
}

/// How many patterns that are no constants one evaluation may compile. Compiling is not charged.
const PATTERNS_MAX: usize = 100;

/// How many bytes a function may make for each unit of cost that is left. Walking text costs a
/// tenth of a unit for each character.
const BYTES_PER_COST: u64 = 10;

impl Meter {
    pub(crate) fn new(limit: u64) -> Meter {
        Meter {
            cost: 0,
            limit,
            patterns: HashMap::new(),
            work: Work::default(),
        }
    }

    pub(crate) fn cost(&self) -> u64 {
        self.cost
    }

    pub(crate) fn charge(&mut self, cost: u64) -> Result<(), Fault> {
        self.cost = self.cost.saturating_add(cost);
        match self.cost > self.limit {
            true => Err(Fault::OverLimit),
            false => Ok(()),
        }
    }

    /// Whether two values are equal; what cannot be compared is not.
    pub(crate) fn same(&self, a: &Value<'_>, b: &Value<'_>) -> Result<bool, Fault> {
        match crate::value::equal_within(a, b, &self.work) {
            Err(Fault::OverLimit) => Err(Fault::OverLimit),
            outcome => Ok(outcome.unwrap_or(false)),
        }
    }

    /// Refuses to make something larger than what is left can pay for.
    pub(crate) fn allow_bytes(&self, bytes: u64) -> Result<(), Fault> {
        self.allow(bytes / BYTES_PER_COST)
    }

    /// Refuses work that would cost more than what is left.
    pub(crate) fn allow(&self, cost: u64) -> Result<(), Fault> {
        match cost > self.limit.saturating_sub(self.cost) {
            true => Err(Fault::OverLimit),
            false => Ok(()),
        }
    }

    /// A pattern that is known only now.
    pub(crate) fn pattern(&mut self, text: &str) -> Result<&regex::Regex, Fault> {
        if !self.patterns.contains_key(text) {
            if self.patterns.len() >= PATTERNS_MAX {
                return Err(Fault::OverLimit);
            }
            let compiled = crate::pattern::compile(text);
            let compiled = compiled.map_err(|error| Fault::from(error.to_string()))?;
            self.patterns.insert(text.to_owned(), compiled);
        }
        Ok(&self.patterns[text])
    }
}

/// What a loop variable holds.
#[derive(Clone, Debug)]
enum Slot<'p, 'v> {
    Empty,
    /// Not evaluated yet.
    Pending(&'p Node),
    Value(Value<'v>),
    Failed(Fault),
}

/// One evaluation under way.
pub(crate) struct Context<'p, 'v> {
    /// The variables that the plan reads, in its order, with their values.
    variables: &'p [(&'p str, Option<&'p Value<'v>>)],
    slots: Vec<Slot<'p, 'v>>,
    meter: Meter,
}

type Outcome<'v> = Result<Value<'v>, Fault>;

impl<'p, 'v> Context<'p, 'v> {
    pub(crate) fn new(
        variables: &'p [(&'p str, Option<&'p Value<'v>>)],
        slots: usize,
        meter: Meter,
    ) -> Context<'p, 'v> {
        Context {
            variables,
            slots: vec![Slot::Empty; slots],
            meter,
        }
    }

    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    pub(crate) fn evaluate(&mut self, node: &'p Node) -> Outcome<'v> {
        match node {
            Node::Constant(value) => Ok(value.clone()),
            Node::Attribute(attribute) => {
                let value = self.resolve(attribute);
                if !matches!(attribute.base, Base::Conditional(_)) {
                    self.meter.charge(1)?;
                }
                value
            }
            Node::Test(attribute) => self.test(attribute),
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::Equal(operands) => self.equal(operands, true),
            Node::NotEqual(operands) => self.equal(operands, false),
            Node::Among(among) => {
                let wanted = self.evaluate(&among.0)?;
                let key = Key::from_value(&wanted);
                Ok(Value::Bool(key.is_some_and(|key| among.1.contains(&key))))
            }
            Node::Call(call) => self.call(call),
            Node::List(elements) => self.list(elements),
            Node::Map(items) => self.map(items),
            Node::Object(object) => self.object(object),
            Node::Loop(repeat) => self.repeat(repeat),
            Node::Bind(bind) => {
                self.slots[bind.slot] = Slot::Pending(&bind.value);
                let result = self.evaluate(&bind.result);
                self.slots[bind.slot] = Slot::Empty;
                result
            }
            Node::OptionalOr(operands) => match self.evaluate(&operands[0])? {
                Value::Optional(None) => self.evaluate(&operands[1]),
                other => Ok(other),
            },
            Node::OptionalOrValue(operands) => match self.evaluate(&operands[0])? {
                Value::Optional(None) => self.evaluate(&operands[1]),
                Value::Optional(Some(value)) => Ok(Value::clone(&value)),
                other => Ok(other),
            },
        }
    }

    /// `&&` and `||`: `decisive` ends them, and an error stands only if nothing does.
    fn logical(&mut self, terms: &'p [Node; 2], decisive: bool) -> Outcome<'v> {
        let mut failed = None;
        for term in terms {
            match self.evaluate(term) {
                Ok(Value::Bool(flag)) if flag == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failed = failed.or(Some(Fault::NoOverload)),
                Err(Fault::OverLimit) => return Err(Fault::OverLimit),
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        match failed {
            Some(fault) => Err(fault),
            None => Ok(Value::Bool(!decisive)),
        }
    }

    fn operand(&mut self, node: &'p Node) -> Result<Outcome<'v>, Fault> {
        match self.evaluate(node) {
            Err(Fault::OverLimit) => Err(Fault::OverLimit),
            outcome => Ok(outcome),
        }
    }

    fn equal(&mut self, operands: &'p [Node; 2], wanted: bool) -> Outcome<'v> {
        let left = self.operand(&operands[0])?;
        let right = self.operand(&operands[1])?;
        let cost = charge::equality(left.as_ref().ok(), right.as_ref().ok(), wanted);
        self.meter.charge(cost)?;
        let (left, right) = (left?, right?);
        match crate::value::equal_within(&left, &right, &self.meter.work) {
            Ok(same) => Ok(Value::Bool(same == wanted)),
            Err(Fault::OverLimit) => Err(Fault::OverLimit),
            // What cannot be compared is not equal.
            Err(_) if !wanted => Ok(Value::Bool(true)),
            Err(fault) => Err(fault),
        }
    }

    fn call(&mut self, call: &'p Call) -> Outcome<'v> {
        match call.arguments.as_slice() {
            [] => self.apply(call, &mut []),
            [one] => {
                let mut arguments = [self.operand(one)?];
                self.apply(call, &mut arguments)
            }
            [one, two] => {
                let mut arguments = [self.operand(one)?, self.operand(two)?];
                self.apply(call, &mut arguments)
            }
            many => {
                let mut arguments = Vec::with_capacity(many.len());
                for node in many {
                    // Here, and only here, the first failure ends the call before it is charged.
                    arguments.push(Ok(self.evaluate(node)?));
                }
                self.apply(call, &mut arguments)
            }
        }
    }

    fn apply(&mut self, call: &'p Call, outcomes: &mut [Outcome<'v>]) -> Outcome<'v> {
        let failed = outcomes.iter().find_map(|it| it.as_ref().err().cloned());
        if call.takes_failures {
            self.meter.charge(1)?;
            return match outcomes {
                [Ok(Value::Bool(flag))] => Ok(Value::Bool(*flag)),
                _ => Ok(Value::Bool(true)),
            };
        }
        let result = match failed {
            Some(fault) => Err(fault),
            None => {
                let mut arguments: [Value<'v>; 4] = std::array::from_fn(|_| Value::Null);
                for (slot, outcome) in arguments.iter_mut().zip(outcomes.iter_mut()) {
                    *slot = std::mem::replace(outcome, Ok(Value::Null))?;
                }
                let given = &arguments[..outcomes.len()];
                let effort: u64 = given.iter().map(|it| call.effort.with(it)).sum();
                self.meter.work.spend(effort)?;
                let charged: [Option<&Value<'v>>; 4] = arguments.each_ref().map(Some);
                let charged = &charged[..outcomes.len()];
                // What can be charged before the call is: nobody waits for what is refused anyway.
                if !call.charge.is_by_result() {
                    self.meter.charge(call.charge.cost(charged, None))?;
                }
                let result = self.run(call, given);
                if let Ok(made) = &result {
                    self.meter.work.spend(call.effort.with(made))?;
                }
                if call.charge.is_by_result() && result != Err(Fault::OverLimit) {
                    let cost = call.charge.cost(charged, result.as_ref().ok());
                    self.meter.charge(cost)?;
                }
                return result;
            }
        };
        let charged: Vec<Option<&Value<'v>>> = outcomes.iter().map(|it| it.as_ref().ok()).collect();
        self.meter.charge(call.charge.cost(&charged, None))?;
        result
    }

    fn run(&mut self, call: &'p Call, arguments: &[Value<'v>]) -> Outcome<'v> {
        if let Some(pattern) = &call.pattern {
            return crate::library::regex::run(call.function, pattern, arguments, &self.meter.work);
        }
        for native in &call.natives {
            match native(arguments, &mut self.meter) {
                Err(Fault::NoOverload) => {}
                outcome => return outcome,
            }
        }
        Err(no_overload(call.function, arguments))
    }

    fn list(&mut self, elements: &'p [(Node, bool)]) -> Outcome<'v> {
        let mut items = Vec::with_capacity(elements.len());
        let read = self.elements(elements, &mut items);
        if read != Err(Fault::OverLimit) {
            self.meter.charge(charge::LIST)?;
        }
        read?;
        Ok(Value::list(items))
    }

    fn elements(
        &mut self,
        elements: &'p [(Node, bool)],
        items: &mut Vec<Value<'v>>,
    ) -> Result<(), Fault> {
        for (node, optional) in elements {
            let value = self.evaluate(node)?;
            match (optional, value) {
                (false, value) => items.push(value),
                (true, Value::Optional(value)) => items.extend(value.map(|it| Value::clone(&it))),
                (true, other) => {
                    return Err(Fault::from(format!(
                        "cannot initialize optional list element from non-optional value {other}"
                    )));
                }
            }
        }
        Ok(())
    }

    fn map(&mut self, items: &'p [MapItem]) -> Outcome<'v> {
        let mut entries = Entries::new();
        let read = self.entries(items, &mut entries);
        if read != Err(Fault::OverLimit) {
            self.meter.charge(charge::MAP)?;
        }
        read?;
        Ok(Value::Map(Map::Owned(entries.into())))
    }

    fn entries(&mut self, items: &'p [MapItem], entries: &mut Entries<'v>) -> Result<(), Fault> {
        for item in items {
            let key = self.evaluate(&item.key)?;
            let value = self.evaluate(&item.value)?;
            let Some(index) = Key::from_value(&key).filter(|_| !matches!(key, Value::Double(_)))
            else {
                let of = key.type_of().name();
                return Err(Fault::from(format!("unsupported key type: {of}")));
            };
            match (item.optional, value) {
                (false, value) => {
                    entries.insert(index, value);
                }
                (true, Value::Optional(Some(value))) => {
                    entries.insert(index, Value::clone(&value));
                }
                (true, Value::Optional(None)) => {
                    entries.remove(&index);
                }
                (true, other) => return Err(not_optional(&key.to_string(), &other)),
            }
        }
        Ok(())
    }

    fn object(&mut self, object: &'p Object) -> Outcome<'v> {
        let mut fields = BTreeMap::new();
        let read = self.fields(object, &mut fields);
        if read != Err(Fault::OverLimit) {
            self.meter.charge(charge::OBJECT)?;
        }
        read?;
        let name = object.name.clone();
        Ok(Value::Map(Map::Made(
            crate::value::Made { name, fields }.into(),
        )))
    }

    fn fields(
        &mut self,
        object: &'p Object,
        fields: &mut BTreeMap<String, Value<'v>>,
    ) -> Result<(), Fault> {
        for (name, node, optional) in &object.fields {
            match (optional, self.evaluate(node)?) {
                (false, value) => {
                    fields.insert(name.clone(), value);
                }
                (true, Value::Optional(Some(value))) => {
                    fields.insert(name.clone(), Value::clone(&value));
                }
                (true, Value::Optional(None)) => {
                    fields.remove(name);
                }
                (true, other) => return Err(not_optional(name, &other)),
            }
        }
        Ok(())
    }
}

fn not_optional(key: &str, value: &Value<'_>) -> Fault {
    Fault::from(format!(
        "cannot initialize optional entry '{key}' from non-optional value {value}"
    ))
}

/// Operators say less about what does not fit than functions do.
fn no_overload(function: &str, arguments: &[Value<'_>]) -> Fault {
    if function.contains('_') || function.starts_with('@') {
        return Fault::NoOverload;
    }
    if matches!(function, "size" | "matches" | "sort" | "type") {
        return Fault::from(format!("no such overload: {function}"));
    }
    let types: Vec<String> = arguments.iter().map(|it| it.type_of().name()).collect();
    Fault::from(format!(
        "no such overload: {function}({})",
        types.join(", ")
    ))
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Value<'_>) -> bool {
        crate::value::equal(self, other).unwrap_or(false)
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text::Owned(text.into())
    }
}
