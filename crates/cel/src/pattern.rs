//! Patterns: Go's regular expressions, run by the `regex` crate.
//!
//! Both engines take linear time and nearly the same syntax. What differs: Go's Perl classes (`\d`,
//! `\w`, `\s`, `\b`) are ASCII, Go has no class set operations (`&&`, `--`, `~~`, nested `[`), and
//! `\Q...\E` quotes. A pattern is rewritten into the other dialect before it is compiled.

use regex::{Regex, RegexBuilder};

/// A compiled pattern may take this much memory. A repetition of repetitions can ask for
/// gigabytes; such a pattern is refused.
const PROGRAM_BYTES_MAX: usize = 2 << 20;

/// Repeats above this are refused, as Go does.
const REPEAT_MAX: u32 = 1000;

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {message}")]
pub struct PatternError {
    /// What is wrong, in the words of Go's parser where the mistake is a common one.
    pub message: String,
}

/// Compiles a pattern.
///
/// # Errors
/// It is no regular expression, or one that takes too much memory.
pub fn compile(text: &str) -> Result<Regex, PatternError> {
    let failed = |message: String| PatternError { message };
    let translated = translate(text).map_err(failed)?;
    RegexBuilder::new(&translated)
        .size_limit(PROGRAM_BYTES_MAX)
        .dfa_size_limit(PROGRAM_BYTES_MAX)
        .build()
        .map_err(|error| failed(in_words_of_go(text, &error)))
}

/// The message of Go's parser for the mistakes that people make, else our own.
fn in_words_of_go(text: &str, error: &regex::Error) -> String {
    let regex::Error::Syntax(shown) = error else {
        return format!("expression is too large: `{text}`");
    };
    let last = shown.lines().last().unwrap_or_default();
    let reason = last.strip_prefix("error: ").unwrap_or(last);
    match reason {
        "unclosed group" => format!("missing closing ): `{text}`"),
        "unopened group" => format!("unexpected ): `{text}`"),
        "unclosed character class" => {
            let open = text.rfind('[').unwrap_or_default();
            format!("missing closing ]: `{}`", &text[open..])
        }
        "repetition operator missing expression" => {
            let operator = text.chars().find(|it| matches!(it, '*' | '+' | '?'));
            let operator = operator.map(String::from).unwrap_or_default();
            format!("missing argument to repetition operator: `{operator}`")
        }
        other if other.starts_with("look-around") => {
            let at = text.find("(?").unwrap_or_default();
            let shown: String = text[at..].chars().take(3).collect();
            format!("invalid or unsupported Perl syntax: `{shown}`")
        }
        other => format!("{other}: `{text}`"),
    }
}

/// Writes a pattern of Go's dialect in that of the `regex` crate.
fn translate(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    let mut in_class = false;
    let mut class_start = false;
    while let Some(character) = rest.next() {
        let first = std::mem::take(&mut class_start);
        match character {
            '\\' => escape(rest.next(), &mut rest, in_class, &mut out)?,
            '[' if !in_class => {
                in_class = true;
                class_start = true;
                out.push('[');
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
            }
            '[' if rest.peek() == Some(&':') => named_class(&mut rest, &mut out),
            '[' => out.push_str("\\["),
            ']' if in_class && first => out.push_str("\\]"),
            ']' if in_class => {
                in_class = false;
                out.push(']');
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(character);
            }
            '-' if in_class && rest.peek() == Some(&'-') => out.push_str("\\-"),
            '{' if !in_class => repeat(&mut rest, &mut out)?,
            other => out.push(other),
        }
    }
    Ok(out)
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn escape(
    escaped: Option<char>,
    rest: &mut Characters<'_>,
    in_class: bool,
    out: &mut String,
) -> Result<(), String> {
    let Some(escaped) = escaped else {
        return Err("trailing backslash at end of expression: ``".to_owned());
    };
    let ascii = match escaped {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        's' => "\\t\\n\\x0C\\r ",
        _ => "",
    };
    match escaped {
        'd' | 'w' | 's' if in_class => out.push_str(ascii),
        'd' | 'w' | 's' => {
            out.push('[');
            out.push_str(ascii);
            out.push(']');
        }
        'D' => out.push_str("[^0-9]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'S' => out.push_str("[^\\t\\n\\x0C\\r ]"),
        'b' if !in_class => out.push_str("(?-u:\\b)"),
        'B' if !in_class => out.push_str("(?-u:\\B)"),
        'C' => out.push('.'),
        'Q' if !in_class => quoted(rest, out),
        other => {
            out.push('\\');
            out.push(other);
        }
    }
    Ok(())
}

/// Copies the rest of a class such as `[:alpha:]`.
fn named_class(rest: &mut Characters<'_>, out: &mut String) {
    out.push('[');
    for character in rest {
        out.push(character);
        if character == ']' {
            break;
        }
    }
}

/// Copies what stands between `\Q` and `\E` as it is.
fn quoted(rest: &mut Characters<'_>, out: &mut String) {
    let mut text = String::new();
    while let Some(character) = rest.next() {
        if character == '\\' && rest.next_if_eq(&'E').is_some() {
            break;
        }
        text.push(character);
    }
    out.push_str(&regex::escape(&text));
}

/// A brace that is no repeat stands for itself in Go.
fn repeat(rest: &mut Characters<'_>, out: &mut String) -> Result<(), String> {
    let ahead: String = rest.clone().take_while(|it| *it != '}').take(12).collect();
    let (least, most) = ahead.split_once(',').unwrap_or((&ahead, ""));
    let number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let closed = rest.clone().nth(ahead.chars().count()) == Some('}');
    if !closed || !number(least) || !(most.is_empty() || number(most)) {
        out.push_str("\\{");
        return Ok(());
    }
    let too_many = |text: &str| text.parse().is_ok_and(|count: u32| count > REPEAT_MAX);
    if too_many(least) || too_many(most) {
        return Err(format!("invalid repeat count: `{{{ahead}}}`"));
    }
    out.push('{');
    Ok(())
}
