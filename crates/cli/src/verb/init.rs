//! `karat init`: a first configuration and a first eval file, never over what is there.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use karat_agents::KnownProvider;
use karat_core::exit::ExitStatus;
use serde_json::{Value, json};

use crate::args::InitArgs;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

const DEFAULT_ENDPOINT: &str = "http://localhost:3000/chat";
const TOOLS_FILE: &str = "tools.json";
/// Where tools are looked for if nobody says so.
const DEFAULT_REGISTRY: &str = "tools/tools.exports.ts";
const DEFAULT_TOOL: &str = "get_weather";
const DEFAULT_MESSAGE: &str = "What's the weather in Paris?";

pub(crate) fn run(args: &InitArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let here = &environment.process.current_dir;
    let folder = args.folder.as_ref().map_or_else(|| here.clone(), |folder| here.join(folder));
    let interactive = !args.yes && environment.stdin_is_terminal && environment.stderr_is_terminal;
    let ask = |given: &Option<String>, question: &str, default: &str| match given {
        Some(answer) => Ok(answer.clone()),
        None if interactive => inquire::Text::new(question).with_default(default).prompt().map_err(asked),
        None => Ok(default.to_owned()),
    };
    let shown = |path: &Path| path.strip_prefix(here).unwrap_or(path).display().to_string();
    let config_path = folder.join("karat.json");
    if config_path.exists() {
        return Err(Failure::invalid(format!("{} is there already, and is left as it is", shown(&config_path))));
    }
    let question = "Your agent (a URL, openai:MODEL, anthropic:MODEL, command:PROGRAM):";
    let endpoint = ask(&args.agent_endpoint, question, DEFAULT_ENDPOINT)?;
    let provider = provider_of(&endpoint)?;
    let tool = ask(&args.tool, "The first tool to test:", DEFAULT_TOOL)?;
    if tool.is_empty() || tool.contains(['/', '\\']) || tool.starts_with('.') {
        return Err(Failure::invalid(format!("'{tool}' cannot be a tool's name")));
    }
    let message = ask(&args.message, "A message that should make the agent call it:", DEFAULT_MESSAGE)?;
    let stem = tool.replace('_', "-");
    let eval_path = folder.join("evals").join(format!("{stem}.golden.json"));
    if eval_path.exists() {
        return Err(Failure::invalid(format!("{} is there already, and is left as it is", shown(&eval_path))));
    }
    let registry = folder.join(if provider.is_some() { TOOLS_FILE } else { DEFAULT_REGISTRY });
    let mut suite = first_case(&tool, &stem, &message, provider.is_some());
    stamp(&mut suite["metadata"], &tool, &registry, here);
    write_new(&eval_path, &suite)?;
    let mut written = vec![shown(&config_path), shown(&eval_path)];
    if provider.is_some() {
        let tools_path = folder.join(TOOLS_FILE);
        // Tools that are there are better than any that we could think of.
        if !tools_path.exists() {
            write_new(&tools_path, &first_tools(&tool))?;
            written.push(shown(&tools_path));
        }
    }
    write_new(&config_path, &config(&endpoint, provider.is_some()))?;
    let mut next = format!("wrote {}\n", written.join("\nwrote "));
    let has_tools = provider.is_some() || folder.join(DEFAULT_REGISTRY).exists();
    let to = if folder == *here { None } else { Some(shown(&folder)) };
    next.push_str(&next_steps(provider.as_ref(), to.as_deref(), has_tools));
    printer.print(&next)?;
    Ok(ExitStatus::Success)
}

fn asked(error: inquire::InquireError) -> Failure {
    match error {
        inquire::InquireError::OperationCanceled | inquire::InquireError::OperationInterrupted => {
            Failure { status: ExitStatus::Interrupted, ..Failure::invalid("nothing was written") }
        }
        other => Failure::invalid(format!("cannot ask: {other}")).hint("give the answers as flags, or --yes"),
    }
}

