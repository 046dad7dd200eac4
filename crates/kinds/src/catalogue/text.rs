//! The text form of the catalogue's data.
//!
//! Cells are separated by tabs, one fact per line, sorted, so that a change of the facts is a
//! readable diff. `resources.txt` holds lines that begin with a word: `group` (name, versions),
//! `kind` (group, version, resource, kind, singular, scope, short names, categories, verbs,
//! definition), and for the kind above them `sub` and `column`.
//!
//! `definitions.txt` holds the published schemas:
//!
//! * `@alias TAB package`: the definitions that follow belong to this package.
//! * `=Name`, then in any order `kind:GROUP/VERSION/KIND`, `map:atomic`, `form:FORM` for what is
//!   no struct, `unpublished`, `union:DISCRIMINATOR:FIELD=VALUE,...`, and `required:FIELD,...`
//!   where the required fields are not published in sorted order.
//! * a line that begins with a tab is a field of that definition: name, shape, facts; then
//!   `=DEFAULT`, `patch:STRATEGY:KEY`, `list:TYPE`. The facts are the protobuf number, how an
//!   empty field is printed (`K`eep, `D`rop, `P`rint, `N`ull), `w` for a list in a message of its
//!   own, and `!` if it is required.
//!
//! A shape is `string`, `bytes`, `bool`, `int32`, `int64`, `double`, the name of a definition
//! (`Name` in the same package, else `alias.Name`; `granular:` or `atomic:` before it overrides
//! how it merges), a list `[KEYS]SHAPE` (`[!]` atomic, `[=]` set, `[]` not said), or a dictionary
//! `{}SHAPE` (`{!}` atomic, `{:}` granular). `(A|B)` after a scalar lists its permitted values and
//! a final `~` says that a zero default is published.

use object::Text;
use schema::{Empty, Field};

/// The published schemas.
pub(super) const DEFINITIONS: &str = include_str!("../generated/definitions.txt");
/// The groups and resources.
pub(super) const RESOURCES: &str = include_str!("../generated/resources.txt");

/// One line of the definitions.
pub(super) enum Line {
    /// A package begins.
    Package,
    /// A definition begins.
    Definition {
        /// Its name within the package.
        name: &'static str,
        /// The cells after the name.
        facts: &'static str,
    },
    /// A field of the definition.
    Field(FieldLine),
}

/// A field of a definition.
pub(super) struct FieldLine {
    pub(super) name: &'static str,
    pub(super) shape: &'static str,
    pub(super) tag: u32,
    pub(super) empty: Empty,
    pub(super) required: bool,
    pub(super) default: Option<&'static str>,
    /// Strategy and merge key.
    pub(super) patch: Option<(&'static str, &'static str)>,
    /// The list type that is published though the value is no list.
    pub(super) list_type: Option<&'static str>,
}

