//! Tests of live MCP servers, real and misbehaving, and of reading tools from sources.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "test helpers may panic")]

mod everything;
mod failing_servers;
mod filesystem;
mod forms;
mod http;
mod libraries;
mod listing;
mod processes;
mod shapes;
mod sources;
mod support;
