//! Reads a text into an outline, without making a tree of what stays text.
//!
//! Only the usual is read here: ordinary JSON that fits its type, whose parts hold neither escapes
//! nor fractions. For anything else the answer is `None`, and the caller reads the text in the
//! ordinary way, which knows all of JSON and the words for every mistake.

use object::{Map, Text, Value, json, text_order};
use schema::{ListTopology, ListType, MapType, Scalar, Type, TypeId, Types};

use super::{DEPTH_MAX, Place, is_part};
use crate::typed::Typing;

/// Integers of more digits are not looked at here.
const DIGITS_MAX: usize = 18;

/// The keys of at most this many types are remembered, so that looking for one is quick.
const TYPES_MAX: usize = 16;

/// At most this many texts, and vectors of each size, are kept for later objects.
const SPARES_MAX: usize = 64;

/// Vectors with room for this much or more are not kept.
const SPARE_ROOM_MAX: usize = 32;

/// Memory that one read after the other can use.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Fields of all maps that are open.
    fields: Vec<(Text, Value)>,
    /// Items of all lists that are open.
    items: Vec<Value>,
    /// The part that is being read, as it will be written.
    part: String,
    /// Fields of all maps of the part that are open.
    members: Vec<Member>,
    known: KnownKeys,
    /// Where a map of the part stands while its fields are put in order.
    unordered: String,
    /// Texts of former parts, the largest last.
    texts: Vec<String>,
    maps: Spares<(Text, Value)>,
    lists: Spares<Value>,
}

/// Vectors of former objects, by how much they have room for.
#[derive(Debug)]
struct Spares<T>([Vec<Vec<T>>; SPARE_ROOM_MAX]);

impl<T> Default for Spares<T> {
    fn default() -> Spares<T> {
        Spares(std::array::from_fn(|_| Vec::new()))
    }
}

impl<T> Spares<T> {
    /// Moves what lies above `start` into a vector of its own.
    fn take_tail(&mut self, stack: &mut Vec<T>, start: usize) -> Vec<T> {
        let wanted = stack.len() - start;
        let spare = self.0.get_mut(wanted).and_then(Vec::pop);
        let mut tail = spare.unwrap_or_else(|| Vec::with_capacity(wanted));
        tail.extend(stack.drain(start..));
        tail
    }

    fn keep(&mut self, mut vector: Vec<T>) {
        vector.clear();
        if let Some(alike) = self.0.get_mut(vector.capacity())
            && alike.len() < SPARES_MAX
        {
            alike.push(vector);
        }
    }
}

/// A field of a map that stays text.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// The position of its declaration, where all fields of the map are declared.
    rank: usize,
    /// Where its key stands in the text that is read, without quotes.
    key: (usize, usize),
    /// Where it stands in the part, from key to value.
    place: (usize, usize),
}

/// The keys of the last map of each type, which the next one mostly has in the same order: items of
/// a list are alike.
#[derive(Debug, Default)]
struct KnownKeys {
    /// The types, told apart by where they are in memory while a text is read.
    types: Vec<usize>,
    /// For each of them the keys in order.
    keys: Vec<Vec<Known>>,
}

/// A key with its quotes and the colon behind it.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The bytes, and where among sixteen they stand. Longer ones are not known.
    bytes: u128,
    mask: u128,
    length: usize,
    rank: usize,
    ty: TypeId,
}

impl Known {
    fn new(name: &str, rank: usize, ty: TypeId) -> Known {
        let length = name.len() + 3;
        let mut bytes = [0; 16];
        let mut mask = [0; 16];
        if let Some(written) = bytes.get_mut(..length) {
            written[0] = b'"';
            written[1..length - 2].copy_from_slice(name.as_bytes());
            written[length - 2..].copy_from_slice(b"\":");
            mask[..length].fill(0xff);
        } else {
            // Under no mask there is never anything but zero.
            bytes[0] = 1;
        }
        Known {
            bytes: u128::from_le_bytes(bytes),
            mask: u128::from_le_bytes(mask),
            length,
            rank,
            ty,
        }
    }
}

impl KnownKeys {
    fn forget(&mut self) {
        self.types.clear();
    }

    /// Where the keys of this type are; where there is nothing, if there are too many types.
    fn of(&mut self, ty: &MapType) -> usize {
        let address = std::ptr::from_ref(ty).addr();
        let found = self.types.iter().position(|it| *it == address);
        found.unwrap_or_else(|| {
            let at = self.types.len();
            if at < TYPES_MAX {
                self.types.push(address);
                self.keys.resize_with(TYPES_MAX, Vec::new);
                self.keys[at].clear();
            }
            at
        })
    }

