//! Runs untrusted Python eval functions, sealed off from everything.
//!
//! Python is CPython compiled to WebAssembly (`guest/`), and WebAssembly can do nothing but compute: no file, network,
//! environment, clock, process or thread is there to be reached. Time and memory are limited by the engine.
//! Reading a function's syntax first (`validate`) is a courtesy to its author, not what guards the host.

mod function;

pub use function::{Finding, Function, Rule};
pub use karat_core::judgement::{Conclusion, ErrorKind, EvalError, Judgement, Limits};

/// How far traces are kept apart from each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Isolation {
    /// Each trace has a namespace of its own, and Python is as new after anything that could outlive one.
    #[default]
    Namespace,
    /// Each trace has a Python of its own.
    Strict,
}
