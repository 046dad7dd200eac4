//! From nodes to the value tree: aliases, merge keys, duplicate keys.
//!
//! Contract: `go.yaml.in/yaml/v2` `decode.go` followed by `sigs.k8s.io/yaml`, which passes the
//! result through JSON. So a float without a fraction comes out as an integer.

use std::collections::HashSet;

use super::parse::{Content, Node, Scalar, TAG_PREFIX};
use super::resolve::{Meaning, resolve};
use super::{Error, base64};
use crate::field::quote;
use crate::json::{self, DEPTH_MAX};
use crate::{Map, Text, Value};

/// Up to this many decoded nodes, nearly all of them may come from aliases.
const NODES_LOW: f64 = 400_000.0;
/// From this many on, a tenth of them may.
const NODES_HIGH: f64 = 4_000_000.0;

/// Aliases may copy this much text. Nodes alone do not bound it: one alias can be a long string.
const ALIAS_BYTES_MAX: usize = 16 << 20;

/// At most this many duplicate keys are told.
const MESSAGES_MAX: usize = 1000;

/// Makes the tree of a document and tells which keys stand twice.
pub(super) fn decode(nodes: &[Node]) -> Result<(Value, Vec<String>), Error> {
    let mut decoder = Decoder {
        nodes,
        messages: Vec::new(),
        decoded: 0,
        aliased: 0,
        alias_level: 0,
        alias_bytes: 0,
        active: HashSet::new(),
        depth: 0,
        failure: None,
    };
    if nodes.is_empty() {
        return Ok((Value::Null, Vec::new()));
    }
    let value = decoder.value(0)?;
    match decoder.failure {
        Some(failure) => Err(failure),
        None => Ok((value, decoder.messages)),
    }
}

struct Decoder<'a> {
    nodes: &'a [Node],
    messages: Vec<String>,
    decoded: usize,
    aliased: usize,
    alias_level: usize,
    alias_bytes: usize,
    /// The aliases that are being followed.
    active: HashSet<usize>,
    depth: usize,
    /// The first thing that JSON cannot hold; mistakes of YAML are told instead of it.
    failure: Option<Error>,
}

/// A key before it becomes a string: `1` and `"1"` are two keys.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    text: Text,
    /// How it is printed.
    shown: String,
}

/// The entries of a mapping, with the keys they have so far.
#[derive(Default)]
struct Fields {
    entries: Vec<(Text, Value)>,
    keys: HashSet<Key>,
}

