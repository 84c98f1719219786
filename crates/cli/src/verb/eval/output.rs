//! Output while traces are judged: rows on stdout, or progress on stderr.

use std::io::{self, Stdout};
use std::ops::ControlFlow;

use karat_report::{ExecutionRows, RowLayout};
use serde::Serialize;

use crate::args::RowFormat;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::surface::Surface;

/// Writes rows and shows progress.
pub(super) struct Output<'o> {
    pub(super) surface: &'o Surface<'o>,
    /// `None` if only a summary is printed.
    pub(super) rows: Option<ExecutionRows<Stdout>>,
    progress: Option<Progress<'o>>,
    /// The error of writing rows.
    error: Option<io::Error>,
}

impl<'o> Output<'o> {
    pub(super) fn new(format: RowFormat, surface: &'o Surface<'o>) -> Self {
        let rows = |layout| Some(ExecutionRows::new(io::stdout(), layout));
        let rows = match format {
            RowFormat::Human => None,
            RowFormat::Jsonl => rows(RowLayout::Lines),
            RowFormat::Json => rows(RowLayout::Document),
        };
        Self { surface, rows, progress: None, error: None }
    }

    /// Shows the progress, unless rows are written; the total is in bytes or traces.
    pub(super) fn start(&mut self, total: Option<u64>) {
        if self.rows.is_none() {
            self.progress = Progress::bar(self.surface, total, "");
        }
    }

    /// Shows the outcomes so far (passed, failed, errored), and how much of the total is done.
    pub(super) fn show(&mut self, (passed, failed, errored): (u64, u64, u64), done: u64) {
        if let Some(progress) = &mut self.progress {
            progress.show(done, || {
                let errored = if errored > 0 { format!(", {errored} errored") } else { String::new() };
                format!("{passed} passed, {failed} failed{errored}")
            });
        }
    }

    /// Writes to the rows; an error ends the work.
    pub(super) fn write(
        &mut self,
        write: impl FnOnce(&mut ExecutionRows<Stdout>) -> io::Result<()>,
    ) -> ControlFlow<()> {
        match self.rows.as_mut().map_or(Ok(()), write) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Writes the summary of the rows.
    pub(super) fn finish(mut self, summary: &impl Serialize) -> Result<(), Failure> {
        if self.error.is_none() {
            let _ = self.write(|rows| rows.finish(summary));
        }
        match self.error {
            Some(error) => write_failure(&error),
            None => Ok(()),
        }
    }
}

/// Converts an error of writing rows. A closed pipe is not an error: the reader has stopped reading.
pub(super) fn write_failure(error: &io::Error) -> Result<(), Failure> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(Failure::errored(format!("cannot write the rows: {error}"))),
    }
}
