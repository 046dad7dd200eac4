//! What is checked of an expression whose types are right.
//!
//! Contract: the validators of cel-go `cel/validator.go` that Kubernetes turns on (literals of
//! durations, times and patterns, lists and maps of one type) and that of `ext/formatting.go`.

use crate::ast::{Expr, Kind, Literal};
use crate::check::Checked;
use crate::library::string_format::{Clause, Piece, Pieces};
use crate::pattern;
use crate::source::Issues;
use crate::types::{Names, Type};
use crate::value::{Value, to_duration, to_timestamp};

/// Reports what is wrong beyond types.
pub(crate) fn validate(checked: &Checked, issues: &mut Issues) {
    let mut validator = Validator { checked, issues };
    checked.ast.root.walk(&mut |expr| validator.literals(expr));
    validator.aggregates(&checked.ast.root);
    let mut validator = Validator { checked, issues };
    checked.ast.root.walk(&mut |expr| validator.formats(expr));
}

struct Validator<'a> {
    checked: &'a Checked,
    issues: &'a mut Issues,
}

impl Validator<'_> {
    fn report(&mut self, id: u32, message: String) {
        self.issues.report_at(self.checked.ast.offset(id), message);
    }

    fn literals(&mut self, expr: &Expr) {
        let Kind::Call {
            function,
            arguments,
            ..
        } = &expr.kind
        else {
            return;
        };
        let Some(argument) = arguments.first() else {
            return;
        };
        let Kind::Literal(literal) = &argument.kind else {
            return;
        };
        let value = match literal {
            Literal::String(text) => Value::text(text),
            Literal::Int(number) => Value::Int(*number),
            _ => return,
        };
        let fails = match function.as_ref() {
            "duration" => to_duration(&value).is_err(),
            "timestamp" => to_timestamp(&value).is_err(),
            "matches" => value
                .as_text()
                .is_some_and(|it| pattern::compile(it).is_err()),
            _ => false,
        };
        if fails {
            self.report(argument.id, format!("invalid {function} argument"));
        }
    }

    /// Lists and maps hold one type, except those that are formatted.
    fn aggregates(&mut self, expr: &Expr) {
        match &expr.kind {
            Kind::Call { function, .. } if function == "format" => return,
            Kind::List(elements) => {
                let elements = elements.iter().map(|it| (&it.value, it.optional));
                self.same_types(elements.collect());
            }
            Kind::Map(entries) => {
                self.same_types(entries.iter().map(|it| (&it.key, false)).collect());
                let values = entries.iter().map(|it| (&it.value, it.optional));
                self.same_types(values.collect());
            }
            _ => {}
        }
        expr.for_each_child(&mut |child| self.aggregates(child));
    }

    fn same_types(&mut self, values: Vec<(&Expr, bool)>) {
        let mut expected: Option<&Type> = None;
        for (value, optional) in values {
            let mut of = self.checked.type_of(value);
            if optional {
                of = of.unwrapped().0;
            }
            match expected {
                None => expected = Some(of),
                Some(before) if before.is_like(of, Names::Ignored) => {}
                Some(before) => {
                    let message = format!("expected type '{before}' but found '{of}'");
                    self.report(value.id, message);
                    return;
                }
            }
        }
    }

    fn formats(&mut self, expr: &Expr) {
        let Kind::Call {
            function,
            target: Some(target),
            arguments,
        } = &expr.kind
        else {
            return;
        };
        let (Kind::Literal(Literal::String(text)), [list]) = (&target.kind, arguments.as_slice())
        else {
            return;
        };
        let Kind::List(values) = &list.kind else {
            return;
        };
        if function != "format" {
            return;
        }
        let values: Vec<&Expr> = values.iter().map(|it| &it.value).collect();
        match self.format(text, &values) {
            Err((id, message)) => self.report(id.unwrap_or(expr.id), message),
            Ok(used) if used < values.len() => {
                let message = format!(
                    "too many arguments supplied to string.format (expected {used}, got {})",
                    values.len()
                );
                self.report(expr.id, message);
            }
            Ok(_) => {}
        }
    }

    /// How many values the format uses, or what is wrong with it and where.
    fn format(&self, text: &str, values: &[&Expr]) -> Result<usize, (Option<u32>, String)> {
        let mut used = 0;
        for piece in Pieces(text) {
            if matches!(piece, Ok(Piece::Literal(_))) {
                continue;
            }
            let is_end = matches!(&piece, Err(why) if why == "unexpected end of string");
            if used >= values.len() && !is_end {
                return Err((None, format!("index {used} out of range")));
            }
            match piece {
                Ok(Piece::Clause(clause)) => self
                    .fits(clause, values[used])
                    .map_err(|(id, why)| (Some(id), format!("error during formatting: {why}")))?,
                Err(why) => return Err((None, why)),
                Ok(Piece::Literal(_)) => {}
            }
            used += 1;
        }
        Ok(used)
    }

    fn fits(&self, clause: Clause, value: &Expr) -> Result<(), (u32, String)> {
        let of = self.checked.type_of(value);
        let fits = match clause {
            _ if of.is_dyn() => true,
            Clause::Text => !matches!(of, Type::Object(_) | Type::Opaque(..) | Type::Error),
            Clause::Decimal | Clause::Octal => matches!(of, Type::Int | Type::Uint),
            Clause::Fixed(_) | Clause::Scientific(_) => matches!(of, Type::Double | Type::String),
            Clause::Binary => matches!(of, Type::Int | Type::Uint | Type::Bool),
            Clause::Hexadecimal { .. } => {
                matches!(of, Type::Int | Type::Uint | Type::String | Type::Bytes)
            }
        };
        if !fits {
            return Err((value.id, clause.complaint(&of.name())));
        }
        if clause != Clause::Text {
            return Ok(());
        }
        match &value.kind {
            Kind::List(elements) => elements
                .iter()
                .try_for_each(|it| self.fits(clause, &it.value)),
            Kind::Map(entries) => entries.iter().try_for_each(|it| {
                self.fits(clause, &it.key)?;
                self.fits(clause, &it.value)
            }),
            _ => Ok(()),
        }
    }
}
