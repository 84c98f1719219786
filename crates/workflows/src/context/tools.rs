//! The tools that the settings name, and who runs them.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use karat_agents::ToolExecution;
use karat_core::registry::{Gap, GapKind, Registry, ToolField, Unknown};
use karat_project::PathSetting;
use karat_registry::{McpServers, RegistryCommand, mcp_place};

use crate::error::Error;
use crate::notice::Notices;
use crate::settings::{Anchored, LiveTools, Settings, ToolExecutor, UnusableServer};

/// How many tools a warning names.
const MOST_NAMED: usize = 5;

/// What is known of the agent's tools.
pub struct Tools {
    /// Without one, staleness is unknown.
    pub registry: Option<Registry>,
    /// The servers that run tools, if they shall; they end with this.
    servers: Option<Arc<McpServers>>,
}

impl Tools {
    /// Returns how a model's calls are answered.
    pub fn execution(&self, live: &LiveTools) -> ToolExecution {
        match &self.servers {
            Some(servers) => {
                ToolExecution::Live { runner: Arc::clone(servers) as Arc<_>, allowed: live.allowed.clone() }
            }
            None => ToolExecution::Stubs,
        }
    }

    /// Says what is not known of the tools.
    pub fn warn_of_unknown(&self, notices: &dyn Notices) {
        let Some(registry) = &self.registry else {
            return;
        };
        let gaps = registry.gaps().iter().map(|gap| format!("{}: {}", gap.place, gap.what));
        let unknown = registry.tools().iter().flat_map(|tool| {
            let of_tool = |(field, unknown): (ToolField, &Unknown)| {
                let Unknown { place, why } = unknown;
                format!("{place}: the {} of '{}' is not known: {why}", field.name(), tool.name)
            };
            tool.unknowns().map(of_tool)
        });
        let warnings: Vec<String> = gaps.chain(unknown).collect();
        warnings.iter().take(MOST_NAMED).for_each(|warning| notices.warn(warning));
        if let Some(more) = warnings.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
            notices.warn(&format!("{more} more things are not known of the tools; 'karat tools' lists them"));
        }
    }
}

/// Reads the registry for a run, from its file or program or else from the MCP servers, and keeps the servers if they
/// shall run tools. All of them must be there.
pub async fn read_tools(settings: &Settings, notices: &dyn Notices) -> Result<Tools, Error> {
    let registry = own_registry(settings, notices).await?;
    if !asks_servers(settings, registry.as_ref()) {
        return Ok(Tools { registry, servers: None });
    }
    let targets = settings.live.targets(&settings.variables, &settings.redactor);
    let targets = targets.into_iter().collect::<Result<_, _>>().map_err(|unusable| *unusable.error)?;
    let servers = McpServers::connect(targets, settings.timeout).await.map_err(|error| {
        let message = error.to_string();
        let (message, said) = message.split_once('\n').unwrap_or((&message, ""));
        Error::invalid(message).quote(said)
    })?;
    let registry = registry.unwrap_or_else(|| servers.registry().clone());
    let runs_tools = settings.live.executor == ToolExecutor::Mcp;
    if runs_tools {
        warn_of_live_tools(settings, &registry, servers.registry(), notices);
    }
    Ok(Tools { registry: Some(registry), servers: runs_tools.then(|| Arc::new(servers)) })
}

/// Reads the registry for somebody who only looks at it: an MCP server that fails is a gap, and hides no other's tools.
pub async fn list_tools(settings: &Settings, notices: &dyn Notices) -> Result<Option<Registry>, Error> {
    let registry = own_registry(settings, notices).await?;
    if !asks_servers(settings, registry.as_ref()) {
        return Ok(registry);
    }
    let filled = settings.live.targets(&settings.variables, &settings.redactor);
    let mut targets = Vec::new();
    let mut gaps = Vec::new();
    for target in filled {
        match target {
            Ok(target) => targets.push(target),
            Err(UnusableServer { name, error }) => {
                gaps.push(Gap { kind: GapKind::Broken, place: mcp_place(&name), what: error.message });
            }
        }
    }
    let mut listed = McpServers::list(targets, settings.timeout).await;
    gaps.extend(listed.take_gaps());
    for gap in gaps {
        // As a whole: a secret of several lines is not found in one of them.
        let what = settings.redactor.text(&gap.what).into_owned();
        listed.add_gap(Gap { what, ..gap });
    }
    if registry.is_some() {
        // The servers only run tools, so that what they lack makes no gap in what is known of the tools.
        listed.gaps().iter().for_each(|gap| notices.gap(gap));
    }
    if settings.live.executor == ToolExecutor::Mcp && listed.gaps().is_empty() {
        warn_of_live_tools(settings, registry.as_ref().unwrap_or(&listed), &listed, notices);
    }
    Ok(Some(registry.unwrap_or(listed)))
}

/// Reads what the project itself says of its tools.
async fn own_registry(settings: &Settings, notices: &dyn Notices) -> Result<Option<Registry>, Error> {
    if settings.live.has_allow_list && settings.live.executor != ToolExecutor::Mcp {
        notices.warn("'allowTools' has no effect: no tool is run unless 'toolExecution' is \"mcp\"");
    }
    match &settings.registry_command {
        _ if settings.live.is_registry => Ok(None),
        Some(command) => run_registry_command(command, settings.timeout).await.map(Some),
        None => read_registry(&settings.tool_registry, &settings.layout.here),
    }
}

/// Tells whether the servers are needed: to list the tools, or to run them.
fn asks_servers(settings: &Settings, registry: Option<&Registry>) -> bool {
    !settings.live.servers.is_empty() && (registry.is_none() || settings.live.executor == ToolExecutor::Mcp)
}

fn warn_of_live_tools(settings: &Settings, registry: &Registry, of_servers: &Registry, notices: &dyn Notices) {
    let known: Vec<&str> = of_servers.names();
    settings.live.warnings(&known).iter().for_each(|warning| notices.warn(warning));
    if let Some(warning) = without_server(registry, &known) {
        notices.warn(&warning);
    }
}

/// Lets a program of the project list the tools.
async fn run_registry_command(
    command: &Anchored<RegistryCommand>,
    limit: std::time::Duration,
) -> Result<Registry, Error> {
    let listed = command.value.run(&command.base, limit).await;
    listed.map_err(|failure| {
        let program = command.value.command.first().map(String::as_str).unwrap_or_default();
        Error::invalid(format!("cannot list the tools with '{program}': {}", failure.what)).quote(failure.stderr)
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
fn read_registry(setting: &PathSetting, here: &Path) -> Result<Option<Registry>, Error> {
    if !setting.given && !setting.path.exists() {
        return Ok(None);
    }
    karat_registry::read_path(&setting.path, here)
        .map(Some)
        .map_err(|error| Error::invalid(format!("cannot read the tool registry {}: {error}", setting.path.display())))
}

/// Tells whether a registry was read and holds nothing: with it, whatever is said of all tools would be true.
pub fn is_empty(registry: &Registry) -> bool {
    registry.tools().is_empty() && registry.gaps().is_empty()
}