/// Returns who serves the model; none for an agent that is no model.
fn provider_of(endpoint: &str) -> Result<Option<KnownProvider>, Failure> {
    let Some((kind, model)) = endpoint.split_once(':') else {
        return Ok(None);
    };
    match KnownProvider::named(kind) {
        Some(_) if model.is_empty() => {
            Err(Failure::invalid(format!("'{endpoint}' names no model: expected {kind}:MODEL")))
        }
        provider => Ok(provider),
    }
}

fn next_steps(provider: Option<&KnownProvider>, folder: Option<&str>, has_tools: bool) -> String {
    let steps = match provider {
        None => "put values that only the tool can know into 'responseContains'".to_owned(),
        Some(provider) => {
            let mut steps = format!(
                "say in {TOOLS_FILE} what the tool does and takes,\nput what it answers into 'stubs', and what the \
                 response must hold of it into 'responseContains'"
            );
            let variables = [
                provider.base_url.is_none().then_some(provider.base_variable),
                provider.needs_key.then_some(provider.key_variable),
            ];
            let variables: Vec<&str> = variables.into_iter().flatten().collect();
            if !variables.is_empty() {
                steps = format!("{steps},\nset {} (in the environment or in a file .env)", variables.join(" and "));
            }
            steps
        }
    };
    let go = folder.map(|folder| format!("  cd {}\n", shell_words::quote(folder))).unwrap_or_default();
    // What is known of the tools is worth a look before the agent is asked.
    let (look, cover) = if has_tools { ("  karat tools\n", "  karat coverage\n") } else { ("", "") };
    format!("\nNext: {steps}, then\n{go}{look}  karat check\n  karat run\n{cover}")
}

fn config(endpoint: &str, is_model: bool) -> Value {
    let mut config = json!({"agentEndpoint": endpoint});
    if is_model {
        config["toolRegistryPath"] = TOOLS_FILE.into();
    }
    config["outputDir"] = "evals/results".into();
    config["concurrency"] = 4.into();
    config["timeoutMs"] = 60000.into();
    config
}

/// Returns a tool that takes anything.
fn first_tools(tool: &str) -> Value {
    json!({
        "tools": [{
            "name": tool,
            "description": format!("Reword this: what {tool} does, and when it should be called."),
            "inputSchema": {"type": "object", "properties": {}, "additionalProperties": true},
        }],
    })
}

/// Returns a case; a model has no tools of its own, so stubs answer its calls.
fn first_case(tool: &str, stem: &str, message: &str, is_model: bool) -> Value {
    let mut case = json!({
        "id": format!("gs-{stem}-001"),
        "description": "trigger phrase",
        "input": {"message": message},
    });
    if is_model {
        case["stubs"] = json!({tool: {"result": "replace this by what the tool answers"}});
    }
    case["expect"] = json!({
        "toolsCalled": [tool],
        "noToolErrors": true,
        "responseNonEmpty": true,
        "responseNotContains": ["I don't know"],
    });
    json!({"metadata": {"toolName": tool, "tier": "golden"}, "cases": [case]})
}

/// Says which tool the case is written for, where it is there to be read; one that is still to be written will change.
fn stamp(metadata: &mut Value, name: &str, registry: &Path, here: &Path) {
    let Ok(registry) = karat_registry::read_path(registry, here) else {
        return;
    };
    let Some(tool) = registry.find(name) else {
        return;
    };
    if let Some(version) = tool.version.get() {
        metadata["toolVersion"] = json!(version);
    }
    if let Some(hash) = tool.description_hash() {
        metadata["descriptionHash"] = json!(hash);
    }
    // With gaps there may be more tools than are known.
    if registry.gaps().is_empty() {
        metadata["registrySize"] = json!(registry.tools().len());
    }
}

/// Creates a file; one that appeared in the meantime is not overwritten.
fn write_new(path: &Path, value: &Value) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(serde_json::to_string_pretty(value)?.as_bytes())?;
        file.write_all(b"\n")
    };
    write().map_err(|error| Failure::invalid(format!("cannot write {}: {error}", path.display())))
}
