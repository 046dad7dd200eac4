//! Fuzzing with the compiler that builds everything else.
//!
//! The fuzzer needs coverage counters. The compiler has them without being a nightly one, as a pass
//! and options of LLVM; only the memory sanitizers need more, and there is no unsafe code to watch.

use crate::failure::Failure;
use crate::{serve, shell};
use std::path::Path;

const USAGE: &str = "usage: cargo xtask fuzz SECONDS [TARGET]...";

/// How the compiler counts which code an input reaches. Broken promises of our own must end the
/// process, so assertions and overflow checks are on.
const FLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions -Coverflow-checks --cfg fuzzing";

/// An input that takes longer than this is a failure: no parser may be that slow on 4 KiB.
const LIMITS: [&str; 3] = ["-timeout=5", "-max_len=4096", "-print_final_stats=1"];

/// Runs these targets, or all, for so many seconds each.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((seconds, chosen)) = arguments.split_first() else {
        return Err(Failure::usage("fuzz needs a time", USAGE));
    };
    if !seconds.parse().is_ok_and(|seconds: u32| seconds > 0) {
        return Err(Failure::usage("the time is a number of seconds", USAGE));
    }
    let targets = targets(&shell::root().join("fuzz").join("fuzz_targets"))?;
    if let Some(unknown) = chosen.iter().find(|name| !targets.contains(name)) {
        let message = format!("no target {unknown:?}; there are {}", targets.join(", "));
        return Err(Failure::usage(message, USAGE));
    }
    let binaries = build()?;
    for target in &targets {
        if chosen.is_empty() || chosen.contains(target) {
            fuzz(&binaries.join(target), target, seconds)?;
        }
    }
    Ok(())
}

fn targets(directory: &Path) -> Result<Vec<String>, Failure> {
    let unreadable = |source| Failure::File {
        action: "read",
        path: directory.to_owned(),
        source,
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        names.extend(path.file_stem().map(|it| it.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// Builds all targets and says where they are.
fn build() -> Result<std::path::PathBuf, Failure> {
    let host = shell::read(&mut shell::command("rustc", &["--print", "host-tuple"]))?;
    let directory = serve::target_directory()?.join("fuzz");
    let mut cargo = shell::cargo(&["build", "--release", "--bins", "--target", host.trim()]);
    cargo.args(["--manifest-path", "fuzz/Cargo.toml"]);
    cargo.env("CARGO_TARGET_DIR", &directory);
    // With a target named, build scripts and macros are spared the counters.
    shell::run(cargo.env("RUSTFLAGS", FLAGS))?;
    Ok(directory.join(host.trim()).join("release"))
}

fn fuzz(binary: &Path, target: &str, seconds: &str) -> Result<(), Failure> {
    println!("== {target}");
    let fuzz = shell::root().join("fuzz");
    let corpus = fuzz.join("corpus").join(target);
    let artifacts = fuzz.join("artifacts").join(target);
    for path in [&corpus, &artifacts] {
        std::fs::create_dir_all(path).map_err(|source| Failure::File {
            action: "make",
            path: path.clone(),
            source,
        })?;
    }
    let mut command = shell::command(binary, &LIMITS);
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    shell::run(command.arg(corpus))
}
