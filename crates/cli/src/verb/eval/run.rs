//! `karat eval run`: judges traces in files by eval functions.

use std::io;
use std::ops::ControlFlow;

use karat_core::exit::ExitStatus;
use karat_report::eval_run_text;
use karat_workflows::functions::path_arguments;
use karat_workflows::judge_stream::{Evaluators, FilesEvent, FilesOutcome, FilesRequest, judge_files};

use super::progress::JudgingProgress;
use super::rows::Rows;
use crate::args::{EvalRunArgs, RowFormat};
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
    let context = surface.context(args, &path_arguments(&functions, current_dir))?;
    let evaluators = Evaluators { functions, options: args.limits.options(context.settings.eval_limits)? };
    let request = FilesRequest { evaluators, traces, stdin: Box::new(io::stdin()) };
    let mut output = Output { surface, rows: Rows::new(args.format), progress: None, error: None };
    let outcome = surface.run_cancellable(async |cancel| {
        judge_files(request, &context, &mut |event| output.on_event(event), &cancel).await
    });
    let Output { rows, progress, error, .. } = output;
    if let Some(progress) = progress {
        progress.end(surface.printer);
    }
    finish(outcome?, rows, error, args.format, surface)
}

/// Writes rows and shows progress.
struct Output<'o> {
    surface: &'o Surface<'o>,
    rows: Rows,
    progress: Option<JudgingProgress>,
    /// The error of writing rows.
    error: Option<io::Error>,
}

impl Output<'_> {
    fn on_event(&mut self, event: FilesEvent) -> ControlFlow<()> {
        let Surface { environment, printer } = self.surface;
        let written = match event {
            FilesEvent::Opened { bytes, reads_stdin } => {
                let is_interactive = reads_stdin && environment.stdin_is_terminal;
                if is_interactive {
                    printer.note("reading traces from the terminal, one JSON object per line");
                } else if !self.rows.is_enabled() {
                    self.progress = JudgingProgress::new(environment, printer, bytes);
                }
                Ok(())
            }
            FilesEvent::Judged(rows) if self.rows.is_enabled() => rows.iter().try_for_each(|row| self.rows.write(row)),
            FilesEvent::Judged(_) => Ok(()),
            FilesEvent::Progress { traces, passed, failed, errored, bytes } => {
                if let Some(progress) = &mut self.progress {
                    progress.show(traces, (passed, failed, errored), bytes);
                }
                Ok(())
            }
            FilesEvent::Idle => self.rows.flush(),
        };
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

fn finish(
    outcome: FilesOutcome,
    mut rows: Rows,
    error: Option<io::Error>,
    format: RowFormat,
    surface: &Surface<'_>,
) -> Result<ExitStatus, Failure> {
    let FilesOutcome { tally, summary, names, error: judging_error } = outcome;
    let printer = surface.printer;
    match error.map_or_else(|| rows.finish(&summary), Err) {
        // A closed pipe is not an error: the reader has stopped reading.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return Err(Failure::errored(format!("cannot write the rows: {error}"))),
        Ok(()) => {}
    }
    let is_human = format == RowFormat::Human;
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
