//! The tool registry: tool definitions from source files, JSON, commands and MCP servers.
//!
//! Never runs a project's code to find its tools, unless the configuration names a command that lists them.

mod command;
mod export_script;
mod field_map;
mod files;
mod json;
mod mcp;
mod reader;
mod source;

pub use command::{CommandFailure, RegistryCommand};
pub use export_script::{ScriptLanguage, export_script};
pub use json::{RegistryError, read_json};
pub use mcp::{
    McpError, McpProblem, McpServer, McpServerConfig, McpServers, MessageLimit, NamedServer, ShortFormError,
    mcp_location, read_mcp_servers,
};
pub use source::{find_tool_files, read_files, read_path};
