//! `cargo xtask bench`: what the release server does per second, and what it needs at rest.
//!
//! The load comes from a generator of its own, named on the command line, so that ours and another
//! server are driven by the same program. With a reference server the runs alternate: whatever
//! else the machine does meanwhile, it does to both. The one that is not measured is stopped: even
//! at rest a server takes time and caches from the other.

mod reference;

use crate::failure::Failure;
use crate::serve::Server;
use crate::{serve, shell, test};
use reference::Reference;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

const USAGE: &str = "\
usage: cargo xtask bench --loadgen PATH [--seconds N] [--runs N] [--workload NAME]...
                         [--reference PATH --etcd PATH]
                         [--reference-url URL --reference-token TOKEN]

  --loadgen PATH       a load generator: a binary, or the cargo project that builds one
  --seconds N          how long each workload that can be repeated runs (10)
  --runs N             how often all of it runs; the table has medians (3)
  --workload NAME      only this workload; may be given more than once
  --reference PATH     a kube-apiserver, started fresh and measured in alternation
  --etcd PATH          the etcd it stores in
  --reference-url URL  another server that runs already, measured in alternation";

/// What a server gets to find its feet after it was stopped.
const WAKE_UP: Duration = Duration::from_secs(2);

/// Runs everything and prints the tables.
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let options = Options::parse(arguments)?;
    let loadgen = loadgen_binary(&options.loadgen)?;
    test::suite("measure.py")?;
    let server = Server::start_fresh("bench", &[])?;
    let token = read_token(&server)?;
    let started = match &options.reference {
        Other::Binaries { apiserver, etcd } => Some(Reference::start(apiserver, etcd)?),
        Other::None | Other::Running { .. } => None,
    };
    let reference = match (&started, &options.reference) {
        (Some(started), _) => Some((started.url.as_str(), started.token())),
        (None, Other::Running { url, token }) => Some((url.as_str(), token.as_str())),
        (None, _) => None,
    };
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for number in 0..options.runs {
        let namespace = format!("bench-{}-{number}", std::process::id());
        eprintln!("run {} of {}", number + 1, options.runs);
        let others = started.iter().flat_map(Reference::pids).collect();
        let paused = Paused::new(others)?;
        ours.extend(drive(&loadgen, &options, &server.url, &token, &namespace)?);
        drop(paused);
        if let Some((url, token)) = reference {
            let _paused = Paused::new(vec![server.pid()])?;
            theirs.extend(drive(&loadgen, &options, url, token, &namespace)?);
        }
    }
    print_table(&ours, &theirs);
    println!(
        "resident memory after the load: {:.1} MB",
        resident_megabytes(server.pid())?
    );
    let failed = ours.iter().filter(|sample| sample.errors > 0);
    let failed = failed.map(|sample| format!("{}: {} errors", sample.workload, sample.errors));
    Failure::unless_empty("bench", failed.collect(), None)
}

/// Processes that are stopped until this is dropped.
struct Paused(Vec<u32>);

impl Paused {
    fn new(processes: Vec<u32>) -> Result<Paused, Failure> {
        let paused = Paused(processes);
        paused.signal("STOP")?;
        Ok(paused)
    }

    fn signal(&self, signal: &str) -> Result<(), Failure> {
        for process in &self.0 {
            let line = format!("kill -{signal} {process}");
            shell::run(&mut shell::command("sh", &["-c", &line]))?;
        }
        Ok(())
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        // One that ended meanwhile is missed by whoever measures it.
        let _ = self.signal("CONT");
        if !self.0.is_empty() {
            std::thread::sleep(WAKE_UP);
        }
    }
}

struct Options {
    loadgen: PathBuf,
    seconds: u64,
    runs: u64,
    workloads: Vec<String>,
    reference: Other,
}

