//! Runs compiled rules over an object.
//!
//! Contract: the walk of upstream's `schema/cel/validation.go`: rules of a node, then those of its
//! `allOf`, then those below; when the budget is used up nothing more is run.

use cel::{Bindings, Budget, CALL_COST_MAX, Error};
use object::field::{FieldError, Mistake, Path};
use object::{Map, Value};

use super::{MESSAGE_BYTES_MAX, Node, OBJECT_COST_MAX, Rule, Verdict};
use crate::structural::{Correlated, Structural};

const OUT_OF_BUDGET: &str = "validation failed due to running out of cost budget, no further \
                             validation rules will be run";

/// Runs the rules over an object and what it replaces.
pub(super) fn objects(node: &Node, schema: &Structural, new: &Map, old: Option<&Map>) -> Verdict {
    let correlated = old.map(|old| Correlated::objects(schema, new, old));
    let ratchet = Ratchet {
        current: correlated.as_ref(),
        nearest: None,
    };
    let mut walk = Walk::new();
    let place = Place {
        node,
        schema,
        new: Data::Map(new),
        old: old.map(Data::Map),
    };
    walk.visit(&place, &ratchet, &Path::root());
    walk.verdict
}

/// Runs the rules over a value at a path.
pub(super) fn value(
    node: &Node,
    schema: &Structural,
    new: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
) -> Vec<FieldError> {
    let mut walk = Walk::new();
    let place = Place {
        node,
        schema,
        new: Data::Value(new),
        old: old.map(Data::Value),
    };
    let ratchet = Ratchet {
        current: None,
        nearest: None,
    };
    walk.visit(&place, &ratchet, path);
    walk.verdict.errors
}

/// A value that rules look at.
#[derive(Clone, Copy)]
enum Data<'a> {
    Map(&'a Map),
    Value(&'a Value),
}

impl<'a> Data<'a> {
    fn as_map(self) -> Option<&'a Map> {
        match self {
            Data::Map(map) => Some(map),
            Data::Value(value) => value.as_object(),
        }
    }

    fn as_array(self) -> Option<&'a [Value]> {
        match self {
            Data::Map(_) => None,
            Data::Value(value) => value.as_array(),
        }
    }

    fn is_null(self) -> bool {
        matches!(self, Data::Value(Value::Null))
    }

    fn field(self, name: &str) -> Option<Data<'a>> {
        self.as_map()?.get(name).map(Data::Value)
    }

    fn seen(self, node: &'a Node) -> Result<cel::Value<'a>, Error> {
        match self {
            Data::Map(map) => Ok(cel::Value::Map(cel::Map::Data(map, &node.shape))),
            Data::Value(value) => cel::Value::from_data(value, &node.shape),
        }
    }
}

/// The rules of a node, its schema, and the values there.
struct Place<'a> {
    node: &'a Node,
    schema: &'a Structural,
    new: Data<'a>,
    old: Option<Data<'a>>,
}

/// What is known of whether a part changed.
struct Ratchet<'c> {
    current: Option<&'c Correlated<'c>>,
    nearest: Option<&'c Correlated<'c>>,
}

impl Ratchet<'_> {
    /// Whether a broken rule here was broken before.
    fn forgives(&self) -> bool {
        self.current
            .or(self.nearest)
            .is_some_and(Correlated::is_unchanged)
    }
}

struct Walk {
    budget: Budget,
    is_stopped: bool,
    verdict: Verdict,
}

impl Walk {
    fn new() -> Walk {
        Walk {
            budget: Budget::new(CALL_COST_MAX, OBJECT_COST_MAX),
            is_stopped: false,
            verdict: Verdict::default(),
        }
    }

    fn visit(&mut self, place: &Place<'_>, ratchet: &Ratchet<'_>, path: &Path<'_>) {
        if place.new.is_null() || self.is_stopped {
            return;
        }
        self.run_rules(place, ratchet, path);
        for branch in &place.node.all_of {
            if self.is_stopped {
                return;
            }
            let place = Place {
                node: branch,
                ..*place
            };
            let ratchet = Ratchet {
                current: None,
                nearest: ratchet.nearest,
            };
            self.visit(&place, &ratchet, path);
        }
        if let Some(map) = place.new.as_map() {
            self.visit_map(place, map, ratchet, path);
        } else if let Some(items) = place.new.as_array() {
            self.visit_list(place, items, ratchet, path);
        }
    }

    fn visit_map(&mut self, place: &Place<'_>, map: &Map, ratchet: &Ratchet<'_>, path: &Path<'_>) {
        let node = place.node;
        if let Some(values) = node.additional.as_deref() {
            for (key, value) in map.iter() {
                self.visit_field(place, values, (key, value), ratchet, &path.key(key));
            }
        }
        for (name, below) in &node.properties {
            if let Some(value) = map.get(name) {
                self.visit_field(place, below, (name, value), ratchet, &path.field(name));
            }
        }
    }

