//! Compares generated functions' outcomes alone, after other traces, and on several threads, for `scripts/bench`.
//!
//!     isolation_bench FUNCTIONS
//!
//! Prints as JSON how many of them depend on other traces, in the default and in shared isolation.

#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a program for development")]

#[path = "../tests/it/comparison.rs"]
mod comparison;
#[path = "../tests/it/generator.rs"]
mod generator;

use std::sync::atomic::{AtomicU64, Ordering};

use karat_sandbox::{Guest, RestoreMethod, Sandbox};

fn main() {
    let functions: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let sandbox = Sandbox::open(&Guest::find(None).unwrap()).unwrap();
    let (next, different, shared) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= functions {
            return;
        }
        let comparison = comparison::compare(&sandbox, &generator::function(seed), &generator::traces(seed));
        if let Some(difference) = comparison.difference {
            different.fetch_add(1, Ordering::Relaxed);
            eprintln!("seed {seed}: {difference}");
        }
        shared.fetch_add(comparison.differs_when_shared.into(), Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    println!(
        r#"{{"functions": {functions}, "traces": {}, "different": {}, "differentWhenShared": {}, "method": "{}"}}"#,
        generator::TRACES,
        different.load(Ordering::Relaxed),
        shared.load(Ordering::Relaxed),
        RestoreMethod::detect().name()
    );
}
