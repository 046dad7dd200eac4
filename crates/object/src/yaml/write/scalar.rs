//! Strings: which style they take, and how each style is written.

use super::Writer;
use crate::yaml::resolve::{Meaning, plain};

/// A word that begins behind this column goes to the next line.
const WIDTH: usize = 80;

/// What a text allows.
struct Look {
    plain: bool,
    single_quoted: bool,
    block: bool,
}

#[derive(Clone, Copy)]
enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

impl Writer {
    /// Writes a string that is a value, or a key behind a question mark, whose further lines are
    /// indented by `indent`.
    pub(super) fn string(&mut self, text: &str, indent: usize) {
        let style = if text.contains('\n') {
            if look(text).block {
                Style::Literal
            } else {
                Style::DoubleQuoted
            }
        } else {
            style(text)
        };
        self.styled(text, style, Some(indent));
    }

    /// Writes a key that fits on one line.
    pub(super) fn simple_key(&mut self, text: &str) {
        self.styled(text, style(text), None);
    }

    /// Writes a string; without an indent its lines do not fold.
    fn styled(&mut self, text: &str, style: Style, indent: Option<usize>) {
        self.separate();
        match style {
            Style::Plain => self.words(text, indent, None),
            Style::SingleQuoted => {
                self.put("'");
                self.words(text, indent, Some('\''));
                self.put("'");
            }
            Style::DoubleQuoted => self.double_quoted(text, indent),
            Style::Literal => return self.literal(text, indent.unwrap_or(0)),
        }
        (self.after_space, self.in_indent) = (false, false);
    }

    /// Writes a plain or single-quoted text. Such a text has no plain line break.
    fn words(&mut self, text: &str, indent: Option<usize>, quote: Option<char>) {
        let mut after_blank = false;
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let next = characters.peek().map(|(_, next)| *next);
            match (character, indent) {
                (' ', Some(indent))
                    if !after_blank
                        && self.column > WIDTH
                        && at > 0
                        && next.is_some_and(|next| next != ' ') =>
                {
                    self.start_line(indent);
                }
                (character, Some(indent)) if is_break(character) => {
                    self.out.push(character);
                    self.column = 0;
                    (self.after_space, self.in_indent) = (true, true);
                    if next.is_some_and(|next| !is_break(next)) {
                        self.start_line(indent);
                    }
                }
                _ => {
                    if quote == Some(character) {
                        self.put_char(character);
                    }
                    self.put_char(character);
                    self.in_indent = false;
                }
            }
            after_blank = character == ' ';
        }
    }

    fn double_quoted(&mut self, text: &str, indent: Option<usize>) {
        self.put("\"");
        let mut after_blank = false;
        let mut characters = text.char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let next = characters.peek().map(|(_, next)| *next);
            match (character, indent) {
                (' ', Some(indent))
                    if !after_blank && self.column > WIDTH && at > 0 && next.is_some() =>
                {
                    self.start_line(indent);
                    if next == Some(' ') {
                        self.put("\\");
                    }
                }
                ('"' | '\\', _) => {
                    self.put("\\");
                    self.put_char(character);
                }
                _ if is_printable(character) && !is_break(character) => self.put_char(character),
                _ => self.escape(character),
            }
            after_blank = character == ' ';
        }
        self.put("\"");
    }

    fn escape(&mut self, character: char) {
        let short = match character {
            '\0' => "\\0",
            '\u{7}' => "\\a",
            '\u{8}' => "\\b",
            '\t' => "\\t",
            '\n' => "\\n",
            '\u{b}' => "\\v",
            '\u{c}' => "\\f",
            '\r' => "\\r",
            '\u{1b}' => "\\e",
            '\u{85}' => "\\N",
            '\u{a0}' => "\\_",
            '\u{2028}' => "\\L",
            '\u{2029}' => "\\P",
            _ => "",
        };
        match (short, u32::from(character)) {
            ("", code @ ..=0xff) => self.put(&format!("\\x{code:02X}")),
            ("", code @ ..=0xffff) => self.put(&format!("\\u{code:04X}")),
            ("", code) => self.put(&format!("\\U{code:08X}")),
            (short, _) => self.put(short),
        }
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with([' ', '\n', '\u{2028}', '\u{2029}']) {
            self.put("2");
        }
        let mut from_end = text.chars().rev().map(is_break);
        match (from_end.next(), from_end.next()) {
            (Some(true), None | Some(true)) => self.put("+"),
            (Some(true), Some(false)) => {}
            _ => self.put("-"),
        }
        self.line_break();
        let mut after_break = true;
        for character in text.chars() {
            if is_break(character) {
                self.out.push(character);
                self.column = 0;
                after_break = true;
                continue;
            }
            if after_break {
                (self.after_space, self.in_indent) = (true, true);
                self.start_line(indent);
            }
            self.put_char(character);
            after_break = false;
        }
        (self.after_space, self.in_indent) = (true, after_break);
    }
}

