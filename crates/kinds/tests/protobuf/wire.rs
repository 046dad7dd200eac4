//! The bytes of a message as a tree of numbers and values, read without a schema.

use std::fmt::Write;

use object::json;

/// The fields of a message as `[[number,value],...]`; `None` if the bytes are no message. Bytes
/// that can be printed are shown as text, others as a message.
pub(crate) fn tree(mut bytes: &[u8]) -> Option<String> {
    let mut out = "[".to_owned();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let comma = if out.len() == 1 { "" } else { "," };
        let _ = write!(out, "{comma}[{},", key >> 3);
        match key & 7 {
            0 => {
                let _ = write!(out, "{}", varint(&mut bytes)? as i64);
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (chunk, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                out.push_str(&value(chunk)?);
            }
            _ => return None,
        }
        out.push(']');
    }
    out.push(']');
    Some(out)
}

fn value(chunk: &[u8]) -> Option<String> {
    match std::str::from_utf8(chunk) {
        Ok(text) if !text.contains(char::is_control) => {
            let mut out = Vec::new();
            json::write_string(text, &mut out);
            String::from_utf8(out).ok()
        }
        _ => tree(chunk),
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
