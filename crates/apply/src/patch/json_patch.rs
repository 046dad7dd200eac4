//! JSON patch (RFC 6902), as upstream applies it.
//!
//! Contract: `evanphx/json-patch` v4 `patch.go`, whose habits clients rely on: negative indices
//! count from the end, `replace` and `copy` of a missing map key do not fail, a missing `value` is
//! `null`, and what stands before the first slash of a path is ignored.
//!
//! Limits: [`OPERATIONS_MAX`], [`COPIED_BYTES_MAX`], [`MOVED_ENTRIES_MAX`] and the nesting that the
//! JSON reader allows; a patch beyond them is refused before it can cost more.

mod pointer;
mod read;

use object::{Text, Value, json};

use super::{PatchError, nesting};
use pointer::Pointer;

/// A patch with more operations than this is refused.
pub const OPERATIONS_MAX: usize = 10_000;

/// What all `copy` operations of a patch together may add, in bytes of JSON.
pub const COPIED_BYTES_MAX: usize = 3 * 1024 * 1024;

/// How many entries of lists and maps all operations together may shift or measure. Without it,
/// ten thousand insertions at the head of a huge list would take minutes.
pub const MOVED_ENTRIES_MAX: usize = 50_000_000;

/// A patch that was read and can be applied.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPatch {
    operations: Vec<Operation>,
    unknown: Vec<String>,
}

/// One operation. What is missing or `null` in it is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Operation {
    op: Option<Text>,
    path: Option<Text>,
    from: Option<Text>,
    value: Option<Value>,
}

impl JsonPatch {
    /// Reads a patch from the body of a request.
    pub fn read(body: Value) -> Result<JsonPatch, PatchError> {
        let (operations, unknown) = read::operations(body)?;
        if operations.len() > OPERATIONS_MAX {
            let count = operations.len();
            return Err(PatchError::TooManyOperations {
                count,
                limit: OPERATIONS_MAX,
            });
        }
        Ok(JsonPatch {
            operations,
            unknown,
        })
    }

    /// The fields of operations that mean nothing, as field validation reports them:
    /// `json patch unknown field "[0].colour"`.
    pub fn unknown_fields(&self) -> &[String] {
        &self.unknown
    }

    /// Applies all operations in order, or none of them.
    pub fn apply(&self, document: Value) -> Result<Value, PatchError> {
        let depth_max = nesting(&document);
        let mut draft = Draft {
            document,
            depth_max,
            copied_bytes: 0,
            moved_entries: 0,
        };
        for operation in &self.operations {
            draft
                .perform(operation)
                .map_err(PatchError::NotApplicable)?;
        }
        Ok(draft.document)
    }
}

/// A document in the middle of a patch, and what the patch has cost so far.
struct Draft {
    document: Value,
    /// How deeply the document nests at most.
    depth_max: usize,
    copied_bytes: usize,
    moved_entries: usize,
}

impl Draft {
    fn perform(&mut self, operation: &Operation) -> Result<(), String> {
        match operation.op.as_deref() {
            Some("add") => {
                let path = path_of(operation, "add")?;
                let value = operation.value.clone().unwrap_or_default();
                self.deepen(path.len() + nesting(&value))?;
                self.add(path, value)
            }
            Some("remove") => self.remove(path_of(operation, "remove")?).map(|_| ()),
            Some("replace") => self.replace(operation),
            Some("move") => self.relocate(operation),
            Some("test") => self.test(operation),
            Some("copy") => self.duplicate(operation),
            other => Err(format!("Unexpected kind: {}", other.unwrap_or("unknown"))),
        }
    }

    fn add(&mut self, path: Pointer<'_>, value: Value) -> Result<(), String> {
        let (parent, key) = path
            .parent(&mut self.document)
            .ok_or_else(|| missing("add", path))?;
        self.moved_entries += match parent {
            Value::Object(map) => {
                let shifted = if map.contains_key(&key) { 0 } else { map.len() };
                map.insert(key, value);
                shifted
            }
            Value::Array(items) if key == "-" => {
                items.push(value);
                0
            }
            Value::Array(items) => {
                let at = pointer::index(&key, items.len() + 1)?;
                items.insert(at, value);
                items.len() - at
            }
            _ => return Err(missing("add", path)),
        };
        self.check_effort()
    }

    fn remove(&mut self, path: Pointer<'_>) -> Result<Value, String> {
        let (parent, key) = path
            .parent(&mut self.document)
            .ok_or_else(|| missing("remove", path))?;
        let (taken, shifted) = match parent {
            Value::Object(map) => match map.remove(&key) {
                Some(taken) => (taken, map.len()),
                None => return Err(format!("Unable to remove nonexistent key: {key}")),
            },
            Value::Array(items) => {
                let at = pointer::index(&key, items.len())?;
                (items.remove(at), items.len() - at)
            }
            _ => return Err(missing("remove", path)),
        };
        self.moved_entries += shifted;
        self.check_effort()?;
        Ok(taken)
    }

