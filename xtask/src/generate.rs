//! `cargo xtask generate`: turns facts about the built-in kinds into the catalogue's data files.
//!
//! Reads the four fact files (`groups.json`, `resources.json`, `tables.json`, `schemas.json`) and,
//! with `--go-types`, directories of Go sources whose struct tags say what a schema cannot:
//! pointers, `omitempty` and protobuf numbers. Nothing of the sources is kept but these facts.
//! The form of the output is described in `crates/kinds/src/catalogue/text.rs`.

mod resources;
mod schemas;

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Failure;

const USAGE: &str = "usage: cargo xtask generate --facts DIR [--go-types DIR]... [--out DIR]";

/// Runs the command with the arguments that follow its name.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let options = Options::parse(arguments).map_err(|why| Failure::usage(why, USAGE))?;
    generate(&options).map_err(|why| Failure::unexpected("the facts", why))
}

fn generate(options: &Options) -> Result<(), String> {
    let definitions = schemas::render(&read_json(&options.facts.join("schemas.json"))?)?;
    let resources = resources::render(
        &read_json(&options.facts.join("groups.json"))?,
        &read_json(&options.facts.join("resources.json"))?,
        &read_json(&options.facts.join("tables.json"))?,
        &read_json(&options.facts.join("schemas.json"))?,
    )?;
    write(&options.out.join("definitions.txt"), &definitions)?;
    write(&options.out.join("resources.txt"), &resources)
}

/// What the command line asked for.
struct Options {
    facts: PathBuf,
    out: PathBuf,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut facts = None;
        let mut out = PathBuf::from("crates/kinds/src/generated");
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let value = rest
                .next()
                .ok_or_else(|| format!("{flag} needs a directory"))?;
            match flag.as_str() {
                "--facts" => facts = Some(PathBuf::from(value)),
                "--out" => out = PathBuf::from(value),
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        Ok(Options {
            facts: facts.ok_or("--facts DIR is missing")?,
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
