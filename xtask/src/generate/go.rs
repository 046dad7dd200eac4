//! Struct tags of Go sources: what a schema cannot say about a field.
//!
//! A small, tolerant reader, not a Go parser: it knows struct declarations at the top level as
//! gofmt prints them, one field per line, and the names of the messages in `.proto` files beside
//! them. Everything else is passed over; what is missing shows when a published field finds no
//! struct field of its name.

use std::collections::{HashMap, HashSet};
use std::path::Path;

/// All structs found, by package and name.
#[derive(Default)]
pub(super) struct Structs {
    by_name: HashMap<(String, String), Vec<Member>>,
    /// Package and name of every protobuf message.
    messages: HashSet<(String, String)>,
}

/// What Go says about one field as JSON has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GoField {
    /// A pointer tells absent from zero.
    pub(super) pointer: bool,
    /// Whether the tag has `omitempty`.
    pub(super) omit_empty: bool,
    /// Whether the tag has `omitzero`.
    pub(super) omit_zero: bool,
    /// The type, if it is a plain name of the same package.
    pub(super) type_name: Option<String>,
    /// The protobuf number; those of embedded messages around it in the higher bytes.
    pub(super) tag: u32,
}

/// A line of a struct.
struct Member {
    /// The name in JSON; empty for an embedded struct whose fields count as the outer one's.
    json_name: String,
    /// Package and name of the embedded struct.
    embedded: Option<(String, String)>,
    field: GoField,
}

impl Structs {
    /// Reads every Go file below a directory.
    ///
    /// The package of a file is its folder's path below the folder `k8s.io`, as published names
    /// have it: `k8s.io/api/core/v1` holds `io.k8s.api.core.v1`.
    pub(super) fn read(&mut self, directory: &Path) -> Result<(), String> {
        let failed = |source| format!("cannot read {}: {source}", directory.display());
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() {
                self.read(&path)?;
            } else if let Some(package) = package_of(directory) {
                let read = || {
                    std::fs::read_to_string(&path)
                        .map_err(|source| format!("cannot read {}: {source}", path.display()))
                };
                if name.ends_with(".go") && !name.ends_with("_test.go") {
                    self.read_source(&package, &read()?);
                } else if name.ends_with(".proto") {
                    self.read_messages(&package, &read()?);
                }
            }
        }
        Ok(())
    }

    fn read_source(&mut self, package: &str, source: &str) {
        let imports = imports(source);
        let mut lines = source.lines();
        while let Some(line) = lines.next() {
            let Some(name) = line
                .strip_prefix("type ")
                .and_then(|rest| rest.strip_suffix(" struct {"))
            else {
                continue;
            };
            let members = lines
                .by_ref()
                .take_while(|line| *line != "}")
                .filter_map(|line| member(line.trim(), package, &imports))
                .collect();
            self.by_name
                .insert((package.to_string(), name.to_string()), members);
        }
    }

    fn read_messages(&mut self, package: &str, source: &str) {
        let names = source.lines().filter_map(|line| {
            let rest = line.strip_prefix("message ")?;
            rest.strip_suffix(" {")
        });
        self.messages
            .extend(names.map(|name| (package.to_string(), name.to_string())));
    }

    /// Whether a type of this package is a protobuf message.
    pub(super) fn is_message(&self, package: &str, name: &str) -> bool {
        self.messages
            .contains(&(package.to_string(), name.to_string()))
    }

    /// The fields of a struct by their name in JSON, those of embedded structs included.
    pub(super) fn fields(&self, package: &str, name: &str) -> Option<HashMap<String, GoField>> {
        let members = self.by_name.get(&(package.to_string(), name.to_string()))?;
        let mut found = HashMap::new();
        for member in members {
            let Some((home, inner)) = &member.embedded else {
                found.insert(member.json_name.clone(), member.field.clone());
                continue;
            };
            for (json_name, mut field) in self.fields(home, inner)? {
                // Without a number of its own the embedded struct is no part of the message.
                field.tag = if member.field.tag == 0 {
                    0
                } else {
                    nest(member.field.tag, field.tag)
                };
                found.entry(json_name).or_insert(field);
            }
        }
        Some(found)
    }
}

/// The number of a field inside an embedded message: the outer one stands in the higher bytes.
fn nest(outer: u32, inner: u32) -> u32 {
    let bytes = 4 - inner.leading_zeros() / 8;
    outer << (8 * bytes) | inner
}

fn package_of(directory: &Path) -> Option<String> {
    let parts: Vec<String> = directory
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    let root = parts.iter().rposition(|part| part == "k8s.io")?;
    Some(published_package(&parts[root + 1..].join("/")))
}

