//! From text to tokens.
//!
//! Contract: `go.yaml.in/yaml/v2`, itself a libyaml, whose problems and line numbers clients see.
//! The hard part of YAML is that `a: b` is known to be a key only when the colon comes. So the
//! scanner remembers where a *simple key* may have begun, and puts the tokens that a key needs in
//! front of it once it meets the colon.

mod property;
mod scalar;

use std::collections::VecDeque;

use super::Error;

/// Deeper nesting is refused, in flow and in block style alike.
const LEVELS_MAX: usize = 10_000;

/// A simple key is at most this long, and always on one line.
const SIMPLE_KEY_CHARACTERS_MAX: usize = 1024;

/// A piece of syntax, with the line (from zero) it begins on.
#[derive(Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) line: usize,
}

/// The kinds of syntax.
#[derive(Debug)]
pub(super) enum Kind {
    StreamEnd,
    Version { major: u8, minor: u8 },
    TagDirective { handle: String, prefix: String },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag { handle: String, suffix: String },
    Scalar { text: String, is_plain: bool },
}

/// A place where a simple key may have begun; one for each level of flow.
struct SimpleKey {
    is_possible: bool,
    /// Whether nothing but a key can stand there.
    is_required: bool,
    /// The number of the token that would be the key, counted from the start of the text.
    token: usize,
    mark: Mark,
}

#[derive(Clone, Copy)]
struct Mark {
    index: usize,
    line: usize,
    column: usize,
}

/// Cuts a text into tokens.
pub(super) struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    mark: Mark,
    tokens: VecDeque<Token>,
    /// How many tokens were taken out of the queue.
    taken: usize,
    simple_keys: Vec<SimpleKey>,
    simple_key_allowed: bool,
    flow_level: usize,
    /// The column of the innermost block collection, -1 outside of all.
    indent: isize,
    indents: Vec<isize>,
}

impl<'a> Scanner<'a> {
    /// A scanner of `text`, which has no byte order mark and no control characters.
    pub(super) fn new(text: &'a str) -> Scanner<'a> {
        let mark = Mark {
            index: 0,
            line: 0,
            column: 0,
        };
        Scanner {
            text,
            bytes: text.as_bytes(),
            at: 0,
            mark,
            tokens: VecDeque::new(),
            taken: 0,
            simple_keys: vec![SimpleKey {
                is_possible: false,
                is_required: false,
                token: 0,
                mark,
            }],
            simple_key_allowed: true,
            flow_level: 0,
            indent: -1,
            indents: Vec::new(),
        }
    }

    /// The next token, which stays in the queue.
    pub(super) fn peek(&mut self) -> Result<&Token, Error> {
        while self.needs_more_tokens()? {
            self.fetch()?;
        }
        self.tokens
            .front()
            .ok_or_else(|| self.problem("unexpected end of stream"))
    }

    /// Takes the token that was peeked at.
    pub(super) fn take(&mut self) -> Option<Token> {
        self.taken += 1;
        self.tokens.pop_front()
    }

    /// Whether the first token of the queue may still turn out to be a key.
    fn needs_more_tokens(&mut self) -> Result<bool, Error> {
        if self.tokens.is_empty() {
            return Ok(true);
        }
        // Deeper levels began later, so the numbers ascend.
        let taken = self.taken;
        let level = self.simple_keys.partition_point(|key| key.token < taken);
        match self.simple_keys.get(level) {
            Some(key) if key.token == taken => self.simple_key_is_valid(level),
            _ => Ok(false),
        }
    }

    fn fetch(&mut self) -> Result<(), Error> {
        self.skip_to_token();
        self.unroll_indent(self.mark.column as isize);
        let byte = self.byte(0);
        let in_flow = self.flow_level > 0;
        match byte {
            _ if self.at_end() => self.fetch_stream_end(),
            b'%' if self.mark.column == 0 => self.fetch_directive(),
            _ if self.at_document_indicator() => self.fetch_document_indicator(),
            b'[' => self.fetch_flow_start(Kind::FlowSequenceStart),
            b'{' => self.fetch_flow_start(Kind::FlowMappingStart),
            b']' => self.fetch_flow_end(Kind::FlowSequenceEnd),
            b'}' => self.fetch_flow_end(Kind::FlowMappingEnd),
            b',' => self.fetch_flow_entry(),
            b'-' if self.is_blank_or_end(1) => self.fetch_block_entry(),
            b'?' if in_flow || self.is_blank_or_end(1) => self.fetch_key(),
            b':' if in_flow || self.is_blank_or_end(1) => self.fetch_value(),
            b'*' | b'&' | b'!' => self.fetch_property(byte),
            b'|' | b'>' if !in_flow => self.fetch_block_scalar(),
            b'\'' | b'"' => self.fetch_flow_scalar(),
            _ if self.begins_plain_scalar(byte) => self.fetch_plain_scalar(),
            _ => Err(self.problem("found character that cannot start any token")),
        }
    }

    fn begins_plain_scalar(&self, byte: u8) -> bool {
        match byte {
            b'-' => !matches!(self.byte(1), b' ' | b'\t'),
            b'?' | b':' => self.flow_level == 0 && !self.is_blank_or_end(1),
            b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
            | b'"' | b'%' | b'@' | b'`' => false,
            _ => !self.is_blank_or_end(0),
        }
    }

    /// Passes spaces, comments and line breaks. Tabs pass only where no key can begin.
    fn skip_to_token(&mut self) {
        loop {
            if self.mark.column == 0 && self.bytes[self.at..].starts_with(b"\xef\xbb\xbf") {
                self.skip();
            }
            while self.byte(0) == b' '
                || (self.byte(0) == b'\t' && (self.flow_level > 0 || !self.simple_key_allowed))
            {
                self.skip();
            }
            self.skip_comment();
            if !self.is_break(0) {
                return;
            }
            self.skip_line();
            if self.flow_level == 0 {
                self.simple_key_allowed = true;
            }
        }
    }

    fn skip_comment(&mut self) {
        if self.byte(0) == b'#' {
            while !self.is_break_or_end(0) {
                self.skip();
            }
        }
    }

    // The kinds of token.

    fn fetch_stream_end(&mut self) -> Result<(), Error> {
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        self.push(Kind::StreamEnd, self.mark.line);
        Ok(())
    }

    fn fetch_directive(&mut self) -> Result<(), Error> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let line = self.mark.line;
        let kind = self.scan_directive()?;
        self.push(kind, line);
        Ok(())
    }

