//! Base64 as Go's standard encoding reads it: padded, line breaks ignored, spare bits ignored.

use object::Text;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const NOT_A_DIGIT: u8 = 0xff;

const DIGITS: [u8; 256] = {
    let mut digits = [NOT_A_DIGIT; 256];
    let mut at = 0;
    while at < ALPHABET.len() {
        digits[ALPHABET[at] as usize] = at as u8;
        at += 1;
    }
    digits
};

/// Checks base64 text. Gives the canonical form if the text is not already in it, or the offset
/// of the byte that is wrong.
pub(super) fn canonical(text: &str) -> Result<Option<Text>, usize> {
    if is_canonical(text.as_bytes()) {
        Ok(None)
    } else {
        read(text.as_bytes()).map(|b| Some(encode(&b)))
    }
}

fn is_canonical(text: &[u8]) -> bool {
    if !text.len().is_multiple_of(4) {
        return false;
    }
    let (body, spare_bits) = match text {
        [body @ .., last, b'=', b'='] => (body, DIGITS[*last as usize] & 0x0f),
        [body @ .., last, b'='] => (body, DIGITS[*last as usize] & 0x03),
        body => (body, 0),
    };
    spare_bits == 0
        && body
            .iter()
            .all(|&byte| DIGITS[byte as usize] != NOT_A_DIGIT)
}

fn is_line_break(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// The bytes that base64 text stands for.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    read(text.as_bytes()).ok()
}

/// Reads bytes, four digits at a time.
fn read(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let mut at = 0;
    let mut digits = [0u8; 4];
    let mut count = 0;
    while at < text.len() {
        let byte = text[at];
        at += 1;
        match DIGITS[byte as usize] {
            NOT_A_DIGIT if is_line_break(byte) => {}
            NOT_A_DIGIT if byte == b'=' => {
                finish(text, at, &digits[..count], &mut bytes)?;
                return Ok(bytes);
            }
            NOT_A_DIGIT => return Err(at - 1),
            digit => {
                digits[count] = digit;
                count += 1;
                if count == 4 {
                    push(&digits, 3, &mut bytes);
                    count = 0;
                }
            }
        }
    }
    if count == 0 {
        Ok(bytes)
    } else {
        Err(at - count)
    }
}

/// Reads what follows the first padding character, which stands just before `at`.
fn finish(text: &[u8], mut at: usize, digits: &[u8], bytes: &mut Vec<u8>) -> Result<(), usize> {
    let skip_breaks = |mut at: usize| {
        while text.get(at).copied().is_some_and(is_line_break) {
            at += 1;
        }
        at
    };
    if digits.len() < 2 {
        return Err(at - 1);
    }
    if digits.len() == 2 {
        at = skip_breaks(at);
        match text.get(at) {
            None => return Err(text.len()),
            Some(b'=') => at += 1,
            Some(_) => return Err(at - 1),
        }
    }
    at = skip_breaks(at);
    if at < text.len() {
        return Err(at);
    }
    let mut whole = [0u8; 4];
    whole[..digits.len()].copy_from_slice(digits);
    push(&whole, digits.len() - 1, bytes);
    Ok(())
}

fn push(digits: &[u8; 4], count: usize, bytes: &mut Vec<u8>) {
    let three = [
        digits[0] << 2 | digits[1] >> 4,
        digits[1] << 4 | digits[2] >> 2,
        digits[2] << 6 | digits[3],
    ];
    bytes.extend_from_slice(&three[..count]);
}

/// Writes bytes as padded base64.
pub fn encode(bytes: &[u8]) -> Text {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let (a, b, c) = (
            three[0],
            three.get(1).copied().unwrap_or_default(),
            three.get(2).copied().unwrap_or_default(),
        );
        let digits = [
            a >> 2,
            (a & 3) << 4 | b >> 4,
            (b & 15) << 2 | c >> 6,
            c & 63,
        ];
        for (at, digit) in digits.into_iter().enumerate() {
            let filler = at > three.len();
            text.push(if filler {
                '='
            } else {
                ALPHABET[digit as usize] as char
            });
        }
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_texts_are_base64_and_how_are_they_printed() {
        for (text, wanted) in [
            ("", Ok(None)),
            ("YQ==", Ok(None)),
            ("YWI=", Ok(None)),
            ("YWJj", Ok(None)),
            ("YR==", Ok(Some("YQ=="))),
            ("YWJ=", Ok(Some("YWI="))),
            ("YW\nJj\r\n", Ok(Some("YWJj"))),
            ("YQ=\n=\n", Ok(Some("YQ=="))),
            ("YQ", Err(0)),
            ("YWJjYQ", Err(4)),
            ("YWJjY", Err(4)),
            ("YQ=", Err(3)),
            ("YQ=a", Err(2)),
            ("YQ==YQ==", Err(4)),
            ("=", Err(0)),
            ("Y===", Err(1)),
            ("not base64!", Err(3)),
            ("YWJj-_", Err(4)),
        ] {
            assert_eq!(
                canonical(text),
                wanted.map(|text| text.map(Text::from)),
                "{text:?}"
            );
        }
    }

    #[test]
    fn does_every_byte_string_survive_the_round_trip() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in 0..bytes.len() {
            let text = encode(&bytes[..length]);
            assert!(is_canonical(text.as_bytes()), "{text}");
            assert_eq!(read(text.as_bytes()).as_deref(), Ok(&bytes[..length]));
        }
    }
}
