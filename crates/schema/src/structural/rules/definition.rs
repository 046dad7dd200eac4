//! Checks the rules of a definition before it is accepted.
//!
//! Contract: `apiextensions/validation/validation.go` and `cel_validation.go`: what is wrong with
//! the expressions, what they could cost where they stand, and what all of them could cost.

use std::sync::Arc;

use cel::Shape;
use object::field::{FieldError, Mistake, Path};
use object::json;

use super::compile::{Compiled, Compiler};
use super::shapes;
use crate::structural::{Structural, Validation, ValueType};

/// What one expression may cost at most.
const EXPRESSION_COST_MAX: u64 = 10_000_000;

/// What all expressions of a schema may cost at most.
const SCHEMA_COST_MAX: u64 = 100_000_000;

/// How many expressions are named when all together cost too much.
const EXPENSIVE_MAX: usize = 4;

/// Checks the rules of a whole schema that is otherwise sound.
///
/// Where `has_mistakes` is true of a path, something else is wrong there or below, and the rules
/// there are left alone. A schema that is stored already keeps expressions that cost too much.
pub fn check_definition(
    schema: &Structural,
    path: &Path<'_>,
    is_unchanged: bool,
    has_mistakes: &dyn Fn(&str) -> bool,
) -> Vec<FieldError> {
    if !schema.has_validations() {
        return Vec::new();
    }
    let mut checker = Checker {
        is_unchanged,
        has_mistakes,
        errors: Vec::new(),
        total: 0,
        expensive: Vec::new(),
    };
    let place = Place {
        cardinality: Some(1),
        uncorrelatable: None,
    };
    let shape = shapes::of_resource(schema);
    checker.visit(schema, Some(&shape), &place, path);
    checker.finish(path)
}

/// Where a node stands.
#[derive(Clone)]
struct Place {
    /// How many values the schema allows there, if it says so.
    cardinality: Option<u64>,
    /// The first list on the way whose items cannot be told apart.
    uncorrelatable: Option<String>,
}

struct Checker<'a> {
    is_unchanged: bool,
    has_mistakes: &'a dyn Fn(&str) -> bool,
    errors: Vec<FieldError>,
    total: u64,
    /// The expressions that cost most, the dearest first.
    expensive: Vec<(u64, String)>,
}

