//! `cargo xtask test`: every check, in the order in which a mistake is cheapest to see.
//!
//! A step is a name, a sentence and a function. Each prints a heading and how long it took, and
//! the first failure ends the run.

use crate::failure::Failure;
use crate::{clients, dependencies, serve, shell, tidy};
use std::process::Command;
use std::time::Instant;

struct Step {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<(), Failure>,
}

const STEPS: &[Step] = &[
    step("format", "sources are formatted", format),
    step("tidy", "the tree keeps the house rules", tidy::run),
    step(
        "dependencies",
        "arrows, licences and versions are as decided",
        dependencies::run,
    ),
    step("clippy", "no warning of the compiler or of clippy", clippy),
    step("unit", "the tests of every crate", unit),
    step("doc", "the documentation builds without a warning", doc),
    step("release", "the server builds as users run it", release),
    step("kubectl", "a real kubectl does its daily work", kubectl),
    step(
        "clients",
        "the clients for Python and JavaScript do their daily work",
        clients,
    ),
    step(
        "mistakes",
        "a user's mistake gets an error with a hint",
        || suite("mistakes.py"),
    ),
    step("garbage", "no bytes bring the server down", || {
        suite("garbage.py")
    }),
    step("stop", "SIGTERM ends the server cleanly and soon", || {
        suite("stop.py")
    }),
    step("sync", "a write is synced before it is acknowledged", sync),
    step(
        "full-disk",
        "a full disk refuses writes and recovers",
        || suite("full_disk.py"),
    ),
    step("crash", "SIGKILL at any moment loses nothing", || {
        suite("crash.py")
    }),
];

const fn step(name: &'static str, about: &'static str, run: fn() -> Result<(), Failure>) -> Step {
    Step { name, about, run }
}

/// Runs the steps named on the command line, or all of them.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    if arguments.iter().any(|argument| argument == "--list") {
        for step in STEPS {
            println!("{:<14}{}", step.name, step.about);
        }
        return Ok(());
    }
    for name in arguments {
        if !STEPS.iter().any(|step| step.name == name) {
            return Err(Failure::usage(
                format!("no step named {name:?}"),
                "usage: cargo xtask test [STEP...]\n       cargo xtask test --list",
            ));
        }
    }
    let started = Instant::now();
    for step in STEPS {
        if !arguments.is_empty() && !arguments.iter().any(|name| name == step.name) {
            continue;
        }
        println!("\n=== {}: {}", step.name, step.about);
        let step_started = Instant::now();
        (step.run)()?;
        println!(
            "=== {}: ok in {:.1} s",
            step.name,
            step_started.elapsed().as_secs_f64()
        );
    }
    println!("\nall green in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Runs the informer soak for so many changes, with the server as users run it.
pub(crate) fn soak(arguments: &[String]) -> Result<(), Failure> {
    let is_number = |text: &String| text.parse::<u64>().is_ok();
    let (changes, seed) = match arguments {
        [changes] if is_number(changes) => (changes, None),
        [changes, seed] if is_number(changes) && is_number(seed) => (changes, Some(seed)),
        _ => {
            let usage = "usage: cargo xtask soak CHANGES [SEED]";
            return Err(Failure::usage("soak needs the number of changes", usage));
        }
    };
    let test = [
        "test",
        "--release",
        "--package",
        "windlass",
        "--test",
        "main",
    ];
    let mut command = shell::cargo(&test);
    command.args(["soak", "--", "--nocapture"]);
    command.env("WINDLASS_SOAK_CHANGES", changes);
    if let Some(seed) = seed {
        command.env("WINDLASS_SOAK_SEED", seed);
    }
    if std::env::var_os("WINDLASS_SOAK_PYTHON").is_none() {
        command.env("WINDLASS_SOAK_PYTHON", clients::python()?);
    }
    shell::run(&mut command)
}

fn format() -> Result<(), Failure> {
    shell::run(&mut shell::command("rustc", &["--version"]))?;
    shell::run(&mut shell::cargo(&["fmt", "--all", "--check"]))
}

fn clippy() -> Result<(), Failure> {
    let arguments = [
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    shell::run(&mut shell::cargo(&arguments))
}

fn unit() -> Result<(), Failure> {
    shell::run(&mut shell::cargo(&["test", "--quiet", "--workspace"]))
}

fn doc() -> Result<(), Failure> {
    let mut doc = shell::cargo(&["doc", "--quiet", "--workspace", "--no-deps"]);
    shell::run(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

fn release() -> Result<(), Failure> {
    let binary = serve::build_release()?;
    let metadata = std::fs::metadata(&binary).map_err(|source| Failure::File {
        action: "inspect",
        path: binary.clone(),
        source,
    })?;
    println!(
        "{} is {:.1} MB",
        binary.display(),
        metadata.len() as f64 / 1e6
    );
    Ok(())
}

fn kubectl() -> Result<(), Failure> {
    shell::need("kubectl", "kubernetes-client")?;
    suite("kubectl.py")
}

fn clients() -> Result<(), Failure> {
    let mut python = shell::command(clients::python()?, &[]);
    python.env("WINDLASS_NODE_MODULES", clients::node_modules()?);
    suite_with(python, "clients.py")
}

fn sync() -> Result<(), Failure> {
    shell::need("strace", "strace")?;
    suite("sync.py")
}

/// Runs one of the Python suites in `conformance/` against the release server.
pub(crate) fn suite(script: &str) -> Result<(), Failure> {
    shell::need("python3", "python3")?;
    suite_with(shell::command("python3", &[]), script)
}

/// The same, with an interpreter of its own.
fn suite_with(mut python: Command, script: &str) -> Result<(), Failure> {
    let binary = serve::build_release()?;
    let script = shell::root().join("conformance").join(script);
    // Bytecode written beside the scripts would be noise in the tree.
    shell::run(
        python
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(script)
            .arg("--windlass")
            .arg(binary),
    )
}
