//! What karat knows of an agent's tools.
//!
//! Owns the reading of tool definitions and the connections to MCP servers, and must never run a project's source to
//! find its tools, unless the configuration names a program that lists them.

mod dump;
mod export_script;
mod field_map;
mod files;
mod json;
mod mcp;
mod reader;
mod source;

pub use dump::{CommandFailure, RegistryCommand};
pub use export_script::{ScriptLanguage, export_script};
pub use json::{RegistryError, read_json};
pub use mcp::{
    McpError, McpProblem, McpServer, McpServerConfig, McpServers, NamedServer, ShortFormError, mcp_place,
    read_mcp_servers,
};
pub use source::read_path;
