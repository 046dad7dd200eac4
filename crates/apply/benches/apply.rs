//! How long applies and updates take: JSON text in, object text and managed fields text out.
//!
//! `cargo bench -p windlass-apply --bench apply` measures a small Deployment; with a directory as
//! argument (`-- DIRECTORY`) every `*.json` in it that is an object of a built-in kind. Each line
//! gives the best of thirty runs, because anything else measures the machine's other work.

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

mod writes;

use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 30;
const REPEATS: u32 = 50;

fn main() {
    writes::run(time);
}

fn time(name: &str, work: &mut dyn FnMut()) {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..REPEATS {
            work();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e6 / f64::from(REPEATS));
    }
    println!("  {name:30} {best:9.1} us");
}