    fn replace(&mut self, operation: &Operation) -> Result<(), String> {
        let path = path_of(operation, "replace")?;
        let value = operation.value.clone().unwrap_or_default();
        self.deepen(path.len() + nesting(&value))?;
        if path.is_root() {
            if !matches!(value, Value::Object(_) | Value::Array(_)) {
                return Err("replace operation value must be object or array".to_owned());
            }
            self.document = value;
            return Ok(());
        }
        let (parent, key) = path
            .parent(&mut self.document)
            .ok_or_else(|| missing("replace", path))?;
        if let Value::Array(items) = parent {
            let at = pointer::index(&key, items.len())?;
            items[at] = value;
            return Ok(());
        }
        self.add(path, value)
    }

    fn relocate(&mut self, operation: &Operation) -> Result<(), String> {
        let from = from_of(operation, "move")?;
        let value = self.remove(from)?;
        let path = path_of(operation, "move")?;
        self.sink(&value, path, path.len().saturating_sub(from.len()))?;
        self.add(path, value)
    }

    fn duplicate(&mut self, operation: &Operation) -> Result<(), String> {
        let from = from_of(operation, "copy")?;
        let (parent, key) = from
            .parent(&mut self.document)
            .ok_or_else(|| missing("copy", from))?;
        let source = match parent {
            Value::Object(map) => map.get(&key),
            Value::Array(items) => Some(&items[pointer::index(&key, items.len())?]),
            _ => return Err(missing("copy", from)),
        };
        self.copied_bytes += source.map_or(0, printed_bytes);
        if self.copied_bytes > COPIED_BYTES_MAX {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, \
                 exceeding the limit {COPIED_BYTES_MAX}",
                self.copied_bytes
            ));
        }
        let path = path_of(operation, "copy")?;
        let value = source.cloned().unwrap_or_default();
        self.deepen(path.len() + nesting(&value))?;
        self.add(path, value)
    }

    fn test(&mut self, operation: &Operation) -> Result<(), String> {
        let path = path_of(operation, "test")?;
        let wanted = operation.value.as_ref().unwrap_or(&Value::Null);
        let found = if path.is_root() {
            Some(&self.document)
        } else {
            let (parent, key) = path
                .parent(&mut self.document)
                .ok_or_else(|| missing("test", path))?;
            match parent {
                Value::Object(map) => map.get(&key),
                Value::Array(items) => Some(&items[pointer::index(&key, items.len())?]),
                _ => return Err(missing("test", path)),
            }
        };
        if found.unwrap_or(&Value::Null) == wanted {
            Ok(())
        } else {
            Err(format!("testing value {path} failed: test failed"))
        }
    }

    /// Notes that something enters the document which reaches to this depth.
    fn deepen(&mut self, depth: usize) -> Result<(), String> {
        self.depth_max = self.depth_max.max(depth);
        if depth > json::DEPTH_MAX {
            return Err(format!(
                "the patched document exceeds {} levels",
                json::DEPTH_MAX
            ));
        }
        Ok(())
    }

    /// Notes that a value comes to stand `extra` levels deeper than before. Only when the document
    /// may have become too deep is it measured, for measuring takes time.
    fn sink(&mut self, value: &Value, path: Pointer<'_>, extra: usize) -> Result<(), String> {
        if self.depth_max + extra <= json::DEPTH_MAX {
            self.depth_max += extra;
            return Ok(());
        }
        self.moved_entries += printed_bytes(&self.document) + printed_bytes(value);
        self.check_effort()?;
        self.depth_max = nesting(&self.document);
        self.deepen(path.len() + nesting(value))
    }

    fn check_effort(&self) -> Result<(), String> {
        if self.moved_entries > MOVED_ENTRIES_MAX {
            return Err(format!(
                "the patch moves more than {MOVED_ENTRIES_MAX} entries"
            ));
        }
        Ok(())
    }
}

fn path_of<'o>(operation: &'o Operation, name: &str) -> Result<Pointer<'o>, String> {
    let path = operation.path.as_deref();
    path.map(Pointer)
        .ok_or_else(|| format!("{name} operation failed to decode path"))
}

fn from_of<'o>(operation: &'o Operation, name: &str) -> Result<Pointer<'o>, String> {
    let from = operation.from.as_deref();
    from.map(Pointer)
        .ok_or_else(|| format!("{name} operation failed to decode from"))
}

fn missing(name: &str, path: Pointer<'_>) -> String {
    format!("{name} operation does not apply: doc is missing path: \"{path}\"")
}

/// About how many bytes a value takes as JSON, escapes not counted.
fn printed_bytes(value: &Value) -> usize {
    const SCALAR_BYTES: usize = 8;
    let mut bytes = 0;
    let mut waiting = vec![value];
    while let Some(value) = waiting.pop() {
        bytes += match value {
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => SCALAR_BYTES,
            Value::String(text) => text.len() + 3,
            Value::Array(items) => {
                waiting.extend(items);
                2
            }
            Value::Object(map) => {
                waiting.extend(map.iter().map(|(_, value)| value));
                map.keys().map(|key| key.len() + 4).sum::<usize>() + 2
            }
        };
    }
    bytes
}

#[cfg(test)]
mod tests;
