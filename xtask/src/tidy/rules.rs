//! The rules of the tree.

use super::SourceFile;

type Rule = fn(&SourceFile, &mut Vec<String>);

/// Every rule, each run on every file.
pub(super) const ALL: &[Rule] = &[
    line_length,
    file_length,
    function_length,
    file_header,
    module_files,
    unfinished_work,
    ignored_tests,
    unwrap_outside_tests,
    pure_rooms,
    no_unsafe,
    workplace,
    whitespace,
];

const LINE_COLUMNS_MAX: usize = 100;
const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;

/// Files that may be longer, each with the reason why it is still one idea.
const LONG_FILES: &[(&str, &str)] = &[];

/// Rooms that get clock, randomness, files and network handed in, if at all.
const PURE_ROOMS: &[&str] = &["object", "cel", "schema", "apply", "kinds"];

/// What a pure room cannot name.
const IMPURE: &[&str] = &[
    "std::fs",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "ToSocketAddrs",
    "std::env",
    "std::process",
    "std::thread",
    "SystemTime::now",
    "Instant::now",
    "tokio::",
    "tracing::",
    "rand::",
    "println!",
];

/// The one file that may allow itself unsafe code.
const UNSAFE_ALLOWED: &str = "crates/windlass/src/rest.rs";
const UNSAFE_LINT: &str = concat!("unsafe", "_code");

/// Words that tell of the machine where something was written rather than of the project. Split,
/// because this file is checked too.
const WORKPLACE: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("../sha", "red"),
    concat!("../.lib", "rary"),
];

/// The one place where a path outside the repository is handed in.
const WORKPLACE_ALLOWED: &[&str] = &[".ci/run"];

fn line_length(file: &SourceFile, findings: &mut Vec<String>) {
    let checked = [".rs", ".py", ".md", ".toml", ".sh"];
    if !checked.iter().any(|end| file.path.ends_with(end)) || !file.is_written_by_hand() {
        return;
    }
    let code_lines = file.lines_outside_tests().count();
    for (number, line) in file.numbered_lines() {
        let columns = line.chars().count();
        let unbreakable = if file.path.ends_with(".md") {
            // A row of a table, a link.
            line.starts_with('|') || line.contains("://")
        } else {
            // A text in a test is data: broken, it could be neither searched nor compared by eye.
            file.is_rust() && number > code_lines && line.contains('"')
        };
        if columns > LINE_COLUMNS_MAX && !unbreakable {
            findings.push(file.finding(
                number,
                format_args!("line has {columns} columns, the limit is {LINE_COLUMNS_MAX}"),
            ));
        }
    }
}

fn file_length(file: &SourceFile, findings: &mut Vec<String>) {
    let lines = file.text.lines().count();
    let excused = LONG_FILES.iter().any(|(path, _)| *path == file.path);
    let code = file.is_rust() || file.path.ends_with(".py");
    if code && file.is_written_by_hand() && lines > FILE_LINES_MAX && !excused {
        findings.push(file.finding(
            lines,
            format_args!("file has {lines} lines, the limit is {FILE_LINES_MAX}"),
        ));
    }
}

/// Counts the lines of code between a function's braces; the formatter has set them so that the
/// closing one stands alone below the first letter. A test may be a long table.
fn function_length(file: &SourceFile, findings: &mut Vec<String>) {
    if !file.is_rust() || !file.is_written_by_hand() {
        return;
    }
    let lines: Vec<&str> = file.lines_outside_tests().map(|(_, line)| line).collect();
    for (start, line) in lines.iter().enumerate() {
        if !opens_function(line) {
            continue;
        }
        let ends = |line: &&str| line.ends_with(['{', '}', ';']);
        let Some(head) = lines[start..].iter().position(ends) else {
            continue;
        };
        if !lines[start + head].ends_with('{') {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let body = lines[start + head + 1..]
            .iter()
            .take_while(|line| line.strip_prefix(indent) != Some("}"))
            .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//"));
        let count = body.count();
        if count > FUNCTION_LINES_MAX {
            findings.push(file.finding(
                start + 1,
                format_args!("function has {count} lines, the limit is {FUNCTION_LINES_MAX}"),
            ));
        }
    }
}

fn opens_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let modifiers = ["async", "const", "pub", "pub(crate)", "pub(super)"];
    words.find(|word| !modifiers.contains(word)) == Some("fn")
}

fn file_header(file: &SourceFile, findings: &mut Vec<String>) {
    if file.is_rust() && !file.text.starts_with("//! ") {
        findings.push(file.finding(1, "a file opens with `//!` and its purpose"));
    }
}

fn module_files(file: &SourceFile, findings: &mut Vec<String>) {
    if file.path.ends_with("/mod.rs") {
        findings.push(file.finding(1, "a module is `name.rs` beside `name/`, never `mod.rs`"));
    }
}

fn unfinished_work(file: &SourceFile, findings: &mut Vec<String>) {
    let code = file.is_rust() || file.path.ends_with(".py") || file.path.ends_with(".toml");
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
        concat!("to", "do!("),
        concat!("unimpl", "emented!("),
    ];
    if !code {
        return;
    }
    for (number, line) in file.numbered_lines() {
        if let Some(mark) = marks.iter().find(|mark| line.contains(**mark)) {
            findings.push(file.finding(
                number,
                format_args!("{mark}: what is missing is said in the documents"),
            ));
        }
    }
}

fn ignored_tests(file: &SourceFile, findings: &mut Vec<String>) {
    if !file.is_rust() {
        return;
    }
    for (number, line) in file.numbered_lines() {
        if line.trim_start().starts_with("#[ignore") {
            findings.push(file.finding(
                number,
                "a test that is not run is not a test: assert today's answer and say it is wrong",
            ));
        }
    }
}

