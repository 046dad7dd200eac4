//! YAML in and out.
//!
//! Contract: `sigs.k8s.io/yaml` over `go.yaml.in/yaml/v2`, a YAML 1.1, down to the words of its
//! errors and to the look of its output. Reading: only the first document; scalars mean what they
//! mean to kubectl users (`yes` is true, `0777` is octal); keys become strings; aliases have a
//! budget; at most ten thousand levels. Numbers come out as they do when the result passes through
//! JSON: `1.0` is the integer 1.
//!
//! We write our own scanner because the words and lines of syntax errors are what clients see, and
//! those follow from how a scanner works.

mod base64;
mod decode;
mod parse;
mod resolve;
mod scan;
mod write;

use std::borrow::Cow;

pub use write::to_string;

use crate::{Value, json};

/// Why a text is not YAML that we take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text breaks the grammar.
    #[error("yaml: {}{problem}", line_prefix(*.line))]
    Syntax {
        /// The line as upstream tells it: none for the first, and sometimes the one before.
        line: Option<usize>,
        /// What is wrong there.
        problem: Cow<'static, str>,
    },
    /// The grammar is kept, but the document makes no sense.
    #[error("yaml: {problem}")]
    Document {
        /// What is wrong with it.
        problem: String,
    },
    /// Aliases make the document far larger than its text.
    #[error("yaml: document contains excessive aliasing")]
    ExcessiveAliasing,
    /// The document nests too deep once its aliases are followed.
    #[error("yaml: exceeded max depth of {}", json::DEPTH_MAX)]
    Depth,
    /// A number that JSON cannot hold.
    #[error("json: unsupported value: {value}")]
    UnsupportedNumber {
        /// The number as Go prints it.
        value: &'static str,
    },
    /// A key that cannot become a string.
    #[error("unsupported map key of type: {kind}, key: {key}")]
    UnsupportedKey {
        /// Its type as Go names it.
        kind: &'static str,
        /// The key as Go prints it.
        key: String,
    },
}

/// Reads the first document; of equal keys in a mapping the last one stays.
///
/// An empty text is `null`.
pub fn parse(text: &[u8]) -> Result<Value, Error> {
    parse_strict(text).map(|(value, _)| value)
}

/// Reads the first document and tells which keys stand twice.
///
/// The messages are those of upstream, such as `line 7: key "a" already set in map`, in the order
/// met, at most a thousand.
pub fn parse_strict(text: &[u8]) -> Result<(Value, Vec<String>), Error> {
    // Most bodies are JSON. What JSON refuses, and what has keys twice, YAML has to explain.
    if text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
        && let Some(value) = json::parse_for_yaml(text)
    {
        return Ok((value, Vec::new()));
    }
    let text = std::str::from_utf8(text).map_err(invalid_utf8)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.chars().any(is_refused) {
        let problem = Cow::Borrowed("control characters are not allowed");
        return Err(Error::Syntax {
            line: None,
            problem,
        });
    }
    decode::decode(&parse::document(text)?)
}

/// Whether a character may not stand in a YAML text, not even in quotes.
fn is_refused(character: char) -> bool {
    !matches!(character,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

fn invalid_utf8(error: std::str::Utf8Error) -> Error {
    let problem = match error.error_len() {
        None => "incomplete UTF-8 octet sequence",
        Some(1) => "invalid leading UTF-8 octet",
        Some(_) => "invalid trailing UTF-8 octet",
    };
    Error::Syntax {
        line: None,
        problem: problem.into(),
    }
}

fn line_prefix(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

#[cfg(test)]
mod tests;
