//! What is known of an agent's tools: the contract of their descriptions, overlaps, the lock, coverage by cases, and
//! which tools are confused with each other.
//!
//! Pure: reads no sources and touches no files. Which tools there are is told by a registry (`karat_core::registry`).

pub mod confusion;
pub mod contract;
pub mod coverage;
pub mod lock;
pub mod overlap;
pub mod similarity;
pub mod tool_list;
