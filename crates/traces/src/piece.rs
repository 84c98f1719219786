//! What comes out of a source.

use jiff::Timestamp;
use karat_core::rating::Rating;

use crate::kind::Kind;
use crate::parts::TraceParts;

/// A trace, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Whole(Box<Imported>),
    /// More of the same trace may come, from here or from elsewhere.
    Parts(Box<TraceParts>),
}

/// A whole trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    pub kind: Kind,
    pub trace_id: String,
    /// The document's JSON text; a document that was one already stays byte for byte.
    pub document: String,
    /// What the source said, as it said it.
    pub raw: Vec<u8>,
    pub feedback: Vec<SourceFeedback>,
}

/// What a person said, by the source: an annotation, or a reward.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceFeedback {
    /// Who, where the source says; else the source's name.
    pub author: String,
    pub rating: Rating,
    pub note: Option<String>,
    /// When, where the source says.
    pub created_at: Option<Timestamp>,
}

/// What could not be read, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Within the file: `line 3`, `item 12`, `trace 4bf9…, span 00f0…`.
    pub place: String,
    /// A lower-case fragment.
    pub message: String,
}
