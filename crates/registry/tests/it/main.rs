//! Live MCP servers, real ones that nobody here wrote and rude ones; sources that tools are read from.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod everything;
mod filesystem;
mod http;
mod javascript;
mod javascript_shapes;
mod javascript_values;
mod listing;
mod processes;
mod python;
mod python_changes;
mod python_declarations;
mod rude;
mod support;
