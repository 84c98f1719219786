//! Receives traces over HTTP.
//!
//! [`otlp_router`] accepts OpenTelemetry spans and log records and passes them to a [`TraceSink`]. A request is
//! acknowledged only after the sink has stored its content.

mod otlp;
mod serve;
mod sink;

pub use otlp::{Limits, otlp_router};
pub use serve::{Shutdown, serve};
pub use sink::TraceSink;
