//! What comes of real exports, of each vocabulary, and of what is broken.

mod exports;
mod formats;
mod hostile;
mod joining;
mod spans;
mod vocabularies;
//! What comes of real exports, of servers, and of broken and hostile input.

mod exports;
mod fixture;
mod langfuse;
mod langfuse_api;
mod langsmith;
mod messages;
mod properties;
mod reading;
mod tau_bench;
