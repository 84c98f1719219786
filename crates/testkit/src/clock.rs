//! A fixed clock.

use jiff::Timestamp;
use karat_core::port::Clock;

/// Always returns the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedClock(pub Timestamp);

impl FixedClock {
    /// Creates a clock with a time such as `2026-01-02T03:04:05Z`.
    pub fn at(time: &str) -> Self {
        Self(time.parse().expect("valid RFC 3339 time"))
    }
}

impl Default for FixedClock {
    /// 2026-01-02T03:04:05Z.
    fn default() -> Self {
        Self::at("2026-01-02T03:04:05Z")
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        self.0
    }
}
