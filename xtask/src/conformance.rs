//! `cargo xtask conformance DIR`: replays recorded exchanges against a fresh release server.
//!
//! `conformance/passing.txt` is a ratchet: every scenario named there must pass, and a line once
//! committed stays. `--update` adds what passes now and never removes anything.

use crate::failure::Failure;
use crate::serve::{self, Server};
use crate::shell;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const RATCHET: &str = "conformance/passing.txt";
const USAGE: &str = "usage: cargo xtask conformance DIR [--update] [--only PATTERN]";

/// The server as the recordings were made: no controllers, and no service account per namespace.
const FLAGS: &[&str] = &[
    "--controllers",
    "none",
    "--disable-admission-plugins",
    "ServiceAccount",
];

/// A few scenarios that take longer than this have met a server that hangs.
const REPLAY_MAX: Duration = Duration::from_secs(600);

/// Scenarios leave their objects behind, so a server gets only a few of them.
const SCENARIOS_PER_SERVER: usize = 5;
const SERVERS_AT_A_TIME: usize = 8;

/// Runs the replay and compares it with the ratchet.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let options = Options::parse(arguments)?;
    shell::need("python3", "python3")?;
    shell::need("openssl", "openssl")?;
    let outcome = replay(&options)?;
    print_areas(&outcome);
    if options.only.is_some() {
        print_problems(&outcome, |_| true);
    }
    let listed = read_ratchet()?;
    judge(&options, &outcome, &listed)?;
    ratchet_only_grows(&listed)
}

struct Options {
    folder: PathBuf,
    update: bool,
    only: Option<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let (mut folder, mut update, mut only) = (None, false, None);
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--update" => update = true,
                "--only" => match rest.next() {
                    Some(pattern) => only = Some(pattern.clone()),
                    None => return Err(Failure::usage("--only needs a pattern", USAGE)),
                },
                flag if flag.starts_with('-') => {
                    return Err(Failure::usage(format!("no flag named {flag}"), USAGE));
                }
                path if folder.is_none() => folder = Some(PathBuf::from(path)),
                path => return Err(Failure::usage(format!("second directory {path}"), USAGE)),
            }
        }
        let folder = folder.ok_or_else(|| Failure::usage("no directory given", USAGE))?;
        // The replayer is started from the root, but the user named the directory from here.
        let folder = std::path::absolute(&folder).map_err(|source| Failure::File {
            action: "find",
            path: folder,
            source,
        })?;
        Ok(Options {
            folder,
            update,
            only,
        })
    }
}

/// The problems of each scenario; none means that it passed.
type Outcome = BTreeMap<String, Vec<String>>;

/// Replays a few scenarios per server, several servers at a time: most of the time is waiting.
fn replay(options: &Options) -> Result<Outcome, Failure> {
    let script = options.folder.join("replay");
    if let Err(source) = std::fs::metadata(&script) {
        return Err(Failure::File {
            action: "find the replayer",
            path: script,
            source,
        });
    }
    let binary = serve::build_release()?;
    let recorded = recorded_scenarios(&options.folder.join("transcripts"))?;
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..SERVERS_AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let mut chunks = recorded.chunks(SCENARIOS_PER_SERVER);
                    let Some(scenarios) = chunks.nth(number) else {
                        return;
                    };
                    let outcome = replay_some(options, &script, &binary, number, scenarios);
                    outcomes
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(outcome);
                }
            });
        }
    });
    let mut all = Outcome::new();
    for outcome in outcomes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        all.extend(outcome?);
    }
    Ok(all)
}

/// Every recorded scenario: `AREA/NAME.json`, sorted.
fn recorded_scenarios(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut scenarios = Vec::new();
    for area in entries(folder)?.iter().filter(|area| area.is_dir()) {
        scenarios.extend(entries(area)?);
    }
    scenarios.retain(|path| path.extension().is_some_and(|end| end == "json"));
    scenarios.sort();
    Ok(scenarios)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failed = |source| Failure::File {
        action: "read",
        path: folder.to_owned(),
        source,
    };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    entries
        .map(|entry| entry.map(|entry| entry.path()).map_err(failed))
        .collect()
}

