//! Prepares the state sources and hooks of a run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karat_agents::expand_variables;
use karat_cases::Case;
use karat_core::port::{Hooks, StateSources, ToolRunner};
use karat_json::nearest;
use karat_project::LoadedSuite;
use karat_registry::McpServers;
use karat_state::{ProjectHooks, ProjectSources, Source, SourceConfig, SourceOrigin};

use crate::context::tools::{Tools, connect};
use crate::error::Error;
use crate::notice::Notices;
use crate::settings::{Settings, StateSettings};

/// What captures states and runs hooks in a run.
#[derive(Default)]
pub(crate) struct StateServices {
    pub(crate) sources: Option<Arc<dyn StateSources>>,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
}

/// Prepares the sources that the cases name, and the hooks. Expands variables and connects to MCP servers, unless only
/// recordings are replayed.
pub(crate) async fn prepare_state<'s>(
    loaded: impl Iterator<Item = &'s LoadedSuite>,
    tools: &Tools,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<StateServices, Error> {
    let cases = loaded.flat_map(|suite| &suite.file.cases);
    let names: BTreeSet<&str> = cases.flat_map(Case::state_sources).collect();
    let StateSettings { sources, hooks, limit } = &settings.state;
    let is_offline = settings.recording.is_offline();
    let mut expand = |text: &str| {
        let expanded = expand_variables(text, &|name| settings.variables.get(name));
        let expanded =
            expanded.map_err(|error| Error::invalid(format!("cannot prepare hooks and state sources: {error}")))?;
        expanded.secrets.iter().for_each(|secret| settings.redactor.add(secret));
        Ok::<_, Error>(expanded.text)
    };
    let used: BTreeMap<&str, &SourceConfig> =
        names.iter().filter_map(|name| Some((*name, sources.value.get(*name)?))).collect();
    let servers = if is_offline { None } else { connect_servers(&used, tools, settings, notices).await? };
    let mut ready = BTreeMap::new();
    for (name, config) in used {
        let expanded = if is_offline { config.clone() } else { config.expanded(&mut expand)? };
        let tools = server_of(config).and_then(|server| tools_of(servers.as_ref(), server));
        ready.insert(name.to_owned(), Source::new(config, expanded, tools));
    }
    let sources = (!ready.is_empty())
        .then(|| Arc::new(ProjectSources::new(ready, sources.base.clone(), *limit)) as Arc<dyn StateSources>);
    let hooks = if is_offline || !hooks.value.has_any() {
        None
    } else {
        let expanded = hooks.value.expanded(&mut expand)?;
        Some(Arc::new(ProjectHooks::new(expanded, hooks.base.clone(), *limit)) as Arc<dyn Hooks>)
    };
    Ok(StateServices { sources, hooks })
}

fn server_of(config: &SourceConfig) -> Option<&str> {
    match &config.origin {
        SourceOrigin::McpTool { mcp_tool } => Some(&mcp_tool.server),
        SourceOrigin::Command { .. } | SourceOrigin::Url { .. } | SourceOrigin::File { .. } => None,
    }
}

fn tools_of(servers: Option<&Arc<McpServers>>, server: &str) -> Option<Arc<dyn ToolRunner>> {
    servers?.tools_of(server)
}

/// Returns the servers that sources name: those of the run if it has them, since a server may hold the state itself.
async fn connect_servers(
    used: &BTreeMap<&str, &SourceConfig>,
    tools: &Tools,
    settings: &Settings,
    notices: &dyn Notices,
) -> Result<Option<Arc<McpServers>>, Error> {
    let names: BTreeSet<&str> = used.values().filter_map(|config| server_of(config)).collect();
    if names.is_empty() {
        return Ok(None);
    }
    let known: Vec<&str> = settings.live.servers.iter().map(|(name, _)| name.as_str()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(*name)) {
        let error =
            Error::invalid(format!("a state source names the MCP server '{unknown}', which 'mcpServers' lacks"));
        return Err(match nearest(unknown, &known) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error,
        });
    }
    if let Some(servers) = tools.servers() {
        return Ok(Some(Arc::clone(servers)));
    }
    let targets = settings.live.targets(&settings.variables, &settings.redactor);
    let mut chosen = Vec::new();
    for (target, (name, _)) in targets.into_iter().zip(&settings.live.servers) {
        if names.contains(name.as_str()) {
            chosen.push(target.map_err(|unusable| *unusable.error)?);
        }
    }
    Ok(Some(Arc::new(connect(chosen, settings, notices).await?)))
}
