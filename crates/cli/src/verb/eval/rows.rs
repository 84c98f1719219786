//! Writes executions to stdout as they finish.

use std::io::{self, BufWriter, Stdout, Write};

use karat_evals::execution::Execution;
use karat_report::escape_json;
use serde::Serialize;

use crate::args::RowFormat;

/// Writes rows as JSON or JSON Lines; nothing for a summary.
pub(super) struct Rows {
    format: RowFormat,
    out: BufWriter<Stdout>,
    is_started: bool,
}

impl Rows {
    pub(super) fn new(format: RowFormat) -> Self {
        Self { format, out: BufWriter::with_capacity(64 << 10, io::stdout()), is_started: false }
    }

    /// Whether rows are written.
    pub(super) fn is_enabled(&self) -> bool {
        self.format != RowFormat::Human
    }

    pub(super) fn write(&mut self, row: &Execution) -> io::Result<()> {
        if self.format == RowFormat::Json {
            self.out.write_all(if self.is_started { b",\n" } else { b"{\"executions\":[\n" })?;
        }
        self.is_started = true;
        self.out.write_all(escape_json(&serde_json::to_string(row)?).as_bytes())?;
        if self.format == RowFormat::Jsonl {
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes the summary and the end of the document.
    pub(super) fn finish(&mut self, summary: &impl Serialize) -> io::Result<()> {
        if self.format == RowFormat::Json {
            self.out.write_all(if self.is_started {
                b"\n],\n\"summary\":"
            } else {
                b"{\"executions\":[],\n\"summary\":"
            })?;
            self.out.write_all(escape_json(&serde_json::to_string(summary)?).as_bytes())?;
            self.out.write_all(b"}\n")?;
        }
        self.out.flush()
    }
}
