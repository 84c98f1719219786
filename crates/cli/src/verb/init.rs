//! `karat init`: a first configuration and a first eval file, never over what is there.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use karat_core::exit::ExitStatus;
use serde_json::{Value, json};

use crate::args::InitArgs;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;

const DEFAULT_ENDPOINT: &str = "http://localhost:3000/chat";
const DEFAULT_TOOL: &str = "get_weather";
const DEFAULT_MESSAGE: &str = "What's the weather in Paris?";

pub(crate) fn run(args: &InitArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let here = &environment.current_dir;
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
    let endpoint = ask(&args.agent_endpoint, "Your agent's URL:", DEFAULT_ENDPOINT)?;
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
    write_new(&eval_path, &first_case(&tool, &stem, &message))?;
    write_new(&config_path, &config(&endpoint))?;
    let next = format!(
        "wrote {}\nwrote {}\n\nNext: put values that only the tool can know into 'responseContains', then\n  karat check\n  karat run\n",
        shown(&config_path),
        shown(&eval_path),
    );
    printer.out(&next).map_err(|error| Failure::errored(error.to_string()))?;
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

fn config(endpoint: &str) -> Value {
    json!({
        "agentEndpoint": endpoint,
        "outputDir": "evals/results",
        "concurrency": 4,
        "timeoutMs": 60000,
    })
}

fn first_case(tool: &str, stem: &str, message: &str) -> Value {
    json!({
        "metadata": {"toolName": tool, "tier": "golden"},
        "cases": [{
            "id": format!("gs-{stem}-001"),
            "description": "trigger phrase",
            "input": {"message": message},
            "expect": {
                "toolsCalled": [tool],
                "noToolErrors": true,
                "responseNonEmpty": true,
                "responseNotContains": ["I don't know"],
            },
        }],
    })
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
