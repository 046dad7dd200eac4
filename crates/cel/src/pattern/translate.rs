//! From Go's dialect of regular expressions to that of the `regex` crate.

use std::iter::Peekable;
use std::str::CharIndices;

/// Repeats above this are refused, as Go does.
const REPEAT_MAX: u32 = 1000;

/// The classes that have a name between colons.
const NAMED_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// Writes a pattern in the other dialect, or says what only Go refuses.
pub(super) fn translate(text: &str) -> Result<String, String> {
    let mut translator = Translator {
        text,
        rest: text.char_indices().peekable(),
        out: String::with_capacity(text.len() + 16),
        last_repeat: None,
        has_operand: false,
    };
    translator.run()?;
    Ok(translator.out)
}

struct Translator<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
    out: String,
    /// Where the repeat began that ends right here, if there is one.
    last_repeat: Option<usize>,
    /// Whether there is something to repeat.
    has_operand: bool,
}

impl Translator<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some((at, character)) = self.rest.next() {
            let before = self.last_repeat.take();
            let operand = std::mem::replace(&mut self.has_operand, true);
            match character {
                '(' | '|' => {
                    self.out.push(character);
                    self.has_operand = false;
                    // What follows is a name or flags; the other engine knows them.
                    if character == '(' && self.next_if('?') {
                        self.out.push('?');
                    }
                }
                '\\' => self.escape(at)?,
                '[' => self.class(at)?,
                '*' | '+' | '?' => {
                    self.out.push(character);
                    self.repeated(at, before, operand)?;
                }
                '{' => match self.counted(at)? {
                    true => self.repeated(at, before, operand)?,
                    false => self.out.push_str("\\{"),
                },
                '}' => self.out.push_str("\\}"),
                other => self.out.push(other),
            }
        }
        Ok(())
    }

    fn next_if(&mut self, wanted: char) -> bool {
        self.rest.next_if(|(_, next)| *next == wanted).is_some()
    }

    fn position(&mut self) -> usize {
        self.rest.peek().map_or(self.text.len(), |(at, _)| *at)
    }

    /// Notes a repeat; one of another is refused.
    fn repeated(
        &mut self,
        at: usize,
        before: Option<usize>,
        has_operand: bool,
    ) -> Result<(), String> {
        if !has_operand {
            let shown = &self.text[at..self.position()];
            return Err(format!(
                "missing argument to repetition operator: `{shown}`"
            ));
        }
        if self.next_if('?') {
            self.out.push('?');
        }
        let end = self.position();
        if let Some(start) = before {
            let shown = &self.text[start..end];
            return Err(format!("invalid nested repetition operator: `{shown}`"));
        }
        self.last_repeat = Some(at);
        Ok(())
    }

    /// Copies a count such as `{2,3}`; a brace that begins none stands for itself in Go.
    fn counted(&mut self, at: usize) -> Result<bool, String> {
        let inner = &self.text[at + 1..];
        let Some(end) = inner.find('}') else {
            return Ok(false);
        };
        let inner = &inner[..end];
        let (least, most) = inner.split_once(',').unwrap_or((inner, ""));
        let number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        if !number(least) || !(most.is_empty() || number(most)) {
            return Ok(false);
        }
        let too_many = |text: &str| text.parse().map_or(true, |count: u32| count > REPEAT_MAX);
        if too_many(least) || (!most.is_empty() && too_many(most)) {
            return Err(format!("invalid repeat count: `{{{inner}}}`"));
        }
        self.out.push_str(&self.text[at..at + end + 2]);
        for _ in 0..=inner.chars().count() {
            self.rest.next();
        }
        Ok(true)
    }

    fn escape(&mut self, at: usize) -> Result<(), String> {
        let Some((_, escaped)) = self.rest.next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        match escaped {
            'd' => self.out.push_str("[0-9]"),
            'w' => self.out.push_str("[0-9A-Za-z_]"),
            's' => self.out.push_str("[\\t\\n\\x0C\\r ]"),
            'D' => self.out.push_str("[^0-9]"),
            'W' => self.out.push_str("[^0-9A-Za-z_]"),
            'S' => self.out.push_str("[^\\t\\n\\x0C\\r ]"),
            'b' => self.out.push_str("(?-u:\\b)"),
            'B' => self.out.push_str("(?-u:\\B)"),
            'C' => self.out.push('.'),
            'Q' => self.quoted(),
            'p' | 'P' | 'x' => self.braced(escaped),
            'u' | 'U' | 'h' | 'H' | 'R' | 'G' | 'K' | 'Z' | '<' | '>' => {
                let shown = &self.text[at..self.position()];
                return Err(format!("invalid escape sequence: `{shown}`"));
            }
            other => {
                self.out.push('\\');
                self.out.push(other);
            }
        }
        Ok(())
    }

    /// Copies an escape whose argument may stand between braces.
    fn braced(&mut self, escaped: char) {
        self.out.push('\\');
        self.out.push(escaped);
        if self.next_if('{') {
            self.out.push('{');
            for (_, character) in self.rest.by_ref() {
                self.out.push(character);
                if character == '}' {
                    break;
                }
            }
        }
    }

    /// Copies what stands between `\\Q` and `\\E` as it is.
    fn quoted(&mut self) {
        let mut text = String::new();
        while let Some((_, character)) = self.rest.next() {
            if character == '\\' && self.next_if('E') {
                break;
            }
            text.push(character);
        }
        self.out.push_str(&regex::escape(&text));
    }

    /// Copies a class, in which Go has no operators.
    fn class(&mut self, at: usize) -> Result<(), String> {
        self.out.push('[');
        if self.next_if('^') {
            self.out.push('^');
        }
        let mut first = true;
        while let Some((here, character)) = self.rest.next() {
            match character {
                ']' if !first => {
                    self.out.push(']');
                    return Ok(());
                }
                '\\' => self.escape_in_class(here)?,
                '[' if self.text[here..].starts_with("[:")
                    && self.text[here + 2..].contains(":]") =>
                {
                    self.named_class(here)?;
                }
                '[' | ']' | '&' | '~' | '#' => {
                    self.out.push('\\');
                    self.out.push(character);
                }
                '-' if first => self.out.push_str("\\-"),
                '-' => {
                    let last = self.rest.peek().is_none_or(|(_, next)| *next == ']');
                    self.out.push_str(if last { "\\-" } else { "-" });
                }
                other => self.out.push(other),
            }
            first = false;
        }
        Err(format!("missing closing ]: `{}`", &self.text[at..]))
    }

    fn escape_in_class(&mut self, at: usize) -> Result<(), String> {
        match self.rest.peek().copied() {
            Some((_, 'd')) => self.out.push_str("0-9"),
            Some((_, 'w')) => self.out.push_str("0-9A-Za-z_"),
            Some((_, 's')) => self.out.push_str("\\t\\n\\x0C\\r "),
            Some((_, 'b' | 'B' | 'C' | 'Q')) => {
                self.rest.next();
                let shown = &self.text[at..self.position()];
                return Err(format!("invalid escape sequence: `{shown}`"));
            }
            _ => return self.escape(at),
        }
        self.rest.next();
        Ok(())
    }

    /// Copies a class such as `[:alpha:]`.
    fn named_class(&mut self, at: usize) -> Result<(), String> {
        let inner = &self.text[at + 2..];
        let end = inner.find(":]").unwrap_or_default();
        let name = inner[..end].trim_start_matches('^');
        let whole = &self.text[at..at + end + 4];
        if !NAMED_CLASSES.contains(&name) {
            return Err(format!("invalid character class range: `{whole}`"));
        }
        self.out.push_str(whole);
        for _ in 1..whole.chars().count() {
            self.rest.next();
        }
        Ok(())
    }
}
