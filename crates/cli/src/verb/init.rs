//! `karat init`: finds an agent and its tools, and creates a configuration and a first eval file, without overwriting
//! files.

use karat_core::exit::ExitStatus;
use karat_report::{EXAMPLE_MESSAGE, init_help, init_summary, security_cases_summary};
use karat_workflows::init::{AGENT_VARIABLE, Command, Init, LoopbackProbe, Question, Request, Step};
use karat_workflows::security_cases;

use crate::args::InitArgs;
use crate::ask::{self, NoAnswer};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &InitArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    if args.security {
        return write_security_cases(args, surface);
    }
    surface.run(run_init(args, surface))
}

fn write_security_cases(args: &InitArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let folder: Vec<_> = args.folder.iter().cloned().collect();
    let context = surface.context(&folder)?;
    let request = security_cases::Request { tool: args.tool.clone() };
    let written = surface.run(security_cases::write_security_cases(&request, &context))?;
    surface.printer.print(&security_cases_summary(&written))?;
    Ok(ExitStatus::Success)
}

async fn run_init(args: &InitArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let (environment, printer) = (surface.environment, surface.printer);
    let interactive = !args.yes && environment.stdin_is_terminal && environment.stderr_is_terminal;
    let request = Request {
        folder: args.folder.as_deref(),
        current_dir: &environment.process.current_dir,
        ports: if args.agent_endpoint.is_some() { &[] } else { &args.ports },
        find_tools: args.tool_registry_path.is_none(),
    };
    let mut init = Init::begin(&request, &LoopbackProbe)?;
    init.recognise_agents().await;
    init.discovered().problems.iter().for_each(|problem| printer.warn(problem));
    if args.agent_endpoint.is_none() && init.discovered().agent.is_some() {
        printer.note(&format!("using the agent of {AGENT_VARIABLE}"));
    }
    if !interactive {
        check_flags(init.clone(), args)?;
    }
    loop {
        match init.next() {
            Step::Ask { question, default } => match answer_from_flags(question, args, &init) {
                Some(answer) => init.apply(Command::Answer(answer))?,
                None if interactive => {
                    let columns = environment.stderr_columns.unwrap_or(80);
                    let answer = ask_user(question, default.as_deref(), &init, columns)?;
                    if let Err(error) = init.apply(Command::Answer(answer)) {
                        printer.failure(&error.into());
                    }
                }
                None => {
                    let answer = default.ok_or_else(|| missing_flags(&[flag(question)], args))?;
                    if question == Question::Agent {
                        printer.note(&format!("using the agent {answer}; to use another, pass --agent-endpoint"));
                    }
                    init.apply(Command::Answer(answer))?;
                }
            },
            // Programs that other files configure are started only if the user chose them.
            Step::ListTools if !interactive && args.tool_registry_path.is_none() => {
                printer.note("the MCP servers were not started: pass --tool-registry-path to list their tools");
                init.apply(Command::SkipTools)?;
            }
            Step::ListTools => {
                printer.note("starting the MCP servers to list their tools");
                init.list_tools(&printer.redactor, printer.as_ref()).await?;
            }
            Step::Write => init.apply(Command::Write)?,
            Step::Done(written) => {
                written.problems.iter().for_each(|problem| printer.warn(problem));
                printer.print(&init_summary(&written))?;
                return Ok(ExitStatus::Success);
            }
        }
    }
}

fn flag(question: Question) -> &'static str {
    match question {
        Question::Agent => "--agent-endpoint",
        Question::Registry => "--tool-registry-path",
        Question::Tool => "--tool",
        Question::Message | Question::OtherMessage => "--message",
    }
}

