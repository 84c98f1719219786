//! Converts traces of other programs into trace documents, `karat_core::document`.
//!
//! A source yields whole traces (message logs, exports) or spans, and more spans may arrive later. The spans of a trace
//! are collected in [`TraceParts`], which can be merged in any order and any number of times. The document is assembled
//! again whenever spans are added.

mod adk;
mod assemble;
mod claude_code;
mod codex;
mod deepeval;
mod detect;
mod format;
mod gzip;
mod inspect;
pub mod jaeger;
mod karat;
mod langfuse;
mod langfuse_api;
mod langsmith;
mod messages;
mod mlflow;
mod openai_agents;
mod otel_ids;
pub mod otlp;
mod parts;
mod piece;
mod rating;
mod read;
mod swe_agent;
mod tau2_bench;
mod tau_bench;
mod time;
mod trace_ids;
mod values;
mod vocabulary;
mod zip;

pub use assemble::{AssembledTrace, UNREAD_CALLS_KEY, assemble};
pub use detect::EXPECTED_CONTENT;
pub use format::TraceFormat;
pub use langfuse_api::{LangfuseApi, LangfuseError, LangfuseKeys, LangfusePage, LangfusePages, resume_from};
pub use parts::{LogEvent, Role, Span, SpanEvent, TraceParts};
pub use piece::{ImportedTrace, Piece, RefusedItem, SourceFeedback};
pub use read::{ReadError, TraceReader, read};
