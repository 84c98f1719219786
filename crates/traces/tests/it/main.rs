//! What comes of real exports, of each vocabulary and kind of source, of servers, and of what is broken.

mod exports;
mod fixture;
mod formats;
mod hostile;
mod joining;
mod langfuse;
mod langfuse_api;
mod langsmith;
mod messages;
mod properties;
mod reading;
mod spans;
mod tau_bench;
mod vocabularies;
