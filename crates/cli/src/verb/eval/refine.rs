//! `karat eval refine`: a model rewrites an eval, and a person approves it.

use std::ops::ControlFlow;

use karat_core::exit::ExitStatus;
use karat_report::{
    adopted_notes, code_diff_text, counted, printable, refinement_text, suggestion_note, unchanged_file_note,
};
use karat_workflows::Context;
use karat_workflows::refine::{
    Adoption, CandidateFolder, Command, CommandOutcome, Event, Outcome, Request, Step, question, refine,
};

use crate::args::{EvalRefineArgs, OutputFormat};
use crate::ask::{self, NoAnswer};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

pub(super) fn run(args: &EvalRefineArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let printer = surface.printer.as_ref();
    let context = surface.context(&[])?;
    // Fail before calling the model, which costs money, when there is no one to approve.
    let approver = approver(args, surface.environment)?;
    let write_to = match &args.out {
        Some(folder) => Some(CandidateFolder::Given(folder.clone())),
        None => approver.is_none().then_some(CandidateFolder::Own),
    };
    let request = Request {
        eval: args.name.clone(),
        candidates: args.candidates,
        rounds: args.rounds,
        hold_out: args.hold_out,
        origin: args.source,
        model: args.model.clone(),
        write_to,
    };
    if args.dry_run {
        let question = surface.run(question(&request, &context))?;
        printer.note("dry run: this request would be sent to the model");
        printer.print_json(&question)?;
        return Ok(ExitStatus::Success);
    }
    surface.run_interactive(async |cancel| {
        let mut show_event = |event| {
            print_event(event, printer);
            ControlFlow::Continue(())
        };
        let Outcome { refinement, adoption } = refine(&request, &context, &mut show_event, &cancel).await?;
        match args.format {
            OutputFormat::Json => printer.print_json(&refinement)?,
            OutputFormat::Human => printer.print(&refinement_text(&refinement, printer.console()))?,
        }
        let adoption = adoption?;
        match approver {
            Some(approver) => adopt(adoption, &approver, &context, printer).await?,
            None => printer.note(&suggestion_note(&refinement)),
        }
        Ok(ExitStatus::Success)
    })
}

/// Returns the name of the approver, or none without a terminal.
fn approver(args: &EvalRefineArgs, environment: &Environment) -> Result<Option<String>, Failure> {
    let is_asked = args.format == OutputFormat::Human
        && !args.dry_run
        && environment.stdin_is_terminal
        && environment.stderr_is_terminal;
    if !is_asked && args.author.author.is_none() {
        return Ok(None);
    }
    let approver = args.author.name(environment)?;
    Ok(is_asked.then_some(approver))
}

fn print_event(event: Event, printer: &Printer) {
    match event {
        Event::Prompting { model, traces } => {
            let traces = counted(traces, "trace");
            printer.note(&format!("sending the code and {traces} with ratings to {model}"));
        }
        Event::RoundFailed { model, message } => printer.warn(&format!("{model}: {message}")),
        Event::Used(usage) => {
            if let (Some(read), Some(written)) = (usage.input_tokens, usage.output_tokens) {
                printer.note(&format!("tokens used: {read} input, {written} output"));
            }
        }
    }
}

/// Asks a person which candidate becomes a version.
async fn adopt(
    mut adoption: Adoption,
    approver: &str,
    context: &Context<'_>,
    printer: &Printer,
) -> Result<(), Failure> {
    loop {
        let command = match adoption.next() {
            Step::Done => return Ok(()),
            Step::Choose => ask_for_candidate(&adoption, approver, printer)?,
            Step::WriteFile { file, .. } => match ask::line(&format!("Also write it to {file}? (y/N)")) {
                Ok(line) => Command::WriteFile { write: matches!(line.trim().to_lowercase().as_str(), "y" | "yes") },
                Err(NoAnswer::Interrupted) => return Err(NoAnswer::Interrupted.into()),
                Err(_) => Command::WriteFile { write: false },
            },
        };
        let applied = adoption.apply(command, context).await?;
        print_applied(applied, &adoption.eval_id, printer)?;
    }
}

