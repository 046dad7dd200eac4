//! The file that may hold flags: each key is a flag's long name.
//!
//! What the command line or the environment says wins. The file's flags are added to the words of
//! the command line, so every value is checked in the one place where flags are read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches as _};
use object::{Value, yaml};

use crate::arguments::Arguments;
use crate::failure::Failure;

/// Reads the command line, and the file that it or the environment names.
pub(crate) fn parse(words: &[OsString]) -> Result<Arguments, Failure> {
    let command = Arguments::grammar();
    let exit = |error: clap::Error| -> ArgMatches { error.exit() };
    let mut matches = command
        .clone()
        .try_get_matches_from(words)
        .unwrap_or_else(exit);
    let serve = match matches.subcommand() {
        None => Some(&matches),
        Some(("serve", serve)) => Some(serve),
        Some(_) => None,
    };
    let file = serve.and_then(|serve| Some((serve, serve.get_one::<PathBuf>("config")?)));
    if let Some((serve, path)) = file {
        let text = std::fs::read(path).map_err(|error| given(path, error.to_string()))?;
        let more = flags(&text, serve).map_err(|wrong| match wrong {
            Wrong::File(detail) => given(path, detail),
            Wrong::Key { key, nearest } => Failure::UnknownKey {
                path: path.clone(),
                key,
                nearest,
            },
        })?;
        let words = words.iter().cloned().chain(more);
        matches = command.try_get_matches_from(words).unwrap_or_else(exit);
    }
    Ok(Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit()))
}

fn given(path: &Path, detail: String) -> Failure {
    Failure::Given {
        path: path.to_owned(),
        detail,
    }
}

/// What is wrong with a file.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    File(String),
    Key { key: String, nearest: String },
}

/// The flags of a file that nothing stronger sets, as words.
fn flags(text: &[u8], given: &ArgMatches) -> Result<Vec<OsString>, Wrong> {
    let file = yaml::parse(text).map_err(|error| Wrong::File(error.to_string()))?;
    let entries = match &file {
        Value::Null => return Ok(Vec::new()),
        Value::Object(entries) => entries,
        _ => return Err(Wrong::File("it is not a map of flags".to_owned())),
    };
    let command = Arguments::grammar();
    let known: Vec<(&str, &str)> = command
        .get_arguments()
        .filter_map(|argument| Some((argument.get_long()?, argument.get_id().as_str())))
        .filter(|(long, _)| !matches!(*long, "config" | "help" | "version"))
        .collect();
    let mut words = Vec::new();
    for (key, value) in entries.iter() {
        let Some((long, id)) = known.iter().find(|(long, _)| long == key) else {
            let names = known.iter().map(|(long, _)| *long);
            let nearest = names.min_by_key(|name| distance(name, key));
            return Err(Wrong::Key {
                key: key.to_string(),
                nearest: nearest.unwrap_or_default().to_owned(),
            });
        };
        let source = given.value_source(id);
        if matches!(
            source,
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        ) {
            continue;
        }
        // YAML takes a bare `off` for a boolean; here it is a level.
        let off = Value::from("off");
        let value = match (*long, value) {
            ("log", Value::Bool(false)) => &off,
            _ => value,
        };
        for value in texts(value)
            .ok_or_else(|| Wrong::File(format!("{key} is neither a value nor a list of values")))?
        {
            words.push(format!("--{long}={value}").into());
        }
    }
    Ok(words)
}

/// A scalar, a list of them, or `name: value` pairs as `name=value`.
fn texts(value: &Value) -> Option<Vec<String>> {
    let scalar = |value: &Value| match value {
        Value::String(text) => Some(text.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        _ => None,
    };
    match value {
        Value::Null => Some(Vec::new()),
        Value::Array(items) => items.iter().map(scalar).collect(),
        Value::Object(pairs) => pairs
            .iter()
            .map(|(name, value)| Some(format!("{name}={}", scalar(value)?)))
            .collect(),
        other => scalar(other).map(|text| vec![text]),
    }
}

/// How many letters have to be changed, added or taken away to make one word of another.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (place, wanted) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *wanted);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str, line: &[&str]) -> Result<Vec<String>, Wrong> {
        let line = ["windlass"].iter().chain(line);
        let given = Arguments::grammar().try_get_matches_from(line).unwrap();
        let words = flags(text.as_bytes(), &given)?;
        Ok(words
            .into_iter()
            .map(|word| word.into_string().unwrap())
            .collect())
    }

    #[test]
    fn a_file_holds_flags_by_their_long_names() {
        let text = "listen: 127.0.0.1:7000\nhistory-bytes: 100\n\
                    enable-priority-and-fairness: false\n\
                    disable-admission-plugins: [Priority, ServiceAccount]\n\
                    feature-gates: {ServerSideApply: false}\n";
        let expected = [
            "--disable-admission-plugins=Priority",
            "--disable-admission-plugins=ServiceAccount",
            "--enable-priority-and-fairness=false",
            "--feature-gates=ServerSideApply=false",
            "--history-bytes=100",
            "--listen=127.0.0.1:7000",
        ];
        assert_eq!(words(text, &[]).unwrap(), expected);
        assert_eq!(words("", &[]).unwrap(), [""; 0]);
    }

    #[test]
    fn the_command_line_wins() {
        let text = "listen: 127.0.0.1:7000\nhistory: 1h\n";
        let left = words(text, &["--listen", "127.0.0.1:1"]).unwrap();
        assert_eq!(left, ["--history=1h"]);
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_flag() {
        let wrong = |text| words(text, &[]).unwrap_err();
        let key = |key: &str, nearest: &str| Wrong::Key {
            key: key.to_owned(),
            nearest: nearest.to_owned(),
        };
        assert_eq!(wrong("lisen: x"), key("lisen", "listen"));
        assert_eq!(
            wrong("history_bytes: 1"),
            key("history_bytes", "history-bytes")
        );
        assert!(matches!(wrong("config: x"), Wrong::Key { .. }));
        assert!(matches!(wrong("[]"), Wrong::File(_)));
        assert!(matches!(wrong("history: [[1]]"), Wrong::File(_)));
    }

    #[test]
    fn how_far_words_are_apart() {
        for (one, other, expected) in [
            ("", "", 0),
            ("data", "data", 0),
            ("dta", "data", 1),
            ("", "ab", 2),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
