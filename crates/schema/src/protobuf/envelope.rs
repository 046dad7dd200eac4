//! What surrounds a message: the envelope of an object, a list of objects, an event of a watch.
//!
//! Contract: `runtime.Unknown`, `metav1.ListMeta` and `metav1.WatchEvent`.

use super::DecodeError;
use super::scalar::{read_text, wrong_wire_type};
use super::wire::{BYTES, Fields, VARINT, field_length, push_head, push_varint, varint_length};
use object::Text;

/// The first bytes of every envelope.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// The length in front of an event of a watch.
const FRAME_LENGTH_BYTES: usize = 4;

/// An object as it arrives: what it says that it is, and its message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope<'b> {
    /// Its group and version.
    pub api_version: Text,
    /// Its kind.
    pub kind: Text,
    /// Its message.
    pub raw: &'b [u8],
    /// How the message is compressed; empty.
    pub content_encoding: Text,
    /// What the message is; empty for protobuf.
    pub content_type: Text,
}

/// Appends the envelope of a message.
pub fn write_envelope(api_version: &str, kind: &str, raw: &[u8], out: &mut Vec<u8>) {
    let type_length = field_length(api_version.len()) + field_length(kind.len());
    out.reserve(envelope_length(api_version, kind, raw.len()));
    out.extend_from_slice(&MAGIC);
    push_head(1, type_length, out);
    push_bytes(1, api_version.as_bytes(), out);
    push_bytes(2, kind.as_bytes(), out);
    push_bytes(2, raw, out);
    // How the message is compressed and what it is, always written and never set.
    push_bytes(3, b"", out);
    push_bytes(4, b"", out);
}

fn envelope_length(api_version: &str, kind: &str, raw_length: usize) -> usize {
    let type_length = field_length(api_version.len()) + field_length(kind.len());
    MAGIC.len() + field_length(type_length) + field_length(raw_length) + 2 * field_length(0)
}

/// Reads an envelope.
///
/// # Errors
/// If the bytes are none.
pub fn read_envelope(bytes: &[u8]) -> Result<Envelope<'_>, DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::NoData);
    }
    let body = bytes.strip_prefix(&MAGIC).ok_or(DecodeError::NoMagic)?;
    if body.is_empty() {
        return Err(DecodeError::NoBody);
    }
    let mut envelope = Envelope::default();
    let mut fields = Fields::new(body);
    while let Some(key) = fields.next_key()? {
        match (key.number, key.wire) {
            (1, BYTES) => read_type(fields.bytes()?, &mut envelope)?,
            (2, BYTES) => envelope.raw = fields.bytes()?,
            (3, BYTES) => envelope.content_encoding = read_text(fields.bytes()?),
            (4, BYTES) => envelope.content_type = read_text(fields.bytes()?),
            (number @ 1..=4, wire) => {
                let names = ["typeMeta", "raw", "contentEncoding", "contentType"];
                return Err(wrong_wire_type(wire, names[number as usize - 1]).into());
            }
            (_, wire) => fields.skip(wire)?,
        }
    }
    Ok(envelope)
}

fn read_type(bytes: &[u8], envelope: &mut Envelope<'_>) -> Result<(), DecodeError> {
    let mut fields = Fields::new(bytes);
    while let Some(key) = fields.next_key()? {
        match (key.number, key.wire) {
            (1, BYTES) => envelope.api_version = read_text(fields.bytes()?),
            (2, BYTES) => envelope.kind = read_text(fields.bytes()?),
            (1, wire) => return Err(wrong_wire_type(wire, "apiVersion").into()),
            (2, wire) => return Err(wrong_wire_type(wire, "kind").into()),
            (_, wire) => fields.skip(wire)?,
        }
    }
    Ok(())
}

/// The metadata of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListHead<'a> {
    /// The revision of the list.
    pub resource_version: &'a str,
    /// What asks for the next page; empty on the last one.
    pub continue_token: &'a str,
    /// How many items follow this page, if that is known.
    pub remaining_item_count: Option<i64>,
}

/// Appends the message of a list, whose items are messages already. Wrap it with
/// [`write_envelope`] under the list's kind.
pub fn write_list<'b>(
    head: &ListHead<'_>,
    items: impl IntoIterator<Item = &'b [u8]>,
    out: &mut Vec<u8>,
) {
    let remaining = head.remaining_item_count.map(|count| count as u64);
    let length = field_length(0)
        + field_length(head.resource_version.len())
        + field_length(head.continue_token.len())
        + remaining.map_or(0, |count| 1 + varint_length(count));
    push_head(1, length, out);
    push_bytes(1, b"", out);
    push_bytes(2, head.resource_version.as_bytes(), out);
    push_bytes(3, head.continue_token.as_bytes(), out);
    if let Some(count) = remaining {
        out.push(4 << 3 | VARINT);
        push_varint(count, out);
    }
    for item in items {
        push_bytes(2, item, out);
    }
}

/// The messages of a list's items, in order.
///
/// # Errors
/// If the bytes are no list.
pub fn read_list(bytes: &[u8]) -> Result<Vec<&[u8]>, DecodeError> {
    let mut items = Vec::new();
    let mut fields = Fields::new(bytes);
    while let Some(key) = fields.next_key()? {
        match (key.number, key.wire) {
            (2, BYTES) => items.push(fields.bytes()?),
            (_, wire) => fields.skip(wire)?,
        }
    }
    Ok(items)
}

/// Appends one event of a watch: the object's message in its envelope, the event around it, and
/// in front of that its length.
pub fn write_watch_frame(
    event: &str,
    api_version: &str,
    kind: &str,
    raw: &[u8],
    out: &mut Vec<u8>,
) {
    let envelope = envelope_length(api_version, kind, raw.len());
    let object = field_length(envelope);
    let length = field_length(event.len()) + field_length(object);
    let prefix = u32::try_from(length).expect("objects are far smaller than 4 GiB");
    out.reserve(FRAME_LENGTH_BYTES + length);
    out.extend_from_slice(&prefix.to_be_bytes());
    push_bytes(1, event.as_bytes(), out);
    push_head(2, object, out);
    push_head(1, envelope, out);
    write_envelope(api_version, kind, raw, out);
}

fn push_bytes(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    push_head(number, bytes.len(), out);
    out.extend_from_slice(bytes);
}
