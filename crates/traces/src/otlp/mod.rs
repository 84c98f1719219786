//! OpenTelemetry exports: JSON of SDKs, collectors and Tempo, and protobuf.

mod collector;
mod json;
mod protobuf;

use crate::parts::TraceParts;
use crate::piece::RefusedItem;

pub(crate) use collector::SpanCollector;
pub(crate) use json::{is_span, read_span};
pub use json::{read_json, read_value};
pub use protobuf::{convert_logs, convert_traces, read_logs_protobuf, read_protobuf, read_traces_protobuf};

/// The spans of each trace, and the items that could not be read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedSpans {
    /// In order of first appearance.
    pub traces: Vec<TraceParts>,
    pub refused: Vec<RefusedItem>,
}

/// Why the input could not be read at all. A lower-case fragment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(pub String);
