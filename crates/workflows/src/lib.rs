//! The use cases of karat, one module each: a typed request and the context in, typed events on the way, a typed result or
//! error out.
//!
//! Joins the capabilities, so that the command line, the server and workers share one implementation. Knows no argument
//! parser, no terminal and no HTTP framework, and never prints.

pub mod agreement;
pub mod batch_writer;
pub mod context;
pub mod contradictions;
mod error;
mod event;
pub mod feedback;
mod hint;
mod notice;
pub mod settings;
pub mod stored_eval;
pub mod trace_filter;
pub mod trace_id;
pub mod traces;

pub use batch_writer::BatchWriter;
pub use context::Context;
pub use error::{Error, ErrorKind};
pub use event::EventSink;
pub use hint::Hint;
pub use notice::Notices;
pub use tokio_util::sync::CancellationToken;
