//! The `windlass` program: command line, first start, shutdown; and the same inside a test.

mod arguments;
mod config;
mod control;
mod credentials;
mod embed;
mod failure;
mod files;
mod front_proxy;
mod identity;
mod kube_apiserver;
mod outside;
mod rest;
mod serve;
mod serving;
mod users;
mod workers;

use std::ffi::OsString;
use std::process::ExitCode;

use arguments::Command;
use failure::Failure;
use kube_apiserver::Asked;

pub use embed::{Embedded, StartError};
pub use serve::Storage;

/// Does what the command line asks for.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let outcome = if kube_apiserver::is_called(words.first()) {
        kube_apiserver::parse(&words).and_then(as_kube_apiserver)
    } else {
        config::parse(&words).and_then(|arguments| execute(arguments.command()))
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(options) => serve::serve(*options, |_| Ok(())),
        Command::Backup(options) => files::backup(&options),
        Command::Restore(options) => files::restore(&options),
        Command::Check(options) => files::check(&options),
        Command::Kubeconfig(options) => users::kubeconfig(&options),
        Command::EncryptionConfig(options) => {
            files::encryption_config(&options);
            Ok(())
        }
    }
}

fn as_kube_apiserver(asked: Asked) -> Result<(), Failure> {
    match asked {
        Asked::Help => say(kube_apiserver::help().trim_end()),
        Asked::Version => say(&format!("Kubernetes {}", server::VERSION)),
        Asked::Serve(options, certificates, notes) => {
            return serve::serve(*options, |options| {
                kube_apiserver::prepare(options, &certificates, &notes)
            });
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the answer of the command")]
fn say(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "this is the command line's own voice")]
fn report(failure: &Failure) {
    eprintln!("error: {failure}");
    if let Some(hint) = failure.hint() {
        eprintln!("hint: {hint}");
    }
}
