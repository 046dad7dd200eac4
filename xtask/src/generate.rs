//! `cargo xtask generate`: turns facts about the built-in kinds into the catalogue's data files.
//!
//! Reads the four fact files (`groups.json`, `resources.json`, `tables.json`, `schemas.json`) and
//! directories of Go sources, laid out as `k8s.io/api/core/v1`, whose struct tags say what a schema
//! cannot: pointers, `omitempty` and protobuf numbers. Nothing of the sources is kept but these
//! facts. The form of the output is described in `crates/kinds/src/catalogue/text.rs`.

mod go;
mod resources;
mod schemas;
mod unpublished;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Failure;

const USAGE: &str = "usage: cargo xtask generate --facts DIR --go-types DIR... [--out DIR]";

/// Runs the command with the arguments that follow its name.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let options = Options::parse(arguments).map_err(|why| Failure::usage(why, USAGE))?;
    generate(&options).map_err(|why| Failure::unexpected("the facts", why))
}

fn generate(options: &Options) -> Result<(), String> {
    let mut structs = go::Structs::default();
    for directory in &options.go_types {
        structs.read(directory)?;
    }
    let schemas = read_json(&options.facts.join("schemas.json"))?;
    let definitions = schemas::render(&schemas, &structs)?;
    let resources = resources::render(
        &read_json(&options.facts.join("groups.json"))?,
        &read_json(&options.facts.join("resources.json"))?,
        &read_json(&options.facts.join("tables.json"))?,
        &schemas,
    )?;
    write(&options.out.join("definitions.txt"), &definitions)?;
    write(&options.out.join("resources.txt"), &resources)
}

/// What the command line asked for.
struct Options {
    facts: PathBuf,
    go_types: Vec<PathBuf>,
    out: PathBuf,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut facts = None;
        let mut go_types = Vec::new();
        let mut out = PathBuf::from("crates/kinds/src/generated");
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let value = rest
                .next()
                .ok_or_else(|| format!("{flag} needs a directory"))?;
            match flag.as_str() {
                "--facts" => facts = Some(PathBuf::from(value)),
                "--go-types" => go_types.push(PathBuf::from(value)),
                "--out" => out = PathBuf::from(value),
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        if go_types.is_empty() {
            return Err("--go-types DIR is missing".to_string());
        }
        let facts = facts.ok_or("--facts DIR is missing")?;
        Ok(Options {
            facts,
            go_types,
            out,
        })
    }
}

fn read_json(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| format!("cannot read {}: {source}", path.display()))?;
    serde_json::from_str(&text).map_err(|source| format!("{}: {source}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text)
        .map_err(|source| format!("cannot write {}: {source}", path.display()))
}

/// The text of a member, or nothing.
fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The texts of a member that is a list.
fn texts<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    items(value.get(key))
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

/// The items of a list; none if it is missing.
fn items(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}