impl Checker<'_> {
    fn visit(
        &mut self,
        schema: &Structural,
        shape: Option<&Arc<Shape>>,
        place: &Place,
        path: &Path<'_>,
    ) {
        let most = elements_max(schema);
        let cardinality = place.cardinality.zip(most);
        let inner = Place {
            cardinality: cardinality.map(|(outer, most)| outer.saturating_mul(most)),
            ..place.clone()
        };
        let element = shape.and_then(|it| it.element());
        if let Some(values) = schema.additional_schema() {
            self.visit(values, element, &inner, &path.field("additionalProperties"));
        }
        let properties = path.field("properties");
        for (name, below) in schema.properties.iter() {
            let shape = shape.and_then(|it| it.property(name));
            self.visit(below, shape, &inner, &properties.key(name));
        }
        if let Some(items) = schema.items.as_deref() {
            let mut inner = inner;
            if !schema.is_list_map() && inner.uncorrelatable.is_none() {
                inner.uncorrelatable = Some(path.to_string());
            }
            self.visit(items, element, &inner, &path.field("items"));
        }
        if !schema.validations.is_empty() && !(self.has_mistakes)(&path.to_string()) {
            self.check(schema, shape, place, path);
        }
    }

    fn check(
        &mut self,
        schema: &Structural,
        shape: Option<&Arc<Shape>>,
        place: &Place,
        path: &Path<'_>,
    ) {
        let at = path.field("x-kubernetes-validations");
        let own;
        let shape = match shape.filter(|it| it.is_visible()) {
            Some(shape) => shape,
            None => {
                own = shapes::of_value(schema);
                &own
            }
        };
        if !shape.is_visible() {
            let detail = "internal error: failed to construct type information for \
                          x-kubernetes-validations rules: unable to convert structural schema to \
                          CEL declarations";
            return self
                .errors
                .push(error(Mistake::Internal, &at, None, detail));
        }
        let compiler = Compiler::new(shape);
        let cardinality = place.cardinality.unwrap_or(shape.cardinality_max());
        for (index, rule) in schema.validations.iter().enumerate() {
            let mut compiled = compiler.compile(rule);
            // Upstream names the types that a rule sees from the place of the rule on.
            if let Some(prefix) = shape.type_prefix() {
                compiled.rename(prefix, shapes::TYPE_NAME);
            }
            let at = at.index(index);
            self.check_rule(rule, &compiled, cardinality, &at);
            self.check_old_self(rule, &compiled, place, &at);
        }
    }

    fn check_rule(
        &mut self,
        rule: &Validation,
        compiled: &Compiled,
        cardinality: u64,
        at: &Path<'_>,
    ) {
        let at_rule = at.field("rule");
        let cost = match &compiled.program {
            Some(Ok(program)) => program.estimate().max.saturating_mul(cardinality),
            _ => 0,
        };
        self.charge(cost, "estimated rule cost", &at_rule);
        if let Some(Err(why)) = &compiled.program {
            let shown = Some(printed(rule));
            self.errors
                .push(error(Mistake::Invalid, &at_rule, shown, why));
        }
        let at_message = at.field("messageExpression");
        match &compiled.message {
            Some(Err(why)) => {
                let shown = Some(printed(rule));
                self.errors
                    .push(error(Mistake::Invalid, &at_message, shown, why));
            }
            Some(Ok(program)) => {
                let cost = program.estimate().max;
                self.charge(cost, "estimated messageExpression cost", &at_message);
            }
            None => {}
        }
    }

    fn check_old_self(
        &mut self,
        rule: &Validation,
        compiled: &Compiled,
        place: &Place,
        at: &Path<'_>,
    ) {
        match (compiled.uses_old_self(), &place.uncorrelatable) {
            (true, Some(list)) => {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within \
                     {list}"
                );
                let shown = Some(object::field::quote(&rule.rule));
                let at = at.field("rule");
                self.errors
                    .push(error(Mistake::Invalid, &at, shown, &detail));
            }
            (false, _) => {
                if let Some(flag) = rule.optional_old_self {
                    let detail = "may not be set if oldSelf is not used in rule";
                    let at = at.field("optionalOldSelf");
                    let shown = Some(flag.to_string());
                    self.errors
                        .push(error(Mistake::Invalid, &at, shown, detail));
                }
            }
            (true, None) => {}
        }
    }

    fn charge(&mut self, cost: u64, name: &str, at: &Path<'_>) {
        if cost > EXPRESSION_COST_MAX && !self.is_unchanged {
            let detail = exceeded(name, cost, EXPRESSION_COST_MAX);
            self.errors
                .push(error(Mistake::Forbidden, at, None, &detail));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= SCHEMA_COST_MAX / 100 {
            self.expensive.push((cost, at.to_string()));
            self.expensive
                .sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.expensive.truncate(EXPENSIVE_MAX);
        }
    }

    fn finish(mut self, path: &Path<'_>) -> Vec<FieldError> {
        if self.total <= SCHEMA_COST_MAX {
            return self.errors;
        }
        let detail = "contributed to estimated rule cost total exceeding cost limit for entire \
                      OpenAPIv3 schema";
        for (_, field) in std::mem::take(&mut self.expensive) {
            self.errors.push(FieldError {
                mistake: Mistake::Forbidden,
                field,
                value: None,
                detail: detail.to_owned(),
            });
        }
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let detail = exceeded(name, self.total, SCHEMA_COST_MAX);
        self.errors
            .push(error(Mistake::Forbidden, path, None, &detail));
        self.errors
    }
}

fn error(mistake: Mistake, path: &Path<'_>, value: Option<String>, detail: &str) -> FieldError {
    FieldError {
        mistake,
        field: path.to_string(),
        value,
        detail: detail.to_owned(),
    }
}

/// How many values a node holds for each one of itself; none if nothing bounds them.
fn elements_max(schema: &Structural) -> Option<u64> {
    let checks = schema.checks.as_deref();
    let limit = |limit: Option<i64>| limit.map(|it| u64::try_from(it).unwrap_or(0));
    match schema.value_type {
        Some(ValueType::Object) if schema.additional.is_some() => {
            limit(checks.and_then(|it| it.max_properties))
        }
        Some(ValueType::Array) => limit(checks.and_then(|it| it.max_items)),
        _ => Some(1),
    }
}

fn exceeded(name: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = match factor {
        it if it > 100.0 => "more than 100x".to_owned(),
        it if it < 1.5 => format!("{it:.6}x"),
        it => format!("{it:.1}x"),
    };
    format!(
        "{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding \
         maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}

/// A rule as upstream prints it in messages.
fn printed(rule: &Validation) -> String {
    let text = |text: &str| {
        let mut out = Vec::new();
        json::write_string(text, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    };
    let reason = rule.reason.as_deref().map_or("null".to_owned(), text);
    let optional = rule
        .optional_old_self
        .map_or("null".to_owned(), |flag| flag.to_string());
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{reason},\
         \"FieldPath\":{},\"OptionalOldSelf\":{optional}}}",
        text(&rule.rule),
        text(&rule.message),
        text(&rule.message_expression),
        text(&rule.field_path),
    )
}
