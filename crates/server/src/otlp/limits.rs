//! Limits for requests.

use std::time::Duration;

/// Size and time limits for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a request, before and after decompression; above the default limits of SDKs.
    pub max_request_bytes: usize,
    /// Maximum memory of all requests in progress; further requests are refused and may be retried.
    pub max_total_bytes: usize,
    /// Maximum time between two chunks of a request.
    pub idle_timeout: Duration,
    /// Maximum time to receive a request.
    pub request_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_request_bytes: 64 << 20,
            max_total_bytes: 256 << 20,
            idle_timeout: Duration::from_secs(15),
            request_timeout: Duration::from_mins(1),
        }
    }
}
