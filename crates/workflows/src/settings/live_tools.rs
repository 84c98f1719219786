//! Live tools: the MCP servers, the executor, and the allowed tools.

use std::collections::BTreeMap;

use karat_agents::{AllowedTools, expand_variables};
use karat_core::redact::Redactor;
use karat_json::nearest;
use karat_registry::{McpServerConfig, NamedServer};
use serde_json::Value;

use super::config::{AllowTools, Config, ToolExecutor};
use super::secrets::{fill_headers, redact_arguments};
use super::variables::{Variables, safe_environment};
use super::{Resolver, WithBase};
use crate::error::Error;

/// A server with variables that cannot be expanded.
pub(crate) struct UnusableServer {
    pub(crate) name: String,
    pub(crate) error: Box<Error>,
}

/// The settings of live tools.
#[derive(Debug)]
pub struct LiveTools {
    /// The servers with their names; variables are not expanded yet.
    pub servers: Vec<(String, WithBase<McpServerConfig>)>,
    /// `toolRegistryPath` is a server, not a file.
    pub is_registry: bool,
    pub executor: ToolExecutor,
    pub allowed: AllowedTools,
    /// `allowTools` is configured.
    pub has_allow_list: bool,
}

impl LiveTools {
    pub(crate) fn resolve(
        overrides: &Config,
        file: &Config,
        resolver: &Resolver<'_>,
        redactor: &Redactor,
    ) -> Result<Self, Error> {
        let mut servers = Vec::new();
        if let Some(WithBase { value, base }) =
            resolver.with_base(overrides.mcp_servers.clone(), file.mcp_servers.clone())
        {
            servers.extend(value.into_iter().map(|(name, value)| (name, WithBase { value, base: base.clone() })));
        }
        // A registry program on the command line overrides the path in the file.
        let of_file = file.tool_registry_path.clone().filter(|_| overrides.tool_registry.is_none());
        let path = resolver.with_base(overrides.tool_registry_path.clone(), of_file);
        let short = path.and_then(|path| {
            let config = McpServerConfig::parse_short_form(&path.value)?;
            Some((path, config))
        });
        let is_registry = short.is_some();
        if let Some((WithBase { value: text, base }, config)) = short {
            redactor.add_secrets_in("toolRegistryPath", &Value::from(text.as_str()));
            let value = config
                .map_err(|reason| Error::invalid(format!("invalid MCP server in 'toolRegistryPath': {reason}")))?;
            servers.insert(0, (text, WithBase { value, base }));
        }
        for (_, server) in &servers {
            if let McpServerConfig::Stdio { command, .. } = &server.value {
                redact_arguments(command, redactor);
            }
        }
        let executor = overrides.tool_execution.or(file.tool_execution).unwrap_or_default();
        if executor == ToolExecutor::Mcp && servers.is_empty() {
            return Err(Error::invalid("'toolExecution' is \"mcp\", but no MCP server is configured")
                .hint("add one to 'mcpServers', for example {\"files\": {\"command\": [\"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"]}}")
                .hint("or set 'toolRegistryPath' to mcp:stdio:COMMAND or mcp:URL"));
        }
        let allowed = overrides.allow_tools.clone().or_else(|| file.allow_tools.clone());
        let has_allow_list = allowed.is_some();
        let allowed = match allowed {
            Some(AllowTools::All(_)) => AllowedTools::All,
            Some(AllowTools::Named(names)) => AllowedTools::Named(names),
            None => AllowedTools::Named(Vec::new()),
        };
        Ok(Self { servers, is_registry, executor, allowed, has_allow_list })
    }

    /// Expands the variables of all servers and registers their values as secrets.
    pub(crate) fn targets(
        &self,
        variables: &Variables,
        redactor: &Redactor,
    ) -> Vec<Result<NamedServer, UnusableServer>> {
        let plain = safe_environment();
        let fill = |(name, server): &(String, WithBase<McpServerConfig>)| {
            let config = match &server.value {
                McpServerConfig::Stdio { command, env, cwd } => {
                    let mut all = plain.clone();
                    all.extend(fill_environment(name, env, &plain, variables, redactor)?);
                    McpServerConfig::Stdio { command: command.clone(), env: all, cwd: cwd.clone() }
                }
                McpServerConfig::Http { url, headers } => {
                    let headers = fill_headers(headers, variables, redactor)?.into_iter().collect();
                    McpServerConfig::Http { url: url.clone(), headers }
                }
            };
            Ok(NamedServer { name: name.clone(), config, base: server.base.clone() })
        };
        self.servers
            .iter()
            .map(|server| {
                fill(server).map_err(|error| UnusableServer { name: server.0.clone(), error: Box::new(error) })
            })
            .collect()
    }

    /// Returns warnings about the allow list.
    pub(crate) fn warnings(&self, known: &[&str]) -> Vec<String> {
        let AllowedTools::Named(names) = &self.allowed else {
            return Vec::new();
        };
        if names.is_empty() {
            let message = "'allowTools' is empty: every tool call is refused (\"*\" allows all)";
            return vec![message.to_owned()];
        }
        let unknown = names.iter().filter(|name| !known.contains(&name.as_str()));
        let message = |name: &String| match nearest(name, known) {
            Some(near) => format!("unknown tool '{name}' in 'allowTools': did you mean '{near}'?"),
            None => format!("unknown tool '{name}' in 'allowTools': no MCP server has it"),
        };
        unknown.map(message).collect()
    }
}

fn fill_environment(
    server: &str,
    env: &BTreeMap<String, String>,
    plain: &BTreeMap<String, String>,
    variables: &Variables,
    redactor: &Redactor,
) -> Result<BTreeMap<String, String>, Error> {
    let fill = |(name, value): (&String, &String)| {
        let expanded = expand_variables(value, &|name| variables.get(name))
            .map_err(|error| Error::invalid(format!("cannot set {name} for MCP server '{server}': {error}")))?;
        // Do not mask values such as the home folder, which would garble every path.
        let secrets = expanded.secrets.iter().filter(|secret| !plain.values().any(|value| value == *secret));
        secrets.for_each(|secret| redactor.add(secret));
        Ok((name.clone(), expanded.text))
    };
    env.iter().map(fill).collect()
}
