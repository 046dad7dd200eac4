//! Field selectors: queries by the few fields that a kind makes selectable.
//!
//! Contract: apimachinery `fields/selector.go`, error texts included. A backslash before a
//! backslash, comma or equals sign takes it literally inside a value; the left side knows no
//! escapes. Terms are sorted as they were written.

use std::fmt;

use crate::Text;

/// Which objects a query means, told by their fields.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

/// One condition on one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term {
    /// The field, such as `metadata.name`.
    pub field: Text,
    /// How it relates to the value.
    pub comparison: Comparison,
    /// The value, with escapes resolved.
    pub value: Text,
}

/// How a field relates to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Comparison {
    /// Written `=` or `==`.
    Equal,
    /// Written `!=`.
    NotEqual,
}

impl FieldSelector {
    /// Reads the text form, such as `metadata.name=a,spec.nodeName!=b`.
    ///
    /// # Errors
    /// The message of the 400 answer.
    pub fn parse(text: &str) -> Result<FieldSelector, String> {
        let mut parts = split(text);
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let Some((field, comparison, value)) = split_term(part) else {
                return Err(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                ));
            };
            terms.push(Term {
                field: field.into(),
                comparison,
                value: unescape(value)?,
            });
        }
        Ok(FieldSelector::from_terms(terms))
    }

    /// Selects every object.
    pub fn everything() -> FieldSelector {
        FieldSelector::default()
    }

    /// Selects the objects that satisfy all terms. A term that names neither field nor value
    /// says nothing and is dropped.
    pub fn from_terms(mut terms: Vec<Term>) -> FieldSelector {
        terms.retain(|term| !(term.field.is_empty() && term.value.is_empty()));
        FieldSelector { terms }
    }

    /// Whether every object is selected because nothing is required.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The conditions.
    pub fn terms(&self) -> impl ExactSizeIterator<Item = (&str, Comparison, &str)> {
        self.terms
            .iter()
            .map(|term| (&*term.field, term.comparison, &*term.value))
    }

    /// Whether an object is selected; `get` looks up its fields, absent ones are empty.
    pub fn matches(&self, get: impl Fn(&str) -> String) -> bool {
        self.terms.iter().all(|term| {
            let is_equal = get(&term.field) == term.value.as_str();
            is_equal == (term.comparison == Comparison::Equal)
        })
    }

    /// The value that `field` must have, if the selector demands one.
    pub fn requires_exact(&self, field: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| term.field == field && term.comparison == Comparison::Equal)
            .map(|term| term.value.as_str())
    }

    /// The selector with each field and value replaced, as a kind renames or refuses them.
    ///
    /// # Errors
    /// The first error that `replace` gives.
    pub fn try_map<E>(
        &self,
        mut replace: impl FnMut(&str, &str) -> Result<(Text, Text), E>,
    ) -> Result<FieldSelector, E> {
        let mut terms = Vec::with_capacity(self.terms.len());
        for term in &self.terms {
            let (field, value) = replace(&term.field, &term.value)?;
            terms.push(Term {
                field,
                comparison: term.comparison,
                value,
            });
        }
        Ok(FieldSelector::from_terms(terms))
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(out, "{comma}{term}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let comparison = match self.comparison {
            Comparison::Equal => "=",
            Comparison::NotEqual => "!=",
        };
        write!(out, "{}{comparison}{}", self.field, escape(&self.value))
    }
}

/// Writes a value so that it reads back as itself.
pub fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for character in value.chars() {
        if matches!(character, '\\' | ',' | '=') {
            out.push('\\');
        }
        out.push(character);
    }
    out
}

/// Cuts at the commas that no backslash protects; the backslashes stay.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Cuts at the first comparison.
fn split_term(term: &str) -> Option<(&str, Comparison, &str)> {
    let equals = term.find('=')?;
    let (field, rest) = (&term[..equals], &term[equals + 1..]);
    if let Some(field) = field.strip_suffix('!') {
        return Some((field, Comparison::NotEqual, rest));
    }
    Some((
        field,
        Comparison::Equal,
        rest.strip_prefix('=').unwrap_or(rest),
    ))
}

