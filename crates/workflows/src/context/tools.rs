//! Reads the tools of the settings, and connects to the servers that execute them.

use std::fmt::Write as _;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karat_agents::ToolExecution;
use karat_cases::registry::{Gap, GapKind, Registry, ToolField, Unknown};
use karat_core::redact::Redactor;
use karat_project::PathSetting;
use karat_registry::{McpServers, NamedServer, RegistryCommand, mcp_location};

use crate::error::Error;
use crate::notice::Notices;
use crate::settings::{LiveTools, Settings, ToolExecutor, UnusableServer, Variables, WithBase};

/// Delay before karat names the servers that it is waiting for.
const SLOW_SERVER_DELAY: Duration = Duration::from_secs(5);

/// Maximum number of warnings, and of tools in a warning.
const MAX_LISTED: usize = 5;

/// The agent's tools.
pub struct Tools {
    /// Without a registry, staleness is unknown.
    pub registry: Option<Registry>,
    /// The servers that execute tools, if enabled. They stop when this is dropped.
    servers: Option<Arc<McpServers>>,
}

impl Tools {
    /// Returns the executor of a model's tool calls.
    pub fn execution(&self, live: &LiveTools) -> ToolExecution {
        match &self.servers {
            Some(servers) => {
                ToolExecution::Live { runner: Arc::clone(servers) as Arc<_>, allowed: live.allowed.clone() }
            }
            None => ToolExecution::Stubs,
        }
    }

    /// Returns the servers that execute tools, if enabled.
    pub(crate) fn servers(&self) -> Option<&Arc<McpServers>> {
        self.servers.as_ref()
    }

    /// Warns about gaps in the registry.
    pub fn warn_about_gaps(&self, notices: &dyn Notices) {
        let Some(registry) = &self.registry else {
            return;
        };
        let gaps = registry.gaps().iter().map(|gap| format!("{}: {}", gap.location, gap.message));
        let unknown = registry.tools().iter().flat_map(|tool| {
            let of_tool = |(field, unknown): (ToolField, &Unknown)| {
                let Unknown { location, reason } = unknown;
                format!("{location}: cannot read the {} of '{}': {reason}", field.name(), tool.name)
            };
            tool.unknowns().map(of_tool)
        });
        let warnings: Vec<String> = gaps.chain(unknown).collect();
        warnings.iter().take(MAX_LISTED).for_each(|warning| notices.warn(warning));
        if let Some(more) = warnings.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
            notices.warn(&format!("and {more} more in the tool registry; run 'karat tools' to list them"));
        }
    }
}

/// Reads the registry for a run, from its file or program, else from the MCP servers. Keeps the servers running if they
/// execute tools; all of them must be available.
pub async fn read_tools(settings: &Settings, notices: &dyn Notices) -> Result<Tools, Error> {
    let registry = project_registry(settings, notices).await?;
    if !needs_servers(settings, registry.as_ref()) {
        return Ok(Tools { registry, servers: None });
    }
    let targets = settings.live.targets(&settings.variables, &settings.redactor);
    let targets = targets.into_iter().collect::<Result<_, _>>().map_err(|unusable| *unusable.error)?;
    let servers = connect(targets, settings, notices).await?;
    let registry = registry.unwrap_or_else(|| servers.registry().clone());
    let runs_tools = settings.live.executor == ToolExecutor::Mcp;
    if runs_tools {
        warn_about_live_tools(settings, &registry, servers.registry(), notices);
    }
    Ok(Tools { registry: Some(registry), servers: runs_tools.then(|| Arc::new(servers)) })
}

/// Connects to MCP servers; all of them must be available.
pub(crate) async fn connect(
    targets: Vec<NamedServer>,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<McpServers, Error> {
    let waiting = WaitingServers::new(targets.iter().map(|target| target.name.clone()).collect());
    let on_ready = |name: &str| waiting.remove(name);
    let connecting = McpServers::connect(targets, settings.timeout, &on_ready);
    let connected = call_if_slow(connecting, SLOW_SERVER_DELAY, || notices.note(&waiting.note(settings.timeout))).await;
    connected.map_err(|error| {
        let message = error.to_string();
        let (message, output) = message.split_once('\n').unwrap_or((&message, ""));
        Error::invalid(message).quote(output)
    })
}

/// Reads the registry without executing tools. An MCP server that fails is a gap and does not affect other servers.
pub async fn list_tools(settings: &Settings, notices: &dyn Notices) -> Result<Option<Registry>, Error> {
    let registry = project_registry(settings, notices).await?;
    if !needs_servers(settings, registry.as_ref()) {
        return Ok(registry);
    }
    let waiting = WaitingServers::new(settings.live.servers.iter().map(|(name, _)| name.clone()).collect());
    let on_ready = |name: &str| waiting.remove(name);
    let listing = list_servers(&settings.live, &settings.variables, &settings.redactor, settings.timeout, &on_ready);
    let server_tools = call_if_slow(listing, SLOW_SERVER_DELAY, || notices.note(&waiting.note(settings.timeout))).await;
    if registry.is_some() {
        // The servers only execute tools here, so their gaps are not gaps of the registry.
        server_tools.gaps().iter().for_each(|gap| notices.gap(gap));
    }
    if settings.live.executor == ToolExecutor::Mcp && server_tools.gaps().is_empty() {
        warn_about_live_tools(settings, registry.as_ref().unwrap_or(&server_tools), &server_tools, notices);
    }
    Ok(Some(registry.unwrap_or(server_tools)))
}

/// The servers that have neither answered nor failed.
struct WaitingServers(Mutex<Vec<String>>);

impl WaitingServers {
    fn new(names: Vec<String>) -> Self {
        Self(Mutex::new(names))
    }

    fn remove(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|waiting| waiting != name);
    }

    /// Names the servers, so that waiting for one does not look like hanging.
    fn note(&self, limit: Duration) -> String {
        let names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let servers = if names.len() == 1 { "MCP server" } else { "MCP servers" };
        format!("waiting for the {servers} {}, at most {} s ('timeoutMs')", names.join(", "), limit.as_secs_f64())
    }
}

