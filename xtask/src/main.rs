//! Runs the checks, replays recorded exchanges, measures: `cargo xtask COMMAND`.
//!
//! Everything here is a tool for people who build Windlass; nothing of it ends up in the server.
//! A check that cannot run is a failure, never a silent skip.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks to its user on stdout and stderr"
)]

mod bench;
mod clients;
mod conformance;
mod dependencies;
mod failure;
mod fuzz;
mod generate;
mod licence;
mod profile;
mod serve;
mod shell;
mod test;
mod tidy;

use failure::Failure;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND

commands:
  test                         every check: format, lints, tidy, dependencies, tests,
                               documentation, and the suites with real clients
  test STEP...                 only these steps; `cargo xtask test --list` names them
  tidy                         the checks of the source tree itself
  conformance DIR [--update]   replay the recorded exchanges of DIR and compare the result with
                               conformance/passing.txt; --update adds what passes now
  soak CHANGES [SEED]          the informer soak of `test`, longer: so many changes
  fuzz SECONDS [TARGET]...     feed the parsers garbage, so long each
  bench --loadgen PATH ...     measure start, memory, size, throughput and latency
  profile --loadgen PATH       record what a loaded server executes, for the release build
  generate --facts DIR         write the catalogue's data from these facts
           --go-types DIR...   and from the struct tags of these Go sources";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            if let Some(hint) = failure.hint() {
                eprintln!("hint: {hint}");
            }
            failure.exit_code()
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Failure> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(Failure::usage("no command given", USAGE));
    };
    match command.as_str() {
        "test" => test::run(rest),
        "soak" => test::soak(rest),
        "fuzz" => fuzz::run(rest),
        "tidy" => tidy::run(),
        "bench" => bench::run(rest),
        "conformance" => conformance::run(rest),
        "profile" => profile::run(rest),
        "generate" => generate::run(rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(Failure::usage(format!("no command named {other:?}"), USAGE)),
    }
}