fn unwrap_outside_tests(file: &SourceFile, findings: &mut Vec<String>) {
    if !file.is_rust() {
        return;
    }
    for (number, line) in file.lines_outside_tests() {
        let code = !line.trim_start().starts_with("//");
        if code && line.contains(concat!(".unw", "rap()")) {
            findings.push(file.finding(number, "use `expect` and say why it cannot fail"));
        }
    }
}

fn pure_rooms(file: &SourceFile, findings: &mut Vec<String>) {
    let inside = |room: &&str| file.path.starts_with(&format!("crates/{room}/src/"));
    let Some(room) = PURE_ROOMS.iter().find(|room| inside(room)) else {
        return;
    };
    for (number, line) in file.lines_outside_tests() {
        let code = !line.trim_start().starts_with("//");
        if let Some(word) = IMPURE.iter().find(|word| code && line.contains(**word)) {
            findings.push(file.finding(number, format_args!("{word}: {room} is pure, hand it in")));
        }
    }
}

/// The lint denies it, and a file could allow itself what is only denied.
fn no_unsafe(file: &SourceFile, findings: &mut Vec<String>) {
    if !file.is_rust() || file.path == UNSAFE_ALLOWED {
        return;
    }
    for (number, line) in file.numbered_lines() {
        if line.contains(UNSAFE_LINT) {
            findings.push(file.finding(number, format_args!("only {UNSAFE_ALLOWED} may have it")));
        }
    }
}

fn workplace(file: &SourceFile, findings: &mut Vec<String>) {
    if WORKPLACE_ALLOWED.contains(&file.path.as_str()) {
        return;
    }
    for (number, line) in file.numbered_lines() {
        if let Some(word) = WORKPLACE.iter().find(|word| line.contains(**word)) {
            findings.push(file.finding(number, format_args!("{word} speaks of one machine")));
        }
    }
}

fn whitespace(file: &SourceFile, findings: &mut Vec<String>) {
    let checked = [".rs", ".py", ".md", ".toml", ".sh"];
    if !checked.iter().any(|end| file.path.ends_with(end)) {
        return;
    }
    for (number, line) in file.numbered_lines() {
        if line != line.trim_end() {
            findings.push(file.finding(number, "blank at the end of the line"));
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        findings.push(file.finding(file.text.lines().count(), "no newline at the end"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let file = SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let mut findings = Vec::new();
        for rule in ALL {
            rule(&file, &mut findings);
        }
        findings
    }

    #[test]
    fn a_clean_file_has_no_findings() {
        let text = "//! Purpose.\n\nfn f() {}\n\n#[cfg(test)]\nmod tests {\n    // x.unwrap()\n}\n";
        assert_eq!(
            findings("crates/object/src/a.rs", text),
            Vec::<String>::new()
        );
    }

    #[test]
    fn each_rule_finds_its_breach() {
        let long = format!("//! {}\n", "x".repeat(97));
        let many = format!("//! Purpose.\n{}", "\n".repeat(800));
        let function = |open: &str| format!("//! P.\n{open}\n{}}}\n", "    a();\n".repeat(71));
        let short = function("fn f() {").replacen("    a();\n", "    // Why.\n", 1);
        assert_eq!(findings("crates/a/src/a.rs", &short), Vec::<String>::new());
        let cases: &[(&str, &str, &str)] = &[
            (
                "crates/a/src/a.rs",
                &function("pub(crate) fn f() {"),
                "71 lines",
            ),
            (
                "crates/a/src/a.rs",
                &function("fn f(\n    a: u8,\n) -> u8 {"),
                "71 lines",
            ),
            ("crates/a/src/a.rs", &long, "101 columns"),
            ("crates/a/src/a.rs", &many, "801 lines"),
            ("crates/a/src/a.rs", "fn f() {}\n", "opens with"),
            ("crates/a/src/mod.rs", "//! Purpose.\n", "mod.rs"),
            (
                "crates/a/src/a.rs",
                concat!("//! P.\n// TO", "DO later\n"),
                "documents",
            ),
            ("crates/a/src/a.rs", "//! P.\n#[ignore]\n", "not run"),
            (
                "crates/a/src/a.rs",
                concat!("//! P.\nlet a = b.unw", "rap();\n"),
                "expect",
            ),
            (
                "crates/object/src/a.rs",
                "//! P.\nuse std::fs::File;\n",
                "pure",
            ),
            (
                "crates/a/src/a.rs",
                concat!("//! P.\n#![allow(unsafe", "_code)]\n"),
                "may have it",
            ),
            ("README.md", concat!("see /ro", "ot/x\n"), "one machine"),
            ("README.md", "text \n", "blank at the end"),
            ("README.md", "text", "no newline"),
        ];
        for (path, text, expected) in cases {
            let found = findings(path, text);
            assert!(
                found.len() == 1 && found[0].contains(expected),
                "{path} with {text:?}: expected one finding with {expected:?}, got {found:?}"
            );
        }
    }

    #[test]
    fn unwrap_is_allowed_in_tests() {
        let line = concat!("let a = b.unw", "rap();\n");
        let module = format!("//! P.\n#[cfg(test)]\nmod tests {{\n{line}}}\n");
        for (path, text) in [
            ("crates/a/src/a.rs", module.as_str()),
            ("crates/a/tests/main.rs", &format!("//! P.\n{line}")),
            ("crates/a/src/a/tests.rs", &format!("//! P.\n{line}")),
        ] {
            assert_eq!(findings(path, text), Vec::<String>::new(), "{path}");
        }
    }
}
