//! Takes what others send over HTTP.
//!
//! [`otlp_router`] takes OpenTelemetry's spans and log records and gives them to a [`TraceSink`]. Whoever is told that
//! they were taken can rely on it: the answer is sent after the sink has stored them.

mod otlp;
mod serve;
mod sink;

pub use otlp::{Limits, otlp_router};
pub use serve::{Ending, serve};
pub use sink::TraceSink;
