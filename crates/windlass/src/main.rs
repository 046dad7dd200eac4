//! The `windlass` binary: command line, first start, shutdown.

mod arguments;
mod control;
mod credentials;
mod failure;
mod files;
mod front_proxy;
mod identity;
mod outside;
mod serve;
mod serving;
mod users;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser as _;
use failure::Failure;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command() {
        Command::Serve(options) => serve::serve(options),
        Command::Backup(options) => files::backup(&options),
        Command::Restore(options) => files::restore(&options),
        Command::Check(options) => files::check(&options),
        Command::Kubeconfig(options) => users::kubeconfig(&options),
        Command::EncryptionConfig(options) => {
            files::encryption_config(&options);
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "this is the command line's own voice")]
fn report(failure: &Failure) {
    eprintln!("error: {failure}");
    if let Some(hint) = failure.hint() {
        eprintln!("hint: {hint}");
    }
}