/// What ours is compared with.
#[derive(Debug, PartialEq)]
enum Other {
    None,
    Binaries { apiserver: PathBuf, etcd: PathBuf },
    Running { url: String, token: String },
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let (mut loadgen, mut seconds, mut runs) = (None, 10, 3);
        let (mut workloads, mut url, mut token) = (Vec::new(), None, None);
        let (mut apiserver, mut etcd) = (None, None);
        let mut rest = arguments.iter();
        while let Some(flag) = rest.next() {
            let Some(value) = rest.next() else {
                return Err(Failure::usage(format!("{flag} needs a value"), USAGE));
            };
            match flag.as_str() {
                "--loadgen" => loadgen = Some(PathBuf::from(value)),
                "--seconds" => seconds = number(flag, value)?,
                "--runs" => runs = number(flag, value)?,
                "--workload" => workloads.push(value.clone()),
                "--reference" => apiserver = Some(PathBuf::from(value)),
                "--etcd" => etcd = Some(PathBuf::from(value)),
                "--reference-url" => url = Some(value.clone()),
                "--reference-token" => token = Some(value.clone()),
                _ => return Err(Failure::usage(format!("no flag named {flag}"), USAGE)),
            }
        }
        let reference = match (apiserver, etcd, url, token) {
            (None, None, None, None) => Other::None,
            (Some(apiserver), Some(etcd), None, None) => Other::Binaries { apiserver, etcd },
            (None, None, Some(url), Some(token)) => Other::Running { url, token },
            _ => {
                let message = "a reference is --reference with --etcd, or --reference-url with \
                               --reference-token";
                return Err(Failure::usage(message, USAGE));
            }
        };
        let loadgen = loadgen.ok_or_else(|| Failure::usage("no --loadgen given", USAGE))?;
        if workloads.is_empty() {
            workloads.push("all".to_owned());
        }
        Ok(Options {
            loadgen,
            seconds,
            runs,
            workloads,
            reference,
        })
    }
}

fn number(flag: &str, value: &str) -> Result<u64, Failure> {
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Failure::usage(
            format!("{flag} needs a number above zero, not {value:?}"),
            USAGE,
        )),
    }
}

/// The generator's binary, built in a target directory of ours when a project is given.
pub(crate) fn loadgen_binary(path: &Path) -> Result<PathBuf, Failure> {
    let absolute = |source| Failure::File {
        action: "find",
        path: path.to_owned(),
        source,
    };
    let path = path.canonicalize().map_err(absolute)?;
    if path.is_file() {
        return Ok(path);
    }
    let manifest = path.join("Cargo.toml");
    let manifest = manifest
        .to_str()
        .ok_or_else(|| Failure::unexpected("--loadgen", "not UTF-8"))?;
    let metadata = crate::dependencies::metadata(&["--no-deps", "--manifest-path", manifest])?;
    let targets = metadata["packages"][0]["targets"].as_array();
    let name = targets.into_iter().flatten().find_map(|target| {
        let is_binary = target["kind"].as_array()?.iter().any(|kind| kind == "bin");
        is_binary.then(|| target["name"].as_str()).flatten()
    });
    let name = name.ok_or_else(|| Failure::unexpected(manifest, "it builds no binary"))?;
    let target = serve::target_directory()?.join("loadgen");
    let mut cargo = shell::cargo(&["build", "--quiet", "--release", "--locked"]);
    shell::run(
        cargo
            .args(["--manifest-path", manifest])
            .arg("--target-dir")
            .arg(&target),
    )?;
    Ok(target.join("release").join(name))
}

pub(crate) fn read_token(server: &Server) -> Result<String, Failure> {
    let path = server.token_file();
    match std::fs::read_to_string(&path) {
        Ok(token) => Ok(token.trim().to_owned()),
        Err(source) => Err(Failure::File {
            action: "read",
            path,
            source,
        }),
    }
}

/// One workload, measured once.
struct Sample {
    workload: String,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    errors: u64,
}

/// Drives a server and returns what was measured.
fn drive(
    loadgen: &Path,
    options: &Options,
    url: &str,
    token: &str,
    namespace: &str,
) -> Result<Vec<Sample>, Failure> {
    // In one word with its flag, because a token may begin with a dash.
    let token = format!("--token={token}");
    let mut command = shell::command(loadgen, &["--json", "--server", url, &token]);
    command.args([
        "--namespace",
        namespace,
        "--seconds",
        &options.seconds.to_string(),
    ]);
    let text = shell::read(command.args(&options.workloads))?;
    text.lines().map(read_sample).collect()
}

fn read_sample(line: &str) -> Result<Sample, Failure> {
    let wrong = |why: &dyn std::fmt::Display| Failure::unexpected(format!("{line:?}"), why);
    let value: Value = serde_json::from_str(line).map_err(|why| wrong(&why))?;
    let figure = |key: &str| {
        value[key]
            .as_f64()
            .ok_or_else(|| wrong(&format!("no {key}")))
    };
    Ok(Sample {
        workload: value["workload"]
            .as_str()
            .ok_or_else(|| wrong(&"no workload"))?
            .to_owned(),
        per_second: figure("per_second")?,
        p50_ms: figure("p50_ms")?,
        p99_ms: figure("p99_ms")?,
        errors: value["errors"]
            .as_u64()
            .ok_or_else(|| wrong(&"no errors"))?,
    })
}

