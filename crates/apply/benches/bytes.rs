//! How much memory applies and updates ask for, each byte counted as often as it is asked for.
//!
//! `cargo bench -p windlass-apply --bench bytes` takes the same arguments as the benchmark of
//! times, does the same writes, and counts one of them after some others: what is kept from one
//! write to the next is there by then.

#![allow(clippy::print_stdout, reason = "the figures are what it is for")]

mod writes;

/// Writes before the one that is counted.
const BEFORE: usize = 3;

fn main() {
    writes::run(count);
}

fn count(name: &str, work: &mut dyn FnMut()) {
    for _ in 0..BEFORE {
        work();
    }
    let asked = allocation_counter::measure(work);
    println!(
        "  {name:30} {:9} bytes in {} pieces",
        asked.bytes_total, asked.count_total
    );
}
