//! Measures the disk engine: commits a second, opening, reading, memory.
//!
//! `cargo run --release --package windlass-store --example bench [directory]`
//!
//! Figures depend on the disk under the directory; the default is one in the working directory,
//! because the system's temporary directory may be memory.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a program that prints, or stops"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use windlass_store::{Change, Expect, Options, Range, Revision, Store};

const VALUE_BYTES: usize = 2_048;
const WRITERS: usize = 16;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        // Children of the benchmark: to be killed, or to measure a process's memory.
        ["fill", directory, count] => {
            let runtime = runtime();
            let store = open(Path::new(directory));
            runtime.block_on(fill(&store, count.parse().unwrap()));
            println!("full");
            std::thread::sleep(Duration::from_secs(600));
        }
        ["open", directory] => {
            let started = Instant::now();
            let store = open(Path::new(directory));
            let elapsed = started.elapsed();
            // The newest state is in memory once opening returns; count to be sure it is there.
            let count = runtime().block_on(store.count("pods", ""));
            println!(
                "{:.2} {count} {}",
                elapsed.as_secs_f64() * 1e3,
                resident_kibibytes()
            );
            std::process::exit(0);
        }
        [directory] => measure(&PathBuf::from(directory)),
        _ => measure(&PathBuf::from("store-bench-data")),
    }
}

fn measure(root: &Path) {
    let _ = std::fs::remove_dir_all(root);
    std::fs::create_dir_all(root).unwrap();
    println!(
        "open an empty directory: {}",
        median(9, |round| {
            let directory = root.join(format!("empty{round}"));
            let started = Instant::now();
            let store = open(&directory);
            let elapsed = started.elapsed();
            runtime().block_on(store.close());
            elapsed
        })
    );
    commits(&root.join("commits"));
    reads();
    for count in [1_000, 100_000] {
        opening(&root.join(format!("open{count}")), count);
    }
    let _ = std::fs::remove_dir_all(root);
}

fn commits(directory: &Path) {
    let runtime = runtime();
    let store = open(directory);
    for writers in [1, WRITERS, 4 * WRITERS] {
        let started = Instant::now();
        let total = runtime.block_on(write_for(&store, writers, Duration::from_secs(4)));
        let rate = total as f64 / started.elapsed().as_secs_f64();
        println!("{writers} writers of 2 KiB, synced: {rate:.0} commits a second");
    }
    runtime.block_on(store.close());
}

/// Writes from many tasks at once for a while; returns how many commits there were.
async fn write_for(store: &Store, writers: usize, time: Duration) -> usize {
    let started = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let store = store.clone();
            tokio::spawn(async move {
                let name = format!("writer-{writer}-{}", started.elapsed().as_nanos());
                let mut expect = Expect::Absent;
                let mut count = 0;
                while started.elapsed() < time {
                    let value = vec![b'x'; VALUE_BYTES].into();
                    let change = Change::Put {
                        value,
                        ttl_seconds: None,
                    };
                    let done = store.commit("pods", &name, expect, change).await.unwrap();
                    expect = Expect::At(done.revision);
                    count += 1;
                }
                count
            })
        })
        .collect();
    let mut total = 0;
    for task in tasks {
        total += task.await.unwrap();
    }
    total
}

fn reads() {
    let runtime = runtime();
    let store = Store::memory(Options::default());
    runtime.block_on(fill(&store, 100_000));
    let range = |range: Range<'static>| {
        let (store, runtime) = (&store, &runtime);
        move || {
            let page = runtime.block_on(store.range("pods", range)).unwrap();
            assert!(!page.records.is_empty());
        }
    };
    let mut run = range(Range {
        prefix: "namespace-07/",
        limit: 2_000,
        ..Range::default()
    });
    println!(
        "list 2,000 of a namespace: {}",
        median(51, |_| timed(&mut run))
    );
    let mut run = range(Range {
        limit: 500,
        ..Range::default()
    });
    println!(
        "list 500 of 100,000, rest counted: {}",
        median(51, |_| timed(&mut run))
    );
    let mut run = range(Range::default());
    println!("list 100,000: {}", median(11, |_| timed(&mut run)));
    let mut run = || {
        for _ in 0..1_000 {
            let record = ready(store.get("pods", "namespace-07/pod-000007"));
            assert!(record.is_some());
        }
    };
    println!("1,000 gets: {}", median(51, |_| timed(&mut run)));
    let mut watches = Vec::new();
    let before = resident_kibibytes();
    for _ in 0..10_000 {
        watches.push(
            runtime
                .block_on(store.watch("pods", Revision(100_000)))
                .unwrap(),
        );
    }
    println!(
        "10,000 idle watches: {} KiB",
        resident_kibibytes().saturating_sub(before)
    );
}

fn timed(run: &mut impl FnMut()) -> Duration {
    let started = Instant::now();
    run();
    started.elapsed()
}

/// Runs a future that is ready at once.
fn ready<T, E: std::fmt::Debug>(future: impl std::future::Future<Output = Result<T, E>>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(result) => result.unwrap(),
        std::task::Poll::Pending => panic!("memory never waits"),
    }
}

fn opening(directory: &Path, count: usize) {
    let this = std::env::current_exe().unwrap();
    let mut child = Command::new(&this)
        .args(["fill", directory.to_str().unwrap(), &count.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    report_open(&this, directory, count, "after SIGKILL");
    let store = open(directory);
    runtime().block_on(store.close());
    for _ in 0..3 {
        report_open(&this, directory, count, "after close");
        // Leave it closed in good order again: the child ended without.
        let store = open(directory);
        runtime().block_on(store.close());
    }
}

fn report_open(this: &Path, directory: &Path, count: usize, when: &str) {
    let output = Command::new(this)
        .args(["open", directory.to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let fields: Vec<f64> = text
        .split_whitespace()
        .map(|field| field.parse().unwrap())
        .collect();
    assert_eq!(fields[1] as usize, count);
    let live = (count * VALUE_BYTES) as f64 / 1024.0;
    println!(
        "open {count} {when}: {:.1} ms, resident {:.0} KiB, {:.2} x the live bytes",
        fields[0],
        fields[2],
        fields[2] / live
    );
}

async fn fill(store: &Store, count: usize) {
    let next = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let tasks: Vec<_> = (0..256)
        .map(|_| {
            let (store, next) = (store.clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let name = format!("namespace-{:02}/pod-{number:06}", number % 50);
                    let value = vec![b'x'; VALUE_BYTES].into();
                    let change = Change::Put {
                        value,
                        ttl_seconds: None,
                    };
                    store
                        .commit("pods", &name, Expect::Absent, change)
                        .await
                        .unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

fn open(directory: &Path) -> Store {
    Store::open(directory, Options::default()).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap()
}

fn resident_kibibytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn median(rounds: usize, mut measure: impl FnMut(usize) -> Duration) -> String {
    let mut times: Vec<Duration> = (0..rounds).map(&mut measure).collect();
    times.sort();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    format!(
        "{:.1} us (least {:.1})",
        micros(times[rounds / 2]),
        micros(times[0])
    )
}