fn unescape(value: &str) -> Result<Text, String> {
    let mut out = Text::default();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(literal @ ('\\' | ',' | '=')) => out.push(literal),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!(
                        "invalid field selector: invalid escape sequence: \\{other}"
                    ));
                }
            },
            ',' | '=' => {
                // Upstream prints the number of the character.
                let number = character as u32;
                return Err(format!(
                    "invalid field selector: unescaped character in value: {number}"
                ));
            }
            _ => out.push(character),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn selectors_print_in_one_form() {
        let cases = [
            ("", ""),
            ("=", ""),
            ("a=", "a="),
            (",b==2,,a!=1,", "a!=1,b=2"),
            (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
            ("metadata.name=é", "metadata.name=é"),
        ];
        for (text, printed) in cases {
            let selector = FieldSelector::parse(text).expect(text);
            assert_eq!(selector.to_string(), printed, "of {text:?}");
            assert_eq!(selector.is_everything(), printed.is_empty());
        }
    }

    #[test]
    fn parse_errors_are_upstreams_to_the_letter() {
        let cases = [
            (
                "nonsense",
                "invalid selector: 'nonsense'; can't understand 'nonsense'",
            ),
            ("b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'"),
            (
                r"a=\x",
                r"invalid field selector: invalid escape sequence: \x",
            ),
            (
                r"a=\",
                r"invalid field selector: invalid escape sequence: \",
            ),
            (
                "a=b=c",
                "invalid field selector: unescaped character in value: 61",
            ),
            (
                "a===c",
                "invalid field selector: unescaped character in value: 61",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(
                FieldSelector::parse(text).unwrap_err(),
                expected,
                "of {text:?}"
            );
        }
    }

    #[test]
    fn terms_select_what_they_say() {
        let selector = FieldSelector::parse("metadata.name=a,status.phase!=Failed").unwrap();
        let object = |name: &'static str, phase: &'static str| {
            move |field: &str| match field {
                "metadata.name" => name.to_owned(),
                "status.phase" => phase.to_owned(),
                _ => String::new(),
            }
        };
        assert!(selector.matches(object("a", "Running")));
        assert!(selector.matches(object("a", "")));
        assert!(!selector.matches(object("a", "Failed")));
        assert!(!selector.matches(object("b", "Running")));
        assert_eq!(selector.requires_exact("metadata.name"), Some("a"));
        assert_eq!(selector.requires_exact("status.phase"), None);
    }

    #[test]
    fn a_kind_renames_or_refuses_fields() {
        let selector = FieldSelector::parse("spec.host=a").unwrap();
        let renamed = selector.try_map(|field, value| match field {
            "spec.host" => Ok(("spec.nodeName".into(), value.into())),
            other => Err(format!("field label not supported: {other}")),
        });
        assert_eq!(renamed.unwrap().to_string(), "spec.nodeName=a");
    }

    proptest! {
        #[test]
        fn a_printed_selector_reads_back_as_itself(text in r"([ab\\]{0,2}(=|==|!=)[cé!]{0,2}(\\[,=\\])?,?){0,4}") {
            if let Ok(selector) = FieldSelector::parse(&text) {
                let mut again = FieldSelector::parse(&selector.to_string()).expect("printed by us");
                let mut selector = selector;
                // Terms are sorted as written, and printing may write them otherwise.
                again.terms.sort();
                selector.terms.sort();
                prop_assert_eq!(again, selector);
            }
        }

        #[test]
        fn an_escaped_value_reads_back_as_itself(value in r"[a,=\\é!]{0,12}") {
            let unescaped = unescape(&escape(&value)).expect("escaped by us");
            prop_assert_eq!(unescaped.as_str(), value.as_str());
        }
    }
}
