//! Analyses of an agent's tools: the contract of their descriptions, overlaps, the lock, coverage by cases, and
//! confusion.
//!
//! Pure: reads no sources and does no I/O. The tools come from a registry (`karat_cases::registry`).

pub mod confusion;
pub mod contract;
pub mod coverage;
pub mod lock;
pub mod overlap;
pub mod similarity;
pub mod tool_list;
