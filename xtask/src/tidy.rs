//! Checks of the source tree that no compiler makes.
//!
//! A rule is a function from one file to findings; `rules.rs` has them all. Where a rule has
//! exceptions they are listed beside it with a reason, so that each one was a decision.

mod rules;

use crate::failure::Failure;
use crate::shell;

/// A tracked file, with what rules ask of it.
pub(crate) struct SourceFile {
    /// The path from the root of the repository, with forward slashes.
    path: String,
    text: String,
}

impl SourceFile {
    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether people write it by hand; generated files keep only the rules that concern readers.
    fn is_written_by_hand(&self) -> bool {
        !self.path.contains("/generated/")
    }

    /// Whether the whole file is test code.
    fn is_test(&self) -> bool {
        let in_folder = ["/tests/", "/benches/", "/examples/"];
        in_folder.iter().any(|folder| self.path.contains(folder))
            || self.path.ends_with("/tests.rs")
            || self.path.ends_with("/properties.rs")
    }

    /// The lines before the test module, numbered from one.
    fn lines_outside_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = if self.is_test() {
            Some(0)
        } else {
            self.start_of_test_module()
        };
        self.numbered_lines().take(end.unwrap_or(usize::MAX))
    }

    fn numbered_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
    }

    /// Tests come last in a file, so everything from the attribute of their module on is test code.
    fn start_of_test_module(&self) -> Option<usize> {
        let lines: Vec<&str> = self.text.lines().collect();
        lines.windows(2).position(|pair| {
            pair[0].trim() == "#[cfg(test)]" && pair[1].trim_start().starts_with("mod ")
        })
    }

    fn finding(&self, line: usize, what: impl std::fmt::Display) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// Checks every tracked text file by every rule.
pub(crate) fn run() -> Result<(), Failure> {
    let files = tracked_files()?;
    let mut findings = Vec::new();
    for file in &files {
        for rule in rules::ALL {
            rule(file, &mut findings);
        }
    }
    println!("{} files, {} rules", files.len(), rules::ALL.len());
    Failure::unless_empty("tidy", findings, None)
}

/// Every file that is or would be committed and is text.
fn tracked_files() -> Result<Vec<SourceFile>, Failure> {
    let list = [
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ];
    let paths = shell::read(&mut shell::git(&list))?;
    let mut files = Vec::new();
    for path in paths.split('\0').filter(|path| !path.is_empty()) {
        let full = shell::root().join(path);
        // Deleted but not yet committed.
        if !full.is_file() {
            continue;
        }
        let bytes = std::fs::read(&full).map_err(|source| Failure::File {
            action: "read",
            path: full,
            source,
        })?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(SourceFile {
                path: path.to_owned(),
                text,
            });
        }
    }
    Ok(files)
}
