//! Live MCP servers: which tools they have, and the calling of these tools.

mod config;
mod http;
mod lines;
mod outcome;
mod process;
mod server;
mod servers;

pub use config::{McpServerConfig, NamedServer, read_mcp_servers};
pub(crate) use process::ServerProcess;
pub use process::end_servers;
pub(crate) use server::not_found;
pub use server::{McpError, McpProblem, McpServer, mcp_place};
pub use servers::McpServers;
