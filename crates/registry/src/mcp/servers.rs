//! Several MCP servers as one set of tools.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use karat_core::port::{Pending, ToolOutcome, ToolRunner};
use karat_core::registry::{Registry, Tool};
use karat_core::source::nearest;
use serde_json::{Map, Value};

use super::config::NamedServer;
use super::outcome::failure;
use super::server::{McpError, McpProblem, McpServer};

/// All servers of a run; each tool is on exactly one of them.
pub struct McpServers {
    servers: Vec<McpServer>,
    registry: Registry,
    /// Which server has a tool.
    homes: HashMap<String, usize>,
}

impl McpServers {
    /// Connects to all servers at once, each within the time limit, and lists their tools.
    pub async fn connect(targets: Vec<NamedServer>, limit: Duration) -> Result<Self, McpError> {
        let connecting = targets.into_iter().map(|target| async move {
            let server = McpServer::connect(target, limit).await?;
            let tools = server.tools().await?;
            Ok((server, tools))
        });
        let connected: Vec<(McpServer, Vec<Tool>)> =
            // The first in order is told, not the first in time.
            join_all(connecting).await.into_iter().collect::<Result<_, _>>()?;
        let mut all = Self { servers: Vec::new(), registry: Registry::default(), homes: HashMap::new() };
        for (server, tools) in connected {
            for tool in tools {
                if let Some(home) = all.homes.insert(tool.name.clone(), all.servers.len()) {
                    let (name, other) = (&tool.name, all.servers[home].name());
                    let problem = McpProblem::Other(format!("has the tool '{name}', which '{other}' has too"));
                    return Err(McpError { server: server.name().to_owned(), problem });
                }
                all.registry.add(tool).ok();
            }
            all.servers.push(server);
        }
        Ok(all)
    }

    /// Returns the tools of all servers, in the servers' order.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}

impl ToolRunner for McpServers {
    fn call<'a>(&'a self, tool: &'a str, arguments: &'a Map<String, Value>) -> Pending<'a, ToolOutcome> {
        Box::pin(async move {
            if let Some(home) = self.homes.get(tool) {
                return self.servers[*home].call(tool, arguments).await;
            }
            let near = nearest(tool, &self.registry.names()).map(|near| format!(": did you mean '{near}'?"));
            failure(format!("no MCP server has the tool '{tool}'{}", near.unwrap_or_default()))
        })
    }
}
