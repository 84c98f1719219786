//! State sources and hooks: captures the state of systems behind an agent, and runs what prepares and cleans them up.
//!
//! A source or a hook is a program, a URL, a file or a tool of an MCP server. Each call has a time limit of its own; a
//! program is killed with its children.

mod call;
mod config;
mod hooks;
mod sources;

pub use config::{HookConfig, HooksConfig, McpToolCall, SourceConfig, SourceForm, SourceOrigin};
pub use hooks::ProjectHooks;
pub use sources::{ProjectSources, Source};
