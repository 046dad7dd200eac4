//! Other programs: run them, read them, install them.

use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The root of the repository, whatever directory the user stands in.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies below the root")
}

/// A command that runs in the root of the repository.
pub(crate) fn command(program: impl AsRef<Path>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program.as_ref());
    command.args(arguments).current_dir(root());
    command
}

/// The cargo that started us, so that one toolchain does everything.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = command(PathBuf::from(program), arguments);
    // What `cargo run` tells us about xtask itself. Build scripts look at these names, so leaving
    // them would rebuild half the tree between `cargo build` and `cargo xtask`.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Runs a command whose output goes to the user.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let status = command
        .status()
        .map_err(|source| cannot_start(command, source))?;
    if status.success() {
        return Ok(());
    }
    Err(Failure::Command {
        command: shown(command),
        status: status.to_string(),
    })
}

/// Runs a command and returns what it wrote to stdout.
pub(crate) fn read(command: &mut Command) -> Result<String, Failure> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|source| cannot_start(command, source))?;
    if !output.status.success() {
        let status = output.status.to_string();
        return Err(Failure::Command {
            command: shown(command),
            status,
        });
    }
    String::from_utf8(output.stdout).map_err(|why| Failure::unexpected(shown(command), why))
}

/// Runs git on this repository, also when another user owns the checkout.
pub(crate) fn git(arguments: &[&str]) -> Command {
    let mut git = command("git", &["-c", "safe.directory=*"]);
    git.args(arguments);
    git
}

/// Makes sure that `program` is on the PATH, by installing the Debian package if it is not.
pub(crate) fn need(program: &str, package: &str) -> Result<(), Failure> {
    if find_on_path(program).is_some() {
        return Ok(());
    }
    println!("{program} is not on the PATH: installing Debian package {package}");
    install(package)?;
    match find_on_path(program) {
        Some(_) => Ok(()),
        None => Err(Failure::unexpected(
            format!("package {package}"),
            format!("it is installed, but {program} is still not on the PATH"),
        )),
    }
}

/// Installs a Debian package.
pub(crate) fn install(package: &str) -> Result<(), Failure> {
    let install = ["install", "--yes", "--no-install-recommends", package];
    let try_install = || {
        let mut apt = command("apt-get", &install);
        run(apt
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null()))
    };
    if try_install().is_err() {
        run(command("apt-get", &["update"]).stdout(Stdio::null()))?;
        try_install()?;
    }
    Ok(())
}

fn find_on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

fn cannot_start(command: &Command, source: std::io::Error) -> Failure {
    Failure::Start {
        command: shown(command),
        source,
    }
}

fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
