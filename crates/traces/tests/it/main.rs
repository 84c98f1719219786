//! Imports of real exports, of every vocabulary, from servers, and of broken and hostile input.

mod adk;
mod deepeval;
mod exports;
mod fixture;
mod formats;
mod frameworks;
mod hostile;
mod joining;
mod langfuse;
mod langfuse_api;
mod langsmith;
mod messages;
mod peculiarities;
mod programs;
mod properties;
mod reading;
mod spans;
mod swe_agent;
mod tau_bench;
mod vocabularies;
