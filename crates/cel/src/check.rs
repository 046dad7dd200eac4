//! The type checker: resolves names and overloads and gives every node a type.
//!
//! Contract: cel-go `checker/checker.go`, with its messages. The checker rewrites the tree where a
//! name turns out to be something else than it looked: `a.b` may be one variable, `sets.contains`
//! is a function and no member of `sets`.

mod unify;

use crate::ast::{Ast, Comprehension, Element, Expr, FieldEntry, Kind, Literal, MapEntry, Name};
use crate::environment::Environment;
use crate::function::{self, Function};
use crate::source::Issues;
use crate::types::Type;
use unify::Unifier;

/// A checked tree.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) ast: Ast,
    /// The type of each node.
    pub(crate) types: Vec<Type>,
    /// The overloads that each call may run.
    pub(crate) overloads: Vec<Vec<&'static str>>,
    /// The names of the environment's variables that are read.
    pub(crate) variables: Vec<String>,
}

impl Checked {
    pub(crate) fn type_of(&self, expr: &Expr) -> &Type {
        &self.types[expr.id as usize]
    }
}

/// Checks a tree, or says all that is wrong.
pub(crate) fn check(
    ast: Ast,
    environment: &Environment,
    issues: Issues,
) -> Result<(Checked, Issues), Issues> {
    let Ast { mut root, offsets } = ast;
    let mut checker = Checker {
        environment,
        issues,
        types: vec![None; offsets.len()],
        overloads: vec![Vec::new(); offsets.len()],
        offsets: &offsets,
        unifier: Unifier::default(),
        scopes: Vec::new(),
        variables: Vec::new(),
    };
    checker.check(&mut root);
    let Checker {
        issues,
        types,
        overloads,
        unifier,
        variables,
        ..
    } = checker;
    if !issues.is_empty() {
        return Err(issues);
    }
    let types = types
        .into_iter()
        .map(|it| it.map_or(Type::Dyn, |it| unifier.substitute(&it, true)));
    let checked = Checked {
        types: types.collect(),
        ast: Ast { root, offsets },
        overloads,
        variables,
    };
    Ok((checked, issues))
}

struct Checker<'a> {
    environment: &'a Environment,
    issues: Issues,
    types: Vec<Option<Type>>,
    overloads: Vec<Vec<&'static str>>,
    offsets: &'a [u32],
    unifier: Unifier,
    /// Variables of the loops around, innermost last.
    scopes: Vec<(Name, Type)>,
    variables: Vec<String>,
}

/// What a name stands for.
struct Found {
    name: Name,
    of: Type,
}

