//! Runs untrusted Python eval functions in a WebAssembly sandbox.
//!
//! The guest (`guest/`) is CPython compiled to WebAssembly, with no access to files, network, environment, clock,
//! processes or threads. The engine limits time and memory. Validating a function's syntax (`validate`) only gives
//! authors early errors: it is not a security boundary.

mod adopt;
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
mod modules;
mod stream;
mod transcode;
mod validate;
mod worker;

pub use adopt::{
    AdoptError, AdoptRequest, AdoptedFunction, FindModule, Framework, ProjectModule, adopt, helper_name,
    unavailable_reason,
};
pub use arrow::{
    ArrowBatch, ArrowBatches, ArrowColumns, ArrowError, ArrowRows, ArrowTraces, FILE_MAGIC, STREAM_MAGIC, TextColumn,
    read_arrow,
};
pub use doctor::{GuaranteeCheck, check_guarantees};
pub use engine::Sandbox;
pub use error::SandboxError;
pub use function::{Finding, Function, Rule};
pub use functions::FunctionRunner;
pub use guest::Guest;
pub use lines::{
    Input, InputError, Lines, MAX_BATCH_BYTES, MAX_BATCH_TRACES, MAX_TRACE_BYTES, Position, Unit, read_lines,
};
pub use memory::RestoreMethod;
pub use modules::OPTIONAL_MODULES;
pub use stream::{Judged, JudgementStream, StreamError, Task};
pub use validate::{
    FindHelper, MAX_SOURCE_BYTES, ModuleOutline, ProjectRules, display_source, outline, validate, validate_with,
};

/// The state that executions of different traces may share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Every trace starts with the same Python memory, byte for byte, as if it were judged alone.
    #[default]
    Fresh,
    /// Each trace gets its own namespace in a Python that earlier traces used. Its memory is restored after an error.
    Shared,
}
