//! The stored record: an object's served JSON text, cut where answers differ.
//!
//! `docs/formats/record.md` is the format. Rules: what is stored is what is served, so reading
//! copies bytes; the text is valid JSON once the revision is put in; filters read the record
//! without parsing the text.

use bytes::Bytes;
use kinds::Kind;
use object::{Map, Text, Value, json};
use store::Revision;

const FORMAT: u8 = 1;
const DELETING: u8 = 1;
const HEADER_BYTES: usize = 2 + 4 * 4;
const VERSION_KEY: &[u8] = b",\"resourceVersion\":\"";

/// The order in which upstream prints metadata: first what stands before the resourceVersion.
const META_HEAD: &[&str] = &["name", "generateName", "namespace", "selfLink", "uid"];
/// Then what stands after it.
const META_MIDDLE: &[&str] = &[
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];

/// A record's parts, borrowed from its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    flags: u8,
    head: &'a [u8],
    middle: &'a [u8],
    managed: &'a [u8],
    rest: &'a [u8],
    filters: &'a [u8],
}

/// The bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not a record of format {FORMAT}")]
pub struct NotARecord;

/// Encodes an object whose managed fields are given as their JSON text (empty for none).
///
/// `object` carries no managedFields and no resourceVersion of its own; both have their own parts.
pub fn encode(kind: &Kind, object: &Map, managed_fields: &[u8]) -> Bytes {
    let metadata = object.get("metadata").and_then(Value::as_object);
    // An object is about as long as the list of its fields.
    let mut text = Vec::with_capacity(1024 + 2 * managed_fields.len());
    text.extend_from_slice(&[FORMAT, 0]);
    text.resize(HEADER_BYTES, 0);

    let head = text.len();
    text.extend_from_slice(b"{\"metadata\":{");
    write_fields(metadata, META_HEAD, Separator::Between, &mut text);
    text.extend_from_slice(VERSION_KEY);
    let middle = text.len();
    text.push(b'"');
    write_fields(metadata, META_MIDDLE, Separator::Before, &mut text);
    let managed = text.len();
    if !managed_fields.is_empty() {
        text.extend_from_slice(b",\"managedFields\":");
        text.extend_from_slice(managed_fields);
    }
    let rest = text.len();
    text.push(b'}');
    for (key, value) in object.iter() {
        if !matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
            write_field(key, value, Separator::Before, &mut text);
        }
    }
    text.push(b'}');
    let end = text.len();

    for (place, length) in [middle - head, managed - middle, rest - managed, end - rest]
        .into_iter()
        .enumerate()
    {
        let length = u32::try_from(length).expect("the store takes far smaller records");
        text[2 + place * 4..6 + place * 4].copy_from_slice(&length.to_le_bytes());
    }
    if metadata.is_some_and(|metadata| metadata.contains_key("deletionTimestamp")) {
        text[1] |= DELETING;
    }
    write_filters(kind, object, metadata, &mut text);
    Bytes::from(text)
}

#[derive(Clone, Copy, PartialEq)]
enum Separator {
    Before,
    Between,
}

fn write_fields(map: Option<&Map>, names: &[&str], separator: Separator, out: &mut Vec<u8>) {
    let mut separator = separator;
    for name in names {
        if let Some(value) = map.and_then(|map| map.get(name)) {
            write_field(name, value, separator, out);
            separator = Separator::Before;
        }
    }
}

fn write_field(name: &str, value: &Value, separator: Separator, out: &mut Vec<u8>) {
    if separator == Separator::Before {
        out.push(b',');
    }
    json::write_string(name, out);
    out.push(b':');
    json::write(value, out);
}

