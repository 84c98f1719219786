//! The pure core of karat: traces, assertions, verdicts, results, and the ports that other crates implement.
//!
//! This crate does not use files, the network, the clock, the environment or an async runtime.

pub mod answers;
pub mod assertion;
pub mod case_list;
pub mod chat;
pub mod conversation;
pub mod cost;
pub mod details;
pub mod diff;
pub mod document;
pub mod event;
pub mod exit;
pub mod gate;
pub mod judgement;
pub mod line_diff;
pub mod outcome;
pub mod port;
pub mod rating;
pub mod redact;
pub mod result;
pub mod rubric;
pub mod run_report;
pub mod security;
pub mod shard;
pub mod simulated_user;
pub mod staleness;
pub mod state;
pub mod statistics;
pub mod stored;
pub mod tokenizer;
pub mod trace;
pub mod trials;
pub mod turn_details;
pub mod user_prompt;