    /// The key at this position of a map, if it is the one that stands here.
    #[inline(always)]
    fn key(&self, of: usize, number: usize, text: &[u8], at: usize) -> Option<&Known> {
        let known = self.keys.get(of)?.get(number)?;
        let here = u128::from_le_bytes(*text.get(at..)?.first_chunk()?);
        (here & known.mask == known.bytes).then_some(known)
    }

    fn learn(&mut self, of: usize, number: usize, key: Known) {
        if let Some(keys) = self.keys.get_mut(of) {
            keys.truncate(number);
            keys.push(key);
        }
    }
}

impl Room {
    /// Reads an object; `None` if it is not of the usual sort.
    pub(crate) fn read(&mut self, text: &str, typing: Typing<'_>) -> Option<Value> {
        self.fields.clear();
        self.items.clear();
        self.members.clear();
        self.known.forget();
        let mut scan = Scan {
            text,
            bytes: text.as_bytes(),
            at: 0,
            copied: 0,
            is_verbatim: json::is_verbatim(text),
            types: typing.types,
            room: self,
        };
        let value = scan.value(typing.root, Place::Field, DEPTH_MAX)?;
        scan.skip_space();
        (scan.at == text.len()).then_some(value)
    }

    /// Takes the memory of an outline that is no longer needed.
    pub(crate) fn recycle(&mut self, outline: Value) {
        match outline {
            Value::String(text) if text.is_heap_allocated() && self.texts.len() < SPARES_MAX => {
                let text = text.into_string();
                let is_smaller = |other: &String| other.capacity() < text.capacity();
                let at = self.texts.partition_point(is_smaller);
                self.texts.insert(at, text);
            }
            Value::Array(mut items) => {
                items.drain(..).for_each(|item| self.recycle(item));
                self.lists.keep(items);
            }
            Value::Object(map) => {
                let mut entries = map.into_entries();
                entries.drain(..).for_each(|(_, value)| self.recycle(value));
                self.maps.keep(entries);
            }
            _ => {}
        }
    }

    /// The part that was read.
    fn part(&mut self) -> Text {
        let is_too_small = |text: &String| text.capacity() < self.part.len();
        let at = self.texts.partition_point(is_too_small);
        if at == self.texts.len() {
            return Text::new(&self.part);
        }
        let mut text = self.texts.remove(at);
        text.clear();
        text.push_str(&self.part);
        Text::from_string_buffer(text)
    }
}

struct Scan<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// In a part: where that begins which is not copied yet.
    copied: usize,
    /// Whether all strings of the text are written as they are read.
    is_verbatim: bool,
    types: &'a Types,
    room: &'a mut Room,
}

