//! The tools that the settings name, and who runs them.

use std::fmt::Write as _;
use std::sync::Arc;

use karat_agents::ToolExecution;
use karat_core::registry::Registry;
use karat_registry::McpServers;

use crate::config::ToolExecutor;
use crate::failure::Failure;
use crate::live::LiveTools;
use crate::load::read_setting;
use crate::printer::Printer;
use crate::settings::{PathSetting, Settings};

/// How many tools a warning names.
const MOST_NAMED: usize = 5;

/// What is known of the agent's tools.
pub(crate) struct Tools {
    /// Without one, staleness is unknown.
    pub(crate) registry: Option<Registry>,
    /// The servers that run tools, if they shall; they end with this.
    servers: Option<Arc<McpServers>>,
}

impl Tools {
    /// Returns how a model's calls are answered.
    pub(crate) fn execution(&self, live: &LiveTools) -> ToolExecution {
        match &self.servers {
            Some(servers) => {
                ToolExecution::Live { runner: Arc::clone(servers) as Arc<_>, allowed: live.allowed.clone() }
            }
            None => ToolExecution::Stubs,
        }
    }
}

/// Reads the registry, from its file or else from the MCP servers, and keeps the servers if they shall run tools.
pub(crate) async fn read_tools(settings: &mut Settings, printer: &Printer) -> Result<Tools, Failure> {
    let registry = if settings.live.is_registry { None } else { read_registry(&settings.tool_registry, printer)? };
    let runs_tools = settings.live.executor == ToolExecutor::Mcp;
    if settings.live.has_allow_list && !runs_tools {
        printer.warn("'allowTools' has no effect: no tool is run unless 'toolExecution' is \"mcp\"");
    }
    if settings.live.servers.is_empty() || (registry.is_some() && !runs_tools) {
        return Ok(Tools { registry, servers: None });
    }
    let targets = settings.live.targets(&settings.variables, &mut settings.redactor);
    printer.keep_secret(settings.redactor.clone());
    let servers = McpServers::connect(targets?, settings.timeout).await.map_err(|error| {
        let message = error.to_string();
        let (message, said) = message.split_once('\n').unwrap_or((&message, ""));
        Failure::invalid(message).quote(said)
    })?;
    let registry = registry.unwrap_or_else(|| servers.registry().clone());
    if runs_tools {
        let known: Vec<&str> = servers.registry().tools.iter().map(|tool| tool.name.as_str()).collect();
        settings.live.warnings(&known).iter().for_each(|warning| printer.warn(warning));
        if let Some(warning) = without_server(&registry, &known) {
            printer.warn(&warning);
        }
    }
    Ok(Tools { registry: Some(registry), servers: runs_tools.then(|| Arc::new(servers)) })
}

/// Says which tools a model is offered that nobody can run.
fn without_server(registry: &Registry, known: &[&str]) -> Option<String> {
    let names = registry.tools.iter().map(|tool| tool.name.as_str()).filter(|name| !known.contains(name));
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    let more = names.len().saturating_sub(MOST_NAMED);
    let mut list = names.get(..names.len() - more).filter(|names| !names.is_empty())?.join(", ");
    if more > 0 {
        let _ = write!(list, " and {more} more");
    }
    Some(format!(
        "no MCP server has {list} of the tool registry, so calls fail; a registry in a file is offered instead of the \
         servers' own tools"
    ))
}

fn read_registry(setting: &PathSetting, printer: &Printer) -> Result<Option<Registry>, Failure> {
    let shown = setting.path.display();
    let is_json = setting.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if !is_json && setting.path.exists() {
        let message = format!("{shown} is not read: this version of karat reads tool registries as JSON only");
        printer.warn(&message);
        return Ok(None);
    }
    let Some(text) = read_setting(setting, "the tool registry")? else {
        return Ok(None);
    };
    karat_registry::read_json(&text)
        .map(Some)
        .map_err(|error| Failure::invalid(format!("cannot read the tool registry {shown}: {error}")))
}
