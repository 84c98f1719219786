//! A clock that stands still.

use jiff::Timestamp;
use karat_core::port::Clock;

/// Tells the same time for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedClock(pub Timestamp);

impl FixedClock {
    /// Stands still at a time like `2026-01-02T03:04:05Z`.
    pub fn at(time: &str) -> Self {
        Self(time.parse().expect("a time that a test fixes is in RFC 3339 form"))
    }
}

impl Default for FixedClock {
    /// Stands still at the second of January 2026.
    fn default() -> Self {
        Self::at("2026-01-02T03:04:05Z")
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}