/// The shape of a value, one level deep.
pub(super) enum Shape {
    /// A scalar, by name.
    Scalar(&'static str),
    /// A definition, and how the reference says that it merges.
    Reference {
        name: &'static str,
        atomic: Option<bool>,
    },
    /// A list; what stands in its brackets and the shape of its items.
    List {
        topology: &'static str,
        element: &'static str,
    },
    /// A dictionary; what stands in its braces and the shape of its values.
    Dictionary {
        relationship: &'static str,
        element: &'static str,
    },
}

/// The lines of the definitions.
pub(super) fn lines(document: &'static str) -> impl Iterator<Item = Line> {
    document.lines().map(|line| match line.split_at(1) {
        ("@", _) => Line::Package,
        ("=", rest) => {
            let (name, facts) = split_at_byte(rest, b'\t').unwrap_or((rest, ""));
            Line::Definition { name, facts }
        }
        ("\t", rest) => Line::Field(FieldLine::read(rest)),
        _ => malformed(line),
    })
}

impl FieldLine {
    fn read(line: &'static str) -> FieldLine {
        let mut cells = cells(line);
        let (Some(name), Some(shape), Some(facts)) = (cells.next(), cells.next(), cells.next())
        else {
            malformed(line)
        };
        let digits = facts.bytes().take_while(u8::is_ascii_digit).count();
        let (tag, flags) = facts.split_at(digits);
        let empty = match flags.as_bytes().first() {
            Some(b'K') => Empty::Keep,
            Some(b'D') => Empty::Drop,
            Some(b'P') => Empty::Print,
            Some(b'N') => Empty::Null,
            _ => malformed(line),
        };
        let mut tag = if tag.is_empty() { 0 } else { number(tag) };
        if flags.contains('w') {
            tag |= Field::WRAPPED;
        }
        let mut field = FieldLine {
            name,
            shape,
            tag,
            empty,
            required: flags.ends_with('!'),
            default: None,
            patch: None,
            list_type: None,
        };
        for cell in cells {
            if let Some(default) = cell.strip_prefix('=') {
                field.default = Some(default);
            } else if let Some(patch) = cell.strip_prefix("patch:") {
                field.patch = patch.split_once(':');
            } else if let Some(list_type) = cell.strip_prefix("list:") {
                field.list_type = Some(list_type);
            } else {
                malformed(line)
            }
        }
        field
    }
}

impl Shape {
    /// Reads the outermost level of a shape.
    pub(super) fn read(shape: &'static str) -> Shape {
        if let Some(rest) = shape.strip_prefix('[') {
            let (topology, element) = split_at_byte(rest, b']').unwrap_or_else(|| malformed(shape));
            return Shape::List { topology, element };
        }
        if let Some(rest) = shape.strip_prefix('{') {
            let (relationship, element) =
                split_at_byte(rest, b'}').unwrap_or_else(|| malformed(shape));
            return Shape::Dictionary {
                relationship,
                element,
            };
        }
        let bare = &shape[..first(shape, |byte| matches!(byte, b'~' | b'('))];
        if let Some(name) = bare.strip_prefix("granular:") {
            return Shape::Reference {
                name,
                atomic: Some(false),
            };
        }
        if let Some(name) = bare.strip_prefix("atomic:") {
            return Shape::Reference {
                name,
                atomic: Some(true),
            };
        }
        let is_name = |byte: &u8| byte.is_ascii_uppercase();
        if bare.as_bytes().first().is_some_and(is_name) || bare.as_bytes().contains(&b'.') {
            return Shape::Reference {
                name: bare,
                atomic: None,
            };
        }
        Shape::Scalar(bare)
    }
}

/// The permitted values of a scalar shape, separated by bars.
pub(super) fn choices(shape: &'static str) -> Option<&'static str> {
    let (_, after) = split_at_byte(shape, b'(')?;
    split_at_byte(after, b')').map(|(choices, _)| choices)
}

/// The cells of a line.
pub(super) fn cells(line: &'static str) -> impl Iterator<Item = &'static str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let (cell, after) = match split_at_byte(line, b'\t') {
            Some((cell, after)) => (cell, Some(after)),
            None => (line, None),
        };
        rest = after;
        Some(cell)
    })
}

/// The text before and after the first such byte, which is ASCII.
///
/// Cells are a few bytes long; a plain loop over them takes half the time of a searcher that is
/// made for long texts.
pub(super) fn split_at_byte(
    text: &'static str,
    wanted: u8,
) -> Option<(&'static str, &'static str)> {
    let at = first(text, |byte| byte == wanted);
    (at < text.len()).then(|| (&text[..at], &text[at + 1..]))
}

/// Where the first byte is that is wanted, or the length.
fn first(text: &str, wanted: impl Fn(u8) -> bool) -> usize {
    let found = text.bytes().position(wanted);
    found.unwrap_or(text.len())
}

/// The items of a list separated by commas.
pub(super) fn list(cell: &str) -> Vec<Text> {
    cell.split(',')
        .filter(|item| !item.is_empty())
        .map(Text::from)
        .collect()
}

/// A number of the data.
pub(super) fn number<N: std::str::FromStr>(cell: &str) -> N {
    cell.parse().unwrap_or_else(|_| malformed(cell))
}

/// Stops at data that the generator cannot have written.
pub(super) fn malformed(line: &str) -> ! {
    panic!("the compiled-in catalogue is malformed at {line:?}")
}
