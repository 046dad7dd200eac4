//! Splits the text of an expression into tokens.
//!
//! Contract: the lexer rules of cel-go `parser/gen/CEL.g4`: the longest match wins, and what starts
//! no token is reported up to the first character that could not follow.

use crate::source::Issues;

/// What a token is. The order is that of the grammar, in which expected tokens are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Token {
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    OpenParen,
    CloseParen,
    Dot,
    Comma,
    Minus,
    Not,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    EscapedIdentifier,
    End,
}

/// Names of tokens as messages list them, in the order of [`Token`].
const NAMES: [&str; 36] = [
    "'=='",
    "'!='",
    "'in'",
    "'<'",
    "'<='",
    "'>='",
    "'>'",
    "'&&'",
    "'||'",
    "'['",
    "']'",
    "'{'",
    "'}'",
    "'('",
    "')'",
    "'.'",
    "','",
    "'-'",
    "'!'",
    "'?'",
    "':'",
    "'+'",
    "'*'",
    "'/'",
    "'%'",
    "'true'",
    "'false'",
    "'null'",
    "NUM_FLOAT",
    "NUM_INT",
    "NUM_UINT",
    "STRING",
    "BYTES",
    "IDENTIFIER",
    "ESC_IDENTIFIER",
    "<EOF>",
];

/// A set of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tokens(u64);

impl Tokens {
    pub(crate) const fn of(tokens: &[Token]) -> Tokens {
        let mut bits = 0;
        let mut index = 0;
        while index < tokens.len() {
            bits |= 1 << tokens[index] as u64;
            index += 1;
        }
        Tokens(bits)
    }

    pub(crate) const fn or(self, other: Tokens) -> Tokens {
        Tokens(self.0 | other.0)
    }

    pub(crate) const fn has(self, token: Token) -> bool {
        self.0 & (1 << token as u64) != 0
    }

    /// How messages list what was expected. The end comes first, as its number is the lowest there.
    pub(crate) fn expected(self) -> String {
        let end = usize::from(self.has(Token::End));
        let named = (0..NAMES.len() - 1).filter(|bit| self.0 & (1 << bit) != 0);
        let ends = std::iter::repeat_n(NAMES[NAMES.len() - 1], end);
        let names: Vec<&str> = ends.chain(named.map(|bit| NAMES[bit])).collect();
        match names.as_slice() {
            [one] => (*one).to_owned(),
            many => format!("{{{}}}", many.join(", ")),
        }
    }
}

/// A token with its place, in code points and in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lexeme {
    pub(crate) token: Token,
    pub(crate) offset: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Reads all tokens; the last one is [`Token::End`].
pub(crate) fn tokenize(text: &str, issues: &mut Issues) -> Vec<Lexeme> {
    let mut lexemes = Vec::new();
    let (mut at, mut offset) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let length = match scan(rest) {
            Scan::Skip(length) => length,
            Scan::Token(token, length) => {
                lexemes.push(Lexeme {
                    token,
                    offset,
                    start: at,
                    end: at + length,
                });
                length
            }
            Scan::Failed(length) => {
                let seen = &rest[..length];
                let message = format!("Syntax error: token recognition error at: '{seen}'");
                issues.report_at(offset, message);
                length
            }
        };
        offset += text[at..at + length].chars().count() as u32;
        at += length;
    }
    lexemes.push(Lexeme {
        token: Token::End,
        offset,
        start: at,
        end: at,
    });
    lexemes
}

enum Scan {
    Skip(usize),
    Token(Token, usize),
    /// The bytes up to and with the character that could not follow.
    Failed(usize),
}

fn scan(text: &str) -> Scan {
    let bytes = text.as_bytes();
    match bytes[0] {
        b'\t' | b' ' | b'\r' | b'\n' | 0x0c => {
            let blank = |byte: &u8| matches!(byte, b'\t' | b' ' | b'\r' | b'\n' | 0x0c);
            Scan::Skip(bytes.iter().take_while(|byte| blank(byte)).count())
        }
        b'/' if bytes.get(1) == Some(&b'/') => Scan::Skip(text.find('\n').unwrap_or(text.len())),
        b'0'..=b'9' => number(bytes),
        b'.' if bytes.get(1).is_some_and(u8::is_ascii_digit) => number(bytes),
        b'"' | b'\'' => quoted(text, 0, Token::String),
        b'`' => escaped_identifier(text),
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => word(text),
        _ => operator(text),
    }
}

fn operator(text: &str) -> Scan {
    let bytes = text.as_bytes();
    let pair = |second: u8| bytes.get(1) == Some(&second);
    let (token, length) = match bytes[0] {
        b'=' if pair(b'=') => (Token::Equals, 2),
        b'!' if pair(b'=') => (Token::NotEquals, 2),
        b'<' if pair(b'=') => (Token::LessEquals, 2),
        b'>' if pair(b'=') => (Token::GreaterEquals, 2),
        b'&' if pair(b'&') => (Token::And, 2),
        b'|' if pair(b'|') => (Token::Or, 2),
        b'=' | b'&' | b'|' => return Scan::Failed(failed_after(text, 1)),
        b'<' => (Token::Less, 1),
        b'>' => (Token::Greater, 1),
        b'!' => (Token::Not, 1),
        b'[' => (Token::OpenBracket, 1),
        b']' => (Token::CloseBracket, 1),
        b'{' => (Token::OpenBrace, 1),
        b'}' => (Token::CloseBrace, 1),
        b'(' => (Token::OpenParen, 1),
        b')' => (Token::CloseParen, 1),
        b'.' => (Token::Dot, 1),
        b',' => (Token::Comma, 1),
        b'-' => (Token::Minus, 1),
        b'?' => (Token::Question, 1),
        b':' => (Token::Colon, 1),
        b'+' => (Token::Plus, 1),
        b'*' => (Token::Star, 1),
        b'/' => (Token::Slash, 1),
        b'%' => (Token::Percent, 1),
        _ => return Scan::Failed(failed_after(text, 0)),
    };
    Scan::Token(token, length)
}

