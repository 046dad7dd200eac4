//! Versions such as `1.2.3-rc.1+build`.
//!
//! Contract: `k8s.io/apiserver/pkg/cel/library/semverlib.go` over `blang/semver`.

use crate::evaluate::{Fault, Meter};
use crate::function::Declaration;
use crate::value::{Library, Value, quoted};
use std::cmp::Ordering;
use std::sync::Arc;

type Outcome<'v> = Result<Value<'v>, Fault>;

/// A semantic version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Semver {
    major: u64,
    minor: u64,
    patch: u64,
    pre: Vec<Part>,
}

/// A part of what comes before a release; numbers sort before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Word(String),
}

pub(crate) const FUNCTIONS: &[Declaration] = &[
    Declaration {
        name: "semver",
        overloads: &[
            ("string_to_semver", "(string) -> Semver"),
            ("string_bool_to_semver", "(string, bool) -> Semver"),
        ],
        native: |arguments, _| match read(arguments)? {
            Ok(version) => Ok(Value::Library(Library::Semver(Arc::new(version)))),
            Err(message) => Err(Fault::from(message)),
        },
    },
    Declaration {
        name: "isSemver",
        overloads: &[
            ("is_semver_string", "(string) -> bool"),
            ("is_semver_string_bool", "(string, bool) -> bool"),
        ],
        native: |arguments, _| Ok(Value::Bool(read(arguments)?.is_ok())),
    },
    Declaration {
        name: "isGreaterThan",
        overloads: &[("semver_is_greater_than", "Semver.(Semver) -> bool")],
        native: |arguments, _| Ok(Value::Bool(compared(arguments)?.is_gt())),
    },
    Declaration {
        name: "isLessThan",
        overloads: &[("semver_is_less_than", "Semver.(Semver) -> bool")],
        native: |arguments, _| Ok(Value::Bool(compared(arguments)?.is_lt())),
    },
    Declaration {
        name: "compareTo",
        overloads: &[("semver_compare_to", "Semver.(Semver) -> int")],
        native: |arguments, _| Ok(Value::Int(compared(arguments)? as i64)),
    },
    Declaration {
        name: "major",
        overloads: &[("semver_major", "Semver.() -> int")],
        native: |arguments, meter| part(arguments, meter, |version| version.major),
    },
    Declaration {
        name: "minor",
        overloads: &[("semver_minor", "Semver.() -> int")],
        native: |arguments, meter| part(arguments, meter, |version| version.minor),
    },
    Declaration {
        name: "patch",
        overloads: &[("semver_patch", "Semver.() -> int")],
        native: |arguments, meter| part(arguments, meter, |version| version.patch),
    },
];

fn read(arguments: &[Value<'_>]) -> Result<Result<Semver, String>, Fault> {
    match arguments {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => {
            Ok(Semver::parse(text))
        }
        [Value::String(text), Value::Bool(true)] => {
            Ok(normalized(text).and_then(|text| Semver::parse(&text)))
        }
        _ => Err(Fault::no_overload()),
    }
}

fn compared(arguments: &[Value<'_>]) -> Result<Ordering, Fault> {
    match arguments {
        [
            Value::Library(Library::Semver(a)),
            Value::Library(Library::Semver(b)),
        ] => Ok(a.order(b)),
        _ => Err(Fault::no_overload()),
    }
}

fn part<'v>(arguments: &[Value<'v>], _: &mut Meter, read: fn(&Semver) -> u64) -> Outcome<'v> {
    match arguments {
        [Value::Library(Library::Semver(version))] => Ok(Value::Int(read(version) as i64)),
        _ => Err(Fault::no_overload()),
    }
}

/// Takes a `v` and leading zeros away and fills up what is missing.
fn normalized(text: &str) -> Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            if part.len() < 2 {
                return part.to_owned();
            }
            let bare = part.trim_start_matches('0');
            match bare.starts_with(|it: char| it.is_ascii_digit()) {
                true => bare.to_owned(),
                false => format!("0{bare}"),
            }
        })
        .collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    parts.resize(3, "0".to_owned());
    Ok(parts.join("."))
}

impl Semver {
    /// Reads a version that is written in full.
    ///
    /// # Errors
    /// In the words of upstream's parser.
    pub(crate) fn parse(text: &str) -> Result<Semver, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let parts: Vec<&str> = text.splitn(3, '.').collect();
        let [major, minor, rest] = parts.as_slice() else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (*rest, None),
        };
        let (patch, pre) = match rest.split_once('-') {
            Some((patch, pre)) => (patch, Some(pre)),
            None => (rest, None),
        };
        let version = Semver {
            major: number("major", major)?,
            minor: number("minor", minor)?,
            patch: number("patch", patch)?,
            pre: match pre {
                None => Vec::new(),
                Some(pre) => pre.split('.').map(pre_release).collect::<Result<_, _>>()?,
            },
        };
        for part in build.into_iter().flat_map(|build| build.split('.')) {
            if part.is_empty() {
                return Err("Build meta data is empty".to_owned());
            }
            if !is_word(part) {
                let shown = quoted(part);
                return Err(format!(
                    "Invalid character(s) found in build meta data {shown}"
                ));
            }
        }
        Ok(version)
    }

    /// The order of versions; what is built from one does not count.
    pub(crate) fn order(&self, other: &Semver) -> Ordering {
        let numbers = |it: &Semver| (it.major, it.minor, it.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            // A release comes after everything before it.
            match (self.pre.is_empty(), other.pre.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => self.pre.cmp(&other.pre),
            }
        })
    }
}

fn is_word(text: &str) -> bool {
    text.bytes()
        .all(|it| it.is_ascii_alphanumeric() || it == b'-')
}

fn number(name: &str, text: &str) -> Result<u64, String> {
    let shown = quoted(text);
    let title = match name {
        "major" => "Major",
        "minor" => "Minor",
        _ => "Patch",
    };
    if !text.bytes().all(|it| it.is_ascii_digit()) {
        return Err(format!(
            "Invalid character(s) found in {name} number {shown}"
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!(
            "{title} number must not contain leading zeroes {shown}"
        ));
    }
    let reason = if text.is_empty() {
        "invalid syntax"
    } else {
        "value out of range"
    };
    text.parse()
        .map_err(|_| format!("strconv.ParseUint: parsing {shown}: {reason}"))
}

fn pre_release(text: &str) -> Result<Part, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    let shown = quoted(text);
    if text.bytes().all(|it| it.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {shown}"
            ));
        }
        let number = text.parse();
        return number
            .map(Part::Number)
            .map_err(|_| format!("strconv.ParseUint: parsing {shown}: value out of range"));
    }
    match is_word(text) {
        true => Ok(Part::Word(text.to_owned())),
        false => Err(format!("Invalid character(s) found in prerelease {shown}")),
    }
}
