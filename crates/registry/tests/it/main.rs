//! Live MCP servers, real ones that nobody here wrote and rude ones; sources that tools are read from.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod everything;
mod filesystem;
mod forms;
mod http;
mod libraries;
mod listing;
mod processes;
mod rude;
mod shapes;
mod sources;
mod support;
