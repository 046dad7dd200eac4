//! The reader: one pass, no recursion.
//!
//! Finished children wait on two shared stacks, one for fields and one for items; when their
//! container ends they are moved out at once, so every container is allocated one time and exactly
//! as large as it is.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

use super::{DEPTH_MAX, DUPLICATES_BYTES_MAX, DUPLICATES_MAX, Error, number_as_written};
use crate::value::text_order;
use crate::{Map, Text, Value};

/// Why reading stopped. A result with a pointer in it stays in registers, which one with all that
/// an error may hold does not.
pub(super) type Failure = Box<Error>;

/// What a finished reader hands out.
pub(super) struct Read {
    pub(super) value: Value,
    /// Whether some object has a key twice.
    pub(super) has_duplicates: bool,
    /// Where, if the reader was told to track them.
    pub(super) duplicates: Vec<String>,
}

/// An open container, with the length its stack had when it began.
#[derive(Clone, Copy)]
enum Frame {
    Array(usize),
    Object(usize),
}

/// Reads one value from a text.
pub(super) struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    frames: Vec<Frame>,
    /// Fields of all open objects. The newest one of each has its key and waits for its value.
    fields: Vec<(Text, Value)>,
    /// Items of all open arrays.
    items: Vec<Value>,
    /// The first number that does not fit; a syntax error further on is told instead of it.
    range_error: Option<Error>,
    has_duplicates: bool,
    merge: bool,
    write_floats: bool,
    tracker: Option<Tracker>,
}

/// Notes duplicate fields in the order met.
#[derive(Default)]
struct Tracker {
    /// The keys met so far, for each open object.
    seen: Vec<HashSet<Text>>,
    reported: HashSet<String>,
    duplicates: Vec<String>,
    bytes: usize,
}

