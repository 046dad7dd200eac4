//! The Python client in a process of its own, if an interpreter that has it is named.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use testkit::TestServer;

use super::Objects;
use super::gate::Gate;

/// The interpreter; it has the package `kubernetes`.
const INTERPRETER: &str = "WINDLASS_SOAK_PYTHON";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/follow.py");

/// A cache that the Python client keeps.
pub(super) struct Python(Child);

impl Python {
    /// Starts it; `None` if no interpreter is named.
    pub(super) fn start(server: &TestServer, gate: &Gate) -> Option<Python> {
        let interpreter = std::env::var_os(INTERPRETER)?;
        let child = Command::new(interpreter)
            .arg(SCRIPT)
            .arg(format!("https://{}", gate.address))
            .arg(server.certificate_authority())
            .arg(server.token().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Python(child))
    }

    /// Tells the version of the last change, and waits for the cache.
    pub(super) fn finish(mut self, end: u64) -> Objects {
        let mut input = self.0.stdin.take().unwrap();
        writeln!(input, "{end}").unwrap();
        drop(input);
        let output = self.0.wait_with_output().unwrap();
        assert!(output.status.success(), "the Python client failed");
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let objects = told["objects"].as_object().unwrap().iter();
        objects
            .map(|(name, seen)| {
                let content = seen[1].as_str().unwrap().to_owned();
                (name.clone(), (seen[0].as_u64().unwrap(), content))
            })
            .collect()
    }
}
