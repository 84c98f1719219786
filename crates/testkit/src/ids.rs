//! Predictable ids.

use std::sync::atomic::{AtomicU64, Ordering};

use karat_core::port::Ids;

/// Returns increasing ids in the form of real ones: the first ends in 1, the next in 2.
#[derive(Debug, Default)]
pub struct FixedIds {
    issued: AtomicU64,
}

impl FixedIds {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the id of the `number`-th call, counted from 1.
    pub fn nth(number: u64) -> String {
        format!("00000000-0000-7000-8000-{number:012}")
    }
}

impl Ids for FixedIds {
    fn run_id(&self) -> String {
        Self::nth(self.issued.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
