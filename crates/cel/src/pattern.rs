//! Patterns of schemas and expressions: Go's regular expressions, run by the `regex` crate.
//!
//! Both engines take linear time and nearly the same syntax. What differs: Go's Perl classes (`\d`,
//! `\w`, `\s`, `\b`) are ASCII, Go has no class set operations (`&&`, `--`, `~~`, nested `[`), and
//! `\Q...\E` quotes. A pattern is rewritten into the other dialect, compiled on first use and kept.

mod complaint;
mod translate;

use std::sync::{Arc, OnceLock};

use object::Text;
use regex::{Regex, RegexBuilder};

/// A compiled pattern may take this much memory. A repetition of repetitions can ask for
/// gigabytes; such a pattern is refused when the definition is written.
const PROGRAM_BYTES_MAX: usize = 2 << 20;

/// A pattern and, once it has been used, its compiled form.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: Text,
    compiled: Arc<OnceLock<Option<Regex>>>,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {message}")]
pub struct PatternError {
    /// What is wrong, in the words of Go's parser where the mistake is a common one.
    pub message: String,
}

impl Pattern {
    /// A pattern that is compiled when it is first asked.
    pub fn new(text: &str) -> Pattern {
        Pattern {
            text: text.into(),
            compiled: Arc::new(OnceLock::new()),
        }
    }

    /// The pattern as the schema writes it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the pattern matches somewhere in the text. One that cannot be compiled matches
    /// nothing.
    pub fn matches(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| compile(&self.text).ok());
        compiled.as_ref().is_some_and(|regex| regex.is_match(text))
    }

    /// Whether the text can be compiled.
    ///
    /// # Errors
    /// It is no regular expression, or one that takes too much memory.
    pub fn check(text: &str) -> Result<(), PatternError> {
        compile(text).map(|_| ())
    }
}

pub(crate) fn compile(text: &str) -> Result<Regex, PatternError> {
    let failed = |message: String| PatternError { message };
    let translated = translate::translate(text).map_err(failed)?;
    RegexBuilder::new(&translated)
        .size_limit(PROGRAM_BYTES_MAX)
        .dfa_size_limit(PROGRAM_BYTES_MAX)
        .build()
        .map_err(|error| failed(complaint::in_words_of_go(&translated, &error)))
}

#[cfg(test)]
mod tests;
