//! Creates the agents of the settings.

use std::path::Path;
use std::sync::Arc;

use karat_agents::{
    BudgetedAgent, CommandAgent, FunctionAgent, HttpAgent, HttpConfig, Language, Preset, PresetEndpoint, ScriptedAgent,
    TelemetryAgent, Throttle,
};
use karat_core::port::{Agent, Telemetry};
use karat_json::{Finding, InvalidFile};
use serde_json::Value;

use super::models::{Models, invalid_agent_error, is_model};
use super::tools::Tools;
use crate::error::Error;
use crate::notice::Notices;
use crate::settings::{Settings, WithBase, is_on_search_path, redact_arguments};
use karat_project::read_text;

/// Creates the agents: one, or several to compare. With telemetry, the tool calls of agents that run their own tools
/// are read from their spans.
pub fn make_agents(
    models: &mut Models,
    settings: &Settings,
    tools: &Tools,
    telemetry: Option<&Arc<dyn Telemetry>>,
    notices: &dyn Notices,
) -> Result<Vec<Arc<dyn Agent>>, Error> {
    if settings.agent_endpoints.is_empty() {
        return Err(Error::invalid("no agent is configured")
            .hint("pass --agent-endpoint http://localhost:3000/chat, or set 'agentEndpoint' in karat.json")
            .hint("scripted:FILE replies from a file, without an agent"));
    }
    let endpoints = settings.agent_endpoints.clone();
    let mut agents = Vec::with_capacity(endpoints.len());
    for endpoint in &endpoints {
        let agent = make_agent(endpoint, models, settings, tools, notices)?;
        let agent = match telemetry.filter(|_| runs_own_tools(&endpoint.value, settings)) {
            Some(telemetry) => Arc::new(TelemetryAgent::new(agent, Arc::clone(telemetry))),
            None => agent,
        };
        // Models account for each call; for other agents only the cost of the whole answer is known.
        let is_accounted = is_model(&endpoint.value, settings) || !models.budget().is_limited();
        agents.push(if is_accounted {
            agent
        } else {
            Arc::new(BudgetedAgent::new(agent, Arc::clone(models.budget())))
        });
    }
    Ok(agents)
}

/// Whether an agent is a program or server of its own, which can have telemetry.
fn runs_own_tools(endpoint: &str, settings: &Settings) -> bool {
    !is_model(endpoint, settings) && !endpoint.starts_with("scripted:")
}

/// Creates an agent.
fn make_agent(
    endpoint: &WithBase<String>,
    models: &mut Models,
    settings: &Settings,
    tools: &Tools,
    notices: &dyn Notices,
) -> Result<Arc<dyn Agent>, Error> {
    let text = endpoint.value.clone();
    if let Some((preset, url)) = Preset::split(&text) {
        let PresetEndpoint { url, config, .. } =
            preset.endpoint(url, &settings.agent.source).map_err(|error| Error::invalid(error.to_string()))?;
        return http_agent(&url, config, Some(text), models, settings);
    }
    if text.starts_with("http://") || text.starts_with("https://") {
        return http_agent(&text, settings.agent.config.clone(), None, models, settings);
    }
    if let Some(agent) = function_agent(&text, settings)? {
        return Ok(Arc::new(match models.observer() {
            Some(observer) => agent.with_observer(Arc::clone(observer)),
            None => agent,
        }));
    }
    match text.split_once(':') {
        Some(("scripted", file)) if !file.is_empty() => {
            let path = endpoint.base.join(file);
            let script = read_text(&path, "the script")?;
            match ScriptedAgent::parse(&script, text.clone()) {
                Ok(agent) => Ok(Arc::new(agent)),
                Err(error) => Err(invalid_script(file, script, error.findings)),
            }
        }
        Some(("command", command)) => {
            let config = settings.agent.config.clone();
            let agent = CommandAgent::new(command, &settings.layout.root, config, &lookup_variables(settings))
                .map_err(|error| Error::invalid(error.to_string()))?;
            agent.secrets().iter().for_each(|secret| settings.redactor.add(secret));
            let program = agent.program();
            if program.parent() == Some(Path::new(""))
                && settings.layout.root.join(program).is_file()
                && !is_on_search_path(program)
            {
                let name = program.display();
                return Err(Error::invalid(format!("program '{name}' not found on the PATH"))
                    .hint(format!("use command:./{name} for the file in the project's root")));
            }
            redact_arguments(agent.arguments(), &settings.redactor);
            Ok(Arc::new(match models.observer() {
                Some(observer) => agent.with_observer(Arc::clone(observer)),
                None => agent,
            }))
        }
        _ if is_model(&text, settings) => {
            let (registry, execution) = (tools.registry.as_ref(), tools.execution(&settings.live));
            let agent = models.agent(&text, settings, registry, execution, notices)?;
            Ok(Arc::new(agent))
        }
        _ => Err(invalid_agent_error(&text, &settings.model.providers)),
    }
}

/// Creates an HTTP agent. Registers the values of its variables as secrets.
fn http_agent(
    url: &str,
    config: HttpConfig,
    identity: Option<String>,
    models: &Models,
    settings: &Settings,
) -> Result<Arc<dyn Agent>, Error> {
    let agent =
        HttpAgent::new(url, config, &lookup_variables(settings)).map_err(|error| Error::invalid(error.to_string()))?;
    // Secrets of a URL may be encoded differently after parsing.
    settings.redactor.add_secrets_in("agentEndpoint", &Value::from(agent.url()));
    agent.credentials().iter().chain(agent.secrets()).for_each(|secret| settings.redactor.add(secret));
    let agent = match identity {
        Some(identity) => agent.with_identity(identity),
        None => agent,
    };
    let agent = match models.observer() {
        Some(observer) => agent.with_observer(Arc::clone(observer)),
        None => agent,
    };
    let throttle = Arc::new(Throttle::new(settings.concurrency, None));
    Ok(Arc::new(agent.with_retries(settings.max_retries.unwrap_or(0), throttle)))
}

/// Returns the source of environment variables. Offline, no key is needed.
fn lookup_variables(settings: &Settings) -> impl Fn(&str) -> Option<String> {
    let offline = settings.recording.is_offline();
    move |name| settings.variables.get(name).or_else(|| offline.then(String::new))
}

/// Creates the agent of `python:MODULE:FUNCTION` and `node:FILE#EXPORT`.
fn function_agent(endpoint: &str, settings: &Settings) -> Result<Option<FunctionAgent>, Error> {
    let Some((kind, name)) = endpoint.split_once(':') else { return Ok(None) };
    let Some(language) = Language::from_kind(kind) else { return Ok(None) };
    let agent = FunctionAgent::new(language, name, &settings.layout.root, settings.agent.config.clone());
    agent.map(Some).map_err(|error| Error::invalid(error.to_string()))
}

pub(super) fn invalid_script(file: &str, text: String, findings: Vec<Finding>) -> Error {
    Error::invalid_files(vec![InvalidFile { name: file.to_owned(), text, findings }])
}
