//! `karat eval run`: judges traces in files by eval functions.

use std::io;
use std::ops::ControlFlow;

use karat_core::exit::ExitStatus;
use karat_report::{ExecutionRows, eval_run_text};
use karat_workflows::judge_stream::{Evaluators, FilesEvent, FilesOutcome, FilesRequest, judge_files};

use super::output::Output;
use crate::args::EvalRunArgs;
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &EvalRunArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    if let Some(flag) = args.flag_requiring_stored() {
        return Err(Failure::invalid(format!("{flag} requires --stored")).hint("pass --stored instead of --traces"));
    }
    let current_dir = &surface.environment.process.current_dir;
    let (functions, traces) = args.functions_and_traces(current_dir);
    if functions.is_empty() {
        return Err(Failure::invalid("missing eval function").hint("for example: karat eval run NAME --traces FILE"));
    }
    let context = surface.function_context(&functions)?;
    let evaluators = Evaluators { functions, options: args.limits.options(context.settings.eval_limits)? };
    let request = FilesRequest { evaluators, traces, stdin: Box::new(io::stdin()) };
    let mut output = Output::new(args.format, surface);
    let outcome = surface.run_cancellable(async |cancel| {
        judge_files(request, &context, &mut |event| on_event(event, &mut output), &cancel).await
    });
    finish(outcome?, output, surface)
}

fn on_event(event: FilesEvent, output: &mut Output<'_>) -> ControlFlow<()> {
    match event {
        FilesEvent::Opened { bytes, reads_stdin } => {
            if reads_stdin && output.surface.environment.stdin_is_terminal {
                output.surface.printer.note("reading traces from the terminal, one JSON object per line");
            } else {
                output.start(bytes);
            }
        }
        FilesEvent::Judged(judged) => return output.write(|rows| judged.iter().try_for_each(|row| rows.write(row))),
        FilesEvent::Progress { passed, failed, errored, bytes, .. } => output.show((passed, failed, errored), bytes),
        FilesEvent::Idle => return output.write(ExecutionRows::flush),
    }
    ControlFlow::Continue(())
}

fn finish(outcome: FilesOutcome, output: Output<'_>, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let FilesOutcome { tally, summary, names, error: judging_error } = outcome;
    let printer = surface.printer;
    let is_human = output.rows.is_none();
    output.finish(&summary)?;
    if is_human && tally.traces() > 0 {
        printer.print(&eval_run_text(&summary, printer.console()))?;
    }
    if let Some(error) = judging_error {
        return Err(error.into());
    }
    if summary.interrupted {
        if tally.traces() == 0 {
            printer.print_stderr("interrupted: no traces were judged");
        } else if !is_human {
            printer.print_stderr("interrupted: verdicts so far were written");
        }
        return Ok(ExitStatus::Interrupted);
    }
    if tally.traces() == 0 {
        return Err(
            Failure::nothing_selected(format!("no traces in {names}")).hint("expected one JSON object per line")
        );
    }
    Ok(tally.status())
}
