//! Compiles the rules of a schema.
//!
//! Contract: `compilation.go` and the constructor of `validation.go` in upstream's `schema/cel`.

use std::sync::Arc;

use cel::{Environment, Program, Shape, Type};

use super::{Node, Rule, paths, shapes};
use crate::structural::{Structural, Validation, ValueType};

/// Compiles the rules of a whole object.
pub(super) fn root(schema: &Structural) -> Option<Node> {
    node(schema, schema, &shapes::of_resource(schema))
}

/// Compiles the rules of a value.
pub(super) fn part(schema: &Structural) -> Option<Node> {
    node(schema, schema, &shapes::of_value(schema))
}

/// The rules of `asked`, which is `schema` or a branch of its `allOf`, and of what is below; none
/// if there are no rules.
fn node(asked: &Structural, schema: &Structural, shape: &Arc<Shape>) -> Option<Node> {
    let rules = rules(&asked.validations, schema, shape);
    let items = below(
        asked.items.as_deref(),
        schema.items.as_deref(),
        shape.element(),
    );
    let additional = below(
        asked.additional_schema(),
        schema.additional_schema(),
        shape.element(),
    );
    let mut properties = Vec::new();
    for (name, asked) in asked.properties.iter() {
        let child = below(Some(asked), schema.property(name), shape.property(name));
        properties.extend(child.map(|child| (name.clone(), *child)));
    }
    let branches = asked.checks.as_deref().map(|it| it.all_of.as_slice());
    let all_of: Vec<Node> = branches
        .unwrap_or_default()
        .iter()
        .filter_map(|branch| node(branch, schema, shape))
        .collect();
    let is_empty = rules.is_empty()
        && items.is_none()
        && additional.is_none()
        && properties.is_empty()
        && all_of.is_empty();
    (!is_empty).then(|| Node {
        value_type: schema.value_type.map_or("", ValueType::name),
        shape: shape.clone(),
        rules,
        items,
        properties,
        additional,
        all_of,
    })
}

fn below(
    asked: Option<&Structural>,
    schema: Option<&Structural>,
    shape: Option<&Arc<Shape>>,
) -> Option<Box<Node>> {
    // What expressions cannot see has no rules that could run.
    let shape = shape.filter(|it| it.is_visible())?;
    node(asked?, schema?, shape).map(Box::new)
}

fn rules(validations: &[Validation], schema: &Structural, shape: &Arc<Shape>) -> Vec<Rule> {
    if validations.is_empty() {
        return Vec::new();
    }
    let compiler = Compiler::new(shape);
    let rules = validations.iter().map(|validation| {
        let compiled = compiler.compile(validation);
        let message = validation.message.trim();
        let name = if message.is_empty() {
            validation.rule.trim()
        } else {
            message
        };
        Rule {
            uses_old_self: compiled.uses_old_self(),
            program: compiled.program,
            message_program: compiled.message.and_then(Result::ok),
            name: name.to_owned(),
            has_message: !validation.message.is_empty(),
            reason: validation.reason.clone(),
            field_path: paths::normalized(&validation.field_path, schema).unwrap_or_default(),
            optional_old_self: validation.optional_old_self.unwrap_or(false),
        }
    });
    rules.collect()
}

/// What a rule compiles to.
pub(super) struct Compiled {
    /// Absent if there is no text.
    pub(super) program: Option<Result<Program, String>>,
    /// Absent if there is no text, or if the rule itself is wrong.
    pub(super) message: Option<Result<Program, String>>,
}

impl Compiled {
    /// Calls types by another name in what is wrong.
    pub(super) fn rename(&mut self, from: &str, to: &str) {
        let wrong = |it: &mut Option<Result<Program, String>>| {
            if let Some(Err(why)) = it {
                *why = why.replace(from, to);
            }
        };
        wrong(&mut self.program);
        wrong(&mut self.message);
    }
}

impl Compiled {
    pub(super) fn uses_old_self(&self) -> bool {
        matches!(&self.program, Some(Ok(program)) if program.uses("oldSelf"))
    }
}

/// Compiles the rules of one node.
pub(super) struct Compiler {
    plain: Environment,
    optional: Environment,
}

impl Compiler {
    pub(super) fn new(shape: &Arc<Shape>) -> Compiler {
        let plain = Environment::new().with_data("self", shape);
        Compiler {
            optional: plain.clone().with_optional_data("oldSelf", shape),
            plain: plain.with_data("oldSelf", shape),
        }
    }

    pub(super) fn compile(&self, validation: &Validation) -> Compiled {
        let nothing = Compiled {
            program: None,
            message: None,
        };
        if validation.rule.trim().is_empty() {
            return nothing;
        }
        let environment = match validation.optional_old_self {
            Some(true) => &self.optional,
            _ => &self.plain,
        };
        let wanted = "cel expression must evaluate to a bool";
        let program = program(environment, &validation.rule, "", &Type::Bool, wanted);
        if program.is_err() || validation.message_expression.is_empty() {
            return Compiled {
                program: Some(program),
                ..nothing
            };
        }
        let text = &validation.message_expression;
        let wanted = "messageExpression must evaluate to a string";
        let message = self::program(
            environment,
            text,
            "messageExpression ",
            &Type::String,
            wanted,
        );
        Compiled {
            program: Some(program),
            message: Some(message),
        }
    }
}

fn program(
    environment: &Environment,
    text: &str,
    name: &str,
    output: &Type,
    wanted: &str,
) -> Result<Program, String> {
    let program = environment
        .compile(text)
        .map_err(|issues| format!("{name}compilation failed: {issues}"))?;
    if program.output_type() != output {
        return Err(wanted.to_owned());
    }
    let kind = if name.is_empty() { "program " } else { name };
    match program.check_runnable() {
        Err(why) => Err(format!("{kind}instantiation failed: {why}")),
        Ok(()) => Ok(program),
    }
}
