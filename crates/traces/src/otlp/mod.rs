//! OpenTelemetry's exports: as JSON, as people have it from SDKs, collectors and Tempo, and as protobuf.

mod gathered;
mod json;
mod protobuf;

use crate::parts::TraceParts;
use crate::piece::Refused;

pub(crate) use gathered::Gathered;
pub(crate) use json::is_span;
pub use json::{read_json, read_value};
pub use protobuf::{logs_of, read_logs_protobuf, read_protobuf, read_traces_protobuf, traces_of};

/// What was read: the spans of each trace, and what could not be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SpansRead {
    /// In the order in which their traces appear first.
    pub traces: Vec<TraceParts>,
    pub refused: Vec<Refused>,
}

/// Why nothing at all could be read. A lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);
