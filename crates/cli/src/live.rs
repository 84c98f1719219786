//! Live tools: which MCP servers there are, who runs tools, and which of them may run.

use std::collections::BTreeMap;

use karat_agents::{AllowedTools, expand_variables};
use karat_core::redact::Redactor;
use karat_json::nearest;
use karat_registry::{McpServerConfig, NamedServer, read_mcp_servers};
use serde_json::Value;

use crate::agent::{fill_headers, learn_arguments};
use crate::args::ConfigArgs;
use crate::config::{AllowTools, ConfigFile, ToolExecutor};
use crate::environment::{Variables, plain_environment};
use crate::failure::Failure;
use crate::settings::{Anchored, Resolver, read_flag};

/// What the settings say of live tools.
#[derive(Debug)]
pub(crate) struct LiveTools {
    /// By name, and with the folder that each is relative to; variables are not filled in yet.
    pub(crate) servers: Vec<(String, Anchored<McpServerConfig>)>,
    /// `toolRegistryPath` is a server, so no file is looked for.
    pub(crate) is_registry: bool,
    pub(crate) executor: ToolExecutor,
    pub(crate) allowed: AllowedTools,
    /// Somebody said which tools may run.
    pub(crate) has_allow_list: bool,
}

impl LiveTools {
    pub(crate) fn resolve(
        args: &ConfigArgs,
        file: &ConfigFile,
        resolver: &Resolver<'_>,
        redactor: &mut Redactor,
    ) -> Result<Self, Failure> {
        let flag = match &args.tools.mcp_servers {
            Some(text) => Some(read_flag("mcp-servers", text, read_mcp_servers, redactor)?),
            None => None,
        };
        let mut servers = Vec::new();
        if let Some(Anchored { value, base }) = resolver.anchored(flag, file.mcp_servers.clone()) {
            servers.extend(value.into_iter().map(|(name, value)| (name, Anchored { value, base: base.clone() })));
        }
        let path = args.tool_registry_path.as_ref().map(|path| path.to_string_lossy().into_owned());
        // A program on the command line lists the tools in place of what the file names.
        let of_file = file.tool_registry_path.clone().filter(|_| args.tool_registry.is_none());
        let path = resolver.anchored(path, of_file);
        let short = path.and_then(|path| {
            let config = McpServerConfig::read_short(&path.value)?;
            Some((path, config))
        });
        let is_registry = short.is_some();
        if let Some((Anchored { value: text, base }, config)) = short {
            redactor.learn("toolRegistryPath", &Value::from(text.as_str()));
            let value =
                config.map_err(|why| Failure::invalid(format!("'toolRegistryPath' is no MCP server: {why}")))?;
            servers.insert(0, (text, Anchored { value, base }));
        }
        for (_, server) in &servers {
            if let McpServerConfig::Stdio { command, .. } = &server.value {
                learn_arguments(command, redactor);
            }
        }
        let executor = match &args.tools.tool_execution {
            Some(name) => executor(name)?,
            None => file.tool_execution.unwrap_or_default(),
        };
        if executor == ToolExecutor::Mcp && servers.is_empty() {
            return Err(Failure::invalid("'toolExecution' is \"mcp\", but there is no MCP server to run tools")
                .hint("name one in 'mcpServers', for example {\"files\": {\"command\": [\"npx\", \"-y\", \"@modelcontextprotocol/server-filesystem\", \".\"]}}")
                .hint("or set 'toolRegistryPath' to mcp:stdio:COMMAND or mcp:URL"));
        }
        let split = |names: &String| {
            AllowTools::named(
                names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
            )
        };
        let allowed = args.tools.allow_tools.as_ref().map(split).or_else(|| file.allow_tools.clone());
        let has_allow_list = allowed.is_some();
        let allowed = match allowed {
            Some(AllowTools::All(_)) => AllowedTools::All,
            Some(AllowTools::Named(names)) => AllowedTools::Named(names),
            None => AllowedTools::Named(Vec::new()),
        };
        Ok(Self { servers, is_registry, executor, allowed, has_allow_list })
    }

    /// Returns the servers with their variables filled in, which are kept secret from here on; of one that cannot be
    /// filled in, its name and why.
    pub(crate) fn targets(
        &self,
        variables: &Variables,
        redactor: &mut Redactor,
    ) -> Vec<Result<NamedServer, (String, Failure)>> {
        let plain = plain_environment();
        let mut fill = |(name, server): &(String, Anchored<McpServerConfig>)| {
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
        self.servers.iter().map(|server| fill(server).map_err(|failure| (server.0.clone(), failure))).collect()
    }

    /// Returns what is odd about the list of tools that may run.
    pub(crate) fn warnings(&self, known: &[&str]) -> Vec<String> {
        let AllowedTools::Named(names) = &self.allowed else {
            return Vec::new();
        };
        if names.is_empty() {
            let message = "'allowTools' names no tool, so every call of one is refused (\"*\" allows all)";
            return vec![message.to_owned()];
        }
        let unknown = names.iter().filter(|name| !known.contains(&name.as_str()));
        let message = |name: &String| match nearest(name, known) {
            Some(near) => format!("'allowTools' names '{name}', which no MCP server has: did you mean '{near}'?"),
            None => format!("'allowTools' names '{name}', which no MCP server has"),
        };
        unknown.map(message).collect()
    }
}

fn fill_environment(
    server: &str,
    env: &BTreeMap<String, String>,
    plain: &BTreeMap<String, String>,
    variables: &Variables,
    redactor: &mut Redactor,
) -> Result<BTreeMap<String, String>, Failure> {
    let fill = |(name, value): (&String, &String)| {
        let expanded = expand_variables(value, &|name| variables.get(name))
            .map_err(|error| Failure::invalid(format!("the MCP server '{server}' cannot be given {name}: {error}")))?;
        // A home folder is no secret, and to mask it would garble every path.
        let secrets = expanded.secrets.iter().filter(|secret| !plain.values().any(|value| value == *secret));
        secrets.for_each(|secret| redactor.add(secret));
        Ok((name.clone(), expanded.text))
    };
    env.iter().map(fill).collect()
}

fn executor(name: &str) -> Result<ToolExecutor, Failure> {
    ToolExecutor::from_name(name).ok_or_else(|| {
        let failure = Failure::invalid(format!("nobody called '{name}' runs tools"));
        match nearest(name, &ToolExecutor::NAMES) {
            Some(near) => failure.hint(format!("did you mean '{near}'?")),
            None => failure.hint(format!("one of: {}", ToolExecutor::NAMES.join(", "))),
        }
    })
}