impl Decoder<'_> {
    fn value(&mut self, at: usize) -> Result<Value, Error> {
        self.count()?;
        let nodes = self.nodes;
        match &nodes[at].content {
            Content::Scalar(scalar) => self.scalar(scalar),
            Content::Alias { name, target } => {
                self.follow(at, name, |decoder| decoder.value(*target))
            }
            Content::Sequence(items) => self.deeper(|decoder| {
                let items: Result<Vec<Value>, Error> =
                    items.iter().map(|&item| decoder.value(item)).collect();
                Ok(Value::Array(items?))
            }),
            Content::Mapping(children) => self.deeper(|decoder| {
                let mut fields = Fields::default();
                decoder.fill(children, &mut fields)?;
                Ok(Value::Object(Map::from_entries(fields.entries)))
            }),
        }
    }

    /// Counts a node against the budget for aliases.
    fn count(&mut self) -> Result<(), Error> {
        self.decoded += 1;
        if self.alias_level > 0 {
            self.aliased += 1;
        }
        if self.aliased > 100 && self.decoded > 1000 {
            let decoded = self.decoded as f64;
            let beyond =
                (decoded.clamp(NODES_LOW, NODES_HIGH) - NODES_LOW) / (NODES_HIGH - NODES_LOW);
            if self.aliased as f64 / decoded > 0.99 - 0.89 * beyond {
                return Err(Error::ExcessiveAliasing);
            }
        }
        Ok(())
    }

    fn follow<T>(
        &mut self,
        at: usize,
        name: &str,
        work: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if !self.active.insert(at) {
            let problem = format!("anchor '{name}' value contains itself");
            return Err(Error::Document { problem });
        }
        self.alias_level += 1;
        let result = work(self);
        self.alias_level -= 1;
        self.active.remove(&at);
        result
    }

    /// Goes one level down. Aliases can nest deeper than the text does, so this counts again.
    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == DEPTH_MAX {
            return Err(Error::Depth);
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
    }

    fn fill(&mut self, children: &[usize], fields: &mut Fields) -> Result<(), Error> {
        for pair in children.chunks_exact(2) {
            let (key, value) = (pair[0], pair[1]);
            if self.is_merge(key) {
                self.merge(value, fields)?;
                continue;
            }
            let key = self.key(key)?;
            let line = self.nodes[value].line;
            let value = self.value(value)?;
            if fields.keys.contains(&key) {
                if self.messages.len() < MESSAGES_MAX {
                    let message =
                        format!("line {}: key {} already set in map", line + 1, key.shown);
                    self.messages.push(message);
                }
                fields.entries.push((key.text, value));
            } else {
                fields.entries.push((key.text.clone(), value));
                fields.keys.insert(key);
            }
        }
        Ok(())
    }

    fn is_merge(&self, key: usize) -> bool {
        match &self.nodes[key].content {
            Content::Scalar(scalar) => {
                scalar.text == "<<"
                    && (scalar.is_implicit || scalar.tag.strip_prefix(TAG_PREFIX) == Some("merge"))
            }
            _ => false,
        }
    }

    /// Puts the entries of the mappings under a merge key where the merge key stands. Of several
    /// mappings the earlier ones win.
    fn merge(&mut self, at: usize, fields: &mut Fields) -> Result<(), Error> {
        let nodes = self.nodes;
        match &nodes[at].content {
            Content::Sequence(items) => items
                .iter()
                .rev()
                .try_for_each(|&item| self.merge_one(item, fields)),
            _ => self.merge_one(at, fields),
        }
    }

    fn merge_one(&mut self, at: usize, fields: &mut Fields) -> Result<(), Error> {
        let nodes = self.nodes;
        self.count()?;
        match &nodes[at].content {
            Content::Mapping(children) => self.deeper(|decoder| decoder.fill(children, fields)),
            Content::Alias { name, target } => match &nodes[*target].content {
                Content::Mapping(children) => self.follow(at, name, |decoder| {
                    decoder.count()?;
                    decoder.fill(children, fields)
                }),
                _ => Err(want_map()),
            },
            _ => Err(want_map()),
        }
    }

    fn key(&mut self, at: usize) -> Result<Key, Error> {
        let nodes = self.nodes;
        match &nodes[at].content {
            Content::Scalar(scalar) => {
                self.count()?;
                self.scalar_key(scalar)
            }
            Content::Alias { name, target } => {
                self.count()?;
                self.follow(at, name, |decoder| decoder.key(*target))
            }
            _ => {
                let mut shown = String::new();
                go_syntax(&self.value(at)?, &mut shown);
                Err(Error::Document {
                    problem: format!("invalid map key: {shown}"),
                })
            }
        }
    }

    fn scalar_key(&mut self, scalar: &Scalar) -> Result<Key, Error> {
        let (text, shown) = match resolve(scalar)? {
            Meaning::Null => {
                self.unsupported_key("%!s(<nil>)", "<nil>");
                (String::new(), "<nil>".to_owned())
            }
            Meaning::Unsigned(number) => {
                self.unsupported_key("uint64", &format!("{number:#x}"));
                (number.to_string(), format!("{number:#x}"))
            }
            Meaning::Bool(flag) => (flag.to_string(), flag.to_string()),
            Meaning::Int(number) => (number.to_string(), number.to_string()),
            Meaning::Float(number) => (float_key(number), float_shown(number)),
            Meaning::Timestamp | Meaning::String => {
                let text = text_of(scalar)?;
                let shown = quote(&text);
                self.count_alias_bytes(text.len())?;
                return Ok(Key {
                    text: Text::from(text),
                    shown,
                });
            }
        };
        Ok(Key {
            text: Text::from(text),
            shown,
        })
    }

    fn unsupported_key(&mut self, kind: &'static str, key: &str) {
        self.failure.get_or_insert_with(|| Error::UnsupportedKey {
            kind,
            key: key.to_owned(),
        });
    }

    fn scalar(&mut self, scalar: &Scalar) -> Result<Value, Error> {
        Ok(match resolve(scalar)? {
            Meaning::Null => Value::Null,
            Meaning::Bool(flag) => Value::Bool(flag),
            Meaning::Int(number) => Value::Int(number),
            Meaning::Unsigned(number) => Value::Float(number as f64),
            Meaning::Float(number) if number.is_finite() => json::number_as_written(number),
            Meaning::Float(number) => {
                let value = match (number.is_nan(), number > 0.0) {
                    (true, _) => "NaN",
                    (_, true) => "+Inf",
                    _ => "-Inf",
                };
                self.failure
                    .get_or_insert(Error::UnsupportedNumber { value });
                Value::Null
            }
            Meaning::Timestamp | Meaning::String => {
                let text = text_of(scalar)?;
                self.count_alias_bytes(text.len())?;
                Value::String(Text::from(text))
            }
        })
    }

    fn count_alias_bytes(&mut self, bytes: usize) -> Result<(), Error> {
        if self.alias_level > 0 {
            self.alias_bytes += bytes;
            if self.alias_bytes > ALIAS_BYTES_MAX {
                return Err(Error::ExcessiveAliasing);
            }
        }
        Ok(())
    }
}

