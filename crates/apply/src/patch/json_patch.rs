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
                self.add(path, value, &ADD)
            }
            Some("remove") => {
                let path = path_of(operation, "remove")?;
                self.remove(path, &REMOVE).map(|_| ())
            }
            Some("replace") => self.replace(operation),
            Some("move") => self.relocate(operation),
            Some("test") => self.test(operation),
            Some("copy") => self.duplicate(operation),
            other => Err(format!("Unexpected kind: {}", other.unwrap_or("unknown"))),
        }
    }

    fn add(&mut self, path: Pointer<'_>, value: Value, words: &Words) -> Result<(), String> {
        let (parent, key) = path
            .parent(&mut self.document)
            .ok_or_else(|| words.missing(path))?;
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
                let at = pointer::index(&key, items.len() + 1).map_err(|why| {
                    let what = "value was not a proper array index";
                    words.failed(path.0, why.within(&format!("{what}: '{key}'")))
                })?;
                items.insert(at, value);
                items.len() - at
            }
            _ => return Err(words.missing(path)),
        };
        self.check_effort()
    }

    fn remove(&mut self, path: Pointer<'_>, words: &Words) -> Result<Value, String> {
        let (parent, key) = path
            .parent(&mut self.document)
            .ok_or_else(|| words.missing(path))?;
        // What is moved away is named by its last step alone.
        let shown = match words.shows {
            Shows::LastStep => &*key,
            Shows::Path | Shows::Nothing => path.0,
        };
        let (taken, shifted) = match parent {
            Value::Object(map) => match map.remove(&key) {
                Some(taken) => (taken, map.len()),
                None => {
                    let why = format!("Unable to remove nonexistent key: {key}: {MISSING}");
                    return Err(words.failed(shown, why));
                }
            },
            Value::Array(items) => {
                let at = pointer::index(&key, items.len())
                    .map_err(|why| words.failed(shown, why.to_string()))?;
                (items.remove(at), items.len() - at)
            }
            _ => return Err(words.missing(path)),
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
            .ok_or_else(|| REPLACE.missing(path))?;
        if let Value::Array(items) = parent {
            let at = pointer::index(&key, items.len()).map_err(|_| {
                format!("replace operation does not apply: doc is missing key: {path}: {MISSING}")
            })?;
            items[at] = value;
            return Ok(());
        }
        self.add(path, value, &REPLACE)
    }

    fn relocate(&mut self, operation: &Operation) -> Result<(), String> {
        let from = from_of(operation, "move")?;
        let value = self.remove(from, &MOVE_FROM)?;
        let path = path_of(operation, "move")?;
        self.sink(&value, path, path.len().saturating_sub(from.len()))?;
        self.add(path, value, &MOVE_TO)
    }

    fn duplicate(&mut self, operation: &Operation) -> Result<(), String> {
        let from = from_of(operation, "copy")?;
        let source = self.found(from, &COPY_FROM)?;
        let bytes = source.map_or(0, printed_bytes);
        let value = source.cloned().unwrap_or_default();
        self.copied_bytes += bytes;
        if self.copied_bytes > COPIED_BYTES_MAX {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, \
                 exceeding the limit {COPIED_BYTES_MAX}",
                self.copied_bytes
            ));
        }
        let path = path_of(operation, "copy")?;
        self.deepen(path.len() + nesting(&value))?;
        self.add(path, value, &COPY_TO)
    }

    fn test(&mut self, operation: &Operation) -> Result<(), String> {
        let path = path_of(operation, "test")?;
        let wanted = operation.value.as_ref().unwrap_or(&Value::Null);
        let found = if path.is_root() {
            Some(&self.document)
        } else {
            self.found(path, &TEST)?
        };
        if found.unwrap_or(&Value::Null) == wanted {
            Ok(())
        } else {
            Err(format!("testing value {path} failed: test failed"))
        }
    }

    /// What stands at a place that must be there but for its last step.
    fn found(&mut self, path: Pointer<'_>, words: &Words) -> Result<Option<&Value>, String> {
        let (parent, key) = path
            .parent(&mut self.document)
            .ok_or_else(|| words.missing(path))?;
        match parent {
            Value::Object(map) => Ok(map.get(&key)),
            Value::Array(items) => {
                let at = pointer::index(&key, items.len())
                    .map_err(|why| words.failed(path.0, why.to_string()))?;
                Ok(Some(&items[at]))
            }
            _ => Err(words.missing(path)),
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

/// The words for what goes wrong at one end of an operation.
struct Words {
    /// What comes before a path that is not there.
    missing: &'static str,
    quoted: bool,
    /// What comes before a path whose last step fails.
    failed: &'static str,
    shows: Shows,
}

/// What is shown of a path whose last step fails.
#[derive(PartialEq)]
enum Shows {
    Path,
    LastStep,
    Nothing,
}

const MISSING: &str = "missing value";
const ADD: Words = Words {
    missing: "add operation does not apply: doc is missing path",
    quoted: true,
    failed: "error in add for path",
    shows: Shows::Path,
};
const REMOVE: Words = Words {
    missing: "remove operation does not apply: doc is missing path",
    quoted: true,
    failed: "error in remove for path",
    shows: Shows::Path,
};
const REPLACE: Words = Words {
    missing: "replace operation does not apply: doc is missing path",
    quoted: false,
    ..REMOVE
};
const MOVE_FROM: Words = Words {
    missing: "move operation does not apply: doc is missing from path",
    quoted: false,
    failed: "error in move for path",
    shows: Shows::LastStep,
};
const MOVE_TO: Words = Words {
    missing: "move operation does not apply: doc is missing destination path",
    shows: Shows::Path,
    ..MOVE_FROM
};
const COPY_FROM: Words = Words {
    missing: "copy operation does not apply: doc is missing from path",
    quoted: false,
    failed: "error in copy for from",
    shows: Shows::Path,
};
const COPY_TO: Words = Words {
    missing: "copy operation does not apply: doc is missing destination path",
    failed: "error while adding value during copy",
    shows: Shows::Nothing,
    ..COPY_FROM
};
const TEST: Words = Words {
    missing: "test operation does not apply: is missing path",
    quoted: false,
    failed: "error in test for path",
    shows: Shows::Path,
};

impl Words {
    fn missing(&self, path: Pointer<'_>) -> String {
        let missing = self.missing;
        match self.quoted {
            true => format!("{missing}: \"{path}\": {MISSING}"),
            false => format!("{missing}: {path}: {MISSING}"),
        }
    }

    fn failed(&self, path: &str, why: String) -> String {
        match self.shows {
            Shows::Nothing => format!("{}: {why}", self.failed),
            Shows::Path | Shows::LastStep => format!("{}: '{path}': {why}", self.failed),
        }
    }
}

fn path_of<'o>(operation: &'o Operation, name: &str) -> Result<Pointer<'o>, String> {
    let path = operation.path.as_deref();
    let plain = matches!(name, "add" | "remove" | "copy");
    let why = if plain {
        ""
    } else {
        "operation missing path field: "
    };
    path.map(Pointer)
        .ok_or_else(|| format!("{name} operation failed to decode path: {why}{MISSING}"))
}

fn from_of<'o>(operation: &'o Operation, name: &str) -> Result<Pointer<'o>, String> {
    let from = operation.from.as_deref();
    from.map(Pointer).ok_or_else(|| {
        format!("{name} operation failed to decode from: operation, missing from field: {MISSING}")
    })
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
