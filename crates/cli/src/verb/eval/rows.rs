//! Writes what came of each trace as it comes.

use std::io::{self, BufWriter, Stdout, Write};

use karat_evals::execution::Execution;
use serde::Serialize;

use crate::args::RowFormat;

/// Where rows go: nowhere for a summary, to stdout for programs.
pub(super) struct Rows {
    format: RowFormat,
    out: BufWriter<Stdout>,
    is_begun: bool,
}

impl Rows {
    pub(super) fn new(format: RowFormat) -> Self {
        Self { format, out: BufWriter::with_capacity(64 << 10, io::stdout()), is_begun: false }
    }

    /// Tells whether rows are written at all.
    pub(super) fn are_wanted(&self) -> bool {
        self.format != RowFormat::Table
    }

    pub(super) fn write(&mut self, row: &Execution) -> io::Result<()> {
        if self.format == RowFormat::Json {
            self.out.write_all(if self.is_begun { b",\n" } else { b"{\"executions\":[\n" })?;
        }
        self.is_begun = true;
        serde_json::to_writer(&mut self.out, row)?;
        if self.format == RowFormat::Jsonl {
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Hands on what was written, when nothing more is at hand.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Ends what programs read.
    pub(super) fn end(&mut self, summary: &impl Serialize) -> io::Result<()> {
        if self.format == RowFormat::Json {
            self.out.write_all(if self.is_begun {
                b"\n],\n\"summary\":"
            } else {
                b"{\"executions\":[],\n\"summary\":"
            })?;
            serde_json::to_writer(&mut self.out, summary)?;
            self.out.write_all(b"}\n")?;
        }
        self.out.flush()
    }
}
