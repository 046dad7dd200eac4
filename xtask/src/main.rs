//! Generates the catalogue, runs the checks.
fn main() {}
