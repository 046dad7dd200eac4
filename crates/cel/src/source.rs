//! The text of an expression, places in it, and what is wrong with it.
//!
//! Contract: cel-go `common/error.go` and `common/errors.go`, whose prints users see when a rule is
//! refused. Places count code points, lines from 1 and columns from 0 (printed from 1).

use std::fmt;

/// How many issues one compilation reports; more are counted.
const ISSUES_MAX: usize = 100;

/// A line longer than this is not shown under an issue.
const SNIPPET_BYTES_MAX: usize = 16384;

/// The text of an expression with the start of each line.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    text: String,
    /// Offsets in code points at which lines start.
    lines: Vec<u32>,
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    pub(crate) line: i32,
    pub(crate) column: i32,
}

impl Location {
    /// Nowhere: what concerns the whole text.
    pub(crate) const NONE: Location = Location {
        line: -1,
        column: -1,
    };
}

impl Source {
    pub(crate) fn new(text: &str) -> Source {
        let starts = text.chars().zip(1..).filter(|(c, _)| *c == '\n');
        let lines = std::iter::once(0).chain(starts.map(|(_, next)| next));
        Source {
            text: text.to_owned(),
            lines: lines.collect(),
        }
    }

    /// Where the code point at `offset` stands.
    pub(crate) fn location(&self, offset: u32) -> Location {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines[line - 1];
        Location {
            line: line as i32,
            column: (offset - start) as i32,
        }
    }

    fn line(&self, line: i32) -> Option<&str> {
        let index = usize::try_from(line).ok()?.checked_sub(1)?;
        self.text.split('\n').nth(index)
    }
}

/// One thing that is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    location: Location,
    /// What is wrong, without the place.
    pub message: String,
}

/// All that is wrong with an expression; prints as cel-go prints it.
#[derive(Clone, Debug)]
pub struct Issues {
    source: Source,
    issues: Vec<Issue>,
    reported: usize,
}

impl std::error::Error for Issues {}

impl Issues {
    pub(crate) fn new(source: Source) -> Issues {
        Issues {
            source,
            issues: Vec::new(),
            reported: 0,
        }
    }

    pub(crate) fn report(&mut self, location: Location, message: impl Into<String>) {
        self.reported += 1;
        if self.issues.len() < ISSUES_MAX {
            let message = message.into();
            self.issues.push(Issue { location, message });
        }
    }

    pub(crate) fn report_at(&mut self, offset: u32, message: impl Into<String>) {
        self.report(self.source.location(offset), message);
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.issues.is_empty()
    }

    /// What is wrong, in the order it was found.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Issue> {
        self.issues.iter()
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted: Vec<&Issue> = self.issues.iter().collect();
        sorted.sort_by_key(|issue| issue.location);
        for (index, issue) in sorted.into_iter().enumerate() {
            if index > 0 {
                out.write_str("\n")?;
            }
            write_issue(&self.source, issue, out)?;
        }
        if self.reported > self.issues.len() {
            let more = self.reported - self.issues.len();
            write!(out, "\n{more} more errors were truncated")?;
        }
        Ok(())
    }
}

fn write_issue(source: &Source, issue: &Issue, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Location { line, mut column } = issue.location;
    // Upstream counts the end of nothing from before the first column.
    if source.text.is_empty() && line > 0 {
        column = -1;
    }
    write!(
        out,
        "ERROR: <input>:{line}:{}: {}",
        column + 1,
        issue.message
    )?;
    let is_shown = |it: &&str| it.len() <= SNIPPET_BYTES_MAX && !source.text.is_empty();
    let Some(text) = source.line(line).filter(is_shown) else {
        return Ok(());
    };
    let text = text.replace('\t', " ");
    write!(out, "\n | {text}\n | ")?;
    let mut characters = text.chars();
    for character in characters.by_ref().take(column.max(0) as usize) {
        out.write_str(if character.len_utf8() > 1 {
            "\u{ff0e}"
        } else {
            "."
        })?;
    }
    let wide = characters.next().is_some_and(|next| next.len_utf8() > 1);
    out.write_str(if wide { "\u{ff3e}" } else { "^" })
}
