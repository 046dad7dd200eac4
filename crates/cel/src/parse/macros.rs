//! Macros: calls that the parser turns into other trees.
//!
//! Contract: cel-go `parser/macro.go`, `ext/comprehensions.go`, `ext/lists.go` (`sortBy`) and the
//! optional types of `cel/library.go`. Each node that a macro makes stands where the call's
//! parenthesis stands. A macro takes a call by name and number of arguments, whatever its types.

use super::Parser;
use crate::ast::{ACCUMULATOR, Comprehension, Element, Expr, Kind, Literal, Name};

/// The name of the loop variable that nothing reads.
const UNUSED: &str = "#unused";

/// The arguments of a macro and where its nodes stand.
struct Use {
    at: u32,
    target: Expr,
    arguments: Vec<Expr>,
}

/// A mistake in the arguments: the node it is about, and what is wrong.
type Expanded = Result<Expr, (u32, String)>;

impl Parser<'_> {
    /// A call, or what the macro of that name makes of it.
    pub(super) fn call_or_macro(
        &mut self,
        at: u32,
        function: String,
        target: Option<Box<Expr>>,
        arguments: Vec<Expr>,
    ) -> Expr {
        let count = arguments.len();
        let expanded = match (target, function.as_str(), count) {
            (None, "has", 1) => self.presence(at, arguments),
            (Some(target), "bind", 3) if self.has_bindings && is_cel(&target) => {
                self.bind(at, arguments)
            }
            (Some(target), name, count) if is_macro(name, count) => {
                let target = *target;
                let usage = Use {
                    at,
                    target,
                    arguments,
                };
                self.expand(name, usage)
            }
            (target, _, _) => {
                let function = Name::Owned(function);
                return self.node(
                    at,
                    Kind::Call {
                        function,
                        target,
                        arguments,
                    },
                );
            }
        };
        expanded.unwrap_or_else(|(id, message)| {
            let offset = self.offsets[id as usize];
            self.fail(offset, message)
        })
    }

    fn expand(&mut self, name: &str, usage: Use) -> Expanded {
        match name {
            "all" | "exists" | "exists_one" | "existsOne" => self.quantifier(name, usage),
            "map" | "filter" => self.collect(name, usage),
            "transformList" => self.transform_list(usage),
            "transformMap" | "transformMapEntry" => self.transform_map(name, usage),
            "sortBy" => self.sort_by(usage),
            _ => self.optional_map(name, usage),
        }
    }

    fn presence(&mut self, at: u32, mut arguments: Vec<Expr>) -> Expanded {
        let argument = arguments.pop().expect("the macro has one argument");
        match argument.kind {
            Kind::Select { operand, field, .. } => Ok(self.node(
                at,
                Kind::Select {
                    operand,
                    field,
                    test_only: true,
                },
            )),
            _ => Err((argument.id, "invalid argument to has() macro".to_owned())),
        }
    }

    fn accumulated(&mut self, at: u32) -> Expr {
        self.node(at, Kind::Ident(ACCUMULATOR.into()))
    }

    fn constant(&mut self, at: u32, literal: Literal) -> Expr {
        self.node(at, Kind::Literal(literal))
    }

    fn list_of(&mut self, at: u32, elements: Vec<Expr>) -> Expr {
        let elements = elements.into_iter().map(|value| Element {
            value,
            optional: false,
        });
        self.node(at, Kind::List(elements.collect()))
    }

    fn fold(&mut self, at: u32, comprehension: Comprehension) -> Expr {
        self.node(at, Kind::Comprehension(Box::new(comprehension)))
    }

    /// `range.all(x, predicate)` and its sisters, also with an index or key before the variable.
    fn quantifier(&mut self, name: &str, usage: Use) -> Expanded {
        let at = usage.at;
        let (variables, mut rest) = variables(usage.arguments, "argument must be a simple name")?;
        let predicate = rest.pop().expect("the macro has a predicate");
        let one = name == "exists_one" || name == "existsOne";
        let initial = match name {
            "all" => Literal::Bool(true),
            "exists" => Literal::Bool(false),
            _ => Literal::Int(0),
        };
        let initial = self.constant(at, initial);
        let accumulated = self.accumulated(at);
        let (condition, step) = match name {
            "all" => (
                self.call(at, "@not_strictly_false", vec![accumulated]),
                "_&&_",
            ),
            "exists" => {
                let not = self.call(at, "!_", vec![accumulated]);
                (self.call(at, "@not_strictly_false", vec![not]), "_||_")
            }
            _ => (self.constant(at, Literal::Bool(true)), "_+_"),
        };
        let accumulated = self.accumulated(at);
        let step = if one {
            let more = self.constant(at, Literal::Int(1));
            let counted = self.call(at, step, vec![accumulated, more]);
            let same = self.accumulated(at);
            self.call(at, "_?_:_", vec![predicate, counted, same])
        } else {
            self.call(at, step, vec![accumulated, predicate])
        };
        let mut result = self.accumulated(at);
        if one {
            let single = self.constant(at, Literal::Int(1));
            result = self.call(at, "_==_", vec![result, single]);
        }
        Ok(self.fold(
            at,
            comprehension(usage.target, variables, initial, condition, step, result),
        ))
    }

    /// `range.map(x, value)`, `range.map(x, predicate, value)` and `range.filter(x, predicate)`.
    fn collect(&mut self, name: &str, usage: Use) -> Expanded {
        let at = usage.at;
        let mut arguments = usage.arguments.into_iter();
        let named = arguments.next().expect("the macro has a variable");
        let variable = variable(&named, "argument is not an identifier")?;
        let second = arguments.next().expect("the macro has two arguments");
        let (filter, value) = match (name, arguments.next()) {
            ("filter", _) => (Some(second), named),
            (_, Some(value)) => (Some(second), value),
            (_, None) => (None, second),
        };
        Ok(self.collected(at, usage.target, (variable, None), filter, value))
    }

    fn collected(
        &mut self,
        at: u32,
        range: Expr,
        variables: Variables,
        filter: Option<Expr>,
        value: Expr,
    ) -> Expr {
        let initial = self.list_of(at, Vec::new());
        let condition = self.constant(at, Literal::Bool(true));
        let accumulated = self.accumulated(at);
        let single = self.list_of(at, vec![value]);
        let step = self.call(at, "_+_", vec![accumulated, single]);
        let step = self.filtered(at, filter, step);
        let result = self.accumulated(at);
        self.fold(
            at,
            comprehension(range, variables, initial, condition, step, result),
        )
    }

    fn filtered(&mut self, at: u32, filter: Option<Expr>, step: Expr) -> Expr {
        match filter {
            None => step,
            Some(filter) => {
                let same = self.accumulated(at);
                self.call(at, "_?_:_", vec![filter, step, same])
            }
        }
    }

    fn transform_list(&mut self, usage: Use) -> Expanded {
        let (variables, mut rest) = variables(usage.arguments, "argument must be a simple name")?;
        let value = rest.pop().expect("the macro has a transform");
        Ok(self.collected(usage.at, usage.target, variables, rest.pop(), value))
    }

    fn transform_map(&mut self, name: &str, usage: Use) -> Expanded {
        let at = usage.at;
        let (variables, mut rest) = variables(usage.arguments, "argument must be a simple name")?;
        let value = rest.pop().expect("the macro has a transform");
        let filter = rest.pop();
        let initial = self.node(at, Kind::Map(Vec::new()));
        let condition = self.constant(at, Literal::Bool(true));
        let mut arguments = vec![self.accumulated(at)];
        if name == "transformMap" {
            arguments.push(self.node(at, Kind::Ident(variables.0.clone())));
        }
        arguments.push(value);
        let step = self.call(at, "cel.@mapInsert", arguments);
        let step = self.filtered(at, filter, step);
        let result = self.accumulated(at);
        Ok(self.fold(
            at,
            comprehension(usage.target, variables, initial, condition, step, result),
        ))
    }

    /// A loop that never runs: it gives `value` a name in `result`.
    fn bound(&mut self, at: u32, name: Name, value: Expr, result: Expr) -> Expr {
        let range = self.list_of(at, Vec::new());
        let condition = self.constant(at, Literal::Bool(false));
        let step = self.node(at, Kind::Ident(name.clone()));
        let comprehension = Comprehension {
            range,
            variable: UNUSED.into(),
            second_variable: None,
            accumulator: name,
            initial: value,
            condition,
            step,
            result,
        };
        self.fold(at, comprehension)
    }

    fn sort_by(&mut self, usage: Use) -> Expanded {
        const INPUT: &str = "@__sortBy_input__";
        let at = usage.at;
        if matches!(
            usage.target.kind,
            Kind::Literal(_) | Kind::Map(_) | Kind::Struct { .. }
        ) {
            let message = "sortBy can only be applied to a list, identifier, comprehension, call \
                           or select expression";
            return Err((usage.target.id, message.to_owned()));
        }
        let input = self.node(at, Kind::Ident(INPUT.into()));
        let keys = self.collect(
            "map",
            Use {
                at,
                target: input,
                arguments: usage.arguments,
            },
        )?;
        let input = self.node(at, Kind::Ident(INPUT.into()));
        let sorted = self.node(
            at,
            Kind::Call {
                function: "@sortByAssociatedKeys".into(),
                target: Some(Box::new(input)),
                arguments: vec![keys],
            },
        );
        Ok(self.bound(at, INPUT.into(), usage.target, sorted))
    }

    /// `cel.bind(x, value, expression)`.
    fn bind(&mut self, at: u32, arguments: Vec<Expr>) -> Expanded {
        let mut arguments = arguments.into_iter();
        let named = arguments.next().expect("the macro has a variable");
        let Kind::Ident(variable) = named.kind else {
            let message = "cel.bind() variable names must be simple identifiers";
            return Err((named.id, message.to_owned()));
        };
        let value = arguments.next().expect("the macro has three arguments");
        let result = arguments.next().expect("the macro has three arguments");
        Ok(self.bound(at, variable, value, result))
    }

    /// `optional.optMap(x, value)` and `optional.optFlatMap(x, optional)`.
    fn optional_map(&mut self, name: &str, usage: Use) -> Expanded {
        let at = usage.at;
        let mut arguments = usage.arguments.into_iter();
        let named = arguments.next().expect("the macro has a variable");
        let Kind::Ident(variable) = named.kind else {
            let message = format!("{name}() variable name must be a simple identifier");
            return Err((named.id, message));
        };
        let value = arguments.next().expect("the macro has two arguments");
        let copy = self.copied(&usage.target);
        let has_value = self.method(at, "hasValue", usage.target);
        let unwrapped = self.method(at, "value", copy);
        let mut bound = self.bound(at, variable, unwrapped, value);
        if name == "optMap" {
            bound = self.call(at, "optional.of", vec![bound]);
        }
        let none = self.call(at, "optional.none", Vec::new());
        Ok(self.call(at, "_?_:_", vec![has_value, bound, none]))
    }

    fn method(&mut self, at: u32, function: &'static str, target: Expr) -> Expr {
        self.node(
            at,
            Kind::Call {
                function: function.into(),
                target: Some(Box::new(target)),
                arguments: Vec::new(),
            },
        )
    }

    /// A copy whose nodes have numbers of their own, at the same places.
    fn copied(&mut self, expr: &Expr) -> Expr {
        if self.is_halted {
            return Expr {
                id: expr.id,
                kind: Kind::Unspecified,
            };
        }
        let mut copy = expr.clone();
        self.renumber(&mut copy);
        copy
    }

    fn renumber(&mut self, expr: &mut Expr) {
        expr.id = self.new_id(self.offsets[expr.id as usize]);
        match &mut expr.kind {
            Kind::Unspecified | Kind::Literal(_) | Kind::Ident(_) => {}
            Kind::Select { operand, .. } => self.renumber(operand),
            Kind::Call {
                target, arguments, ..
            } => {
                let parts = target.as_deref_mut().into_iter().chain(arguments);
                parts.for_each(|part| self.renumber(part));
            }
            Kind::List(elements) => elements
                .iter_mut()
                .for_each(|element| self.renumber(&mut element.value)),
            Kind::Map(entries) => entries.iter_mut().for_each(|entry| {
                self.renumber(&mut entry.key);
                self.renumber(&mut entry.value);
            }),
            Kind::Struct { fields, .. } => fields.iter_mut().for_each(|field| {
                field.id = self.new_id(self.offsets[field.id as usize]);
                self.renumber(&mut field.value);
            }),
            Kind::Comprehension(it) => {
                let it = it.as_mut();
                self.renumber(&mut it.range);
                self.renumber(&mut it.initial);
                self.renumber(&mut it.condition);
                self.renumber(&mut it.step);
                self.renumber(&mut it.result);
            }
        }
    }
}