fn published_package(path: &str) -> String {
    format!("io.k8s.{}", path.replace('/', "."))
}

/// Packages of `k8s.io` by the name that the file gives them.
fn imports(source: &str) -> HashMap<&str, String> {
    let mut found = HashMap::new();
    for line in source.lines() {
        let line = line.trim().strip_prefix("import ").unwrap_or(line.trim());
        let Some((alias, path)) = line
            .strip_suffix('"')
            .and_then(|line| line.split_once("\"k8s.io/"))
        else {
            continue;
        };
        let alias = match alias.trim() {
            "" => path.rsplit('/').next().unwrap_or(path),
            given => given,
        };
        found.insert(alias, published_package(path));
    }
    found
}

fn member(line: &str, package: &str, imports: &HashMap<&str, String>) -> Option<Member> {
    let (declaration, tags) = line.strip_suffix('`')?.split_once('`')?;
    let json = tag(tags, "json")?;
    let (json_name, options) = json.split_once(',').unwrap_or((json, ""));
    if json_name == "-" || declaration.starts_with("//") {
        return None;
    }
    let has = |wanted| options.split(',').any(|option| option == wanted);
    let written = declaration.split_whitespace().last()?;
    let embedded = json_name.is_empty().then(|| match written.split_once('.') {
        Some((alias, name)) => {
            let home = imports.get(alias).cloned().unwrap_or_default();
            (home, name.to_string())
        }
        None => (package.to_string(), written.to_string()),
    });
    Some(Member {
        json_name: json_name.to_string(),
        embedded,
        field: GoField {
            pointer: written.starts_with('*'),
            omit_empty: has("omitempty"),
            omit_zero: has("omitzero"),
            type_name: written
                .chars()
                .all(char::is_alphanumeric)
                .then(|| written.to_string()),
            tag: tag(tags, "protobuf")
                .and_then(|tag| tag.split(',').nth(1)?.parse().ok())
                .unwrap_or_default(),
        },
    })
}

/// The value of one key of a struct tag.
fn tag<'a>(tags: &'a str, key: &str) -> Option<&'a str> {
    let mut rest = tags;
    loop {
        let (name, after) = rest.trim_start().split_once(":\"")?;
        let (value, next) = after.split_once('"')?;
        if name == key {
            return Some(value);
        }
        rest = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = r#"
import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type Probe struct {
	// Which one.
	Handler `json:",inline" protobuf:"bytes,1,opt,name=handler"`
	metav1.TypeMeta `json:",inline"`
	Delay *int32 `json:"delay,omitempty" protobuf:"varint,2,opt,name=delay"`
	Names []string `json:"names" protobuf:"bytes,3,rep,name=names"`
	Verbs Verbs `json:"verbs,omitempty" protobuf:"bytes,4,opt,name=verbs"`
	Hidden string `json:"-"`
}

type Handler struct {
	Path string `json:"path,omitempty,omitzero" protobuf:"bytes,5,opt,name=path"`
}
"#;

    const META: &str = r#"
type TypeMeta struct {
	Kind string `json:"kind,omitempty" protobuf:"bytes,1,opt,name=kind"`
}
"#;

    fn probe() -> HashMap<String, GoField> {
        let mut structs = Structs::default();
        structs.read_source("io.k8s.api.core.v1", SOURCE);
        structs.read_source("io.k8s.apimachinery.pkg.apis.meta.v1", META);
        structs
            .fields("io.k8s.api.core.v1", "Probe")
            .expect("the struct is known")
    }

    #[test]
    fn which_fields_does_a_struct_print() {
        let mut names: Vec<String> = probe().into_keys().collect();
        names.sort();
        assert_eq!(names, ["delay", "kind", "names", "path", "verbs"]);
    }

    #[test]
    fn what_do_the_tags_of_a_field_say() {
        let fields = probe();
        let expected = |pointer, omit_empty, omit_zero, type_name: Option<&str>, tag| GoField {
            pointer,
            omit_empty,
            omit_zero,
            type_name: type_name.map(str::to_string),
            tag,
        };
        let string = Some("string");
        assert_eq!(fields["delay"], expected(true, true, false, None, 2));
        assert_eq!(fields["names"], expected(false, false, false, None, 3));
        assert_eq!(
            fields["verbs"],
            expected(false, true, false, Some("Verbs"), 4)
        );
        assert_eq!(fields["path"], expected(false, true, true, string, 0x0105));
        assert_eq!(fields["kind"], expected(false, true, false, string, 0));
    }
}