impl<'a> Reader<'a> {
    /// A reader of `text`, whose offsets are those of the text.
    pub(super) fn new(text: &'a str) -> Reader<'a> {
        Reader {
            text,
            bytes: text.as_bytes(),
            at: 0,
            frames: Vec::with_capacity(16),
            fields: Vec::with_capacity(32),
            items: Vec::with_capacity(32),
            range_error: None,
            has_duplicates: false,
            merge: false,
            write_floats: false,
            tracker: None,
        }
    }

    /// Makes the reader note the path of each duplicate field.
    pub(super) fn track_duplicates(&mut self) {
        self.tracker = Some(Tracker::default());
    }

    /// Makes objects under equal keys merge.
    pub(super) fn merge_duplicates(&mut self) {
        self.merge = true;
    }

    /// Makes floats come out as if they had been written and read once more.
    pub(super) fn write_floats(&mut self) {
        self.write_floats = true;
    }

    /// Reads the whole text.
    pub(super) fn read(mut self) -> Result<Read, Failure> {
        self.value()?;
        self.skip_space();
        if let Some(&byte) = self.bytes.get(self.at) {
            let offset = self.at;
            return Err(Error::TrailingData { offset, byte }.into());
        }
        if let Some(error) = self.range_error {
            return Err(error.into());
        }
        Ok(Read {
            value: self.items.pop().unwrap_or_default(),
            has_duplicates: self.has_duplicates,
            duplicates: self
                .tracker
                .map(|tracker| tracker.duplicates)
                .unwrap_or_default(),
        })
    }

    /// Reads one value; it is left as an item, since no container is around it.
    fn value(&mut self) -> Result<(), Failure> {
        loop {
            self.skip_space();
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    let text = self.string()?;
                    fill(self.place(), Value::String(made(text)));
                }
                b'{' => {
                    self.open(Frame::Object(self.fields.len()), b'{')?;
                    if self.peek_after_space()? != b'}' {
                        self.key()?;
                        continue;
                    }
                    self.close(Value::Object(Map::new()));
                }
                b'[' => {
                    self.open(Frame::Array(self.items.len()), b'[')?;
                    if self.peek_after_space()? != b']' {
                        continue;
                    }
                    self.close(Value::Array(Vec::new()));
                }
                _ => {
                    let value = self.bare()?;
                    fill(self.place(), value);
                }
            }
            if self.is_whole()? {
                return Ok(());
            }
        }
    }

    /// Reads a value that stands without quotes or brackets.
    fn bare(&mut self) -> Result<Value, Failure> {
        match self.peek()? {
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal(Value::Bool(true), &TRUE),
            b'f' => self.literal(Value::Bool(false), &FALSE),
            b'n' => self.literal(Value::Null, &NULL),
            _ => Err(self.unexpected("looking for beginning of value")),
        }
    }

    /// Where the next value goes.
    #[inline(always)]
    fn place(&mut self) -> &mut Value {
        if let Some(Frame::Object(_)) = self.frames.last() {
            let newest = self.fields.last_mut();
            return &mut newest.expect("its key was pushed before its value").1;
        }
        add_blank(&mut self.items, || Value::Null)
    }

    /// Closes every container that ends here and goes to the next value, unless there is none left
    /// to go to: then the value that was put last is the whole.
    fn is_whole(&mut self) -> Result<bool, Failure> {
        while let Some(&frame) = self.frames.last() {
            match (frame, self.peek_after_space()?) {
                (Frame::Array(_), b',') => {
                    self.at += 1;
                    return Ok(false);
                }
                (Frame::Array(start), b']') => {
                    let items = take_tail(&mut self.items, start);
                    self.close(Value::Array(items));
                }
                (Frame::Object(_), b',') => {
                    self.at += 1;
                    self.skip_space();
                    self.key()?;
                    return Ok(false);
                }
                (Frame::Object(start), b'}') => {
                    let map = self.take_map(start);
                    self.close(Value::Object(map));
                }
                (Frame::Array(_), _) => return Err(self.unexpected("after array element")),
                (Frame::Object(_), _) => {
                    return Err(self.unexpected("after object key:value pair"));
                }
            }
        }
        Ok(true)
    }

    fn open(&mut self, frame: Frame, byte: u8) -> Result<(), Failure> {
        if self.frames.len() == DEPTH_MAX {
            let offset = self.at;
            return Err(Error::Depth { offset, byte }.into());
        }
        if let (Some(tracker), Frame::Object(_)) = (&mut self.tracker, frame) {
            tracker.seen.push(HashSet::new());
        }
        self.frames.push(frame);
        self.at += 1;
        Ok(())
    }

    /// Steps over the bracket that ends a container and puts the container in its own.
    #[inline(always)]
    fn close(&mut self, value: Value) {
        self.at += 1;
        let frame = self.frames.pop();
        if let (Some(tracker), Some(Frame::Object(_))) = (&mut self.tracker, frame) {
            tracker.seen.pop();
        }
        fill(self.place(), value);
    }

    fn take_map(&mut self, start: usize) -> Map {
        let mut entries = take_tail(&mut self.fields, start);
        if entries.is_sorted_by(|a, b| key_order(a, b).is_lt()) {
            return Map::from_sorted(entries);
        }
        entries.sort_by(key_order);
        if entries.is_sorted_by(|a, b| key_order(a, b).is_lt()) {
            return Map::from_sorted(entries);
        }
        self.has_duplicates = true;
        if self.merge {
            Map::from_sorted(merge_equal_keys(entries))
        } else {
            Map::from_entries(entries)
        }
    }

    /// Reads a key and the colon after it.
    fn key(&mut self) -> Result<(), Failure> {
        if self.peek()? != b'"' {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        self.at += 1;
        let key = self.string()?;
        if self.peek_after_space()? != b':' {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        if self.tracker.is_some() {
            self.track(&key);
        }
        let (place, _) = add_blank(&mut self.fields, || (Text::const_new(""), Value::Null));
        fill(place, made(key));
        Ok(())
    }

    fn track(&mut self, key: &str) {
        let path = |frames: &[Frame]| path(frames, &self.fields, &self.items, key);
        let Some(tracker) = &mut self.tracker else {
            return;
        };
        let seen = tracker
            .seen
            .last_mut()
            .expect("a key stands in an open object");
        if seen.insert(Text::new(key))
            || tracker.duplicates.len() == DUPLICATES_MAX
            || tracker.bytes > DUPLICATES_BYTES_MAX
        {
            return;
        }
        let path = path(&self.frames);
        if tracker.reported.insert(path.clone()) {
            tracker.bytes += path.len();
            tracker.duplicates.push(path);
        }
    }

    /// Reads the rest of a string whose opening quote is behind us.
    ///
    /// A [`Text`] is made of it where it is to stay: moved from hand to hand it would be copied in
    /// pieces that overlap those it was written in, and the processor waits for such copies longer
    /// than it takes to find the end of the string.
    fn string(&mut self) -> Result<Cow<'a, str>, Failure> {
        let start = self.at;
        self.at = end_of_plain(self.bytes, start);
        match self.peek()? {
            b'"' => {
                let text = &self.text[start..self.at];
                self.at += 1;
                Ok(Cow::Borrowed(text))
            }
            b'\\' => self.escaped_string(start),
            _ => Err(self.unexpected("in string literal")),
        }
    }

    #[cold]
    fn escaped_string(&mut self, start: usize) -> Result<Cow<'a, str>, Failure> {
        let mut text = String::from(&self.text[start..self.at]);
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                b'\\' => {
                    self.at += 1;
                    text.push(self.escape()?);
                }
                _ => return Err(self.unexpected("in string literal")),
            }
            let plain = self.at;
            self.at = end_of_plain(self.bytes, plain);
            text.push_str(&self.text[plain..self.at]);
        }
    }

    /// Reads an escape whose backslash is behind us.
    fn escape(&mut self) -> Result<char, Failure> {
        let character = match self.byte_or_space() {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                let unit = self.hex4()?;
                return self.after_unit(unit);
            }
            _ => return Err(self.unexpected("in string escape code")),
        };
        self.at += 1;
        Ok(character)
    }

    /// Makes a character of a UTF-16 unit, with the low surrogate that may follow it.
    fn after_unit(&mut self, unit: u32) -> Result<char, Failure> {
        if let Some(character) = char::from_u32(unit) {
            return Ok(character);
        }
        if unit < 0xdc00 && self.bytes[self.at..].starts_with(b"\\u") {
            let before = self.at;
            self.at += 2;
            let low = self.hex4()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = before;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Result<u32, Failure> {
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = char::from(self.byte_or_space()).to_digit(16) else {
                return Err(self.unexpected("in \\u hexadecimal character escape"));
            };
            unit = unit << 4 | digit;
            self.at += 1;
        }
        Ok(unit)
    }

    fn literal(&mut self, value: Value, rest: &[(u8, &'static str)]) -> Result<Value, Failure> {
        self.at += 1;
        for &(byte, context) in rest {
            if self.byte_or_space() != byte {
                return Err(self.unexpected(context));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, Failure> {
        let start = self.at;
        let negative = self.bytes[start] == b'-';
        self.at += usize::from(negative);
        let mut number: i64 = 0;
        match self.byte_or_space() {
            b'0' => self.at += 1,
            b'1'..=b'9' => number = self.digits(),
            _ => return Err(self.unexpected("in numeric literal")),
        }
        let is_short = self.at - start <= 18;
        let mut is_integer = true;
        if self.byte_or_space() == b'.' {
            self.at += 1;
            is_integer = false;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.byte_or_space(), b'e' | b'E') {
            self.at += 1;
            is_integer = false;
            self.at += usize::from(matches!(self.byte_or_space(), b'+' | b'-'));
            self.some_digits("in exponent of numeric literal")?;
        }
        if is_integer && is_short {
            return Ok(Value::Int(if negative { -number } else { number }));
        }
        Ok(self.long_number(start, is_integer))
    }

    /// Makes a number of the text since `start` that is long or has a fraction or exponent.
    fn long_number(&mut self, start: usize, is_integer: bool) -> Value {
        let literal = &self.text[start..self.at];
        if is_integer && let Ok(number) = literal.parse() {
            return Value::Int(number);
        }
        let number: f64 = literal.parse().unwrap_or(f64::INFINITY);
        if number.is_infinite() && self.range_error.is_none() {
            self.range_error = Some(Error::NumberRange {
                literal: literal.to_owned(),
            });
        }
        if self.write_floats {
            number_as_written(number)
        } else {
            Value::Float(number)
        }
    }

    /// Skips digits; what it gives is right if there are no more than eighteen.
    fn digits(&mut self) -> i64 {
        let mut number: i64 = 0;
        while let Some(&byte @ b'0'..=b'9') = self.bytes.get(self.at) {
            number = number.wrapping_mul(10).wrapping_add(i64::from(byte - b'0'));
            self.at += 1;
        }
        number
    }

    fn some_digits(&mut self, context: &'static str) -> Result<(), Failure> {
        if !self.byte_or_space().is_ascii_digit() {
            return Err(self.unexpected(context));
        }
        self.digits();
        Ok(())
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    #[inline]
    fn peek(&self) -> Result<u8, Failure> {
        let byte = self.bytes.get(self.at);
        byte.copied().ok_or_else(|| Error::UnexpectedEnd.into())
    }

    #[inline]
    fn peek_after_space(&mut self) -> Result<u8, Failure> {
        self.skip_space();
        self.peek()
    }

    /// The next byte. Inside a number, literal or escape the end of the text counts as a space,
    /// and the error then names that space, because Go's scanner does so.
    fn byte_or_space(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(b' ')
    }

    #[cold]
    fn unexpected(&self, context: &'static str) -> Failure {
        let error = Error::Syntax {
            offset: self.at,
            byte: self.byte_or_space(),
            context,
        };
        error.into()
    }
}

const TRUE: [(u8, &str); 3] = [
    (b'r', "in literal true (expecting 'r')"),
    (b'u', "in literal true (expecting 'u')"),
    (b'e', "in literal true (expecting 'e')"),
];
const FALSE: [(u8, &str); 4] = [
    (b'a', "in literal false (expecting 'a')"),
    (b'l', "in literal false (expecting 'l')"),
    (b's', "in literal false (expecting 's')"),
    (b'e', "in literal false (expecting 'e')"),
];
const NULL: [(u8, &str); 3] = [
    (b'u', "in literal null (expecting 'u')"),
    (b'l', "in literal null (expecting 'l')"),
    (b'l', "in literal null (expecting 'l')"),
];

/// Adds a place to a stack. Pushed, it would be made elsewhere and copied.
#[inline(always)]
fn add_blank<T>(stack: &mut Vec<T>, blank: fn() -> T) -> &mut T {
    stack.resize_with(stack.len() + 1, blank);
    stack.last_mut().expect("it was just added")
}

/// Fills a place in which nothing stands that would have to be dropped.
#[inline(always)]
fn fill<T>(place: &mut T, value: T) {
    std::mem::forget(std::mem::replace(place, value));
}

/// A text of the tree.
#[inline(always)]
fn made(text: Cow<'_, str>) -> Text {
    match text {
        Cow::Borrowed(text) => Text::new(text),
        Cow::Owned(text) => Text::from(text),
    }
}

/// The order of two fields by key.
#[inline]
fn key_order(a: &(Text, Value), b: &(Text, Value)) -> Ordering {
    text_order(&a.0, &b.0)
}

/// Moves what lies above `start` into a vector that is exactly as large.
fn take_tail<T>(stack: &mut Vec<T>, start: usize) -> Vec<T> {
    if start > 0 {
        return stack.split_off(start);
    }
    // At zero, `split_off` would hand out the stack itself with all its room.
    let mut all = Vec::with_capacity(stack.len());
    all.append(stack);
    all
}

/// The path of `key` in the innermost open object.
fn path(frames: &[Frame], fields: &[(Text, Value)], items: &[Value], key: &str) -> String {
    let (mut fields_end, mut items_end) = (fields.len(), items.len());
    let mut steps = vec![format!(".{key}")];
    for (level, frame) in frames.iter().enumerate().rev() {
        let is_innermost = level + 1 == frames.len();
        match *frame {
            Frame::Object(start) if is_innermost => fields_end = start,
            Frame::Object(start) => {
                steps.push(format!(".{}", fields[fields_end - 1].0));
                fields_end = start;
            }
            Frame::Array(start) => {
                steps.push(format!("[{}]", items_end - start));
                items_end = start;
            }
        }
    }
    steps.reverse();
    let path = steps.concat();
    match path.strip_prefix('.') {
        Some(path) => path.to_owned(),
        None => path,
    }
}

/// Makes one entry of all those with equal keys, which stand side by side.
///
/// All values of a key are merged at once: one after the other would cost the square of their
/// number when a large object stands among many small ones.
fn merge_equal_keys(entries: Vec<(Text, Value)>) -> Vec<(Text, Value)> {
    let mut merged: Vec<(Text, Value)> = Vec::with_capacity(entries.len());
    let mut entries = entries.into_iter().peekable();
    while let Some((key, first)) = entries.next() {
        let mut values = vec![first];
        while let Some((_, value)) = entries.next_if(|(next, _)| *next == key) {
            values.push(value);
        }
        merged.push((key, merge(values)));
    }
    merged
}

/// Merges the objects that stand behind the last value that is none.
fn merge(mut values: Vec<Value>) -> Value {
    let is_object = |value: &Value| matches!(value, Value::Object(_));
    let last_other = values.iter().rposition(|value| !is_object(value));
    let objects = values.split_off(last_other.map_or(0, |at| at + 1));
    let mut entries: Vec<(Text, Value)> = Vec::new();
    match objects.len() {
        0 => return values.pop().unwrap_or_default(),
        1 => return objects.into_iter().next().unwrap_or_default(),
        _ => {
            for object in objects {
                if let Value::Object(map) = object {
                    entries.extend(map);
                }
            }
        }
    }
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    Value::Object(Map::from_sorted(merge_equal_keys(entries)))
}

/// Where the run of string bytes that need no attention ends: at a quote, a backslash, a control
/// character or the end of the text.
#[inline]
pub fn end_of_plain(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    // Eight bytes at a time. Subtracting borrows into a byte's high bit when the byte was below
    // what is subtracted; a borrow can only spoil bytes above a true hit, and the lowest counts.
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * b'"' as u64);
        let backslash = word ^ (ONES * b'\\' as u64);
        let hit = (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        let hit = hit & HIGHS;
        if hit != 0 {
            return at + (hit.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at) {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            break;
        }
        at += 1;
    }
    at
}

/// Hands `read` the text as valid UTF-8 and puts its errors right.
pub(super) fn with_clean_text<T>(
    text: &[u8],
    read: impl FnOnce(&str) -> Result<T, Failure>,
) -> Result<T, Error> {
    match clean(text) {
        Cow::Borrowed(text) => read(text).map_err(|error| *error),
        Cow::Owned(cleaned) => read(&cleaned).map_err(|error| at_original(*error, text)),
    }
}

/// The text as valid UTF-8, each invalid byte replaced by U+FFFD as Go replaces it.
pub(crate) fn clean(text: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(text) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut cleaned = String::with_capacity(text.len() + 16);
            for chunk in text.utf8_chunks() {
                cleaned.push_str(chunk.valid());
                cleaned.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
            }
            Cow::Owned(cleaned)
        }
    }
}

/// Makes an error about the cleaned text speak of the text that was sent.
fn at_original(error: Error, text: &[u8]) -> Error {
    let (Error::Syntax { offset, .. }
    | Error::TrailingData { offset, .. }
    | Error::Depth { offset, .. }) = error
    else {
        return error;
    };
    let (mut cleaned, mut original) = (0, 0);
    for chunk in text.utf8_chunks() {
        if offset < cleaned + chunk.valid().len() {
            break;
        }
        cleaned += chunk.valid().len();
        original += chunk.valid().len();
        let invalid = chunk.invalid().len().min((offset - cleaned) / 3);
        cleaned += 3 * invalid;
        original += invalid;
        if invalid < chunk.invalid().len() {
            break;
        }
    }
    let offset = original + (offset - cleaned);
    let byte = text.get(offset).copied().unwrap_or(b' ');
    match error {
        Error::Syntax { context, .. } => Error::Syntax {
            offset,
            byte,
            context,
        },
        Error::Depth { .. } => Error::Depth { offset, byte },
        _ => Error::TrailingData { offset, byte },
    }
}