impl Checker<'_> {
    fn error(&mut self, id: u32, message: String) {
        self.issues.report_at(self.offsets[id as usize], message);
    }

    fn set(&mut self, id: u32, of: Type) {
        self.types[id as usize] = Some(of);
    }

    fn get(&self, expr: &Expr) -> Type {
        let known = self.types[expr.id as usize].clone();
        known.unwrap_or(Type::Error)
    }

    fn check(&mut self, expr: &mut Expr) {
        let id = expr.id;
        match &mut expr.kind {
            Kind::Unspecified => self.set(id, Type::Error),
            Kind::Literal(literal) => {
                let of = literal_type(literal);
                self.set(id, of);
            }
            Kind::Ident(name) => {
                let name = name.clone();
                self.check_ident(expr, &name);
            }
            Kind::Select { .. } => self.check_select(expr),
            Kind::Call { .. } => self.check_call(expr),
            Kind::List(elements) => self.check_list(id, elements),
            Kind::Map(entries) => self.check_map(id, entries),
            Kind::Struct { name, fields } => self.check_struct(id, name, fields),
            Kind::Comprehension(comprehension) => self.check_comprehension(id, comprehension),
        }
    }

    /// The variable or type of that name; a loop's variable hides one of the environment.
    fn find_ident(&mut self, name: &str) -> Option<Found> {
        let name = name.strip_prefix('.').unwrap_or(name);
        let local = self.scopes.iter().rev().find(|(it, _)| it == name);
        if let Some((name, of)) = local {
            return Some(Found {
                name: name.clone(),
                of: of.clone(),
            });
        }
        let of = self.environment.variable_type(name);
        if of.is_some() && !self.variables.iter().any(|it| it == name) {
            self.variables.push(name.to_owned());
        }
        let of = of.or_else(|| self.environment.type_named(name).map(Type::type_of))?;
        Some(Found {
            name: Name::Owned(name.to_owned()),
            of,
        })
    }

    fn check_ident(&mut self, expr: &mut Expr, name: &str) {
        match self.find_ident(name) {
            Some(found) => {
                self.set(expr.id, found.of);
                expr.kind = Kind::Ident(found.name);
            }
            None => {
                self.set(expr.id, Type::Error);
                self.undeclared(expr.id, name);
            }
        }
    }

    fn undeclared(&mut self, id: u32, name: &str) {
        self.error(
            id,
            format!("undeclared reference to '{name}' (in container '')"),
        );
    }

    fn check_select(&mut self, expr: &mut Expr) {
        if let Some(name) = expr.qualified_name()
            && let Some(found) = self.find_ident(&name)
        {
            self.set(expr.id, found.of);
            expr.kind = Kind::Ident(found.name);
            return;
        }
        let Kind::Select {
            operand,
            field,
            test_only,
        } = &mut expr.kind
        else {
            return;
        };
        let of = self.select_type(expr.id, operand, field, false);
        let of = if *test_only { Type::Bool } else { of };
        let of = self.unifier.substitute(&of, false);
        self.set(expr.id, of);
    }

    fn select_type(&mut self, id: u32, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let of_operand = self.unifier.substitute(&self.get(operand), false);
        let (target, was_optional) = of_operand.unwrapped();
        let result = match target {
            Type::Map(of) => of.1.clone(),
            Type::Object(name) => self.field_type(id, name, field).unwrap_or(Type::Error),
            Type::Parameter(_) => {
                self.unifier.assign(&Type::Dyn, target);
                Type::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    self.error(
                        id,
                        format!("type '{other}' does not support field selection"),
                    );
                }
                Type::Dyn
            }
        };
        match was_optional || optional {
            true => Type::optional(result),
            false => result,
        }
    }

    fn field_type(&mut self, id: u32, object: &str, field: &str) -> Option<Type> {
        let Some(fields) = self.environment.object(object) else {
            self.error(id, format!("unexpected failed resolution of '{object}'"));
            return None;
        };
        let found = fields.field(field);
        if found.is_none() {
            self.error(id, format!("undefined field '{field}'"));
        }
        found
    }

    fn check_call(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let Kind::Call {
            function,
            target,
            arguments,
        } = &mut expr.kind
        else {
            return;
        };
        if function == "_?._" {
            return self.check_optional_select(id, arguments);
        }
        for argument in arguments.iter_mut() {
            self.check(argument);
        }
        let Some(receiver) = target else {
            let name = function.strip_prefix('.').unwrap_or(function).to_owned();
            return match self.environment.function(&name) {
                Some(found) => {
                    *function = Name::Borrowed(found.name);
                    self.resolve(id, found, None, arguments);
                }
                None => {
                    self.set(id, Type::Error);
                    self.undeclared(id, &name);
                }
            };
        };
        if let Some(prefix) = receiver.qualified_name() {
            let name = format!("{prefix}.{function}");
            let name = name.strip_prefix('.').unwrap_or(&name);
            if let Some(found) = self.environment.function(name) {
                *function = Name::Borrowed(found.name);
                *target = None;
                return self.resolve(id, found, None, arguments);
            }
        }
        self.check(receiver);
        match self.environment.function(function) {
            Some(found) => self.resolve(id, found, Some(receiver), arguments),
            None => {
                self.set(id, Type::Error);
                let name = function.to_string();
                self.undeclared(id, &name);
            }
        }
    }

    fn check_optional_select(&mut self, id: u32, arguments: &mut [Expr]) {
        let [operand, field] = arguments else {
            return self.set(id, Type::Error);
        };
        let Kind::Literal(Literal::String(name)) = &field.kind else {
            return self.set(id, Type::Error);
        };
        let of = self.select_type(id, operand, name, true);
        let of = self.unifier.substitute(&of, false);
        self.set(field.id, Type::String);
        self.set(id, of);
        self.overloads[id as usize] = vec!["select_optional_field"];
    }

    /// Finds the overloads that fit; the type is theirs if they agree, else it is dyn.
    fn resolve(&mut self, id: u32, function: &Function, target: Option<&Expr>, args: &[Expr]) {
        let given: Vec<Type> = target
            .into_iter()
            .chain(args)
            .map(|argument| self.get(argument))
            .collect();
        if matches!(function.name, "_&&_" | "_||_") {
            return self.resolve_logical(id, function, args, &given);
        }
        let mut result: Option<Type> = None;
        for overload in &function.overloads {
            if overload.is_member != target.is_some() {
                continue;
            }
            let fresh = self.unifier.instantiate(overload);
            if !self.unifier.assign_all(&given, &fresh.arguments) {
                continue;
            }
            self.overloads[id as usize].push(overload.id);
            let of = self.unifier.substitute(&fresh.result, false);
            result = match result {
                None => Some(of),
                Some(before) if before.is_dyn() || before == of => Some(before),
                Some(_) => Some(Type::Dyn),
            };
        }
        let Some(result) = result else {
            self.set(id, Type::Error);
            return self.no_overload(id, function.name, &given, target.is_some());
        };
        self.set(id, result);
    }

    fn no_overload(&mut self, id: u32, function: &str, given: &[Type], is_member: bool) {
        let shown: Vec<String> = given
            .iter()
            .map(|it| self.unifier.substitute(it, true).to_string())
            .collect();
        let signature = match (is_member, shown.split_first()) {
            (true, Some((receiver, rest))) => format!("{receiver}.({})", rest.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        self.error(
            id,
            format!("found no matching overload for '{function}' applied to '{signature}'"),
        );
    }

    fn resolve_logical(&mut self, id: u32, function: &Function, args: &[Expr], given: &[Type]) {
        let mut fits = true;
        for (argument, of) in args.iter().zip(given) {
            if !self.unifier.assign(of, &Type::Bool) {
                self.mismatch(argument.id, &Type::Bool, of);
                fits = false;
            }
        }
        if !fits {
            return self.set(id, Type::Error);
        }
        self.overloads[id as usize].push(function.overloads[0].id);
        self.set(id, Type::Bool);
    }

    fn mismatch(&mut self, id: u32, expected: &Type, found: &Type) {
        self.error(
            id,
            format!("expected type '{expected}' but found '{found}'"),
        );
    }

    /// The type of an optional element is what the optional holds.
    fn element_type(&mut self, value: &Expr, optional: bool) -> Type {
        let of = self.get(value);
        if !optional {
            return of;
        }
        let (inner, was_optional) = of.unwrapped();
        if !was_optional && !inner.is_dyn() {
            let expected = Type::optional(inner.clone());
            self.mismatch(value.id, &expected, inner);
        }
        inner.clone()
    }

    /// The type of all elements so far, or dyn if they differ.
    fn join(&mut self, before: Option<Type>, next: Type) -> Option<Type> {
        let Some(before) = before else {
            return Some(next);
        };
        if self.unifier.assign(&before, &next) {
            return Some(unify::more_general(&before, &next).clone());
        }
        Some(Type::Dyn)
    }

    fn check_list(&mut self, id: u32, elements: &mut [Element]) {
        let mut of = None;
        for Element { value, optional } in elements {
            self.check(value);
            let next = self.element_type(value, *optional);
            of = self.join(of, next);
        }
        let of = of.unwrap_or_else(|| self.unifier.fresh());
        self.set(id, Type::list(of));
    }

    fn check_map(&mut self, id: u32, entries: &mut [MapEntry]) {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.check(&mut entry.key);
            let key = self.get(&entry.key);
            keys = self.join(keys, key);
            self.check(&mut entry.value);
            let value = self.element_type(&entry.value, entry.optional);
            values = self.join(values, value);
        }
        let keys = keys.unwrap_or_else(|| self.unifier.fresh());
        let values = values.unwrap_or_else(|| self.unifier.fresh());
        self.set(id, Type::map(keys, values));
    }

    fn check_struct(&mut self, id: u32, name: &mut String, fields: &mut [FieldEntry]) {
        let Some(found) = self.find_ident(name) else {
            self.set(id, Type::Error);
            return self.undeclared(id, &name.clone());
        };
        *name = found.name.into_owned();
        let of = match found.of {
            Type::Error => Type::Error,
            Type::Type(Some(of)) if matches!(*of, Type::Object(_)) => (*of).clone(),
            Type::Type(Some(of)) => {
                self.error(id, format!("'{}' is not a message type", of.name()));
                Type::Error
            }
            other => {
                self.error(id, format!("'{}' is not a type", other.name()));
                Type::Error
            }
        };
        self.set(id, of.clone());
        for field in fields {
            self.check(&mut field.value);
            let expected = match &of {
                Type::Object(object) => self.field_type(field.id, object, &field.field),
                _ => {
                    let message = format!("unexpected failed resolution of '{name}'");
                    self.error(field.id, message);
                    None
                }
            };
            let expected = expected.unwrap_or(Type::Error);
            let given = self.element_type(&field.value, field.optional);
            if !self.unifier.assign(&expected, &given) {
                let message = format!(
                    "expected type of field '{}' is '{expected}' but provided type is '{given}'",
                    field.field
                );
                self.error(field.id, message);
            }
        }
    }

    fn check_comprehension(&mut self, id: u32, it: &mut Comprehension) {
        self.check(&mut it.range);
        self.check(&mut it.initial);
        let range = self.unifier.substitute(&self.get(&it.range), false);
        let accumulated = self.get(&it.initial);
        let (first, second) = self.loop_types(&it.range, &range, it.second_variable.is_some());
        let depth = self.scopes.len();
        self.scopes
            .push((it.accumulator.clone(), accumulated.clone()));
        self.scopes.push((it.variable.clone(), first));
        if let Some(name) = &it.second_variable {
            self.scopes.push((name.clone(), second));
        }
        self.check(&mut it.condition);
        self.assert_type(&it.condition, &Type::Bool);
        self.check(&mut it.step);
        self.assert_type(&it.step, &accumulated);
        self.scopes.truncate(depth + 1);
        self.check(&mut it.result);
        self.scopes.truncate(depth);
        let of = self.unifier.substitute(&self.get(&it.result), false);
        self.set(id, of);
    }

    fn loop_types(&mut self, expr: &Expr, range: &Type, two: bool) -> (Type, Type) {
        match range {
            Type::List(of) if two => (Type::Int, (**of).clone()),
            Type::List(of) => ((**of).clone(), Type::Dyn),
            Type::Map(of) => (of.0.clone(), of.1.clone()),
            Type::Dyn | Type::Error | Type::Parameter(_) => {
                self.unifier.assign(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be \
                     list, map, or dynamic)"
                );
                self.error(expr.id, message);
                (Type::Error, Type::Error)
            }
        }
    }

    fn assert_type(&mut self, expr: &Expr, expected: &Type) {
        let found = self.get(expr);
        if !self.unifier.assign(expected, &found) {
            self.mismatch(expr.id, expected, &found);
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

impl Environment {
    fn function(&self, name: &str) -> Option<&'static Function> {
        function::find(name).filter(|_| self.has_function(name))
    }
}