fn print_table(ours: &[Sample], theirs: &[Sample]) {
    print!(
        "{:<16}{:>11}{:>10}{:>10}",
        "workload", "per second", "p50 ms", "p99 ms"
    );
    if !theirs.is_empty() {
        print!(
            "{:>14}{:>10}{:>10}{:>8}",
            "reference/s", "p50 ms", "p99 ms", "ratio"
        );
    }
    println!();
    let mut done: Vec<&str> = Vec::new();
    for sample in ours {
        let name = sample.workload.as_str();
        if done.contains(&name) {
            continue;
        }
        done.push(name);
        let [rate, p50, p99] = medians(ours, name);
        print!("{name:<16}{rate:>11.0}{p50:>10.2}{p99:>10.2}");
        if !theirs.is_empty() {
            let [reference, p50, p99] = medians(theirs, name);
            let ratio = rate / reference;
            print!("{reference:>14.0}{p50:>10.2}{p99:>10.2}{ratio:>8.2}");
        }
        println!();
    }
}

/// The medians of rate, p50 and p99 over all runs of a workload.
fn medians(samples: &[Sample], workload: &str) -> [f64; 3] {
    let of = |figure: fn(&Sample) -> f64| {
        let runs = samples.iter().filter(|sample| sample.workload == workload);
        let mut figures: Vec<f64> = runs.map(figure).collect();
        figures.sort_by(f64::total_cmp);
        match figures.len() {
            0 => f64::NAN,
            count if count % 2 == 1 => figures[count / 2],
            count => f64::midpoint(figures[count / 2 - 1], figures[count / 2]),
        }
    };
    [
        of(|sample| sample.per_second),
        of(|sample| sample.p50_ms),
        of(|sample| sample.p99_ms),
    ]
}

fn resident_megabytes(pid: u32) -> Result<f64, Failure> {
    let path = PathBuf::from(format!("/proc/{pid}/status"));
    let status = match std::fs::read_to_string(&path) {
        Ok(status) => status,
        Err(source) => {
            return Err(Failure::File {
                action: "read",
                path,
                source,
            });
        }
    };
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kilobytes
        .map(|kilobytes| kilobytes / 1000.0)
        .ok_or_else(|| {
            Failure::unexpected(
                format!("{}", path.display()),
                "no VmRSS of a running process",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(workload: &str, per_second: f64) -> Sample {
        Sample {
            workload: workload.to_owned(),
            per_second,
            p50_ms: 1.0,
            p99_ms: 2.0,
            errors: 0,
        }
    }

    #[test]
    fn a_median_is_the_middle_or_between_the_two_in_the_middle() {
        let odd = [
            sample("get", 9.0),
            sample("get", 1.0),
            sample("get", 5.0),
            sample("put", 7.0),
        ];
        assert_eq!(medians(&odd, "get"), [5.0, 1.0, 2.0]);
        assert_eq!(medians(&odd[..2], "get"), [5.0, 1.0, 2.0]);
    }

    #[test]
    fn a_sample_without_a_figure_is_refused() {
        let whole = r#"{"workload":"get","per_second":5,"p50_ms":1,"p99_ms":2,"errors":0}"#;
        assert_eq!(
            read_sample(whole).map(|sample| sample.per_second).ok(),
            Some(5.0)
        );
        assert!(read_sample(r#"{"workload":"get"}"#).is_err());
        assert!(read_sample("get 5/s").is_err());
    }

    fn parse(flags: &str) -> Result<Other, Failure> {
        let arguments = ["--loadgen", "x"].into_iter().chain(flags.split(' '));
        let arguments: Vec<String> = arguments.map(str::to_owned).collect();
        Options::parse(&arguments).map(|options| options.reference)
    }

    #[test]
    fn a_reference_needs_its_token_or_its_etcd() {
        for flags in [
            "--reference-url https://127.0.0.1:1",
            "--reference kube-apiserver",
            "--etcd etcd",
            "--reference kube-apiserver --reference-token t",
        ] {
            assert!(
                matches!(parse(flags), Err(Failure::Usage { .. })),
                "{flags}"
            );
        }
        let binaries = Other::Binaries {
            apiserver: "kube-apiserver".into(),
            etcd: "etcd".into(),
        };
        let parsed = parse("--reference kube-apiserver --etcd etcd");
        assert_eq!(parsed.ok(), Some(binaries));
    }
}
