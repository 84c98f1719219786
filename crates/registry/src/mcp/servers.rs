//! Several MCP servers as one set of tools.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use karat_core::port::{Pending, ToolOutcome, ToolRunner};
use karat_core::registry::{Gap, GapKind, Registry, Tool};
use karat_json::nearest;
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
        let connecting = targets.into_iter().map(|target| connect(target, limit));
        let connected: Vec<(McpServer, Vec<Tool>)> =
            // The first in order is told, not the first in time.
            join_all(connecting).await.into_iter().collect::<Result<_, _>>()?;
        let mut all = Self { servers: Vec::new(), registry: Registry::default(), homes: HashMap::new() };
        for (server, tools) in connected {
            for tool in tools {
                if let Some(home) = all.homes.insert(tool.name.clone(), all.servers.len()) {
                    let (name, other) = (&tool.name, all.servers[home].name());
                    let problem = has_too(name, other);
                    return Err(McpError { server: server.name().to_owned(), problem });
                }
                all.registry.add(tool).ok();
            }
            all.servers.push(server);
        }
        Ok(all)
    }

    /// Lists the tools of all servers and lets the servers go; one that fails is a gap, and hides no other's tools.
    pub async fn list(targets: Vec<NamedServer>, limit: Duration) -> Registry {
        let places: Vec<_> = targets.iter().map(NamedServer::place).collect();
        let listed = join_all(targets.into_iter().map(|target| connect(target, limit))).await;
        let mut registry = Registry::default();
        for (place, listed) in places.into_iter().zip(listed) {
            let gap = |what: McpProblem| Gap {
                kind: GapKind::Broken,
                place: place.clone(),
                what: format!("the server {what}"),
            };
            match listed {
                Ok((_, tools)) => {
                    for tool in tools {
                        let name = tool.name.clone();
                        if let Err(other) = registry.add(tool) {
                            let other = other.place.as_ref().map(ToString::to_string).unwrap_or_default();
                            registry.add_gap(gap(has_too(&name, &other)));
                        }
                    }
                }
                Err(error) => registry.add_gap(gap(error.problem)),
            }
        }
        registry
    }

    /// Returns the tools of all servers, in the servers' order.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}

async fn connect(target: NamedServer, limit: Duration) -> Result<(McpServer, Vec<Tool>), McpError> {
    let server = McpServer::connect(target, limit).await?;
    let tools = server.tools().await?;
    Ok((server, tools))
}

fn has_too(tool: &str, other: &str) -> McpProblem {
    McpProblem::Other(format!("has the tool '{tool}', which '{other}' has too"))
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
