//! Rows of `karat eval batch`, in the format of the input.

use std::io::{self, Write};

use karat_evals::execution::Execution;
use karat_sandbox::{ArrowBatch, ArrowBatches, ArrowRows};

use super::rows::ExecutionRows;

/// Writes the rows of each trace.
pub trait RowSink {
    /// Returns the id of the next trace from the id column, if there is one.
    fn begin_trace(&mut self) -> io::Result<Option<String>>;

    fn write(&mut self, row: &Execution) -> io::Result<()>;

    fn end_trace(&mut self) -> io::Result<()>;

    /// Writes buffered rows while no further trace is available.
    fn flush(&mut self) -> io::Result<()>;

    /// Writes the last rows, and the end marker if the output is complete.
    fn finish(self, is_complete: bool) -> io::Result<()>;
}

impl<W: Write> RowSink for ExecutionRows<W> {
    fn begin_trace(&mut self) -> io::Result<Option<String>> {
        Ok(None)
    }

    fn write(&mut self, row: &Execution) -> io::Result<()> {
        self.write(row)
    }

    fn end_trace(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush()
    }

    fn finish(mut self, _is_complete: bool) -> io::Result<()> {
        self.flush()
    }
}

/// A record batch of rows for each record batch of traces.
pub struct ArrowSink<W: Write> {
    rows: ArrowRows<W>,
    batches: ArrowBatches,
    /// The current record batch, and how many of its traces are done.
    current: Option<(ArrowBatch, usize)>,
}

impl<W: Write> ArrowSink<W> {
    pub fn new(out: W, batches: ArrowBatches) -> io::Result<Self> {
        Ok(Self { rows: ArrowRows::new(out)?, batches, current: None })
    }

    /// Advances to the next record batch with traces; empty batches get an empty batch of rows.
    fn advance(&mut self) -> io::Result<()> {
        while self.current.is_none() {
            match self.batches.try_recv() {
                Ok(batch) if batch.rows == 0 => self.rows.end_batch()?,
                Ok(batch) => self.current = Some((batch, 0)),
                Err(_) => break,
            }
        }
        Ok(())
    }
}

impl<W: Write> RowSink for ArrowSink<W> {
    fn begin_trace(&mut self) -> io::Result<Option<String>> {
        self.advance()?;
        let id = self.current.as_ref().and_then(|(batch, row)| batch.trace_ids.as_ref()?.text(*row));
        Ok(id.map(str::to_owned))
    }

    fn write(&mut self, row: &Execution) -> io::Result<()> {
        self.rows.push(row)
    }

    fn end_trace(&mut self) -> io::Result<()> {
        if let Some((batch, row)) = &mut self.current {
            *row += 1;
            if *row == batch.rows {
                self.current = None;
                self.rows.end_batch()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.advance()
    }

    fn finish(mut self, is_complete: bool) -> io::Result<()> {
        self.advance()?;
        if is_complete { self.rows.finish() } else { Ok(()) }
    }
}
