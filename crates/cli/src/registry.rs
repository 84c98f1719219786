//! The tools that the settings name, and who runs them.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use karat_agents::ToolExecution;
use karat_core::registry::{Registry, Unknown};
use karat_registry::{McpServers, RegistryCommand};

use crate::config::ToolExecutor;
use crate::failure::Failure;
use crate::live::LiveTools;
use crate::printer::Printer;
use crate::settings::{Anchored, PathSetting, Settings};

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

    /// Says what is not known of the tools.
    pub(crate) fn warn_of_unknown(&self, printer: &Printer) {
        let Some(registry) = &self.registry else {
            return;
        };
        let gaps = registry.gaps().iter().map(|gap| format!("{}: {}", gap.place, gap.what));
        let unknown = registry.tools().iter().flat_map(|tool| {
            let of_tool = |unknown: &Unknown| {
                format!(
                    "{}: the {} of '{}' is not known: {}",
                    unknown.place,
                    unknown.field.name(),
                    tool.name,
                    unknown.why
                )
            };
            tool.unknown.iter().map(of_tool)
        });
        let warnings: Vec<String> = gaps.chain(unknown).collect();
        warnings.iter().take(MOST_NAMED).for_each(|warning| printer.warn(warning));
        if let Some(more) = warnings.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
            printer.warn(&format!("{more} more things are not known of the tools; 'karat tools' lists them"));
        }
    }
}

/// Reads the registry, from its file or program or else from the MCP servers, and keeps the servers if they shall run tools.
pub(crate) async fn read_tools(settings: &mut Settings, printer: &Printer) -> Result<Tools, Failure> {
    let registry = match &settings.registry_command {
        _ if settings.live.is_registry => None,
        Some(command) => Some(run_registry_command(command, settings.timeout).await?),
        None => read_registry(&settings.tool_registry, &settings.here)?,
    };
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
        let known: Vec<&str> = servers.registry().names();
        settings.live.warnings(&known).iter().for_each(|warning| printer.warn(warning));
        if let Some(warning) = without_server(&registry, &known) {
            printer.warn(&warning);
        }
    }
    Ok(Tools { registry: Some(registry), servers: runs_tools.then(|| Arc::new(servers)) })
}

/// Lets a program of the project list the tools.
async fn run_registry_command(
    command: &Anchored<RegistryCommand>,
    limit: std::time::Duration,
) -> Result<Registry, Failure> {
    let listed = command.value.run(&command.base, limit).await;
    listed.map_err(|failure| {
        let program = command.value.command.first().map(String::as_str).unwrap_or_default();
        Failure::invalid(format!("cannot list the tools with '{program}': {}", failure.what)).quote(failure.stderr)
    })
}

/// Says which tools a model is offered that nobody can run.
fn without_server(registry: &Registry, known: &[&str]) -> Option<String> {
    let names = registry.names().into_iter().filter(|name| !known.contains(name));
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

/// Reads the project's own registry; a default that is not there is as if it were not set.
fn read_registry(setting: &PathSetting, here: &Path) -> Result<Option<Registry>, Failure> {
    if !setting.given && !setting.path.exists() {
        return Ok(None);
    }
    karat_registry::read_path(&setting.path, here)
        .map(Some)
        .map_err(|error| Failure::invalid(format!("cannot read the tool registry {}: {error}", setting.path.display())))
}

/// Tells whether a registry was read and holds nothing: with it, whatever is said of all tools would be true.
pub(crate) fn is_empty(registry: &Registry) -> bool {
    registry.tools().is_empty() && registry.gaps().is_empty()
}