fn replay_some(
    options: &Options,
    script: &Path,
    binary: &Path,
    number: usize,
    scenarios: &[PathBuf],
) -> Result<Outcome, Failure> {
    let data = serve::scratch(&format!("conformance-{number}"))?;
    let server = Server::start(binary, &data, FLAGS)?;
    let file = server.data.join("results.json");
    let mut python = shell::command("python3", &[]);
    python
        .arg(script)
        .args(["--server", &server.url, "--insecure", "--show", "0"]);
    python
        .arg("--token-file")
        .arg(server.token_file())
        .arg("--json")
        .arg(&file);
    if let Some(pattern) = &options.only {
        python.args(["--only", pattern]);
    }
    python.args(scenarios);
    // Its exit code says whether everything passed; the ratchet judges instead.
    wait_within(python.stdout(Stdio::null()), REPLAY_MAX)?;
    read_results(&file)
}

fn wait_within(command: &mut std::process::Command, limit: Duration) -> Result<(), Failure> {
    let shown = format!("{command:?}");
    let start = |source| Failure::Start {
        command: shown.clone(),
        source,
    };
    let mut process = command.spawn().map_err(start)?;
    let deadline = Instant::now() + limit;
    while process.try_wait().map_err(start)?.is_none() {
        if Instant::now() > deadline {
            let _ = process.kill();
            let _ = process.wait();
            let status = format!("still running after {limit:?}");
            return Err(Failure::Command {
                command: shown,
                status,
            });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn read_results(file: &Path) -> Result<Outcome, Failure> {
    let text = std::fs::read_to_string(file).map_err(|source| Failure::File {
        action: "read the results of the replay in",
        path: file.to_owned(),
        source,
    })?;
    let wrong = |why: &str| Failure::unexpected("the results of the replay", why);
    let scenarios: Value = serde_json::from_str(&text).map_err(|why| wrong(&why.to_string()))?;
    let mut outcome = Outcome::new();
    for scenario in scenarios.as_array().ok_or_else(|| wrong("no list"))? {
        let name = scenario["scenario"]
            .as_str()
            .ok_or_else(|| wrong("no scenario name"))?;
        let steps = scenario["results"]
            .as_array()
            .ok_or_else(|| wrong("no steps"))?;
        let mut problems = Vec::new();
        for step in steps {
            let title = step[0].as_str().unwrap_or_default();
            for problem in step[1].as_array().into_iter().flatten() {
                problems.push(format!("{title}: {}", problem.as_str().unwrap_or_default()));
            }
        }
        outcome.insert(name.to_owned(), problems);
    }
    Ok(outcome)
}

fn print_areas(outcome: &Outcome) {
    let mut areas: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (name, problems) in outcome {
        let area = areas.entry(area(name)).or_default();
        area.0 += usize::from(problems.is_empty());
        area.1 += 1;
    }
    for (area, (passed, all)) in &areas {
        println!("{area:<20}{passed:>4} of {all}");
    }
    let passed = outcome
        .values()
        .filter(|problems| problems.is_empty())
        .count();
    println!("{:<20}{passed:>4} of {}", "all", outcome.len());
}

fn area(scenario: &str) -> &str {
    scenario.split_once('/').map_or(scenario, |(area, _)| area)
}

fn print_problems(outcome: &Outcome, wanted: impl Fn(&str) -> bool) {
    for (name, problems) in outcome {
        if !problems.is_empty() && wanted(name) {
            println!("{name}");
            for problem in problems {
                println!("    {problem}");
            }
        }
    }
}

fn read_ratchet() -> Result<BTreeSet<String>, Failure> {
    let path = shell::root().join(RATCHET);
    let text = std::fs::read_to_string(&path).map_err(|source| Failure::File {
        action: "read",
        path,
        source,
    })?;
    Ok(lines(&text))
}

fn lines(text: &str) -> BTreeSet<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

fn judge(options: &Options, outcome: &Outcome, listed: &BTreeSet<String>) -> Result<(), Failure> {
    let passes = |name: &String| outcome.get(name).is_some_and(Vec::is_empty);
    let asked = |name: &&String| options.only.is_none() || outcome.contains_key(*name);
    let lost: Vec<String> = listed
        .iter()
        .filter(asked)
        .filter(|name| !passes(name))
        .map(|name| match outcome.get(name) {
            Some(problems) => format!("{name}: {} problems", problems.len()),
            None => format!("{name}: not among the recorded scenarios"),
        })
        .collect();
    if options.only.is_none() {
        print_problems(outcome, |name| listed.contains(name));
    }
    let new: Vec<&String> = outcome
        .keys()
        .filter(|name| passes(name) && !listed.contains(*name))
        .collect();
    if options.update {
        add_to_ratchet(listed, &new)?;
    } else if !new.is_empty() {
        println!(
            "{} scenarios pass that {RATCHET} does not list yet:",
            new.len()
        );
        for name in new {
            println!("  {name}");
        }
        println!("add them: cargo xtask conformance DIR --update");
    }
    let hint = "every scenario in conformance/passing.txt must pass; mend the server";
    Failure::unless_empty("conformance", lost, Some(hint))
}

fn add_to_ratchet(listed: &BTreeSet<String>, new: &[&String]) -> Result<(), Failure> {
    let all: BTreeSet<&String> = listed.iter().chain(new.iter().copied()).collect();
    let mut text = String::new();
    for name in &all {
        text.push_str(name);
        text.push('\n');
    }
    let path = shell::root().join(RATCHET);
    std::fs::write(&path, text).map_err(|source| Failure::File {
        action: "write",
        path,
        source,
    })?;
    println!("{RATCHET}: {} added, {} now", new.len(), all.len());
    Ok(())
}

/// Fails when a scenario was taken off the list since the last commit or the one before.
fn ratchet_only_grows(listed: &BTreeSet<String>) -> Result<(), Failure> {
    let mut findings = Vec::new();
    for revision in ["HEAD", "HEAD^"] {
        let mut git = shell::git(&["show", &format!("{revision}:{RATCHET}")]);
        // Without such a commit or such a file in it there is nothing to keep.
        let output = git
            .stderr(Stdio::null())
            .output()
            .map_err(|source| Failure::Start {
                command: "git show".to_owned(),
                source,
            })?;
        if output.status.success() {
            let before = lines(&String::from_utf8_lossy(&output.stdout));
            let gone = before.difference(listed);
            findings.extend(gone.map(|name| format!("{name}: listed in {revision}, now gone")));
        }
    }
    findings.sort();
    findings.dedup();
    Failure::unless_empty(
        "ratchet",
        findings,
        Some("put the lines back: the list only grows"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(only: Option<&str>) -> Options {
        Options {
            folder: PathBuf::new(),
            update: false,
            only: only.map(str::to_owned),
        }
    }

    fn outcome(entries: &[(&str, &[&str])]) -> Outcome {
        let own = |text: &&str| (*text).to_owned();
        entries
            .iter()
            .map(|(name, bad)| (own(name), bad.iter().map(own).collect()))
            .collect()
    }

    #[test]
    fn a_listed_scenario_must_pass() {
        let outcome = outcome(&[("a/one", &[]), ("a/two", &["1. GET: status"])]);
        assert!(judge(&options(None), &outcome, &lines("a/one\n")).is_ok());
        assert!(judge(&options(None), &outcome, &lines("a/two\n")).is_err());
    }

    #[test]
    fn a_listed_scenario_that_was_not_replayed_fails_unless_it_was_not_asked_for() {
        let outcome = outcome(&[("a/one", &[])]);
        assert!(judge(&options(None), &outcome, &lines("b/gone\n")).is_err());
        assert!(judge(&options(Some("a/*")), &outcome, &lines("b/gone\n")).is_ok());
    }

    #[test]
    fn a_flag_that_does_not_exist_is_wrong_usage() {
        for arguments in [
            &["dir", "--updaet"][..],
            &[],
            &["dir", "--only"],
            &["a", "b"],
        ] {
            let arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
            assert!(matches!(
                Options::parse(&arguments),
                Err(Failure::Usage { .. })
            ));
        }
    }
}
