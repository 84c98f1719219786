//! Combines the tools of several MCP servers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use karat_cases::registry::{Gap, GapKind, Registry, Tool};
use karat_core::port::{BoxFuture, ToolOutcome, ToolRunner, ToolUnavailable};
use karat_json::nearest;
use serde_json::{Map, Value};

use super::config::NamedServer;
use super::outcome::failure;
use super::server::{McpError, McpProblem, McpServer};

/// All servers of a run. Each tool belongs to exactly one server.
pub struct McpServers {
    servers: Vec<McpServer>,
    registry: Registry,
    /// Indexes of servers by tool name.
    server_indexes: HashMap<String, usize>,
}

impl McpServers {
    /// Connects to all servers concurrently, each within the time limit, and lists their tools. Calls `on_ready` with
    /// the name of each server that has answered or failed.
    pub async fn connect(
        targets: Vec<NamedServer>,
        limit: Duration,
        on_ready: &(dyn Fn(&str) + Sync),
    ) -> Result<Self, McpError> {
        let connecting = targets.into_iter().map(|target| connect(target, limit, on_ready));
        let connected: Vec<(McpServer, Vec<Tool>)> =
            // Report the first failure in configuration order.
            join_all(connecting).await.into_iter().collect::<Result<_, _>>()?;
        let mut all = Self { servers: Vec::new(), registry: Registry::default(), server_indexes: HashMap::new() };
        for (server, tools) in connected {
            for tool in tools {
                if let Some(index) = all.server_indexes.insert(tool.name.clone(), all.servers.len()) {
                    let (name, other) = (&tool.name, all.servers[index].name());
                    let problem = duplicate_tool(name, other);
                    return Err(McpError { server: server.name().to_owned(), problem });
                }
                all.registry.add(tool).ok();
            }
            all.servers.push(server);
        }
        Ok(all)
    }

    /// Lists the tools of all servers and disconnects. A server that fails is a gap. Calls `on_ready` as [`Self::connect`]
    /// does.
    pub async fn list(targets: Vec<NamedServer>, limit: Duration, on_ready: &(dyn Fn(&str) + Sync)) -> Registry {
        let locations: Vec<_> = targets.iter().map(NamedServer::location).collect();
        let results = join_all(targets.into_iter().map(|target| connect(target, limit, on_ready))).await;
        let mut registry = Registry::default();
        for (location, result) in locations.into_iter().zip(results) {
            let gap = |problem: McpProblem| Gap {
                kind: GapKind::Broken,
                location: location.clone(),
                message: format!("the server {problem}"),
            };
            match result {
                Ok((_, tools)) => {
                    for tool in tools {
                        let name = tool.name.clone();
                        if let Err(other) = registry.add(tool) {
                            let other = other.location.as_ref().map(ToString::to_string).unwrap_or_default();
                            registry.add_gap(gap(duplicate_tool(&name, &other)));
                        }
                    }
                }
                Err(error) => registry.add_gap(gap(error.problem)),
            }
        }
        registry
    }

    /// Returns the tools of the server with this name.
    pub fn tools_of(self: &Arc<Self>, server: &str) -> Option<Arc<dyn ToolRunner>> {
        let index = self.servers.iter().position(|each| each.name() == server)?;
        Some(Arc::new(ServerTools { servers: Arc::clone(self), index }))
    }

    /// Returns the tools of all servers, in configuration order.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}

/// The tools of one of several servers.
struct ServerTools {
    servers: Arc<McpServers>,
    /// The index of the server.
    index: usize,
}

impl ToolRunner for ServerTools {
    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolUnavailable>> {
        Box::pin(self.servers.servers[self.index].call(tool, arguments))
    }
}

async fn connect(
    target: NamedServer,
    limit: Duration,
    on_ready: &(dyn Fn(&str) + Sync),
) -> Result<(McpServer, Vec<Tool>), McpError> {
    let name = target.name.clone();
    let connecting = async {
        let server = McpServer::connect(target, limit).await?;
        let tools = server.tools().await?;
        Ok((server, tools))
    };
    let connected = connecting.await;
    on_ready(&name);
    connected
}

fn duplicate_tool(tool: &str, other: &str) -> McpProblem {
    McpProblem::Other(format!("has a tool '{tool}' that '{other}' also has"))
}

impl ToolRunner for McpServers {
    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolUnavailable>> {
        Box::pin(async move {
            if let Some(index) = self.server_indexes.get(tool) {
                return self.servers[*index].call(tool, arguments).await;
            }
            let suggestion =
                nearest(tool, &self.registry.names()).map(|suggestion| format!(": did you mean '{suggestion}'?"));
            Ok(failure(format!("no MCP server has the tool '{tool}'{}", suggestion.unwrap_or_default())))
        })
    }
}
