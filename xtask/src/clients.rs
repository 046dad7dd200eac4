//! The client libraries of other languages, installed beside the builds when they are not there.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::shell;

// The newest major versions whose calls the suite knows.
const PYTHON_CLIENT: &str = "kubernetes<38";
const NODE_CLIENT: &str = "@kubernetes/client-node@1";

/// A Python that has the package `kubernetes`.
pub(crate) fn python() -> Result<PathBuf, Failure> {
    let folder = shell::root().join("target/python");
    let python = folder.join("bin/python");
    if !can_import(&python, "kubernetes") {
        shell::need("python3", "python3")?;
        if !can_import("python3".as_ref(), "ensurepip") {
            shell::install("python3-venv")?;
        }
        shell::run(shell::command("python3", &["-m", "venv"]).arg(&folder))?;
        let install = ["-m", "pip", "install", "--quiet", PYTHON_CLIENT];
        shell::run(&mut shell::command(&python, &install))?;
    }
    Ok(python)
}

fn can_import(python: &std::path::Path, package: &str) -> bool {
    let mut look = shell::command(python, &["-c", &format!("import {package}")]);
    look.output().is_ok_and(|look| look.status.success())
}

/// The folder in which the client for Node.js is installed.
pub(crate) fn node_modules() -> Result<PathBuf, Failure> {
    let folder = shell::root().join("target/node");
    let modules = folder.join("node_modules");
    if !modules.join("@kubernetes/client-node").is_dir() {
        shell::need("node", "nodejs")?;
        shell::need("npm", "npm")?;
        let install = [
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            NODE_CLIENT,
        ];
        shell::run(shell::command("npm", &install).arg("--prefix").arg(&folder))?;
    }
    Ok(modules)
}
