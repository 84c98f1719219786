//! Reads traces that other programs wrote into the one trace shape, `karat_core::document`.
//!
//! A source gives whole traces (message logs, exports) or spans, of which more may come later. Spans of one trace are
//! gathered in [`TraceParts`], which can be merged in any order and any number of times, and are assembled to a document
//! anew whenever there are more.

mod assemble;
mod chat;
mod identifier;
pub mod jaeger;
mod json;
mod kind;
pub mod otlp;
mod parts;
mod piece;
mod time;
mod vocabulary;

pub use assemble::{Assembled, assemble};
pub use kind::Kind;
pub use parts::{LogEvent, Role, Span, SpanEvent, TraceParts};
pub use piece::{Imported, Piece, Refused, SourceFeedback};
