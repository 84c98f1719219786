//! Runs untrusted Python eval functions, sealed off from everything.
//!
//! Python is CPython compiled to WebAssembly (`guest/`), and WebAssembly can do nothing but compute: no file, network,
//! environment, clock, process or thread is there to be reached. Time and memory are limited by the engine.
//! Reading a function's syntax first (`validate`) is a courtesy to its author, not what guards the host.

mod arrow;
mod code;
mod doctor;
mod engine;
mod error;
mod frame;
mod function;
mod functions;
mod guest;
mod instance;
mod lines;
mod memory;
mod stream;
mod transcode;
mod validate;
mod worker;

pub use arrow::{
    ArrowBatch, ArrowBatches, ArrowColumns, ArrowError, ArrowRows, ArrowTraces, FILE_BEGINNING, STREAM_BEGINNING,
    Texts, read_arrow,
};
pub use doctor::{Trial, try_promises};
pub use engine::Sandbox;
pub use error::SandboxError;
pub use function::{Finding, Function, Rule};
pub use functions::Functions;
pub use guest::Guest;
pub use lines::{Input, Lines, NoText, Position, Unit, read_lines};
pub use stream::{Judged, JudgementStream, StreamError, Task};
pub use validate::{MOST_SOURCE, readable, validate};

/// How far traces are kept apart from each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each trace has a namespace of its own, and Python is as new after anything that could outlive one.
    #[default]
    Namespace,
    /// Each trace has a Python of its own.
    Strict,
}
