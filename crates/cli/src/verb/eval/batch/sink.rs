//! Where the rows go, in the format in which the traces came.

use std::io::{self, BufWriter, Write};

use karat_evals::execution::Execution;
use karat_sandbox::{ArrowBatch, ArrowBatches, ArrowRows};

/// Takes rows, and hands them on at the right moment.
pub(super) trait Sink {
    /// Returns what the engine calls the trace that comes next, where that is not in the trace.
    fn begin_trace(&mut self) -> io::Result<Option<String>>;

    fn write(&mut self, row: &Execution) -> io::Result<()>;

    fn end_trace(&mut self) -> io::Result<()>;

    /// Hands on what can be, when no further trace is at hand.
    fn flush(&mut self) -> io::Result<()>;

    /// Hands on the last rows, and says that nothing follows: if it is so.
    fn end(self, is_whole: bool) -> io::Result<()>;
}

/// A JSON object on each line.
pub(super) struct LineSink<W: Write>(BufWriter<W>);

impl<W: Write> LineSink<W> {
    pub(super) fn new(out: W) -> Self {
        Self(BufWriter::with_capacity(64 << 10, out))
    }
}

impl<W: Write> Sink for LineSink<W> {
    fn begin_trace(&mut self) -> io::Result<Option<String>> {
        Ok(None)
    }

    fn write(&mut self, row: &Execution) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, row)?;
        self.0.write_all(b"\n")
    }

    fn end_trace(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn end(mut self, _is_whole: bool) -> io::Result<()> {
        self.0.flush()
    }
}

/// A record batch of rows for each record batch of traces.
pub(super) struct ArrowSink<W: Write> {
    rows: ArrowRows<W>,
    batches: ArrowBatches,
    /// The record batch whose traces come, and how many of them did.
    current: Option<(ArrowBatch, usize)>,
}

impl<W: Write> ArrowSink<W> {
    pub(super) fn new(out: W, batches: ArrowBatches) -> io::Result<Self> {
        Ok(Self { rows: ArrowRows::new(out)?, batches, current: None })
    }

    /// Goes to the next record batch with traces; those without have an answer without rows.
    fn go_on(&mut self) -> io::Result<()> {
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

impl<W: Write> Sink for ArrowSink<W> {
    fn begin_trace(&mut self) -> io::Result<Option<String>> {
        self.go_on()?;
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
        self.go_on()
    }

    fn end(mut self, is_whole: bool) -> io::Result<()> {
        self.go_on()?;
        if is_whole { self.rows.finish() } else { Ok(()) }
    }
}
