//! `backup`, `restore` and `check`: what an operator does to data at rest.

use resources::encryption::Encryption;
use store::Store;

use crate::arguments::{Backup, Check, EncryptionConfig, Restore};
use crate::control;
use crate::failure::Failure;

/// Copies a data directory into one file.
pub(crate) fn backup(options: &Backup) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let report = runtime.block_on(control::backup(&options.data, &options.file))?;
    say(&format!("{} holds {report}", options.file.display()));
    Ok(())
}

/// Makes a data directory out of a backup.
pub(crate) fn restore(options: &Restore) -> Result<(), Failure> {
    let report = Store::restore(&options.file, &options.data)?;
    say(&format!(
        "{} holds {}",
        options.data.display(),
        control::describe(&report)
    ));
    Ok(())
}

/// Checks a data directory.
pub(crate) fn check(options: &Check) -> Result<(), Failure> {
    let report = Store::check(&options.data)?;
    for problem in &report.problems {
        say(&format!("{}: {}", problem.file, problem.detail));
    }
    if !report.problems.is_empty() {
        return Err(Failure::Damaged {
            path: options.data.clone(),
        });
    }
    say(&format!(
        "{} is whole: {} objects, {} versions, revision {}",
        options.data.display(),
        report.records,
        report.versions,
        report.revision
    ));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the answer of the command")]
fn say(text: &str) {
    println!("{text}");
}

/// Prints a configuration with a new key.
pub(crate) fn encryption_config(options: &EncryptionConfig) {
    let text = Encryption::generate(options.provider, &options.key_name, &options.resources);
    say(text.trim_end());
}
