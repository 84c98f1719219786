//! `karat eval run --stored`: judges stored traces by stored evals.

use std::ops::ControlFlow;

use karat_core::exit::ExitStatus;
use karat_evals::execution::Execution;
use karat_evals::report::StoredEvalRunSummary;
use karat_report::{ExecutionRows, stored_eval_run_text};
use karat_workflows::functions::looks_like_path;
use karat_workflows::judge_stored::{Event, Outcome, Request, judge_stored};

use super::output::Output;
use crate::args::{EvalRunArgs, RowFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &EvalRunArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    reject_files(&args.functions)?;
    let context = surface.context(&[])?;
    let request = Request {
        evals: args.functions.clone(),
        version: args.version,
        filter: args.filter.filter(context.clock.now())?,
        again: args.force,
        options: args.limits.options(context.settings.eval_limits)?,
    };
    let mut output = Output::new(args.format, surface);
    let outcome = surface.run_cancellable(async |cancel| {
        judge_stored(request, &context, &mut |event| on_event(event, &mut output), &cancel).await
    });
    let Outcome { summary, error: judging_error } = outcome?;
    // A partial run has a summary too.
    output.finish(&summary)?;
    if args.format == RowFormat::Human {
        surface.printer.print(&stored_eval_run_text(&summary, surface.printer.console()))?;
    }
    if let Some(error) = judging_error {
        return Err(error.into());
    }
    Ok(status(&summary, args.format, surface))
}

/// Rejects files: only stored versions judge stored traces, so that executions refer to a version.
fn reject_files(arguments: &[String]) -> Result<(), Failure> {
    match arguments.iter().find(|argument| looks_like_path(argument)) {
        None => Ok(()),
        Some(file) => Err(Failure::invalid(format!("{file} is a file, but --stored takes evals in the store"))
            .hint(format!("run 'karat eval add {file}', then pass the name of the eval"))),
    }
}

fn on_event(event: Event, output: &mut Output<'_>) -> ControlFlow<()> {
    match event {
        Event::Planned { to_judge } if to_judge > 0 => output.start(Some(to_judge)),
        Event::Planned { .. } => {}
        Event::Stored(row) => return output.write(|rows| rows.write(&Execution::from(*row))),
        Event::Progress { judged, passed, failed, errored } => output.show((passed, failed, errored), judged),
        Event::Idle => return output.write(ExecutionRows::flush),
    }
    ControlFlow::Continue(())
}

fn status(summary: &StoredEvalRunSummary, format: RowFormat, surface: &Surface<'_>) -> ExitStatus {
    if summary.interrupted {
        if format != RowFormat::Human {
            surface.printer.print_stderr("interrupted: verdicts so far were stored");
        }
        return ExitStatus::Interrupted;
    }
    if summary.judged == 0 {
        surface.printer.note("pass --force to judge all traces again");
    }
    match (summary.failed, summary.errored) {
        (_, 1..) => ExitStatus::Errored,
        (1.., _) => ExitStatus::Failed,
        _ => ExitStatus::Success,
    }
}
