//! How much is taken.

use std::time::Duration;

/// Bounds of what is taken from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long a request may be, packed and unpacked; SDKs send no more by themselves.
    pub request_bytes: usize,
    /// How much of all requests is in memory at once; who comes then is asked to come again.
    pub total_bytes: usize,
    /// How long nothing may come of a request that has begun.
    pub pause: Duration,
    /// How long a request may take to arrive.
    pub arrival: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_bytes: 64 << 20,
            total_bytes: 256 << 20,
            pause: Duration::from_secs(15),
            arrival: Duration::from_mins(1),
        }
    }
}
