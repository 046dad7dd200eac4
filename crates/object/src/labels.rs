//! Label selectors: the text form of queries and the structured form inside objects.
//!
//! Contract: apimachinery `labels/selector.go` and `apis/meta/v1/helpers.go`, error texts included.
//! Requirements are sorted by key and their values are sorted, so equal selectors print alike.

use std::fmt;

use crate::field::{self, FieldError, Path};
use crate::{Text, Value, names};

/// Which objects a query or a controller means, told by their labels.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
    nothing: bool,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: Text,
    operator: Operator,
    values: Vec<Text>,
}

/// How a label relates to the values of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label is one of the values.
    In,
    /// The label is absent or none of the values.
    NotIn,
    /// The label is the value.
    Equals,
    /// The label is the value, written `==`.
    DoubleEquals,
    /// The label is absent or not the value.
    NotEquals,
    /// The label is an integer above the value.
    GreaterThan,
    /// The label is an integer below the value.
    LessThan,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl LabelSelector {
    /// Reads the text form, such as `app=web,tier in (a,b),!old`.
    ///
    /// # Errors
    /// The message of the 400 answer.
    pub fn parse(text: &str) -> Result<LabelSelector, String> {
        Parser::new(text).selector()
    }

    /// Selects every object.
    pub fn everything() -> LabelSelector {
        LabelSelector::default()
    }

    /// Selects no object.
    pub fn nothing() -> LabelSelector {
        LabelSelector {
            requirements: Vec::new(),
            nothing: true,
        }
    }

    /// Whether every object is selected because nothing is required.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// The conditions, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object is selected; `get` looks up its labels.
    pub fn matches<'a>(&self, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing
            && self
                .requirements
                .iter()
                .all(|one| one.matches(get(&one.key)))
    }

    /// The one value that `key` must have, if the selector demands one.
    pub fn requires_exact(&self, key: &str) -> Option<&str> {
        let found = self.requirements.iter().find(|one| one.key == key)?;
        match (found.operator, found.values.as_slice()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }

    /// Reads the structured form: `matchLabels` and `matchExpressions`.
    ///
    /// `null` selects nothing, an empty selector selects everything. Members of a wrong type count
    /// as absent: the schema of the kind has refused them before.
    ///
    /// # Errors
    /// What is wrong with the first bad requirement.
    pub fn from_label_selector_value(selector: &Value) -> Result<LabelSelector, String> {
        if selector.is_null() {
            return Ok(LabelSelector::nothing());
        }
        let mut requirements = Vec::new();
        if let Some(labels) = selector.get("matchLabels").and_then(Value::as_object) {
            for (key, value) in labels.iter() {
                let value = Text::from(value.as_str().unwrap_or_default());
                requirements.push(Requirement::new(key, Operator::Equals, vec![value])?);
            }
        }
        let expressions = selector.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.unwrap_or_default() {
            requirements.push(Requirement::from_expression(expression)?);
        }
        Ok(LabelSelector::from_requirements(requirements))
    }

    fn from_requirements(mut requirements: Vec<Requirement>) -> LabelSelector {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        LabelSelector {
            requirements,
            nothing: false,
        }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(out, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl Requirement {
    /// Makes a condition, if key and values are acceptable for the operator.
    ///
    /// # Errors
    /// All that is wrong with it, as one text.
    pub fn new(key: &str, operator: Operator, values: Vec<Text>) -> Result<Requirement, String> {
        let root = Path::root();
        let (key_path, values_path) = (root.field("key"), root.field("values"));
        let mut errors: Vec<FieldError> = key_error(key, &key_path).into_iter().collect();
        if let Some(complaint) = operator.count_complaint(values.len()) {
            errors.push(FieldError::invalid(&values_path, &list(&values), complaint));
        }
        if matches!(operator, Operator::GreaterThan | Operator::LessThan) {
            for (index, value) in values.iter().enumerate() {
                if value.parse::<i64>().is_err() {
                    let complaint = "for 'Gt', 'Lt' operators, the value must be an integer";
                    let value = Value::String(value.clone());
                    errors.push(FieldError::invalid(
                        &values_path.index(index),
                        &value,
                        complaint,
                    ));
                }
            }
        }
        for (index, value) in values.iter().enumerate() {
            let complaints = names::label_value(value);
            if !complaints.is_empty() {
                let item = values_path.index(index);
                let value = Value::String(value.clone());
                errors.push(FieldError::invalid(
                    &item.key(key),
                    &value,
                    complaints.join("; "),
                ));
            }
        }
        if errors.is_empty() {
            return Ok(Requirement {
                key: key.into(),
                operator,
                values,
            });
        }
        Err(field::summary(&errors))
    }

    fn from_expression(expression: &Value) -> Result<Requirement, String> {
        let operator = match expression.str_at(&["operator"]).unwrap_or_default() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => {
                let other = field::quote(other);
                return Err(format!("{other} is not a valid label selector operator"));
            }
        };
        let values = expression
            .get("values")
            .and_then(Value::as_array)
            .unwrap_or_default();
        let values = values
            .iter()
            .map(|value| value.as_str().unwrap_or_default().into());
        let key = expression.str_at(&["key"]).unwrap_or_default();
        Requirement::new(key, operator, values.collect())
    }

    /// The label this is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label relates to the values.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, as many as the operator takes.
    pub fn values(&self) -> &[Text] {
        &self.values
    }

    /// Whether a label with this value, or its absence, satisfies the condition.
    pub fn matches(&self, label: Option<&str>) -> bool {
        let is_listed = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => {
                label.is_some_and(is_listed)
            }
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(is_listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self
                .compare(label)
                .is_some_and(|(label, bound)| label > bound),
            Operator::LessThan => self
                .compare(label)
                .is_some_and(|(label, bound)| label < bound),
        }
    }

    fn compare(&self, label: Option<&str>) -> Option<(i64, i64)> {
        Some((label?.parse().ok()?, self.values.first()?.parse().ok()?))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let mut values: Vec<&str> = self.values.iter().map(Text::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        match self.operator {
            Operator::In => write!(out, "{key} in ({values})"),
            Operator::NotIn => write!(out, "{key} notin ({values})"),
            Operator::Equals => write!(out, "{key}={values}"),
            Operator::DoubleEquals => write!(out, "{key}=={values}"),
            Operator::NotEquals => write!(out, "{key}!={values}"),
            Operator::GreaterThan => write!(out, "{key}>{values}"),
            Operator::LessThan => write!(out, "{key}<{values}"),
            Operator::Exists => write!(out, "{key}"),
            Operator::DoesNotExist => write!(out, "!{key}"),
        }
    }
}

impl Operator {
    fn count_complaint(self, count: usize) -> Option<&'static str> {
        match self {
            Operator::In | Operator::NotIn => {
                (count == 0).then_some("for 'in', 'notin' operators, values set can't be empty")
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => {
                (count != 1).then_some("exact-match compatibility requires one single value")
            }
            Operator::Exists | Operator::DoesNotExist => {
                (count != 0).then_some("values set must be empty for exists and does not exist")
            }
            Operator::GreaterThan | Operator::LessThan => {
                (count != 1).then_some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
        }
    }
}

fn key_error(key: &str, path: &Path<'_>) -> Option<FieldError> {
    let complaints = names::qualified_name(key);
    (!complaints.is_empty()).then(|| FieldError::invalid(path, &key.into(), complaints.join("; ")))
}

/// Values as they are printed: no values at all are a missing list.
fn list(values: &[Text]) -> Value {
    if values.is_empty() {
        return Value::Null;
    }
    Value::Array(values.iter().cloned().map(Value::String).collect())
}

/// What the text form is made of. Keywords are words here: whether `in` is an operator or a value
/// depends on where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    Word(&'a str),
    Symbol(&'a str),
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Token::End => "",
            Token::Word(text) | Token::Symbol(text) => text,
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
    ahead: Token<'a>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        let mut parser = Parser {
            rest: text,
            ahead: Token::End,
        };
        parser.consume();
        parser
    }

    /// Takes the token ahead and reads the next one.
    fn consume(&mut self) -> Token<'a> {
        let taken = self.ahead;
        self.ahead = self.scan();
        taken
    }

    fn scan(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let is_symbol = |c: char| "=!(),><".contains(c);
        let (length, is_word) = match self.rest.chars().next() {
            None | Some('\0') => return Token::End,
            Some(first) if is_symbol(first) => {
                let pair = self.rest.starts_with("==") || self.rest.starts_with("!=");
                (if pair { 2 } else { 1 }, false)
            }
            Some(_) => {
                let ends = |c: char| is_symbol(c) || " \t\r\n\0".contains(c);
                (self.rest.find(ends).unwrap_or(self.rest.len()), true)
            }
        };
        let (text, rest) = self.rest.split_at(length);
        // A zero byte ends the text where a token may start, but only the token where it stands
        // right behind one.
        self.rest = rest.strip_prefix('\0').unwrap_or(rest);
        if is_word {
            Token::Word(text)
        } else {
            Token::Symbol(text)
        }
    }

    fn selector(&mut self) -> Result<LabelSelector, String> {
        let mut requirements = Vec::new();
        loop {
            match self.ahead {
                Token::End => break,
                Token::Word(_) | Token::Symbol("!") => {}
                Token::Symbol(other) => {
                    let expected = "!, identifier, or 'end of string'";
                    return Err(format!("found '{other}', expected: {expected}"));
                }
            }
            let requirement = self.requirement();
            requirements.push(
                requirement.map_err(|error| format!("unable to parse requirement: {error}"))?,
            );
            match (self.consume(), self.ahead) {
                (Token::End, _) => break,
                (Token::Symbol(","), Token::Word(_) | Token::Symbol("!")) => {}
                (Token::Symbol(","), other) => {
                    let other = other.text();
                    return Err(format!("found '{other}', expected: identifier after ','"));
                }
                (other, _) => {
                    let other = other.text();
                    return Err(format!("found '{other}', expected: ',' or 'end of string'"));
                }
            }
        }
        Ok(LabelSelector::from_requirements(requirements))
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.ahead == Token::Symbol("!");
        if absent {
            self.consume();
        }
        let key = self.word()?;
        if let Some(error) = key_error(key, &Path::root()) {
            return Err(error.to_string());
        }
        if absent {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.ahead, Token::End | Token::Symbol(",")) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        Requirement::new(key, operator, values)
    }

    fn word(&mut self) -> Result<&'a str, String> {
        match self.consume() {
            Token::Word(text) => Ok(text),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    fn operator(&mut self) -> Result<Operator, String> {
        Ok(match self.consume() {
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            Token::Symbol("=") => Operator::Equals,
            Token::Symbol("==") => Operator::DoubleEquals,
            Token::Symbol("!=") => Operator::NotEquals,
            Token::Symbol(">") => Operator::GreaterThan,
            Token::Symbol("<") => Operator::LessThan,
            other => {
                let expected = "in, notin, =, ==, !=, gt, lt";
                return Err(format!("found '{}', expected: {expected}", other.text()));
            }
        })
    }

    fn exact_value(&mut self) -> Result<Text, String> {
        match self.ahead {
            Token::End | Token::Symbol(",") => Ok(Text::default()),
            _ => self.word().map(Text::from),
        }
    }

    /// Reads `(a,b)`. A missing value between commas or parentheses is the empty one.
    fn values(&mut self) -> Result<Vec<Text>, String> {
        match self.consume() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        match self.ahead {
            Token::Word(_) | Token::Symbol("," | ")") => {}
            other => {
                return Err(format!(
                    "found '{}', expected: ',', ')' or identifier",
                    other.text()
                ));
            }
        }
        let mut values = Vec::new();
        loop {
            match self.ahead {
                Token::Word(text) => {
                    values.push(Text::from(text));
                    self.consume();
                    if !matches!(self.ahead, Token::Symbol("," | ")")) {
                        let found = self.ahead.text();
                        return Err(format!("found '{found}', expected: ',' or ')'"));
                    }
                }
                Token::Symbol("," | ")") => values.push(Text::default()),
                other => {
                    let found = other.text();
                    return Err(format!("found '{found}', expected: ',', or identifier"));
                }
            }
            if self.consume() == Token::Symbol(")") {
                break;
            }
        }
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }
}

#[cfg(test)]
mod tests;