fn is_cel(target: &Expr) -> bool {
    matches!(&target.kind, Kind::Ident(name) if name == "cel")
}

fn is_macro(name: &str, arguments: usize) -> bool {
    match name {
        "all" | "exists" | "exists_one" | "map" => arguments == 2 || arguments == 3,
        "existsOne" => arguments == 3,
        "filter" | "sortBy" | "optMap" | "optFlatMap" => arguments == 2,
        "transformList" | "transformMap" | "transformMapEntry" => arguments == 3 || arguments == 4,
        _ => false,
    }
}

/// The variable of a loop, or the index or key and the element or value.
type Variables = (Name, Option<Name>);

fn comprehension(
    range: Expr,
    variables: Variables,
    initial: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
) -> Comprehension {
    let (variable, second_variable) = variables;
    Comprehension {
        range,
        variable,
        second_variable,
        accumulator: ACCUMULATOR.into(),
        initial,
        condition,
        step,
        result,
    }
}

fn variable(expr: &Expr, complaint: &str) -> Result<Name, (u32, String)> {
    let name = match &expr.kind {
        Kind::Ident(name) => name.clone(),
        _ => return Err((expr.id, complaint.to_owned())),
    };
    match name.as_ref() {
        "__result__" | ACCUMULATOR => {
            let message = "iteration variable overwrites accumulator variable";
            Err((expr.id, message.to_owned()))
        }
        _ => Ok(name),
    }
}

/// The variables among the arguments, and the arguments after them. Two arguments name one
/// variable; of three or more the first two are variables.
fn variables(
    mut arguments: Vec<Expr>,
    complaint: &str,
) -> Result<(Variables, Vec<Expr>), (u32, String)> {
    let first = variable(&arguments[0], complaint)?;
    if arguments.len() == 2 {
        let rest = arguments.split_off(1);
        return Ok(((first, None), rest));
    }
    let second = variable(&arguments[1], complaint)?;
    if first == second {
        let message = format!("duplicate variable name: {first}");
        return Err((arguments[1].id, message));
    }
    let rest = arguments.split_off(2);
    Ok(((first, Some(second)), rest))
}
