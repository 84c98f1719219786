//! Live MCP servers: lists and calls their tools.

mod config;
mod http;
mod http_client;
mod message_limit;
mod outcome;
mod server;
mod servers;

pub use config::{McpServerConfig, NamedServer, ShortFormError, read_mcp_servers};
pub use message_limit::MessageLimit;
pub use server::{McpError, McpProblem, McpServer, mcp_location};
pub use servers::McpServers;
