//! Traces that cases are drafted from: of files, or of the store.

use std::io::{BufRead as _, BufReader, Read};
use std::sync::Arc;

use jiff::Timestamp;
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_forge::{Drafter, TraceDrafter, TraceReader};
use karat_store::Store;
use karat_traces::Kind;

use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::hint::Hint;
use crate::notice::Notices;

/// How many unused traces are named.
const MAX_NAMED: usize = 5;

/// How many traces are asked for at once.
const PAGE: u64 = 100;

const NAME_A_FILE: &str = "name a file: --traces FILE.jsonl";

/// Traces as JSON lines.
pub struct TraceInput {
    /// The file as the user would type it.
    pub name: String,
    pub reader: Box<dyn Read + Send>,
}

/// Traces that were read.
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
                reader.line(number, &line);
            }
            names.push(name);
        }
        if is_empty {
            return Err(Error::nothing_selected(format!("there are no traces in {}", names.join(", ")))
                .hint("each line of such a file is a trace"));
        }
        Ok(Self(reader))
    }

    /// Reads the store, without the traces of `karat run`: their messages are those of existing cases.
    pub(super) async fn from_store(
        tool: &str,
        since: Option<Timestamp>,
        rating: Option<Rating>,
        context: &Context<'_>,
    ) -> Result<Self, Error> {
        let sources = Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect();
        let filter = TraceFilter { sources, since, rating, ..TraceFilter::default() };
        let read = context.read_store(async |store| Self::read_pages(tool, store, &filter).await).await;
        let read = read.map_err(|error| match error.kind {
            ErrorKind::NothingSelected => error.hint(NAME_A_FILE),
            _ => error,
        });
        read?.ok_or_else(|| {
            let is_narrow = since.is_some() || rating.is_some();
            let hint = if is_narrow { "leave --since and --rating out".into() } else { Hint::ImportTraces };
            Error::nothing_selected("the store has no traces to draft from").hint(NAME_A_FILE).hint(hint)
        })
    }

    /// Reads all traces that fit; none where none does.
    async fn read_pages(tool: &str, store: &Store, filter: &TraceFilter) -> Result<Option<Self>, Error> {
        let mut reader = TraceReader::new(tool);
        let mut last: Option<String> = None;
        loop {
            let page = store.read_traces(filter, last.as_deref(), PAGE).await?;
            if page.is_empty() {
                return Ok(last.map(|_| Self(reader)));
            }
            for trace in page {
                let document = trace.document()?;
                reader.trace(trace.head.trace_id.clone(), &document);
                last = Some(trace.head.trace_id);
            }
        }
    }

    /// Returns who drafts from them, and says what is not used.
    pub(super) fn into_drafter(self, tool: &str, rest: Arc<dyn Drafter>, notices: &dyn Notices) -> TraceDrafter {
        let (drafter, report) = self.0.finish(rest);
        for refused in report.refused.iter().take(MAX_NAMED) {
            notices.warn(&format!("line {} of the traces is passed over: {}", refused.number, refused.why));
        }
        for left_out in report.left_out.iter().take(MAX_NAMED) {
            notices.note(&format!("trace {} is not used: {}", left_out.id, left_out.why));
        }
        notices.note(&format!(
            "{} of {} traces call {tool}; {} different messages are of use",
            report.calling, report.lines, report.usable
        ));
        drafter
    }
}