fn print_applied(applied: CommandOutcome, eval_id: &str, printer: &Printer) -> Result<(), Failure> {
    let name = printable(eval_id);
    match applied {
        CommandOutcome::Adopted { candidate, version, file } => {
            printer.print(&format!("adopted {candidate} as version {version} of {name}\n"))?;
            printer.notes(adopted_notes(&name, &file));
        }
        CommandOutcome::Declined => printer.print_stderr("nothing was adopted"),
        CommandOutcome::Wrote { file } => printer.print_stderr(&format!("wrote {file}")),
        CommandOutcome::Kept { file } => printer.note(&unchanged_file_note(&file)),
        CommandOutcome::Refused(refusal) => printer.print_stderr(&refusal.to_string()),
    }
    Ok(())
}

/// Asks until a candidate is adopted or declined, and shows diffs on request.
fn ask_for_candidate(adoption: &Adoption, approver: &str, printer: &Printer) -> Result<Command, Failure> {
    let count = adoption.candidates.len();
    let numbers = if count == 1 { "1".to_owned() } else { format!("1-{count}") };
    let question = format!("Adopt which candidate? ({numbers} to adopt, d N to show the diff, q to quit)");
    loop {
        let line = match ask::line(&question) {
            Ok(line) => line,
            Err(NoAnswer::Cancelled) => return Ok(Command::Decline),
            Err(NoAnswer::Interrupted) => return Err(NoAnswer::Interrupted.into()),
            Err(NoAnswer::Failed(reason)) => return Err(Failure::errored(format!("cannot prompt: {reason}"))),
        };
        match Answer::parse(&line) {
            Some(Answer::Quit) => return Ok(Command::Decline),
            Some(Answer::Diff(number)) => {
                let number = number.or_else(|| (count == 1).then_some(1));
                match number.and_then(|number| adoption.candidate(number)) {
                    Some(candidate) => {
                        printer.print(&code_diff_text(&adoption.code, &candidate.code, printer.console()))?;
                    }
                    None => printer.print_stderr(&format!("which candidate? d {numbers}")),
                }
            }
            Some(Answer::Adopt(candidate)) if adoption.candidate(candidate).is_some() => {
                return Ok(Command::Adopt { candidate, approver: approver.to_owned() });
            }
            // A typo must not adopt a candidate.
            _ => printer.print_stderr(&format!("expected a number ({numbers}), d with a number, or q")),
        }
    }
}

/// An answer to the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Adopt(u64),
    /// `None` for the only candidate.
    Diff(Option<u64>),
    Quit,
}

impl Answer {
    fn parse(line: &str) -> Option<Self> {
        let line = line.trim().to_lowercase();
        let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
        match line.as_str() {
            "q" | "quit" => Some(Self::Quit),
            "d" | "diff" => Some(Self::Diff(None)),
            _ => match line.strip_prefix("diff").or_else(|| line.strip_prefix('d')) {
                Some(rest) => number(rest).map(|number| Self::Diff(Some(number))),
                None => number(&line).map(Self::Adopt),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("2", Some(Answer::Adopt(2)))]
    #[case(" 1 ", Some(Answer::Adopt(1)))]
    #[case("d", Some(Answer::Diff(None)))]
    #[case("d2", Some(Answer::Diff(Some(2))))]
    #[case("D 2", Some(Answer::Diff(Some(2))))]
    #[case("diff 3", Some(Answer::Diff(Some(3))))]
    #[case("q", Some(Answer::Quit))]
    #[case("", None)]
    #[case("y", None)]
    #[case("0", None)]
    #[case("-1", None)]
    #[case("d x", None)]
    fn only_a_number_adopts(#[case] line: &str, #[case] expected: Option<Answer>) {
        assert_eq!(Answer::parse(line), expected);
    }
}
