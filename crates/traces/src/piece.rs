//! The items that a source yields.

use jiff::Timestamp;
use karat_core::rating::Rating;

use crate::format::TraceFormat;
use crate::parts::TraceParts;

/// A whole trace or some spans of one.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Whole(Box<ImportedTrace>),
    /// More spans of the same trace may follow, from this or another source.
    Parts(Box<TraceParts>),
}

/// A whole trace.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedTrace {
    pub format: TraceFormat,
    pub trace_id: String,
    /// The document as JSON text. A trace document in the input is kept byte for byte.
    pub document: String,
    /// The unmodified input.
    pub raw: Vec<u8>,
    pub feedback: Vec<SourceFeedback>,
}

/// Feedback recorded in the source: an annotation or a reward.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceFeedback {
    /// The author if the source names one, else the name of the source's format.
    pub author: String,
    pub rating: Rating,
    pub note: Option<String>,
    /// The time, if the source records it.
    pub created_at: Option<Timestamp>,
}

/// An item that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedItem {
    /// The location within the file: `line 3`, `item 12`, `trace 4bf9…, span 00f0…`.
    pub location: String,
    /// A lower-case fragment.
    pub message: String,
}
