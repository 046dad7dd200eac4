//! `cargo xtask test`: every check, in the order in which a mistake is cheapest to see.
//!
//! A step is a name, a sentence and a function. Each prints a heading and how long it took, and
//! the first failure ends the run.

use crate::failure::Failure;
use crate::{dependencies, serve, shell, tidy};
use std::time::Instant;

struct Step {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<(), Failure>,
}

const STEPS: &[Step] = &[
    Step {
        name: "format",
        about: "sources are formatted",
        run: format,
    },
    Step {
        name: "tidy",
        about: "the tree keeps the house rules",
        run: tidy::run,
    },
    Step {
        name: "dependencies",
        about: "arrows point down, licences are allowed, no crate is there twice",
        run: dependencies::run,
    },
    Step {
        name: "clippy",
        about: "no warning of the compiler or of clippy",
        run: clippy,
    },
    Step {
        name: "unit",
        about: "the tests of every crate",
        run: unit,
    },
    Step {
        name: "doc",
        about: "the documentation builds without a warning",
        run: doc,
    },
    Step {
        name: "release",
        about: "the server builds as users run it",
        run: release,
    },
    Step {
        name: "kubectl",
        about: "a real kubectl does its daily work",
        run: kubectl,
    },
    Step {
        name: "mistakes",
        about: "a user's mistake gets an error with a hint",
        run: mistakes,
    },
    Step {
        name: "stop",
        about: "SIGTERM ends the server cleanly and soon",
        run: stop,
    },
    Step {
        name: "sync",
        about: "a write is synced before it is acknowledged",
        run: sync,
    },
    Step {
        name: "full-disk",
        about: "a full disk refuses writes and recovers",
        run: full_disk,
    },
    Step {
        name: "crash",
        about: "SIGKILL at any moment loses nothing",
        run: crash,
    },
];

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

fn mistakes() -> Result<(), Failure> {
    suite("mistakes.py")
}

fn stop() -> Result<(), Failure> {
    suite("stop.py")
}

fn sync() -> Result<(), Failure> {
    shell::need("strace", "strace")?;
    suite("sync.py")
}

fn full_disk() -> Result<(), Failure> {
    suite("full_disk.py")
}

fn crash() -> Result<(), Failure> {
    suite("crash.py")
}

/// Runs one of the Python suites in `conformance/` against the release server.
pub(crate) fn suite(script: &str) -> Result<(), Failure> {
    shell::need("python3", "python3")?;
    let binary = serve::build_release()?;
    let script = shell::root().join("conformance").join(script);
    let mut python = shell::command("python3", &[]);
    // Bytecode written beside the scripts would be noise in the tree.
    shell::run(
        python
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg(script)
            .arg("--windlass")
            .arg(binary),
    )
}
