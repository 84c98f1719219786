//! Reads traces that other programs wrote into the one trace shape, `karat_core::document`.
//!
//! A source gives whole traces (message logs, exports) or spans, of which more may come later. Spans of one trace are
//! gathered in [`TraceParts`], which can be merged in any order and any number of times, and are assembled to a document
//! anew whenever there are more.

mod kind;
mod parts;
mod piece;

pub use kind::Kind;
pub use parts::{LogEvent, Role, Span, SpanEvent, TraceParts};
pub use piece::{Imported, Piece, Refused, SourceFeedback};
