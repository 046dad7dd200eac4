//! From the text of a path to its steps.
//!
//! Follows upstream's parser, which cuts texts out first and reads them afterwards: brackets end at
//! the first `]` whatever is quoted, and a quoted key is read again as a path.

use object::{Text, Value};

use super::{Filter, Slice, Step};

/// The steps of a path; none if it cannot be read.
pub(super) fn steps(text: &str) -> Option<Vec<Step>> {
    let mut parser = Parser { rest: text };
    let mut steps = Vec::new();
    while let Some(next) = parser.peek() {
        if next == '}' {
            // Upstream writes braces around the path. What follows the closing one is text to
            // print, and only the first value is printed.
            break;
        }
        parser.step(next, &mut steps)?;
    }
    Some(steps)
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes this many bytes, which end between two characters.
    fn cut(&mut self, bytes: usize) -> &'a str {
        let (cut, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        cut
    }

    fn step(&mut self, next: char, steps: &mut Vec<Step>) -> Option<()> {
        if let Some(rest) = self.rest.strip_prefix("[?(") {
            self.rest = rest;
            steps.push(self.filter()?);
            return Some(());
        }
        if let Some(rest) = self.rest.strip_prefix("..") {
            if matches!(steps.last(), Some(Step::Descent)) {
                return None;
            }
            self.rest = rest;
            steps.push(Step::Descent);
            if self.peek().is_some_and(is_alphanumeric) {
                steps.push(self.field());
            }
            return Some(());
        }
        match next {
            ' ' | '@' | '$' => {
                self.cut(1);
            }
            '.' => {
                self.cut(1);
                steps.push(self.field());
            }
            '[' => self.brackets(steps)?,
            '"' | '\'' => steps.push(self.quoted(next)?),
            '+' | '-' => steps.push(self.number()?),
            next if next.is_ascii_digit() => steps.push(self.number()?),
            next if is_alphanumeric(next) => steps.push(self.word()),
            _ => return None,
        }
        Some(())
    }

    /// A name up to what ends names, unless that is escaped.
    fn field(&mut self) -> Step {
        let mut escaped = false;
        let end = self.rest.find(|next: char| {
            let ends = !escaped && is_terminator(next);
            escaped = !escaped && next == '\\';
            ends
        });
        match self.cut(end.unwrap_or(self.rest.len())) {
            "*" => Step::Wildcard,
            name => Step::Field(name.replace('\\', "").into()),
        }
    }

    fn word(&mut self) -> Step {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        match self.cut(end) {
            "true" => Step::Literal(Value::Bool(true)),
            "false" => Step::Literal(Value::Bool(false)),
            _ => Step::Word,
        }
    }

    fn number(&mut self) -> Option<Step> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..].find(|next: char| next != '.' && !next.is_ascii_digit());
        let text = self.cut(digits.map_or(self.rest.len(), |digits| sign + digits));
        let integer = text.parse().map(Value::Int).ok();
        integer
            .or_else(|| text.parse().map(Value::Float).ok())
            .map(Step::Literal)
    }

    fn quoted(&mut self, quote: char) -> Option<Step> {
        let end = closing_quote(&self.rest[1..], quote)? + 1;
        let text = unquote(&self.rest[1..end], quote)?;
        self.cut(end + 1);
        Some(Step::Quoted(Value::String(text)))
    }

    fn brackets(&mut self, steps: &mut Vec<Step>) -> Option<()> {
        let end = self.rest.find([']', '\n'])?;
        let text = self.cut(end + 1).strip_suffix(']')?.strip_prefix('[')?;
        if text.contains(',') {
            let paths = text.split(',').map(|part| {
                let mut path = Vec::new();
                one_bracket(part.trim_matches(' '), &mut path)?;
                Some(path)
            });
            steps.push(Step::Union(paths.collect::<Option<_>>()?));
            return Some(());
        }
        one_bracket(text, steps)
    }

    /// What is left of a filter after its `[?(`.
    fn filter(&mut self) -> Option<Step> {
        let end = filter_end(self.rest)?;
        let text = self.cut(end);
        self.rest = self.rest.strip_prefix(")]")?;
        let is_operator = |next: char| matches!(next, '!' | '<' | '>' | '=');
        let Some(start) = text.find(is_operator) else {
            return Some(Step::Filter(Filter {
                left: steps(text)?,
                comparison: None,
            }));
        };
        let (left, rest) = text.split_at(start);
        let right = rest.trim_start_matches(is_operator);
        if left.is_empty() || right.is_empty() {
            return None;
        }
        let operator = &rest[..rest.len() - right.len()];
        Some(Step::Filter(Filter {
            left: steps(left)?,
            comparison: Some((operator.into(), steps(right)?)),
        }))
    }
}

/// A quoted key, an index or a slice.
fn one_bracket(text: &str, steps: &mut Vec<Step>) -> Option<()> {
    let key = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''))
        .filter(|key| !key.contains('\''));
    match key {
        Some(key) => steps.extend(self::steps(&format!(".{key}"))?),
        None => steps.push(Step::Slice(slice(text)?)),
    }
    Some(())
}

fn slice(text: &str) -> Option<Slice> {
    let text = if text == "*" { ":" } else { text };
    let mut parts = text.split(':').map(|part| match part {
        "" => Some(None),
        // A plus would be read as part of the number.
        part if part.starts_with('+') => None,
        part => part.parse::<i64>().ok().map(Some),
    });
    let first = parts.next()??;
    let end = parts.next();
    let step = parts.next();
    if parts.next().is_some() {
        return None;
    }
    Some(Slice {
        first,
        end: match end {
            Some(end) => end?,
            None => Some(first.unwrap_or(0).checked_add(1)?),
        },
        step: match step {
            Some(step) => step?,
            None => None,
        },
        index: end.is_none(),
    })
}

/// Where a filter ends: at the first parenthesis after its quoted text, if it has one.
fn filter_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut closed = false;
    let mut before = '(';
    for (at, next) in text.char_indices() {
        match next {
            '\n' => return None,
            '"' | '\'' if quote.is_none() => quote = Some(next),
            '"' | '\'' if before != '\\' && quote == Some(next) => closed = true,
            ')' if quote.is_some() == closed => return Some(at),
            _ => {}
        }
        before = next;
    }
    None
}

/// Where the quote is that is not escaped.
fn closing_quote(text: &str, quote: char) -> Option<usize> {
    let mut before = quote;
    for (at, next) in text.char_indices() {
        match next {
            '\n' => return None,
            next if next == quote && before != '\\' => return Some(at),
            _ => before = next,
        }
    }
    None
}

/// Resolves escapes as Go writes them; those by number are not known here.
fn unquote(text: &str, quote: char) -> Option<Text> {
    let mut out = Text::default();
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            out.push(next);
            continue;
        }
        out.push(match rest.next()? {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '\\' => '\\',
            next if next == quote => quote,
            _ => return None,
        });
    }
    Some(out)
}

fn is_terminator(next: char) -> bool {
    matches!(
        next,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

fn is_alphanumeric(next: char) -> bool {
    next == '_' || next.is_alphanumeric()
}
