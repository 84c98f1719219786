//! OTLP over HTTP: spans at `/v1/traces`, log records at `/v1/logs`.
//!
//! A request is read (`body.rs`), unpacked (`unpack.rs`), understood (by `karat_traces::otlp`), stored by the sink, and only
//! then answered, in the encoding that it came in (`answer.rs`). How much of all that is in memory at once is bounded
//! (`room.rs`).

mod answer;
mod body;
mod encoding;
mod limits;
mod room;
mod router;
mod unpack;

pub use limits::Limits;
pub use router::otlp_router;

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Traces,
    Logs,
}

impl Signal {
    /// Returns what one of them is called.
    fn item(self) -> &'static str {
        match self {
            Signal::Traces => "span",
            Signal::Logs => "log record",
        }
    }
}
