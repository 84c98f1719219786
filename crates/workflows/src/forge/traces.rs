//! Reads the traces that cases are drafted from, from files or the store.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::Arc;

use jiff::Timestamp;
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_forge::{Drafter, TraceDrafter, TraceReader};
use karat_store::Store;

use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::hint::Hint;
use crate::notice::Notices;
use crate::trace_filter::RUN_SOURCE;

/// Maximum number of unused traces to report.
const MAX_REPORTED: usize = 5;

/// Number of traces per query.
const PAGE_SIZE: u64 = 100;

const TRACES_FILE_HINT: &str = "pass --traces FILE.jsonl";

/// Traces as JSON lines.
pub struct TraceInput {
    /// The file name for display.
    pub name: String,
    pub reader: Box<dyn Read + Send>,
}

/// The traces to draft from.
pub(super) struct TraceSource(TraceReader);

impl TraceSource {
    pub(super) fn from_inputs(tool: &str, inputs: Vec<TraceInput>) -> Result<Self, Error> {
        let mut reader = TraceReader::new(tool);
        let (mut number, mut is_empty) = (0, true);
        let mut names = Vec::new();
        for TraceInput { name, reader: input } in inputs {
            for line in BufReader::new(input).split(b'\n') {
                let line = line.map_err(|error| Error::invalid(format!("cannot read the traces {name}: {error}")))?;
                number += 1;
                is_empty &= line.trim_ascii().is_empty();
                reader.read_line(number, &line);
            }
            names.push(name);
        }
        if is_empty {
            return Err(Error::nothing_selected(format!("no traces in {}", names.join(", ")))
                .hint("a trace file has one trace per line"));
        }
        Ok(Self(reader))
    }

    /// Reads traces from the store, except those of `karat run`: their messages come from existing cases.
    pub(super) async fn from_store(
        tool: &str,
        since: Option<Timestamp>,
        rating: Option<Rating>,
        context: &Context<'_>,
    ) -> Result<Self, Error> {
        let excluded_source = Some(RUN_SOURCE.to_owned());
        let filter = TraceFilter { excluded_source, since, rating, ..TraceFilter::default() };
        let read = context.read_store(async |store| Self::read_pages(tool, store, &filter).await).await;
        let read = read.map_err(|error| match error.kind {
            ErrorKind::NothingSelected => error.hint(TRACES_FILE_HINT),
            _ => error,
        });
        read?.ok_or_else(|| {
            let is_narrow = since.is_some() || rating.is_some();
            let hint = if is_narrow { "remove --since and --rating".into() } else { Hint::ImportTraces };
            Error::nothing_selected("the store has no traces to draft from").hint(TRACES_FILE_HINT).hint(hint)
        })
    }

    /// Reads all matching traces; `None` if there are none.
    async fn read_pages(tool: &str, store: &Store, filter: &TraceFilter) -> Result<Option<Self>, Error> {
        let mut reader = TraceReader::new(tool);
        let mut last: Option<String> = None;
        loop {
            let page = store.read_traces(filter, last.as_deref(), PAGE_SIZE).await?;
            if page.is_empty() {
                return Ok(last.map(|_| Self(reader)));
            }
            for trace in page {
                let document = trace.document()?;
                reader.add_trace(trace.head.trace_id.clone(), &document);
                last = Some(trace.head.trace_id);
            }
        }
    }

    /// Returns a drafter for the traces, and reports unused traces.
    pub(super) fn into_drafter(self, tool: &str, rest: Arc<dyn Drafter>, notices: &dyn Notices) -> TraceDrafter {
        let (drafter, report) = self.0.finish(rest);
        for refused in report.invalid_lines.iter().take(MAX_REPORTED) {
            notices.warn(&format!("skipped line {} of the traces: {}", refused.number, refused.reason));
        }
        for left_out in report.rejected.iter().take(MAX_REPORTED) {
            notices.note(&format!("skipped trace {}: {}", left_out.id, left_out.reason));
        }
        notices.note(&format!(
            "{} of {} traces call {tool}; {} different messages are usable",
            report.calling, report.lines, report.usable
        ));
        drafter
    }
}
