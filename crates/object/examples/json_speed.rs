//! Measures how fast JSON is read and written.
//!
//! ```text
//! cargo run --release -p windlass-object --example json_speed -- pod.json node.json
//! ```
//!
//! For each file: bytes, then MB/s of reading, strict reading and writing, the best of several
//! rounds.

use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use windlass_object::json;

/// Many short rounds: on a busy machine the best of them is one that nobody interrupted.
const ROUNDS: usize = 300;
const ROUND_LENGTH: Duration = Duration::from_millis(2);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "{:>8} {:>8} {:>8} {:>8}  file",
        "bytes", "read", "strict", "write"
    )?;
    for path in std::env::args().skip(1) {
        let text = std::fs::read(&path)?;
        let value = json::parse(&text)?;
        let read = speed(text.len(), || {
            drop(black_box(json::parse(black_box(&text))))
        });
        let strict = speed(text.len(), || {
            drop(black_box(json::parse_strict(black_box(&text))))
        });
        let mut buffer = Vec::new();
        let write = speed(text.len(), || {
            buffer.clear();
            json::write(black_box(&value), &mut buffer);
            black_box(&buffer);
        });
        writeln!(
            out,
            "{:>8} {read:>8.0} {strict:>8.0} {write:>8.0}  {path}",
            text.len()
        )?;
    }
    Ok(())
}

/// The best speed of `work` on `bytes` bytes, in MB/s.
fn speed(bytes: usize, work: impl FnMut()) -> f64 {
    let mut work = work;
    let mut best: f64 = 0.0;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut count = 0;
        while start.elapsed() < ROUND_LENGTH {
            for _ in 0..4 {
                work();
            }
            count += 4;
        }
        best = best.max((bytes * count) as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    best
}
