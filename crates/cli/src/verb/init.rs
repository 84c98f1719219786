//! `karat init`: creates a configuration and a first eval file, without overwriting files.

use karat_core::exit::ExitStatus;
use karat_workflows::init::{Command, Init, Question, Step, TOOLS_FILE, Written};

use crate::args::InitArgs;
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &InitArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let environment = surface.environment;
    let interactive = !args.yes && environment.stdin_is_terminal && environment.stderr_is_terminal;
    let mut init = Init::begin(args.folder.as_deref(), &environment.process.current_dir)?;
    loop {
        match init.next() {
            Step::Ask { question, default } => {
                let answer = match answer_from_flags(question, args) {
                    Some(answer) => answer.clone(),
                    None if interactive => ask(question, &default)?,
                    None => default,
                };
                init.apply(Command::Answer(answer))?;
            }
            Step::Write => init.apply(Command::Write)?,
            Step::Done(written) => {
                let files = written.files.join("\nwrote ");
                surface.printer.print(&format!("wrote {files}\n{}", next_steps(&written)))?;
                return Ok(ExitStatus::Success);
            }
        }
    }
}

fn answer_from_flags(question: Question, args: &InitArgs) -> Option<&String> {
    match question {
        Question::Agent => args.agent_endpoint.as_ref(),
        Question::Tool => args.tool.as_ref(),
        Question::Message => args.message.as_ref(),
    }
}

fn ask(question: Question, default: &str) -> Result<String, Failure> {
    let text = match question {
        Question::Agent => "Agent (a URL, openai:MODEL or command:PROGRAM):",
        Question::Tool => "First tool to test:",
        Question::Message => "Message that should make the agent call it:",
    };
    inquire::Text::new(text).with_default(default).prompt().map_err(|error| match error {
        inquire::InquireError::OperationCanceled | inquire::InquireError::OperationInterrupted => {
            Failure { status: ExitStatus::Interrupted, ..Failure::invalid("nothing was written") }
        }
        other => Failure::invalid(format!("cannot prompt: {other}")).hint("pass the answers as flags, or --yes"),
    })
}

fn next_steps(written: &Written) -> String {
    let Written { folder, is_model, variables, has_tools, .. } = written;
    let mut steps = if *is_model {
        format!(
            "describe the tool in {TOOLS_FILE},\nadd its result to 'stubs', and the values that the response must \
             contain to 'responseContains'"
        )
    } else {
        "in 'responseContains', add values that only the tool can return".to_owned()
    };
    if !variables.is_empty() {
        steps = format!("{steps},\nset {} (in the environment or in .env)", variables.join(" and "));
    }
    let change_dir = folder.as_ref().map(|folder| format!("  cd {}\n", shell_words::quote(folder))).unwrap_or_default();
    let (tools, coverage) = if *has_tools { ("  karat tools\n", "  karat coverage\n") } else { ("", "") };
    format!("\nnext: {steps}, then\n{change_dir}{tools}  karat check\n  karat run\n{coverage}")
}
