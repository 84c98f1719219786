//! The pure core of karat: cases, tokens, assertions, verdicts, results, and the ports that other crates implement.
//!
//! This crate does not use files, the network, the clock, the environment or an async runtime.

pub mod answers;
pub mod assertion;
pub mod case;
pub mod case_list;
pub mod chat;
pub mod conversation;
pub mod cost;
pub mod csv;
pub mod details;
pub mod diff;
pub mod document;
pub mod event;
pub mod exit;
pub mod gate;
mod json_schema;
pub mod judgement;
pub mod line_diff;
pub mod lint;
pub mod outcome;
pub mod port;
pub mod rating;
pub mod redact;
pub mod registry;
pub mod regression;
pub mod result;
pub mod rubric;
pub mod shard;
pub mod similarity;
pub mod staleness;
pub mod statistics;
pub mod stored;
pub mod token;
pub mod tokenizer;
pub mod trace;
pub mod trials;
pub mod turn_details;
