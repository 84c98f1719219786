//! Verdicts of traces as JSON, written as they finish.

use std::io::{self, BufWriter, Write};

use karat_evals::execution::Execution;
use serde::Serialize;

use crate::json_escapes::escape_json;

/// The layout of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowLayout {
    /// One JSON object per line.
    Lines,
    /// One document with all rows and the summary.
    Document,
}

/// Writes rows as JSON.
pub struct ExecutionRows<W: Write> {
    out: BufWriter<W>,
    layout: RowLayout,
    is_started: bool,
}

impl<W: Write> ExecutionRows<W> {
    pub fn new(out: W, layout: RowLayout) -> Self {
        Self { out: BufWriter::with_capacity(64 << 10, out), layout, is_started: false }
    }

    pub fn write(&mut self, row: &Execution) -> io::Result<()> {
        if self.layout == RowLayout::Document {
            self.out.write_all(if self.is_started { b",\n" } else { b"{\"executions\":[\n" })?;
        }
        self.is_started = true;
        self.write_json(row)?;
        if self.layout == RowLayout::Lines { self.out.write_all(b"\n") } else { Ok(()) }
    }

    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the summary and the end of the document.
    pub fn finish(&mut self, summary: &impl Serialize) -> io::Result<()> {
        if self.layout == RowLayout::Document {
            self.out.write_all(if self.is_started { b"\n" } else { b"{\"executions\":[" })?;
            self.out.write_all(b"],\n\"summary\":")?;
            self.write_json(summary)?;
            self.out.write_all(b"}\n")?;
        }
        self.flush()
    }

    fn write_json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.out.write_all(escape_json(&serde_json::to_string(value)?).as_bytes())
    }
}
