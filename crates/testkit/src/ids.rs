//! Identifiers that are known beforehand.

use std::sync::atomic::{AtomicU64, Ordering};

use karat_core::port::Ids;

/// Counts up: the first id ends in 1, the next in 2, each of the form that real ids have.
#[derive(Debug, Default)]
pub struct FixedIds {
    given: AtomicU64,
}

impl FixedIds {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the id that the `number`-th call gets, from 1.
    pub fn nth(number: u64) -> String {
        format!("00000000-0000-7000-8000-{number:012}")
    }
}

impl Ids for FixedIds {
    fn run_id(&self) -> String {
        Self::nth(self.given.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
