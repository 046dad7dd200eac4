//! Reads JSON text that this crate wrote itself, without building a tree.
//!
//! Stored managed fields are read on every write and a tree of them costs more than all else
//! together. The scanner takes compact, sorted, well-formed text; whatever else it meets gives
//! `None`, and the caller reads the text the general way.

use std::borrow::Cow;

use object::{Text, Value};
use smallvec::SmallVec;

use crate::{
    path::PathElement,
    set::{FieldSet, SetReader},
};

/// A position in a text.
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Scanner<'a> {
        Scanner { text, at: 0 }
    }

    /// Whether everything was read.
    pub(crate) fn is_done(&self) -> bool {
        self.at == self.text.len()
    }

    /// The next byte, which is not read yet.
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Reads this byte.
    pub(crate) fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Reads this byte if it is next.
    pub(crate) fn take_if(&mut self, byte: u8) -> bool {
        self.take(byte).is_some()
    }

    /// Reads a string; it is copied only if it has escapes.
    pub(crate) fn string(&mut self) -> Option<Cow<'a, str>> {
        self.take(b'"')?;
        let rest = &self.text[self.at..];
        let end = rest
            .bytes()
            .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        self.at += end + 1;
        match rest.as_bytes()[end] {
            b'"' => Some(Cow::Borrowed(&rest[..end])),
            b'\\' => self.escaped(&rest[..end]).map(Cow::Owned),
            _ => None,
        }
    }

    /// Reads on behind the first backslash of a string that began with `start`.
    fn escaped(&mut self, start: &str) -> Option<String> {
        let mut out = String::with_capacity(start.len() + 32);
        out.push_str(start);
        loop {
            let escape = self.peek()?;
            self.at += 1;
            out.push(match escape {
                b'"' => '"',
                b'\\' => '\\',
                b'/' => '/',
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => {
                    let digits = self.text.get(self.at..self.at + 4)?;
                    self.at += 4;
                    char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
                }
                _ => return None,
            });
            let rest = &self.text[self.at..];
            let end = rest
                .bytes()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
            out.push_str(&rest[..end]);
            self.at += end + 1;
            match rest.as_bytes()[end] {
                b'"' => return Some(out),
                b'\\' => {}
                _ => return None,
            }
        }
    }

    /// Steps over a field set in its wire form, well-formed or not, and gives its text.
    pub(crate) fn fields_text(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let (start, mut depth) = (self.at, 0_usize);
        loop {
            match self.peek()? {
                b'{' => depth += 1,
                b'}' => depth = depth.checked_sub(1)?,
                b'"' => {
                    let mut rest = &bytes[self.at + 1..];
                    loop {
                        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
                        let escaped = rest[end] == b'\\';
                        rest = rest.get(end + 1 + usize::from(escaped)..)?;
                        if !escaped {
                            break;
                        }
                    }
                    self.at = bytes.len() - rest.len() - 1;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return self.text.get(start..self.at);
            }
        }
    }

    /// Reads a field set in its wire form.
    pub(crate) fn fields(&mut self) -> Option<FieldSet> {
        let mut reader = SetReader::default();
        self.take(b'{')?;
        let mut first = true;
        loop {
            if self.take_if(b'}') {
                first = false;
                if reader.close() {
                    continue;
                }
                return Some(reader.finish());
            }
            if !first {
                self.take(b',')?;
            }
            let key = self.string()?;
            self.take(b':')?;
            self.take(b'{')?;
            if key == "." {
                self.take(b'}')?;
                reader.mark();
                first = false;
            } else {
                reader.open(element(&key)?)?;
                first = true;
            }
        }
    }

    /// Reads a scalar that a key of a list item holds.
    fn scalar(&mut self) -> Option<Value> {
        match self.peek()? {
            b'"' => self.string().map(|text| Value::String(Text::from(text))),
            b't' => self.word("true").map(|()| Value::Bool(true)),
            b'f' => self.word("false").map(|()| Value::Bool(false)),
            b'0'..=b'9' => {
                let rest = &self.text.as_bytes()[self.at..];
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let number = &self.text[self.at..self.at + digits];
                let canonical = digits == 1 || !number.starts_with('0');
                if !canonical || matches!(rest.get(digits), Some(b'.' | b'e' | b'E')) {
                    return None;
                }
                self.at += digits;
                number.parse().ok().map(Value::Int)
            }
            _ => None,
        }
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let found = self.text[self.at..].starts_with(word);
        found.then(|| self.at += word.len())
    }

    /// Reads the keys of a list item, sorted by name.
    fn pairs(&mut self) -> Option<SmallVec<[(Text, Value); 2]>> {
        let mut pairs: SmallVec<[(Text, Value); 2]> = SmallVec::new();
        self.take(b'{')?;
        loop {
            let name = Text::from(self.string()?);
            self.take(b':')?;
            let value = self.scalar()?;
            if pairs.last().is_some_and(|(previous, _)| *previous >= name) {
                return None;
            }
            pairs.push((name, value));
            if self.take_if(b'}') {
                return self.is_done().then_some(pairs);
            }
            self.take(b',')?;
        }
    }
}

fn element(key: &str) -> Option<PathElement> {
    match key.as_bytes() {
        [b'f', b':', ..] => Some(PathElement::Field(key[2..].into())),
        [b'k', b':', ..] => match Scanner::new(&key[2..]).pairs() {
            Some(pairs) => Some(PathElement::Key(pairs.into_iter().collect())),
            None => PathElement::parse(key).ok().flatten(),
        },
        _ => PathElement::parse(key).ok().flatten(),
    }
}