fn want_map() -> Error {
    let problem = "map merge requires map or sequence of maps as the value".to_owned();
    Error::Document { problem }
}

/// The text of a scalar that is a string; a binary one is decoded.
fn text_of(scalar: &Scalar) -> Result<String, Error> {
    if scalar.tag.strip_prefix(TAG_PREFIX) != Some("binary") {
        return Ok(scalar.text.clone());
    }
    match base64::decode(&scalar.text) {
        Some(bytes) => Ok(json::replace_invalid_utf8(&bytes).into_owned()),
        None => {
            let problem = "!!binary value contains invalid base64 data".to_owned();
            Err(Error::Document { problem })
        }
    }
}

/// A float that is a key, as `sigs.k8s.io/yaml` prints it: with the digits of a 32-bit float.
fn float_key(number: f64) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    let single = number as f32;
    if number.is_infinite() || single.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    super::write::general(&format!("{single:e}"))
}

/// A float as Go's `%#v` prints it.
fn float_shown(number: f64) -> String {
    match number {
        number if number.is_nan() => "NaN".to_owned(),
        number if number.is_infinite() => if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        _ => super::write::general(&format!("{number:e}")),
    }
}

/// Prints a tree as Go's `%#v` prints what the YAML library makes, cut after some length.
fn go_syntax(value: &Value, out: &mut String) {
    const LENGTH_MAX: usize = 512;
    if out.len() > LENGTH_MAX {
        return;
    }
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(number) => out.push_str(&number.to_string()),
        Value::Float(number) => out.push_str(&float_shown(*number)),
        Value::String(text) => out.push_str(&quote(text)),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                go_syntax(item, out);
                if out.len() > LENGTH_MAX {
                    break;
                }
            }
            out.push('}');
        }
        Value::Object(map) => {
            out.push_str("map[interface {}]interface {}{");
            for (index, (key, item)) in map.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                out.push_str(&quote(key));
                out.push(':');
                go_syntax(item, out);
                if out.len() > LENGTH_MAX {
                    break;
                }
            }
            out.push('}');
        }
    }
}