/// The length of what was read and the character after it, if there is one.
fn failed_after(text: &str, read: usize) -> usize {
    read + text[read..].chars().next().map_or(0, char::len_utf8)
}

fn digits(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|it| it.is_ascii_digit()).count()
}

fn number(bytes: &[u8]) -> Scan {
    let suffix = |end: usize| matches!(bytes.get(end), Some(b'u' | b'U'));
    if bytes.starts_with(b"0x") {
        let rest = &bytes[2..];
        let length = rest.iter().take_while(|it| it.is_ascii_hexdigit()).count();
        if length > 0 {
            return match suffix(2 + length) {
                true => Scan::Token(Token::Uint, 3 + length),
                false => Scan::Token(Token::Int, 2 + length),
            };
        }
    }
    let whole = digits(bytes, 0);
    let mut end = whole;
    if bytes.get(whole) == Some(&b'.') {
        let fraction = digits(bytes, whole + 1);
        if fraction > whole + 1 {
            end = fraction;
        }
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(bytes, signed);
        if exponent > signed {
            end = exponent;
        }
    }
    match end == whole {
        false => Scan::Token(Token::Float, end),
        true if suffix(end) => Scan::Token(Token::Uint, end + 1),
        true => Scan::Token(Token::Int, end),
    }
}

fn word(text: &str) -> Scan {
    let bytes = text.as_bytes();
    // The prefixes of strings: r, b, br, rb is none.
    let raw = |at: usize| usize::from(matches!(bytes.get(at), Some(b'r' | b'R')));
    let is_bytes = matches!(bytes[0], b'b' | b'B');
    let prefix = usize::from(is_bytes) + raw(usize::from(is_bytes));
    if prefix > 0 && matches!(bytes.get(prefix), Some(b'"' | b'\'')) {
        let token = if is_bytes {
            Token::Bytes
        } else {
            Token::String
        };
        if let Scan::Token(token, length) = quoted(text, prefix, token) {
            return Scan::Token(token, length);
        }
    }
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let length = bytes.iter().take_while(part).count();
    let token = match &text[..length] {
        "in" => Token::In,
        "true" => Token::True,
        "false" => Token::False,
        "null" => Token::Null,
        _ => Token::Identifier,
    };
    Scan::Token(token, length)
}

fn escaped_identifier(text: &str) -> Scan {
    let part = |byte: &&u8| {
        byte.is_ascii_alphanumeric() || matches!(**byte, b'_' | b'.' | b'-' | b'/' | b' ')
    };
    let length = text.as_bytes()[1..].iter().take_while(part).count();
    match text.as_bytes().get(1 + length) {
        Some(b'`') if length > 0 => Scan::Token(Token::EscapedIdentifier, length + 2),
        _ => Scan::Failed(failed_after(text, 1 + length)),
    }
}

/// A string that opens at `prefix`, whose prefix may say that it is raw.
fn quoted(text: &str, prefix: usize, token: Token) -> Scan {
    let bytes = text.as_bytes();
    let raw = bytes[..prefix].iter().any(|it| matches!(it, b'r' | b'R'));
    let quote = bytes[prefix];
    let triple = bytes[prefix..].starts_with(&[quote; 3]);
    if triple && let Ok(end) = string_end(text, prefix + 3, &[quote; 3], raw) {
        return Scan::Token(token, end);
    }
    match string_end(text, prefix + 1, &[quote], raw) {
        Ok(end) => Scan::Token(token, end),
        Err(read) => Scan::Failed(failed_after(text, read)),
    }
}

/// Where the string ends, or how much was read when it could not go on.
fn string_end(text: &str, from: usize, close: &[u8], raw: bool) -> Result<usize, usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        if bytes[at..].starts_with(close) {
            return Ok(at + close.len());
        }
        match bytes[at] {
            b'\\' if !raw => at = escape_end(bytes, at + 1)?,
            b'\n' | b'\r' if close.len() == 1 => return Err(at),
            _ => at += 1,
        }
    }
    Err(at)
}

/// Where the escape ends whose character after the backslash is at `at`.
fn escape_end(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let run = |from: usize, count: usize, ok: fn(&u8) -> bool| {
        let read = |index: &usize| bytes.get(*index).is_some_and(ok);
        match (from..from + count).find(|index| !read(index)) {
            Some(stopped) => Err(stopped),
            None => Ok(from + count),
        }
    };
    let hexadecimal: fn(&u8) -> bool = u8::is_ascii_hexdigit;
    match bytes.get(at) {
        Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\') => Ok(at + 1),
        Some(b'?' | b'`') => Ok(at + 1),
        Some(b'x' | b'X') => run(at + 1, 2, hexadecimal),
        Some(b'u') => run(at + 1, 4, hexadecimal),
        Some(b'U') => run(at + 1, 8, hexadecimal),
        Some(b'0'..=b'3') => run(at + 1, 2, |it| matches!(it, b'0'..=b'7')),
        _ => Err(at),
    }
}
