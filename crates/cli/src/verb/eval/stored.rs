//! `karat eval run --stored`: judges stored traces by stored evals.

use std::io;
use std::ops::ControlFlow;

use karat_core::exit::ExitStatus;
use karat_evals::execution::Execution;
use karat_evals::report::StoredEvalRunSummary;
use karat_report::stored_eval_run_text;
use karat_workflows::functions::looks_like_path;
use karat_workflows::judge_stored::{Event, Outcome, Request, judge_stored};

use super::progress::JudgingProgress;
use super::rows::Rows;
use crate::args::{EvalRunArgs, RowFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &EvalRunArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    reject_files(&args.functions)?;
    let context = surface.context(args, &[])?;
    let request = Request {
        evals: args.functions.clone(),
        version: args.version,
        filter: args.filter.filter(context.clock.now())?,
        again: args.force,
        options: args.limits.options(context.settings.eval_limits)?,
    };
    let mut output = Output::new(args.format, surface);
    let outcome = surface.run_cancellable(async |cancel| {
        judge_stored(request, &context, &mut |event| output.on_event(event), &cancel).await
    });
    let (rows, error) = output.finish();
    let Outcome { summary, error: judging_error } = outcome?;
    finish(args.format, rows, error, &summary, surface)?;
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

/// Writes rows and shows progress.
struct Output<'o> {
    surface: &'o Surface<'o>,
    rows: Rows,
    progress: Option<JudgingProgress>,
    /// The error of writing rows.
    error: Option<io::Error>,
}

impl<'o> Output<'o> {
    fn new(format: RowFormat, surface: &'o Surface<'o>) -> Self {
        Self { surface, rows: Rows::new(format), progress: None, error: None }
    }

    fn on_event(&mut self, event: Event) -> ControlFlow<()> {
        let written = match event {
            Event::Planned { to_judge } => {
                if to_judge > 0 && !self.rows.is_enabled() {
                    let Surface { environment, printer } = self.surface;
                    self.progress = JudgingProgress::new(environment, printer, Some(to_judge));
                }
                Ok(())
            }
            Event::Stored(row) if self.rows.is_enabled() => self.rows.write(&Execution::from(*row)),
            Event::Stored(_) => Ok(()),
            Event::Progress { judged, passed, failed, errored } => {
                if let Some(progress) = &mut self.progress {
                    progress.show(judged, (passed, failed, errored), judged);
                }
                Ok(())
            }
            Event::Idle => self.rows.flush(),
        };
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    fn finish(self) -> (Rows, Option<io::Error>) {
        if let Some(progress) = self.progress {
            progress.end(self.surface.printer);
        }
        (self.rows, self.error)
    }
}

/// Writes the summary, also of a partial run.
fn finish(
    format: RowFormat,
    mut rows: Rows,
    error: Option<io::Error>,
    summary: &StoredEvalRunSummary,
    surface: &Surface<'_>,
) -> Result<(), Failure> {
    match error.map_or_else(|| rows.finish(summary), Err) {
        // A closed pipe is not an error: the reader has stopped reading.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return Err(Failure::errored(format!("cannot write the rows: {error}"))),
        Ok(()) => {}
    }
    if format == RowFormat::Human {
        surface.printer.print(&stored_eval_run_text(summary, surface.printer.console()))?;
    }
    Ok(())
}

fn status(summary: &StoredEvalRunSummary, format: RowFormat, surface: &Surface<'_>) -> ExitStatus {
    if summary.interrupted {
        if format != RowFormat::Human {
            surface.printer.print_stderr("interrupted: verdicts so far were stored");
        }
        return ExitStatus::Interrupted;
    }
    if summary.judged == 0 {
        surface.printer.note("all traces were judged before; pass --force to judge them again");
    }
    match (summary.failed, summary.errored) {
        (_, 1..) => ExitStatus::Errored,
        (1.., _) => ExitStatus::Failed,
        _ => ExitStatus::Success,
    }
}
