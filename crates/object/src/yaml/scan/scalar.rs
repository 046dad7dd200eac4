//! Scalars: block, quoted and plain, with the folding of their lines.

use super::Scanner;
use crate::yaml::Error;

/// The blanks and line breaks between two words, which fold when the next word comes.
#[derive(Default)]
struct Gap {
    blanks: String,
    /// The first line break.
    first_break: String,
    /// The further ones, which stay.
    breaks: String,
    /// Whether a line ended since the last word.
    is_line_end: bool,
}

impl Gap {
    fn fold_into(&mut self, text: &mut String) {
        if !self.is_line_end {
            text.push_str(&self.blanks);
        } else if self.first_break.starts_with('\n') && self.breaks.is_empty() {
            text.push(' ');
        } else {
            if !self.first_break.starts_with('\n') {
                text.push_str(&self.first_break);
            }
            text.push_str(&self.breaks);
        }
        self.blanks.clear();
        self.first_break.clear();
        self.breaks.clear();
        self.is_line_end = false;
    }
}

/// What happens to the line breaks at the end of a block scalar.
#[derive(Clone, Copy, PartialEq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl Scanner<'_> {
    /// Scans a scalar that begins with `|` or `>`.
    pub(super) fn scan_block_scalar(&mut self) -> Result<String, Error> {
        let is_literal = self.byte(0) == b'|';
        self.skip();
        let (chomping, increment) = self.scan_block_header()?;
        let base = self.indent.max(0) as usize;
        let mut indent = if increment > 0 { base + increment } else { 0 };
        let (mut text, mut first_break, mut breaks) = (String::new(), String::new(), String::new());
        self.scan_block_breaks(&mut indent, &mut breaks)?;
        let mut after_blank = false;
        while self.mark.column == indent && !self.at_end() {
            let is_blank = self.is_blank();
            if !is_literal && !after_blank && !is_blank && first_break.starts_with('\n') {
                if breaks.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(&first_break);
            }
            first_break.clear();
            text.push_str(&breaks);
            breaks.clear();
            after_blank = is_blank;
            while !self.is_break_or_end(0) {
                self.read(&mut text);
            }
            if self.is_break(0) {
                self.read_line(&mut first_break);
            }
            self.scan_block_breaks(&mut indent, &mut breaks)?;
        }
        if chomping != Chomping::Strip {
            text.push_str(&first_break);
        }
        if chomping == Chomping::Keep {
            text.push_str(&breaks);
        }
        Ok(text)
    }

    /// Scans the chomping and indentation indicators, in either order, and the rest of the line.
    fn scan_block_header(&mut self) -> Result<(Chomping, usize), Error> {
        let (mut chomping, mut increment) = (None, None);
        loop {
            match self.byte(0) {
                b'+' if chomping.is_none() => chomping = Some(Chomping::Keep),
                b'-' if chomping.is_none() => chomping = Some(Chomping::Strip),
                b'0' if increment.is_none() => {
                    return Err(self.problem("found an indentation indicator equal to 0"));
                }
                digit @ b'1'..=b'9' if increment.is_none() => {
                    increment = Some(usize::from(digit - b'0'));
                }
                _ => break,
            }
            self.skip();
        }
        self.skip_blanks();
        self.skip_comment();
        if !self.is_break_or_end(0) {
            return Err(self.problem("did not find expected comment or line break"));
        }
        if self.is_break(0) {
            self.skip_line();
        }
        Ok((chomping.unwrap_or(Chomping::Clip), increment.unwrap_or(0)))
    }

    /// Passes indentation and empty lines; finds the indentation if it is not known yet.
    fn scan_block_breaks(&mut self, indent: &mut usize, breaks: &mut String) -> Result<(), Error> {
        let mut widest = 0;
        loop {
            while (*indent == 0 || self.mark.column < *indent) && self.byte(0) == b' ' {
                self.skip();
            }
            widest = widest.max(self.mark.column);
            if (*indent == 0 || self.mark.column < *indent) && self.byte(0) == b'\t' {
                return Err(
                    self.problem("found a tab character where an indentation space is expected")
                );
            }
            if !self.is_break(0) {
                break;
            }
            self.read_line(breaks);
        }
        if *indent == 0 {
            *indent = widest.max((self.indent + 1) as usize).max(1);
        }
        Ok(())
    }

    /// Scans a scalar in single or double quotes.
    pub(super) fn scan_flow_scalar(&mut self) -> Result<String, Error> {
        let quote = self.byte(0);
        self.skip();
        let mut text = String::new();
        let mut gap = Gap::default();
        loop {
            if self.at_document_indicator() {
                return Err(self.problem("found unexpected document indicator"));
            }
            if self.at_end() {
                return Err(self.problem("found unexpected end of stream"));
            }
            let joins_lines = self.scan_quoted_word(quote, &mut text)?;
            if self.byte(0) == quote {
                self.skip();
                return Ok(text);
            }
            // After an escaped line break there is no first break, so nothing becomes a space.
            gap.is_line_end = joins_lines;
            while self.is_blank() || self.is_break(0) {
                self.scan_gap_character(&mut gap);
            }
            gap.fold_into(&mut text);
        }
    }

    /// Scans up to a blank, a line break or the closing quote. Gives whether it ended with an
    /// escaped line break.
    fn scan_quoted_word(&mut self, quote: u8, text: &mut String) -> Result<bool, Error> {
        while !self.is_blank_or_end(0) {
            match self.byte(0) {
                b'\'' if quote == b'\'' => {
                    if self.byte(1) != b'\'' {
                        return Ok(false);
                    }
                    text.push('\'');
                    self.skip();
                    self.skip();
                }
                b'"' if quote == b'"' => return Ok(false),
                b'\\' if quote == b'"' && self.is_break(1) => {
                    self.skip();
                    self.skip_line();
                    return Ok(true);
                }
                b'\\' if quote == b'"' => self.scan_escape(text)?,
                _ => self.read(text),
            }
        }
        Ok(false)
    }

    fn scan_escape(&mut self, text: &mut String) -> Result<(), Error> {
        let (character, digits) = match self.byte(1) {
            b'0' => ('\0', 0),
            b'a' => ('\u{7}', 0),
            b'b' => ('\u{8}', 0),
            b't' | b'\t' => ('\t', 0),
            b'n' => ('\n', 0),
            b'v' => ('\u{b}', 0),
            b'f' => ('\u{c}', 0),
            b'r' => ('\r', 0),
            b'e' => ('\u{1b}', 0),
            b' ' => (' ', 0),
            b'"' => ('"', 0),
            b'\'' => ('\'', 0),
            b'\\' => ('\\', 0),
            b'N' => ('\u{85}', 0),
            b'_' => ('\u{a0}', 0),
            b'L' => ('\u{2028}', 0),
            b'P' => ('\u{2029}', 0),
            b'x' => ('\0', 2),
            b'u' => ('\0', 4),
            b'U' => ('\0', 8),
            _ => return Err(self.problem("found unknown escape character")),
        };
        self.skip();
        self.skip();
        if digits == 0 {
            text.push(character);
            return Ok(());
        }
        let mut code: u32 = 0;
        for ahead in 0..digits {
            let Some(digit) = char::from(self.byte(ahead)).to_digit(16) else {
                return Err(self.problem("did not find expected hexdecimal number"));
            };
            code = code << 4 | digit;
        }
        let Some(character) = char::from_u32(code) else {
            return Err(self.problem("found invalid Unicode character escape code"));
        };
        text.push(character);
        (0..digits).for_each(|_| self.skip());
        Ok(())
    }

    /// Scans a scalar without quotes.
    pub(super) fn scan_plain_scalar(&mut self) -> Result<String, Error> {
        let mut text = String::new();
        let mut gap = Gap::default();
        let indent = (self.indent + 1) as usize;
        loop {
            if self.at_document_indicator() || self.byte(0) == b'#' {
                break;
            }
            while !self.is_blank_or_end(0) && !self.ends_plain_scalar() {
                if gap.is_line_end || !gap.blanks.is_empty() {
                    gap.fold_into(&mut text);
                }
                self.read(&mut text);
            }
            if !self.is_blank() && !self.is_break(0) {
                break;
            }
            while self.is_blank() || self.is_break(0) {
                if gap.is_line_end && self.mark.column < indent && self.byte(0) == b'\t' {
                    return Err(self.problem("found a tab character that violates indentation"));
                }
                self.scan_gap_character(&mut gap);
            }
            if self.flow_level == 0 && self.mark.column < indent {
                break;
            }
        }
        if gap.is_line_end {
            self.simple_key_allowed = true;
        }
        Ok(text)
    }

    fn ends_plain_scalar(&self) -> bool {
        match self.byte(0) {
            b':' => self.is_blank_or_end(1),
            b',' | b'?' | b'[' | b']' | b'{' | b'}' => self.flow_level > 0,
            _ => false,
        }
    }

    fn scan_gap_character(&mut self, gap: &mut Gap) {
        if self.is_blank() {
            if gap.is_line_end {
                self.skip();
            } else {
                self.read(&mut gap.blanks);
            }
        } else if gap.is_line_end {
            self.read_line(&mut gap.breaks);
        } else {
            gap.blanks.clear();
            self.read_line(&mut gap.first_break);
            gap.is_line_end = true;
        }
    }
}