/// Awaits `work`, and calls a function once it takes longer than `limit`.
async fn call_if_slow<T>(work: impl Future<Output = T>, limit: Duration, call: impl FnOnce()) -> T {
    let mut work = pin!(work);
    if let Ok(output) = tokio::time::timeout(limit, &mut work).await {
        return output;
    }
    call();
    work.await
}

/// Lists the tools of the servers, each within the time limit. A server that fails is a gap.
pub(crate) async fn list_servers(
    live: &LiveTools,
    variables: &Variables,
    redactor: &Redactor,
    limit: Duration,
    on_ready: &(dyn Fn(&str) + Sync),
) -> Registry {
    let mut targets = Vec::new();
    let mut gaps = Vec::new();
    for target in live.targets(variables, redactor) {
        match target {
            Ok(target) => targets.push(target),
            Err(UnusableServer { name, error }) => {
                on_ready(&name);
                gaps.push(Gap { kind: GapKind::Broken, location: mcp_location(&name), message: error.message });
            }
        }
    }
    let mut registry = McpServers::list(targets, limit, on_ready).await;
    gaps.extend(registry.take_gaps());
    for gap in gaps {
        // Redact the whole message: a secret may span several lines.
        let message = redactor.text(&gap.message).into_owned();
        registry.add_gap(Gap { message, ..gap });
    }
    registry
}

/// Reads the registry from the project's file or program.
async fn project_registry(settings: &Settings, notices: &dyn Notices) -> Result<Option<Registry>, Error> {
    if settings.live.has_allow_list && settings.live.executor != ToolExecutor::Mcp {
        notices.warn("'allowTools' has no effect unless 'toolExecution' is \"mcp\"");
    }
    match &settings.registry_command {
        _ if settings.live.is_registry => Ok(None),
        Some(command) => run_registry_command(command, settings.timeout).await.map(Some),
        None => read_registry(&settings.tool_registry, &settings.layout.current_dir),
    }
}

/// Whether the servers are needed, to list or execute tools.
fn needs_servers(settings: &Settings, registry: Option<&Registry>) -> bool {
    !settings.live.servers.is_empty() && (registry.is_none() || settings.live.executor == ToolExecutor::Mcp)
}

fn warn_about_live_tools(settings: &Settings, registry: &Registry, server_tools: &Registry, notices: &dyn Notices) {
    let known: Vec<&str> = server_tools.names();
    settings.live.warnings(&known).iter().for_each(|warning| notices.warn(warning));
    if let Some(warning) = missing_tools_warning(registry, &known) {
        notices.warn(&warning);
    }
}

/// Runs the project's program that lists the tools.
async fn run_registry_command(command: &WithBase<RegistryCommand>, limit: Duration) -> Result<Registry, Error> {
    let result = command.value.run(&command.base, limit).await;
    result.map_err(|failure| {
        let program = command.value.command.first().map(String::as_str).unwrap_or_default();
        Error::invalid(format!("cannot list the tools with '{program}': {}", failure.message)).quote(failure.stderr)
    })
}

/// Returns a warning about tools of the registry that no server can execute.
fn missing_tools_warning(registry: &Registry, known: &[&str]) -> Option<String> {
    let names = registry.names().into_iter().filter(|name| !known.contains(name));
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    let more = names.len().saturating_sub(MAX_LISTED);
    let mut list = names.get(..names.len() - more).filter(|names| !names.is_empty())?.join(", ");
    if more > 0 {
        let _ = write!(list, " and {more} more");
    }
    Some(format!(
        "no MCP server has {list}: calls will fail; the tool registry takes precedence over the servers' own tools"
    ))
}

/// Reads the registry from a path; `None` if the default path does not exist.
fn read_registry(setting: &PathSetting, current_dir: &Path) -> Result<Option<Registry>, Error> {
    if !setting.is_explicit && !setting.path.exists() {
        return Ok(None);
    }
    karat_registry::read_path(&setting.path, current_dir).map(Some).map_err(|error| {
        let path = setting.path.strip_prefix(current_dir).unwrap_or(&setting.path).display();
        Error::invalid(format!("cannot read the tool registry {path}: {error}"))
    })
}

/// Whether a registry is empty without gaps. It trivially meets all requirements on tools.
pub fn is_empty(registry: &Registry) -> bool {
    registry.tools().is_empty() && registry.gaps().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_the_function_only_for_slow_work() {
        let mut calls = 0;
        let slow = tokio::time::sleep(Duration::from_millis(50));
        call_if_slow(slow, Duration::from_millis(1), || calls += 1).await;
        assert_eq!(calls, 1);
        call_if_slow(async {}, Duration::from_mins(1), || calls += 1).await;
        assert_eq!(calls, 1);
    }
}