    fn fetch_document_indicator(&mut self) -> Result<(), Error> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let kind = if self.byte(0) == b'-' {
            Kind::DocumentStart
        } else {
            Kind::DocumentEnd
        };
        self.push(kind, self.mark.line);
        (0..3).for_each(|_| self.skip());
        Ok(())
    }

    fn fetch_flow_start(&mut self, kind: Kind) -> Result<(), Error> {
        self.save_simple_key()?;
        let token = self.taken + self.tokens.len() + 1;
        let mark = self.mark;
        self.simple_keys.push(SimpleKey {
            is_possible: false,
            is_required: false,
            token,
            mark,
        });
        self.flow_level += 1;
        if self.flow_level > LEVELS_MAX {
            return Err(self.too_deep());
        }
        self.simple_key_allowed = true;
        self.push_and_skip(kind);
        Ok(())
    }

    fn fetch_flow_end(&mut self, kind: Kind) -> Result<(), Error> {
        self.remove_simple_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            self.simple_keys.pop();
        }
        self.simple_key_allowed = false;
        self.push_and_skip(kind);
        Ok(())
    }

    fn fetch_flow_entry(&mut self) -> Result<(), Error> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.push_and_skip(Kind::FlowEntry);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Result<(), Error> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return Err(self.problem("block sequence entries are not allowed in this context"));
            }
            self.roll_indent(self.mark, None, Kind::BlockSequenceStart)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.push_and_skip(Kind::BlockEntry);
        Ok(())
    }

    fn fetch_key(&mut self) -> Result<(), Error> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return Err(self.problem("mapping keys are not allowed in this context"));
            }
            self.roll_indent(self.mark, None, Kind::BlockMappingStart)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = self.flow_level == 0;
        self.push_and_skip(Kind::Key);
        Ok(())
    }

    fn fetch_value(&mut self) -> Result<(), Error> {
        let level = self.simple_keys.len() - 1;
        if self.simple_key_is_valid(level)? {
            let SimpleKey { token, mark, .. } = self.simple_keys[level];
            let before = token - self.taken;
            self.tokens.insert(
                before,
                Token {
                    kind: Kind::Key,
                    line: mark.line,
                },
            );
            self.roll_indent(mark, Some(before), Kind::BlockMappingStart)?;
            self.simple_keys[level].is_possible = false;
            self.simple_key_allowed = false;
        } else {
            if self.flow_level == 0 {
                if !self.simple_key_allowed {
                    return Err(self.problem("mapping values are not allowed in this context"));
                }
                self.roll_indent(self.mark, None, Kind::BlockMappingStart)?;
            }
            self.simple_key_allowed = self.flow_level == 0;
        }
        self.push_and_skip(Kind::Value);
        Ok(())
    }

    fn fetch_property(&mut self, byte: u8) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let line = self.mark.line;
        let kind = match byte {
            b'*' => Kind::Alias(self.scan_anchor()?),
            b'&' => Kind::Anchor(self.scan_anchor()?),
            _ => self.scan_tag()?,
        };
        self.push(kind, line);
        Ok(())
    }

    fn fetch_block_scalar(&mut self) -> Result<(), Error> {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        let line = self.mark.line;
        let text = self.scan_block_scalar()?;
        self.push(
            Kind::Scalar {
                text,
                is_plain: false,
            },
            line,
        );
        Ok(())
    }

    fn fetch_flow_scalar(&mut self) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let line = self.mark.line;
        let text = self.scan_flow_scalar()?;
        self.push(
            Kind::Scalar {
                text,
                is_plain: false,
            },
            line,
        );
        Ok(())
    }

    fn fetch_plain_scalar(&mut self) -> Result<(), Error> {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let line = self.mark.line;
        let text = self.scan_plain_scalar()?;
        self.push(
            Kind::Scalar {
                text,
                is_plain: true,
            },
            line,
        );
        Ok(())
    }

    // Simple keys and indentation.

    fn simple_key_is_valid(&mut self, level: usize) -> Result<bool, Error> {
        let (line, index) = (self.mark.line, self.mark.index);
        let key = &mut self.simple_keys[level];
        if !key.is_possible {
            return Ok(false);
        }
        if key.mark.line < line || key.mark.index + SIMPLE_KEY_CHARACTERS_MAX < index {
            if key.is_required {
                return Err(self.problem("could not find expected ':'"));
            }
            key.is_possible = false;
        }
        Ok(self.simple_keys[level].is_possible)
    }

    fn save_simple_key(&mut self) -> Result<(), Error> {
        let is_required = self.flow_level == 0 && self.indent == self.mark.column as isize;
        if self.simple_key_allowed {
            self.remove_simple_key()?;
            let token = self.taken + self.tokens.len();
            let level = self.simple_keys.len() - 1;
            self.simple_keys[level] = SimpleKey {
                is_possible: true,
                is_required,
                token,
                mark: self.mark,
            };
        }
        Ok(())
    }

    fn remove_simple_key(&mut self) -> Result<(), Error> {
        let level = self.simple_keys.len() - 1;
        let key = &mut self.simple_keys[level];
        if key.is_possible && key.is_required {
            return Err(self.problem("could not find expected ':'"));
        }
        key.is_possible = false;
        Ok(())
    }

    /// Opens a block collection if `mark` is further right than the innermost one.
    fn roll_indent(&mut self, mark: Mark, before: Option<usize>, kind: Kind) -> Result<(), Error> {
        let column = mark.column as isize;
        if self.flow_level > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > LEVELS_MAX {
            return Err(self.too_deep());
        }
        let token = Token {
            kind,
            line: mark.line,
        };
        self.tokens
            .insert(before.unwrap_or(self.tokens.len()), token);
        Ok(())
    }

    /// Closes the block collections that are further right than `column`.
    fn unroll_indent(&mut self, column: isize) {
        while self.flow_level == 0 && self.indent > column {
            self.push(Kind::BlockEnd, self.mark.line);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn push(&mut self, kind: Kind, line: usize) {
        self.tokens.push_back(Token { kind, line });
    }

    fn push_and_skip(&mut self, kind: Kind) {
        self.push(kind, self.mark.line);
        self.skip();
    }

    // Characters. The text has no NUL, so 0 stands for its end.

    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn is_break(&self, ahead: usize) -> bool {
        match self.byte(ahead) {
            b'\n' | b'\r' => true,
            0xc2 => self.byte(ahead + 1) == 0x85,
            0xe2 => self.byte(ahead + 1) == 0x80 && matches!(self.byte(ahead + 2), 0xa8 | 0xa9),
            _ => false,
        }
    }

    fn is_break_or_end(&self, ahead: usize) -> bool {
        self.byte(ahead) == 0 || self.is_break(ahead)
    }

    fn is_blank(&self) -> bool {
        matches!(self.byte(0), b' ' | b'\t')
    }

    fn is_blank_or_end(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), b' ' | b'\t') || self.is_break_or_end(ahead)
    }

    /// Whether `---` or `...` stands here at the start of a line.
    fn at_document_indicator(&self) -> bool {
        self.mark.column == 0
            && (self.bytes[self.at..].starts_with(b"---")
                || self.bytes[self.at..].starts_with(b"..."))
            && self.is_blank_or_end(3)
    }

    fn skip(&mut self) {
        self.at += width(self.byte(0));
        self.mark.index += 1;
        self.mark.column += 1;
    }

    fn skip_line(&mut self) {
        if self.bytes[self.at..].starts_with(b"\r\n") {
            self.at += 1;
            self.mark.index += 1;
        }
        self.skip();
        self.mark.column = 0;
        self.mark.line += 1;
    }

    /// Appends one character to `text` and passes it.
    fn read(&mut self, text: &mut String) {
        let end = self.at + width(self.byte(0));
        text.push_str(&self.text[self.at..end]);
        self.skip();
    }

    /// Appends a line break to `text`, most kinds as a plain one, and passes it.
    fn read_line(&mut self, text: &mut String) {
        match self.byte(0) {
            0xe2 => text.push_str(&self.text[self.at..self.at + 3]),
            _ => text.push('\n'),
        }
        self.skip_line();
    }

    /// An error at this place. Upstream tells no line for the first one.
    #[cold]
    fn problem(&self, problem: &'static str) -> Error {
        let line = Some(self.mark.line)
            .filter(|line| *line > 0)
            .map(|line| line + 1);
        Error::Syntax {
            line,
            problem: problem.into(),
        }
    }

    #[cold]
    fn too_deep(&self) -> Error {
        self.problem("exceeded max depth of 10000")
    }
}

/// How many bytes the character has that begins with `byte`; one at the end of the text.
fn width(byte: u8) -> usize {
    match byte {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}
