//! OTLP over HTTP: spans at `/v1/traces`, log records at `/v1/logs`.
//!
//! A request is read (`body`), decompressed (`decompress`), parsed (by `karat_traces::otlp`) and stored by the sink.
//! Only then is it acknowledged, in the encoding of the request (`response`). The memory of all requests is limited
//! (`memory`).

mod body;
mod decompress;
mod encoding;
mod limits;
mod memory;
mod response;
mod router;

pub use limits::Limits;
pub use router::otlp_router;

/// The kind of data in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Traces,
    Logs,
}

impl Signal {
    /// Returns the name of one item.
    fn item_name(self) -> &'static str {
        match self {
            Signal::Traces => "span",
            Signal::Logs => "log record",
        }
    }
}
