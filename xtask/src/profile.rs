//! `cargo xtask profile`: records what a loaded server executes, for the release build to use.
//!
//! A server that counts is driven by the load generator of `cargo xtask bench`. `profile/rustc`
//! hands the result to the compiler. What no workload reaches, and what has changed since, is
//! compiled as it would be without.

use crate::bench::{loadgen_binary, read_token};
use crate::failure::Failure;
use crate::serve::{self, Server};
use crate::shell;
use std::path::{Path, PathBuf};

const USAGE: &str = "\
usage: cargo xtask profile --loadgen PATH

  --loadgen PATH     a load generator: a binary, or the cargo project that builds one";

/// What the compiler is given.
const PROFILE: &str = "profile/windlass.profdata";

/// The program that reads the counts; it must not be newer than the compiler's LLVM.
const MERGER: &str = "llvm-profdata-19";
const MERGER_PACKAGE: &str = "llvm-19";

/// How long each workload that can be repeated runs.
const SECONDS: &str = "3";

/// Records a profile and puts it where the release build finds it.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let loadgen = match arguments {
        [flag, path] if flag == "--loadgen" => loadgen_binary(Path::new(path))?,
        _ => return Err(Failure::usage("a load generator must be named", USAGE)),
    };
    shell::need(MERGER, MERGER_PACKAGE)?;
    let target = serve::target_directory()?.join("profile");
    let counts = target.join("counts");
    let binary = build_counting(&target, &counts)?;
    // Build scripts count too, and none of theirs is wanted; there may be nothing at all.
    let _ = std::fs::remove_dir_all(&counts);
    load(&loadgen, &binary)?;
    let mut merge = shell::command(MERGER, &["merge", "-sparse", "-o", PROFILE]);
    shell::run(merge.arg(&counts))?;
    // Cargo does not know of the profile, and would keep what was built with the one before.
    shell::run(&mut shell::cargo(&["clean", "--quiet", "--release"]))?;
    println!("{PROFILE} is written; the next release build uses it");
    Ok(())
}

/// Builds a server that counts what it executes and leaves it in `counts` when it ends.
fn build_counting(target: &Path, counts: &Path) -> Result<PathBuf, Failure> {
    let mut cargo = shell::cargo(&["build", "--quiet", "--release", "--package", "windlass"]);
    let flags = format!("-Cprofile-generate={}", counts.display());
    // Without the profile that there is: a server counts or uses what was counted.
    let cargo = cargo.env("RUSTC_WRAPPER", "").env("RUSTFLAGS", flags);
    shell::run(cargo.arg("--target-dir").arg(target))?;
    Ok(target.join("release").join("windlass"))
}

fn load(loadgen: &Path, binary: &Path) -> Result<(), Failure> {
    let server = Server::start(binary, &serve::scratch("profile")?, &[])?;
    let token = format!("--token={}", read_token(&server)?);
    let flags = ["--server", &server.url, &token, "--seconds", SECONDS, "all"];
    shell::run(&mut shell::command(loadgen, &flags))
}