fn write_filters(kind: &Kind, object: &Map, metadata: Option<&Map>, out: &mut Vec<u8>) {
    let labels = metadata
        .and_then(|metadata| metadata.get("labels"))
        .and_then(Value::as_object);
    write_u16(labels.map_or(0, Map::len), out);
    for (key, value) in labels.into_iter().flat_map(Map::iter) {
        for text in [key.as_str(), value.as_str().unwrap_or_default()] {
            write_u16(text.len(), out);
            out.extend_from_slice(text.as_bytes());
        }
    }
    // A definition may change which fields of a custom resource are selectable, so those are
    // looked up when they are asked for. In their place stands the form of the object.
    let selected: Vec<Text> = match &kind.custom {
        Some(custom) => vec![custom.tag.clone()],
        None => {
            let fields = kind.rules.selectable.iter();
            fields.map(|field| kind.select(object, field)).collect()
        }
    };
    write_u16(selected.len(), out);
    for text in selected {
        let length = u32::try_from(text.len()).expect("a record is far smaller");
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
}

fn write_u16(number: usize, out: &mut Vec<u8>) {
    let number = u16::try_from(number).expect("validation limits keys, values and their number");
    out.extend_from_slice(&number.to_le_bytes());
}

/// Whether two records hold the same object of a custom kind, in the same version. The schemas
/// under which they were written may differ.
pub(crate) fn is_same_object(one: &[u8], other: &[u8]) -> bool {
    let (Ok(one), Ok(other)) = (Stored::new(one), Stored::new(other)) else {
        return false;
    };
    one.flags == other.flags
        && one.tag().split('/').next() == other.tag().split('/').next()
        && one.head == other.head
        && one.middle == other.middle
        && one.managed == other.managed
        && one.rest == other.rest
}

impl<'a> Stored<'a> {
    /// Reads the parts.
    pub fn new(bytes: &'a [u8]) -> Result<Stored<'a>, NotARecord> {
        let (header, mut text) = bytes.split_at_checked(HEADER_BYTES).ok_or(NotARecord)?;
        if header[0] != FORMAT {
            return Err(NotARecord);
        }
        let mut part = |place: usize| {
            let length = &header[2 + place * 4..6 + place * 4];
            let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
            let (part, after) = text.split_at_checked(length).ok_or(NotARecord)?;
            text = after;
            Ok(part)
        };
        let (head, middle, managed, rest) = (part(0)?, part(1)?, part(2)?, part(3)?);
        if head.len() <= VERSION_KEY.len() || middle.is_empty() || rest.len() < 2 {
            return Err(NotARecord);
        }
        Ok(Stored {
            flags: header[1],
            head,
            middle,
            managed,
            rest,
            filters: text,
        })
    }

    /// Whether the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.flags & DELETING != 0
    }

    /// The object's uid; it is the last thing before the version.
    pub fn uid(&self) -> &'a str {
        let head = self.head.strip_suffix(VERSION_KEY).unwrap_or_default();
        let head = head.strip_suffix(b"\"").unwrap_or_default();
        let start = head.iter().rposition(|byte| *byte == b'"');
        start
            .and_then(|start| std::str::from_utf8(&head[start + 1..]).ok())
            .unwrap_or_default()
    }

    /// Whether the object names owners.
    ///
    /// No label and no annotation looks like the list that is searched for: their values are text.
    pub fn has_owners(&self) -> bool {
        const OWNERS: &[u8] = b",\"ownerReferences\":[";
        self.middle.windows(OWNERS.len()).any(|text| text == OWNERS)
    }

    /// The metadata that follows the version: times, labels, annotations, owners, finalizers.
    pub fn metadata(&self) -> Result<Map, NotARecord> {
        let text = [b"{\"resourceVersion\":\"", self.middle, b"}"].concat();
        match json::parse(&text) {
            Ok(Value::Object(metadata)) => Ok(metadata),
            _ => Err(NotARecord),
        }
    }

    /// How many bytes [`Stored::write_item`] adds.
    pub fn item_len(&self, revision: Revision) -> usize {
        let digits = revision.0.checked_ilog10().unwrap_or(0) as usize + 1;
        self.head.len() + digits + self.middle.len() + self.managed.len() + self.rest.len()
    }

    /// Appends the object without its kind, as typed lists hold it.
    pub fn write_item(&self, revision: Revision, out: &mut Vec<u8>) {
        self.write_parts(self.head, Some(revision), Managed::Keep, out);
    }

    /// Appends the whole object; without a revision (a dry run) it shows none.
    pub fn write_object(&self, header: &[u8], revision: Option<Revision>, out: &mut Vec<u8>) {
        out.extend_from_slice(header);
        // The header has opened the object already.
        self.write_parts(&self.head[1..], revision, Managed::Keep, out);
    }

    /// Appends an object that has only the metadata of this one.
    pub fn write_metadata(&self, header: &[u8], revision: Option<Revision>, out: &mut Vec<u8>) {
        out.extend_from_slice(header);
        let metadata = Stored {
            // The brace that ends the metadata, and the one that ends the object.
            rest: b"}}",
            ..*self
        };
        metadata.write_parts(&self.head[1..], revision, Managed::Keep, out);
    }

    fn write_parts(
        &self,
        head: &[u8],
        revision: Option<Revision>,
        managed: Managed,
        out: &mut Vec<u8>,
    ) {
        match revision {
            Some(revision) => {
                out.extend_from_slice(head);
                write_number(revision.0, out);
                out.extend_from_slice(self.middle);
            }
            None => {
                out.extend_from_slice(&head[..head.len() - VERSION_KEY.len()]);
                out.extend_from_slice(&self.middle[1..]);
            }
        }
        if managed == Managed::Keep {
            out.extend_from_slice(self.managed);
        }
        out.extend_from_slice(self.rest);
    }

    /// The managed fields as JSON text; empty if there are none.
    pub fn managed_fields(&self) -> &'a [u8] {
        self.managed
            .strip_prefix(b",\"managedFields\":")
            .unwrap_or_default()
    }

    /// The object as a tree, in its storage version, without managed fields and kind.
    pub fn tree(&self, revision: Option<Revision>) -> Result<Map, NotARecord> {
        let mut text = Vec::with_capacity(self.item_len(Revision(u64::MAX)));
        self.write_parts(self.head, revision, Managed::Skip, &mut text);
        match json::parse(&text) {
            Ok(Value::Object(object)) => Ok(object),
            _ => Err(NotARecord),
        }
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        let mut filters = Filters(self.filters);
        (0..filters.u16()?).find_map(|_| {
            let (found, value) = (filters.text16()?, filters.text16()?);
            (found == key).then_some(value)
        })
    }

    /// The form in which an object of a custom kind was written: its version, a slash and a digest
    /// of the schema.
    pub fn tag(&self) -> &'a str {
        self.selectable(0).unwrap_or_default()
    }

    /// The value of the selectable field at this place of the kind's list.
    pub fn selectable(&self, place: usize) -> Option<&'a str> {
        let mut filters = Filters(self.filters);
        for _ in 0..filters.u16()? {
            filters.text16()?;
            filters.text16()?;
        }
        filters.u16()?;
        for _ in 0..place {
            filters.text32()?;
        }
        filters.text32()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Managed {
    Keep,
    Skip,
}

/// Reads the part of a record that filters use.
struct Filters<'a>(&'a [u8]);

impl<'a> Filters<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(length)?;
        self.0 = left;
        Some(taken)
    }

    fn u16(&mut self) -> Option<usize> {
        self.take(2)
            .map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]).into())
    }

    fn text16(&mut self) -> Option<&'a str> {
        let length = self.u16()?;
        std::str::from_utf8(self.take(length)?).ok()
    }

    fn text32(&mut self) -> Option<&'a str> {
        let length = u32::from_le_bytes(self.take(4)?.try_into().ok()?);
        std::str::from_utf8(self.take(length as usize)?).ok()
    }
}

/// Appends a number in decimal.
pub fn write_number(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut left = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The opening of a served object: `{"kind":"K","apiVersion":"V",`.
pub fn object_header(kind: &str, api_version: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(48);
    out.extend_from_slice(b"{\"kind\":");
    json::write_string(kind, &mut out);
    out.extend_from_slice(b",\"apiVersion\":");
    json::write_string(api_version, &mut out);
    out.push(b',');
    out
}
