//! The agents that the settings name.

use std::path::Path;
use std::sync::Arc;

use karat_agents::{BudgetedAgent, CommandAgent, HttpAgent, ScriptedAgent, Throttle, expand_variables};
use karat_core::exit::ExitStatus;
use karat_core::port::Agent;
use karat_core::redact::Redactor;
use serde_json::Value;

use crate::diagnostic::print_findings;
use crate::environment::{Variables, is_on_search_path};
use crate::failure::Failure;
use crate::load::read_text;
use crate::model::{Models, is_model, no_agent};
use crate::printer::Printer;
use crate::registry::Tools;
use crate::settings::{Anchored, Settings};

/// Prepares the agents: one, or the several that are compared.
pub(crate) fn make_agents(
    models: &mut Models,
    settings: &mut Settings,
    tools: &Tools,
    printer: &Printer,
) -> Result<Vec<Arc<dyn Agent>>, Failure> {
    if settings.agent_endpoints.is_empty() {
        return Err(Failure::invalid("no agent to ask")
            .hint("set 'agentEndpoint' in karat.json, or give --agent-endpoint http://localhost:3000/chat")
            .hint("without an agent, scripted:FILE answers from a file"));
    }
    let endpoints = settings.agent_endpoints.clone();
    let mut agents = Vec::with_capacity(endpoints.len());
    for endpoint in &endpoints {
        let agent = make_agent(endpoint, models, settings, tools, printer)?;
        // A model's calls are paid for one by one; of others, only the whole answer's cost is known.
        let is_paid = is_model(&endpoint.value, settings) || !models.budget().is_limited();
        agents.push(if is_paid { agent } else { Arc::new(BudgetedAgent::new(agent, Arc::clone(models.budget()))) });
    }
    Ok(agents)
}

/// Prepares an agent; header variables are filled in here and kept secret from here on.
fn make_agent(
    endpoint: &Anchored<String>,
    models: &mut Models,
    settings: &mut Settings,
    tools: &Tools,
    printer: &Printer,
) -> Result<Arc<dyn Agent>, Failure> {
    let text = endpoint.value.clone();
    // Where nobody is asked, no key is needed.
    let offline = settings.recording.asks_nobody();
    if text.starts_with("http://") || text.starts_with("https://") {
        let headers = match fill_headers(&settings.agent.headers, &settings.variables, &mut settings.redactor) {
            Err(_) if offline => Vec::new(),
            filled => filled?,
        };
        printer.keep_secret(settings.redactor.clone());
        let agent = HttpAgent::new(&text, &headers, settings.agent.clone())
            .map_err(|error| Failure::invalid(error.to_string()))?;
        // A URL's secrets may be spelled in another way once it was parsed and sent.
        settings.redactor.learn("agentEndpoint", &Value::from(agent.identity()));
        agent.credentials().iter().for_each(|secret| settings.redactor.add(secret));
        printer.keep_secret(settings.redactor.clone());
        let throttle = Arc::new(Throttle::new(settings.concurrency, None));
        return Ok(Arc::new(agent.with_retries(settings.max_retries.unwrap_or(0), throttle)));
    }
    match text.split_once(':') {
        Some(("scripted", file)) if !file.is_empty() => {
            let path = endpoint.base.join(file);
            let script = read_text(&path, "the script")?;
            match ScriptedAgent::read(&script, text.clone()) {
                Ok(agent) => Ok(Arc::new(agent)),
                Err(error) => {
                    print_findings(file, &script, &error.findings, printer);
                    Err(Failure::reported(ExitStatus::Invalid))
                }
            }
        }
        Some(("command", command)) => {
            let agent = CommandAgent::new(command, &settings.root, settings.agent.clone())
                .map_err(|error| Failure::invalid(error.to_string()))?;
            let program = agent.program();
            if program.parent() == Some(Path::new(""))
                && settings.root.join(program).is_file()
                && !is_on_search_path(program)
            {
                let name = program.display();
                return Err(Failure::invalid(format!("there is no program '{name}' on the PATH"))
                    .hint(format!("for the file in the project's root write command:./{name}")));
            }
            learn_arguments(agent.arguments(), &mut settings.redactor);
            printer.keep_secret(settings.redactor.clone());
            Ok(Arc::new(agent))
        }
        _ if is_model(&text, settings) => {
            let (registry, execution) = (tools.registry.as_ref(), tools.execution(&settings.live));
            let agent = models.agent(&text, settings, registry, execution, printer)?;
            Ok(Arc::new(agent))
        }
        _ => Err(no_agent(&text, settings)),
    }
}

/// Takes note of secrets on a command line: `--api-key VALUE`, `--api-key=VALUE`, `API_KEY=VALUE`.
pub(crate) fn learn_arguments(arguments: &[String], redactor: &mut Redactor) {
    let mut learn = |name: &str, value: &str| redactor.learn(name, &Value::from(value));
    for argument in arguments {
        if let Some((name, value)) = argument.split_once('=') {
            learn(name, value);
        }
    }
    for pair in arguments.windows(2).filter(|pair| pair[0].starts_with('-') && !pair[1].starts_with('-')) {
        learn(&pair[0], &pair[1]);
    }
}

pub(crate) fn fill_headers(
    headers: &std::collections::BTreeMap<String, String>,
    variables: &Variables,
    redactor: &mut Redactor,
) -> Result<Vec<(String, String)>, Failure> {
    let fill = |(name, value): (&String, &String)| {
        let expanded = expand_variables(value, &|name| variables.get(name))
            .map_err(|error| Failure::invalid(format!("the header '{name}' cannot be sent: {error}")))?;
        expanded.secrets.iter().for_each(|secret| redactor.add(secret));
        Ok((name.clone(), expanded.text))
    };
    headers.iter().map(fill).collect()
}