    fn visit_field(
        &mut self,
        place: &Place<'_>,
        node: &Node,
        field: (&str, &Value),
        ratchet: &Ratchet<'_>,
        path: &Path<'_>,
    ) {
        let (name, value) = field;
        let Some(schema) = place.schema.key(name) else {
            return;
        };
        let place = Place {
            node,
            schema,
            new: Data::Value(value),
            old: place.old.and_then(|old| old.field(name)),
        };
        let Some(current) = ratchet.current else {
            return self.visit(&place, ratchet, path);
        };
        // The kind of an object is not held against it.
        if ratchet.nearest.is_none() && matches!(name, "apiVersion" | "kind") {
            let unknown = Ratchet {
                current: None,
                nearest: None,
            };
            return self.visit(&place, &unknown, path);
        }
        let correlated = current
            .old_field(name)
            .map(|old| Correlated::new(schema, value, old));
        let ratchet = Ratchet {
            current: correlated.as_ref(),
            nearest: Some(current),
        };
        self.visit(&place, &ratchet, path);
    }

    fn visit_list(
        &mut self,
        place: &Place<'_>,
        items: &[Value],
        ratchet: &Ratchet<'_>,
        path: &Path<'_>,
    ) {
        let (Some(node), Some(schema)) =
            (place.node.items.as_deref(), place.schema.items.as_deref())
        else {
            return;
        };
        // Old items are found by their keys only.
        let old = match place.old {
            Some(Data::Value(old)) => Some(Correlated::new(place.schema, old, old)),
            _ => None,
        };
        let old_items = old.as_ref().and_then(Correlated::old_items);
        let current_items = ratchet.current.and_then(Correlated::old_items);
        for (index, item) in items.iter().enumerate() {
            let old = old_items.as_ref().and_then(|it| it.get(item));
            let place = Place {
                node,
                schema,
                new: Data::Value(item),
                old: old.map(Data::Value),
            };
            let path = path.index(index);
            let Some(current) = ratchet.current else {
                self.visit(&place, ratchet, &path);
                continue;
            };
            let correlated = current_items
                .as_ref()
                .and_then(|it| it.get(item))
                .map(|old| Correlated::new(schema, item, old));
            let ratchet = Ratchet {
                current: correlated.as_ref(),
                nearest: Some(current),
            };
            self.visit(&place, &ratchet, &path);
        }
    }

    fn run_rules(&mut self, place: &Place<'_>, ratchet: &Ratchet<'_>, path: &Path<'_>) {
        let node = place.node;
        if node.rules.is_empty() {
            return;
        }
        if self.budget.remaining() == 0 {
            return self.stop(node, path, OUT_OF_BUDGET);
        }
        let old = place.old.filter(|old| !old.is_null());
        let old_value = old.map(|old| old.seen(node));
        for rule in &node.rules {
            if self.is_stopped {
                return;
            }
            let Some(program) = &rule.program else {
                continue;
            };
            let program = match program {
                Ok(program) => program,
                Err(why) => {
                    let detail = format!("rule compile error: {why}");
                    self.fail(node, path, &detail);
                    continue;
                }
            };
            if rule.uses_old_self && old.is_none() && !rule.optional_old_self {
                continue;
            }
            let bindings = bindings(place.new.seen(node), &old_value, rule.optional_old_self);
            let outcome = match bindings {
                Ok(bindings) => program.evaluate(&bindings, &mut self.budget),
                Err(error) => Err(error),
            };
            match outcome {
                Ok(value) if value.as_bool() == Some(true) => {}
                Ok(_) => self.broken(rule, place, &old_value, ratchet, path),
                Err(error) => self.failed(rule, node, path, &error),
            }
        }
    }

    fn failed(&mut self, rule: &Rule, node: &Node, path: &Path<'_>, error: &Error) {
        let name = &rule.name;
        match error {
            Error::Budget => self.stop(node, path, OUT_OF_BUDGET),
            Error::CallLimit => {
                let detail = format!(
                    "'{error}': no further validation rules will be run due to call cost exceeds \
                     limit for rule: {name}"
                );
                self.stop(node, path, &detail);
            }
            Error::Evaluation(message) if message.starts_with("no such overload") => {
                let detail = format!(
                    "'{message}': call arguments did not match a supported operator, function or \
                     macro signature for rule: {name}"
                );
                self.fail(node, path, &detail);
            }
            Error::Evaluation(message) => {
                self.fail(node, path, &format!("{message} evaluating rule: {name}"));
            }
        }
    }