/// The style of a text without a plain line break.
fn style(text: &str) -> Style {
    // Upstream leaves `<<` bare, and then cannot read its own text: as a key it means to merge.
    let means_more = plain(text) != Meaning::String || text == "<<";
    if text.contains('\n') || means_more || is_sexagesimal(text) {
        return Style::DoubleQuoted;
    }
    let look = look(text);
    match (look.plain, look.single_quoted) {
        (true, _) => Style::Plain,
        (_, true) => Style::SingleQuoted,
        _ => Style::DoubleQuoted,
    }
}

fn look(text: &str) -> Look {
    let is_first_break = text.starts_with(is_break);
    let is_last_break = text.ends_with(is_break);
    let (is_first_blank, is_last_blank) = (text.starts_with(' '), text.ends_with(' '));
    let has_breaks = text.contains(is_break);
    let (mut break_space, mut space_break) = (false, false);
    let mut previous = '\0';
    let mut is_special = false;
    for character in text.chars() {
        is_special |= !is_printable(character);
        break_space |= is_break(previous) && character == ' ';
        space_break |= previous == ' ' && is_break(character);
        previous = character;
    }
    let is_edged = is_first_blank || is_last_blank || is_first_break || is_last_break;
    let is_broken = space_break || is_special;
    Look {
        plain: !(is_edged || break_space || is_broken || has_breaks || has_indicators(text)),
        single_quoted: !(break_space || is_broken),
        block: !(is_last_blank || is_broken),
    }
}

/// Whether signs in the text would be taken for syntax.
fn has_indicators(text: &str) -> bool {
    if text.starts_with("---") || text.starts_with("...") {
        return true;
    }
    let bytes = text.as_bytes();
    let is_blank = |at: usize| {
        bytes
            .get(at)
            .is_none_or(|byte| matches!(byte, b' ' | b'\t'))
    };
    match bytes.first() {
        Some(
            b'#' | b',' | b'[' | b']' | b'{' | b'}' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
            | b'"' | b'%' | b'@' | b'`',
        ) => return true,
        Some(b'?' | b':' | b'-') if is_blank(1) => return true,
        _ => {}
    }
    bytes
        .iter()
        .enumerate()
        .skip(1)
        .any(|(at, byte)| match byte {
            b':' => is_blank(at + 1),
            // A break before it counts too, but texts with breaks are never plain.
            b'#' => is_blank(at - 1),
            _ => false,
        })
}

/// Whether other readers may take the text for a number in base 60, such as `1:30`.
fn is_sexagesimal(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':');
    let is_digits = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    let first = parts.next().unwrap_or("");
    let mut rest = parts.peekable();
    first.starts_with(|first: char| first.is_ascii_digit())
        && is_digits(first)
        && is_digits(fraction)
        && rest.peek().is_some()
        && rest.all(|part| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']))
}

/// Whether a character ends a line.
pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a character may stand outside of double quotes. Upstream leaves out those beyond the
/// basic plane.
fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{fffd}') && character != '\u{feff}'
}
