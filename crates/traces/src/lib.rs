//! Reads traces that other programs wrote into the one trace shape, `karat_core::document`.
//!
//! A source gives whole traces (message logs, exports) or spans, of which more may come later. Spans of one trace are
//! gathered in [`TraceParts`], which can be merged in any order and any number of times, and are assembled to a document
//! anew whenever there are more.

mod assemble;
mod chat;
mod conversation;
mod detect;
mod gzip;
mod identifier;
mod identity;
pub mod jaeger;
mod json;
mod karat;
mod kind;
mod langfuse;
mod langfuse_api;
mod langsmith;
mod messages;
pub mod otlp;
mod parts;
mod piece;
mod rating;
mod read;
mod tau_bench;
mod time;
mod values;
mod vocabulary;

pub use assemble::{Assembled, assemble};
pub use detect::LOOKED_FOR;
pub use kind::Kind;
pub use langfuse_api::{LangfuseApi, LangfuseError, LangfuseKeys, LangfusePage, LangfusePages, resume_from};
pub use parts::{LogEvent, Role, Span, SpanEvent, TraceParts};
pub use piece::{Imported, Piece, Refused, SourceFeedback};
pub use read::{ReadError, Reading, read};