impl<'a> Scan<'a> {
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// The first byte that is no space.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        if byte > b' ' {
            return Some(byte);
        }
        self.skip_space();
        self.bytes.get(self.at).copied()
    }

    /// Steps over this byte, if it comes next.
    #[inline]
    fn take(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then(|| self.at += 1)
    }

    /// Reads a value; what stays text elsewhere is a tree as an item that is told by its fields.
    fn value(&mut self, ty: TypeId, place: Place, levels: u32) -> Option<Value> {
        let ty = self.types.get(ty);
        match self.next()? {
            b'{' | b'[' if place.is_part(ty) => self.part(ty),
            // It would be taken for the text of a part.
            b'"' if is_part(ty) => None,
            b'{' => self.map(ty.map.as_ref()?, levels.checked_sub(1)?),
            b'[' => self.list(ty.list.as_ref()?, levels.checked_sub(1)?),
            b'"' => self.string(),
            b't' => self.word("true").map(|()| Value::Bool(true)),
            b'f' => self.word("false").map(|()| Value::Bool(false)),
            b'n' => self.word("null").map(|()| Value::Null),
            _ => {
                let start = self.at;
                self.integer()?;
                self.text[start..self.at].parse().ok().map(Value::Int)
            }
        }
    }

    fn map(&mut self, ty: &'a MapType, levels: u32) -> Option<Value> {
        self.take(b'{')?;
        if self.take(b'}').is_some() {
            return Some(Value::Object(Map::new()));
        }
        let start = self.room.fields.len();
        let mut next = 0;
        loop {
            let (from, to) = self.plain_string()?;
            let key = &self.text[from..to];
            let found = ty.fields.search_near(next, key);
            next = found.map_or(next, |at| at + 1);
            let field = found.map(|at| ty.fields[at].ty).or(ty.element)?;
            self.take(b':')?;
            let value = self.value(field, Place::Field, levels)?;
            self.room.fields.push((Text::new(key), value));
            if self.take(b',').is_none() {
                self.take(b'}')?;
                break;
            }
        }
        let Room { maps, fields, .. } = &mut *self.room;
        let mut entries = maps.take_tail(fields, start);
        let ascend = |entries: &[(Text, Value)]| {
            entries.is_sorted_by(|one, next| text_order(&one.0, &next.0).is_lt())
        };
        if !ascend(&entries) {
            entries.sort_unstable_by(|one, other| text_order(&one.0, &other.0));
            if !ascend(&entries) {
                return None;
            }
        }
        Some(Value::Object(Map::from_sorted(entries)))
    }

    fn list(&mut self, ty: &'a ListType, levels: u32) -> Option<Value> {
        self.take(b'[')?;
        if self.take(b']').is_some() {
            return Some(Value::Array(Vec::new()));
        }
        let start = self.room.items.len();
        loop {
            let item = self.value(ty.element, Place::item_of(ty), levels)?;
            self.room.items.push(item);
            if self.take(b',').is_none() {
                self.take(b']')?;
                break;
            }
        }
        let Room { lists, items, .. } = &mut *self.room;
        Some(Value::Array(lists.take_tail(items, start)))
    }

    /// A string of the outline, whatever stands in it.
    fn string(&mut self) -> Option<Value> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.bytes.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at = json::end_of_plain(self.bytes, self.at + 1),
            }
        }
        self.at += 1;
        let written = self.bytes.get(start..self.at)?;
        let content = &self.text[start + 1..self.at - 1];
        if content.bytes().any(|byte| byte == b'\\' || byte < b' ') {
            return json::parse(written).ok();
        }
        Some(Value::String(Text::new(content)))
    }

    /// Steps over a string that is written as it is read, and tells where it stands.
    #[inline(always)]
    fn plain_string(&mut self) -> Option<(usize, usize)> {
        self.take(b'"')?;
        let start = self.at;
        let end = match self.is_verbatim {
            true => json::end_at_quote(self.bytes, start),
            false => json::end_of_verbatim(self.bytes, start),
        };
        // A line break before the quote is a mistake, not space.
        (self.bytes.get(end) == Some(&b'"')).then(|| {
            self.at = end + 1;
            (start, end)
        })
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let rest = self.bytes.get(self.at..)?;
        rest.starts_with(word.as_bytes())
            .then(|| self.at += word.len())
    }

    /// Steps over an integer that is written as it is read.
    fn integer(&mut self) -> Option<()> {
        let negative = usize::from(self.bytes.get(self.at) == Some(&b'-'));
        let digits = &self.bytes[self.at + negative..];
        let count = digits.iter().take_while(|it| it.is_ascii_digit()).count();
        let is_usual = match digits {
            [b'0', ..] => count == 1 && negative == 0,
            _ => (1..=DIGITS_MAX).contains(&count),
        };
        self.at += negative + count;
        let goes_on = matches!(self.bytes.get(self.at), Some(b'.' | b'e' | b'E'));
        (is_usual && !goes_on).then_some(())
    }

    /// Reads a part as its text.
    fn part(&mut self, ty: &'a Type) -> Option<Value> {
        self.room.part.clear();
        self.copied = self.at;
        self.copy(ty, DEPTH_MAX)?;
        self.copy_up();
        Some(match self.room.part.as_str() {
            "[]" => Value::Array(Vec::new()),
            "{}" => Value::Object(Map::new()),
            _ => Value::String(self.room.part()),
        })
    }

    /// Copies what was stepped over since the last time.
    fn copy_up(&mut self) {
        self.room.part.push_str(&self.text[self.copied..self.at]);
        self.copied = self.at;
    }

    /// How long the part is up to here.
    #[inline]
    fn length(&self) -> usize {
        self.room.part.len() + self.at - self.copied
    }

    /// The first byte that is no space; spaces are not copied.
    #[inline]
    fn next_copied(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        if byte > b' ' {
            return Some(byte);
        }
        self.copy_up();
        self.skip_space();
        self.copied = self.at;
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn take_copied(&mut self, byte: u8) -> Option<()> {
        (self.next_copied()? == byte).then(|| self.at += 1)
    }

    /// Steps over a value of a part, if it is of this type.
    fn copy(&mut self, ty: &'a Type, levels: u32) -> Option<()> {
        let takes = |scalar| {
            ty.scalar
                .is_some_and(|it| it == scalar || it == Scalar::Untyped)
        };
        match self.next_copied()? {
            b'"' if takes(Scalar::String) => self.plain_string().map(|_| ()),
            b'{' => self.copy_map(ty.map.as_ref()?, levels.checked_sub(1)?),
            b'[' => self.copy_list(ty.list.as_ref()?, levels.checked_sub(1)?),
            b't' if takes(Scalar::Boolean) => self.word("true"),
            b'f' if takes(Scalar::Boolean) => self.word("false"),
            b'n' => self.word("null"),
            b'-' | b'0'..=b'9' if takes(Scalar::Numeric) => self.integer(),
            _ => None,
        }
    }

    fn copy_list(&mut self, ty: &'a ListType, levels: u32) -> Option<()> {
        // Whether the items of other lists can be told apart is not looked at here.
        if ty.topology != ListTopology::Atomic {
            return None;
        }
        let element = self.types.get(ty.element);
        self.take_copied(b'[')?;
        if self.take_copied(b']').is_some() {
            return Some(());
        }
        loop {
            self.copy(element, levels)?;
            match self.next_copied()? {
                b',' => self.at += 1,
                b']' => break,
                _ => return None,
            }
        }
        self.at += 1;
        Some(())
    }

    fn copy_map(&mut self, ty: &'a MapType, levels: u32) -> Option<()> {
        self.take_copied(b'{')?;
        if self.take_copied(b'}').is_some() {
            return Some(());
        }
        let first = self.room.members.len();
        let similar = self.room.known.of(ty);
        let mut ascend = true;
        let mut last = "";
        let mut next = 0;
        loop {
            self.next_copied()?;
            let start = self.length();
            let number = self.room.members.len() - first;
            let (key, rank, field) = match self.room.known.key(similar, number, self.bytes, self.at)
            {
                Some(known) => {
                    let key = (self.at + 1, self.at + known.length - 2);
                    self.at += known.length;
                    (key, known.rank, known.ty)
                }
                None => {
                    let key = self.plain_string()?;
                    let name = &self.text[key.0..key.1];
                    let found = ty.fields.search_near(next, name);
                    let found = found.map(|at| (at, ty.fields[at].ty));
                    self.take_copied(b':')?;
                    match (found, ty.element) {
                        (Some((rank, field)), None) => {
                            let known = Known::new(name, rank, field);
                            self.room.known.learn(similar, number, known);
                            (key, rank, field)
                        }
                        (found, Some(element)) => {
                            ascend &= number == 0 || text_order(last, name).is_lt();
                            last = name;
                            (key, 0, found.map_or(element, |(_, field)| field))
                        }
                        (None, None) => return None,
                    }
                }
            };
            // Declared fields are in the order of their names.
            if ty.element.is_none() {
                ascend &= rank >= next;
                next = rank + 1;
            }
            self.copy(self.types.get(field), levels)?;
            self.room.members.push(Member {
                rank,
                key,
                place: (start, self.length()),
            });
            match self.next_copied()? {
                b',' => self.at += 1,
                b'}' => break,
                _ => return None,
            }
        }
        if !ascend {
            self.copy_up();
            self.put_in_order(first)?;
        }
        self.room.members.truncate(first);
        self.at += 1;
        Some(())
    }

    /// Sorts the fields of the map that ends the part; `None` if two have one key.
    fn put_in_order(&mut self, first: usize) -> Option<()> {
        let Room {
            part,
            members,
            unordered,
            ..
        } = &mut *self.room;
        let members = &mut members[first..];
        let (start, _) = members.first()?.place;
        let key = |member: &Member| &self.text[member.key.0..member.key.1];
        let order = |one: &Member, other: &Member| {
            let order = one.rank.cmp(&other.rank);
            order.then_with(|| text_order(key(one), key(other)))
        };
        members.sort_unstable_by(order);
        if !members.is_sorted_by(|one, next| order(one, next).is_lt()) {
            return None;
        }
        unordered.clear();
        unordered.push_str(&part[start..]);
        part.truncate(start);
        for (at, member) in members.iter().enumerate() {
            if at > 0 {
                part.push(',');
            }
            part.push_str(&unordered[member.place.0 - start..member.place.1 - start]);
        }
        Some(())
    }
}