    /// Reports a rule that does not hold.
    fn broken(
        &mut self,
        rule: &Rule,
        place: &Place<'_>,
        old: &Option<Result<cel::Value<'_>, Error>>,
        ratchet: &Ratchet<'_>,
        path: &Path<'_>,
    ) {
        let detail = match self.message(rule, place, old) {
            Ok(Some(message)) => message,
            Ok(None) if rule.has_message => rule.name.clone(),
            Ok(None) => format!("failed rule: {}", rule.name),
            Err(why) => {
                let blamed = blamed(path, &rule.field_path);
                let node = place.node;
                self.add(type_error(node, blamed, &why), rule, ratchet);
                self.is_stopped = true;
                return;
            }
        };
        let field = blamed(path, &rule.field_path);
        let error = for_reason(rule.reason.as_deref(), field, place, detail);
        self.add(error, rule, ratchet);
    }

    fn add(&mut self, error: FieldError, rule: &Rule, ratchet: &Ratchet<'_>) {
        match !rule.uses_old_self && ratchet.forgives() {
            true => self.verdict.warnings.push(error.to_string()),
            false => self.verdict.errors.push(error),
        }
    }

    /// The message that the rule's expression makes, if it makes a good one.
    fn message(
        &mut self,
        rule: &Rule,
        place: &Place<'_>,
        old: &Option<Result<cel::Value<'_>, Error>>,
    ) -> Result<Option<String>, String> {
        let Some(program) = &rule.message_program else {
            return Ok(None);
        };
        let Ok(bindings) = bindings(place.new.seen(place.node), old, false) else {
            return Ok(None);
        };
        match program.evaluate(&bindings, &mut self.budget) {
            Ok(value) => {
                let text = value.as_text().unwrap_or_default().trim();
                let is_good =
                    !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
                Ok(is_good.then(|| text.to_owned()))
            }
            Err(Error::Evaluation(_)) => Ok(None),
            Err(Error::Budget) => Err(
                "messageExpression evaluation failed due to running out of cost budget, no \
                 further validation rules will be run"
                    .to_owned(),
            ),
            Err(Error::CallLimit) => Err(format!(
                "no further validation rules will be run due to call cost exceeds limit for \
                 messageExpression: {}",
                object::field::quote(program.text())
            )),
        }
    }

    fn fail(&mut self, node: &Node, path: &Path<'_>, detail: &str) {
        let error = type_error(node, blamed(path, ""), detail);
        self.verdict.errors.push(error);
    }

    fn stop(&mut self, node: &Node, path: &Path<'_>, detail: &str) {
        self.fail(node, path, detail);
        self.is_stopped = true;
    }
}

/// The variables of a rule.
fn bindings<'v>(
    new: Result<cel::Value<'v>, Error>,
    old: &Option<Result<cel::Value<'v>, Error>>,
    is_optional: bool,
) -> Result<Bindings<'v>, Error> {
    let bindings = Bindings::new().bind("self", new?);
    let old = old.clone().transpose()?;
    Ok(match (old, is_optional) {
        (Some(old), false) => bindings.bind("oldSelf", old),
        (Some(old), true) => bindings.bind("oldSelf", cel::Value::some(old)),
        (None, true) => bindings.bind("oldSelf", cel::Value::Optional(None)),
        (None, false) => bindings,
    })
}

fn blamed(path: &Path<'_>, field_path: &str) -> String {
    let base = path.to_string();
    match (base.is_empty(), field_path.is_empty()) {
        (true, true) => "<nil>".to_owned(),
        (true, false) => field_path.to_owned(),
        (false, true) => base,
        (false, false) => format!("{base}.{field_path}"),
    }
}

fn type_error(node: &Node, field: String, detail: &str) -> FieldError {
    FieldError {
        mistake: Mistake::Invalid,
        field,
        value: Some(object::field::quote(node.value_type)),
        detail: detail.to_owned(),
    }
}

fn for_reason(
    reason: Option<&str>,
    field: String,
    place: &Place<'_>,
    detail: String,
) -> FieldError {
    let root = Path::root();
    let mut error = match (reason, place.new) {
        (Some("FieldValueForbidden"), _) => FieldError::forbidden(&root, detail),
        (Some("FieldValueRequired"), _) => FieldError::required(&root, detail),
        (Some("FieldValueDuplicate"), Data::Value(value)) => FieldError::duplicate(&root, value),
        (Some("FieldValueDuplicate"), Data::Map(_)) => FieldError::duplicate(&root, &Value::Null),
        (_, Data::Value(value)) => FieldError::invalid(&root, value, detail),
        (_, Data::Map(_)) => FieldError::invalid(&root, &Value::Null, detail),
    };
    error.field = field;
    // Objects and lists would be too long to show.
    if matches!(place.node.value_type, "object" | "array") {
        error.value = None;
    }
    error
}
