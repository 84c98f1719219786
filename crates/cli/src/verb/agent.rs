//! `karat agent`: sends messages to agents, shows presets and detects them.

use std::sync::Arc;

use karat_core::exit::ExitStatus;
use karat_report::{agent_trial_text, detection_text, preset_config_text, preset_list_text};
use karat_workflows::agent::detect::{Detection, MESSAGE, by_discovery, by_replies, complete_url, write};
use karat_workflows::agent::presets::{list, show};
use karat_workflows::agent::try_message::{Request, try_messages};
use serde_json::Value;

use super::run::telemetry;
use crate::args::{AgentAction, AgentDetectArgs, AgentShowArgs, AgentTryArgs, AgentVerbArgs, OutputFormat};
use crate::ask;
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: AgentVerbArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match args.action {
        AgentAction::Try(args) => run_try(*args, surface),
        AgentAction::Show(args) => run_show(&args, surface),
        AgentAction::Detect(args) => run_detect(&args, surface),
    }
}

fn run_try(args: AgentTryArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let printer = surface.printer;
    let messages = std::iter::once(args.message).chain(args.turn).collect();
    let trial = surface.run(async {
        let receiver = telemetry::start(&context, printer).await?;
        let telemetry = receiver.as_ref().map(|receiver| Arc::clone(&receiver.telemetry));
        try_messages(&Request { messages, telemetry }, &context).await
    })?;
    printer.print_result(args.format, &trial, agent_trial_text)?;
    Ok(if trial.answered { ExitStatus::Success } else { ExitStatus::Errored })
}

fn run_show(args: &AgentShowArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let printer = surface.printer;
    let Some(kind) = &args.kind else {
        printer.print_result(args.format, &list(), preset_list_text)?;
        return Ok(ExitStatus::Success);
    };
    let details = show(kind)?;
    printer.print_result(args.format, &details, |details, _| preset_config_text(&details.config))?;
    if args.format == OutputFormat::Human {
        printer.note(&details.summary.description);
    }
    Ok(ExitStatus::Success)
}

fn run_detect(args: &AgentDetectArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&[])?;
    let (environment, printer) = (surface.environment, surface.printer);
    let url = complete_url(&args.url);
    printer.redactor.add_secrets_in("agentEndpoint", &Value::from(url.as_str()));
    let interactive = environment.stdin_is_terminal && environment.stderr_is_terminal;
    let mut detection = surface.run(async {
        let detection = by_discovery(&url).await?;
        if detection.is_recognised() {
            return Ok(detection);
        }
        let question = format!("No discovery endpoint responded. Send '{MESSAGE}' to find the format?");
        if !args.yes && (!interactive || !ask::yes_or_no(&question, true)?) {
            let message = format!("no discovery endpoint of a known product responded at {url}");
            return Err(Failure::errored(message).hint(format!("pass --yes to send it '{MESSAGE}'")));
        }
        Ok(by_replies(&url, &context).await)
    })?;
    if let Some(endpoint) = detection.agent_endpoint.as_ref().filter(|_| args.write) {
        detection.written = Some(write(endpoint, &context)?);
    }
    printer.print_result(args.format, &detection, |detection, _| detection_text(detection))?;
    report(&detection, surface);
    Ok(if detection.is_recognised() { ExitStatus::Success } else { ExitStatus::Errored })
}

/// Prints how the agent was recognised, or why not.
fn report(detection: &Detection, surface: &Surface<'_>) {
    let printer = surface.printer;
    if let Some(evidence) = &detection.evidence {
        printer.note(&format!("recognised by {evidence}"));
        detection.notes.iter().for_each(|note| printer.note(note));
        match (&detection.written, &detection.agent_endpoint) {
            (Some(file), _) => printer.note(&format!("wrote {file}; to try it: karat agent try \"Hello\"")),
            (None, Some(endpoint)) => {
                let endpoint = shell_words::quote(endpoint);
                printer.note(&format!("to try it: karat agent try \"Hello\" --agent-endpoint {endpoint}"));
                printer.note("pass --write to set it in karat.json");
            }
            (None, None) => {}
        }
        return;
    }
    for attempt in &detection.tried {
        printer.warn(&format!("{}: {}", attempt.kind.as_deref().unwrap_or("karat's own format"), attempt.problem));
    }
    printer.failure(&Failure::errored("the agent was not recognised").hint(
        "describe its requests and replies with 'agent' in karat.json, and see the result: karat agent try \"Hello\"",
    ));
}
