//! Values that stand in the text.
//!
//! Contract: cel-go `parser/unescape.go` and the `Visit` functions of literals in `parser.go`.

use crate::ast::Literal;
use crate::token::Token;

/// Reads a literal from the text of its token, a minus before a number included.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(token: Token, text: &str) -> Result<Literal, String> {
    match token {
        Token::Int => int(text).ok_or_else(|| "invalid int literal".to_owned()),
        Token::Uint => uint(text).ok_or_else(|| "invalid uint literal".to_owned()),
        Token::Float => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Literal::Double(number)),
            _ => Err("invalid double literal".to_owned()),
        },
        Token::String => {
            let bytes = unescape(text, false)?;
            let text = String::from_utf8(bytes).map_err(|_| "invalid UTF-8".to_owned())?;
            Ok(Literal::String(text))
        }
        Token::Bytes => unescape(&text[1..], true).map(Literal::Bytes),
        Token::True => Ok(Literal::Bool(true)),
        Token::False => Ok(Literal::Bool(false)),
        _ => Ok(Literal::Null),
    }
}

fn int(text: &str) -> Option<Literal> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(&format!("{sign}{digits}"), 16),
        None => format!("{sign}{digits}").parse(),
    };
    number.ok().map(Literal::Int)
}

fn uint(text: &str) -> Option<Literal> {
    let digits = &text[..text.len() - 1];
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    number.ok().map(Literal::Uint)
}

/// Takes quotes and escapes away.
fn unescape(text: &str, is_bytes: bool) -> Result<Vec<u8>, String> {
    let normal = text.replace("\r\n", "\n").replace('\r', "\n");
    let (raw, quoted) = match normal.strip_prefix(['r', 'R']) {
        Some(quoted) => (true, quoted),
        None => (false, normal.as_str()),
    };
    let width = match quoted {
        it if it.len() >= 6 && (it.starts_with("\"\"\"") || it.starts_with("'''")) => 3,
        _ => 1,
    };
    let inner = &quoted[width..quoted.len() - width];
    if raw || !inner.contains('\\') {
        return Ok(inner.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = escape(&rest[at + 1..], is_bytes, &mut out)?;
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// Reads what comes after a backslash and gives back the rest.
fn escape<'a>(text: &'a str, is_bytes: bool, out: &mut Vec<u8>) -> Result<&'a str, String> {
    let bad = || "unable to unescape string".to_owned();
    let first = text
        .bytes()
        .next()
        .ok_or_else(|| "unable to unescape string, found '\\' as last character".to_owned())?;
    let (digits, radix) = match first {
        b'x' | b'X' => (&text[1..], 2),
        b'u' if !is_bytes => (&text[1..], 4),
        b'U' if !is_bytes => (&text[1..], 8),
        b'0'..=b'3' => return octal(text, is_bytes, out),
        plain => {
            out.push(simple(plain).ok_or_else(bad)?);
            return Ok(&text[1..]);
        }
    };
    let code = digits.get(..radix).ok_or_else(bad)?;
    let number = u32::from_str_radix(code, 16).map_err(|_| bad())?;
    push(number, is_bytes, out)?;
    Ok(&digits[radix..])
}

fn octal<'a>(text: &'a str, is_bytes: bool, out: &mut Vec<u8>) -> Result<&'a str, String> {
    let bad = || "unable to unescape octal sequence in string".to_owned();
    let code = text.get(..3).ok_or_else(bad)?;
    let number = u32::from_str_radix(code, 8).map_err(|_| bad())?;
    push(number, is_bytes, out)?;
    Ok(&text[3..])
}

fn push(number: u32, is_bytes: bool, out: &mut Vec<u8>) -> Result<(), String> {
    if is_bytes {
        out.push(number as u8);
        return Ok(());
    }
    let character =
        char::from_u32(number).ok_or_else(|| "invalid unicode code point".to_owned())?;
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(())
}

fn simple(letter: u8) -> Option<u8> {
    Some(match letter {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'\\' | b'\'' | b'"' | b'`' | b'?' => letter,
        _ => return None,
    })
}