fn answer_from_flags(question: Question, args: &InitArgs, init: &Init) -> Option<String> {
    match question {
        Question::Agent => args.agent_endpoint.clone().or_else(|| init.discovered().agent.clone()),
        Question::Registry => args.tool_registry_path.as_deref().map(|path| init.project_path(path)),
        Question::Tool => args.tool.clone(),
        Question::Message => args.message.first().cloned(),
        Question::OtherMessage if args.message.is_empty() => None,
        Question::OtherMessage => Some(args.message.get(init.messages().len()).cloned().unwrap_or_default()),
    }
}

/// Fails if flags are missing without a terminal, and lists all of them with the values found. Nothing is written.
fn check_flags(mut init: Init, args: &InitArgs) -> Result<(), Failure> {
    let mut missing = Vec::new();
    let mut defaults = Vec::new();
    loop {
        match init.next() {
            Step::Ask { question, default } => {
                let flag_answer = answer_from_flags(question, args, &init);
                if flag_answer.is_none() && question != Question::OtherMessage {
                    match default.as_deref() {
                        // Nothing was found, and nothing is needed.
                        Some("") => {}
                        Some(_) if args.yes => {}
                        Some(default) => {
                            missing.push(flag(question));
                            defaults.push(format!("{} {}", flag(question), shell_words::quote(default)));
                        }
                        None => missing.push(flag(question)),
                    }
                }
                // Any valid answer leads to the next question.
                let placeholder = match question {
                    Question::Agent => "http://localhost",
                    Question::Message => "message",
                    Question::Registry | Question::Tool | Question::OtherMessage => "",
                };
                let answer = flag_answer.or(default).unwrap_or_else(|| placeholder.to_owned());
                init.apply(Command::Answer(answer))?;
            }
            // The tools of a server are not known yet.
            Step::ListTools => init.apply(Command::SkipTools)?,
            Step::Write | Step::Done(_) => break,
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let failure = missing_flags(&missing, args);
    Err(if defaults.is_empty() {
        failure
    } else {
        failure.hint(format!("found {}", defaults.join(" "))).hint("pass --yes to use what was found")
    })
}

fn missing_flags(flags: &[&str], args: &InitArgs) -> Failure {
    let reason = if args.yes { "nothing suitable was found" } else { "no terminal to prompt on" };
    let failure = Failure::invalid(format!("missing {}: {reason}", flags.join(", ")));
    if args.yes && flags.contains(&flag(Question::Message)) {
        return failure.hint(format!("pass what a user would write, for example --message '{EXAMPLE_MESSAGE}'"));
    }
    failure
}

fn ask_user(question: Question, default: Option<&str>, init: &Init, columns: usize) -> Result<String, Failure> {
    let text = match question {
        Question::Agent => "Agent (a URL, openai:MODEL, python:MODULE:FUNCTION or command:PROGRAM):",
        Question::Registry => "Tools (a file, a folder or an MCP server; empty for none):",
        Question::Tool => "First tool to test:",
        Question::Message if init.tool_names().is_empty() => "Message to the agent:",
        Question::Message => "Message that should make the agent call it:",
        Question::OtherMessage => "Another one (empty to finish):",
    };
    // The prompt encloses the help in brackets.
    let help = init_help(question, default, init, columns.saturating_sub(2));
    let mut prompt = inquire::Text::new(text);
    if let Some(help) = &help {
        prompt = prompt.with_help_message(help);
    }
    // A default cannot be cleared, an initial value can.
    match default.filter(|default| !default.is_empty()) {
        Some(default) if matches!(question, Question::Registry | Question::OtherMessage) => {
            prompt = prompt.with_initial_value(default);
        }
        Some(default) => prompt = prompt.with_default(default),
        None => {}
    }
    ask::prompt(|| prompt.prompt()).map_err(|no_answer| match no_answer {
        NoAnswer::Cancelled | NoAnswer::Interrupted => {
            Failure { status: ExitStatus::Interrupted, ..Failure::invalid("nothing was written") }
        }
        NoAnswer::Failed(error) => {
            Failure::invalid(format!("cannot prompt: {error}")).hint("pass the answers as flags, or --yes")
        }
    })
}
