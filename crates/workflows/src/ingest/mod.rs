//! Writes pieces of traces into the store, for imports and for the receiver.
//!
//! A trace is written whole or not at all, and everything is on disk when [`Ingest::write`] returns. Writing the same
//! pieces again changes nothing. Spans never replace a whole trace, nor does a whole trace replace spans or a trace of
//! another source: what comes second under an id is refused, since nothing says that both are about the same work.

mod feedback;
mod gather;
mod totals;

use std::time::Duration;

use jiff::Timestamp;
use karat_core::document::TraceDocument;
use karat_core::port::{StoreError, TraceStore};
use karat_core::stored::{Expected, NewTrace, Put, TraceHead};
use karat_evals::port::FeedbackStore;
use karat_json::hash::short_hash;
use karat_traces::{Imported, Kind, Piece, SourceFeedback, TraceParts, assemble};

use self::feedback::SourceStatements;
use self::gather::{Gathered, gather};
pub(crate) use self::totals::Totals;

/// How often spans are merged again because another process wrote the same trace in the meantime.
const MAX_ATTEMPTS: u32 = 50;

/// Writes pieces into a store.
pub(crate) struct Ingest<'i, S> {
    pub(crate) store: &'i S,
    pub(crate) now: Timestamp,
    /// Also store the ratings that the source has of people.
    pub(crate) with_feedback: bool,
}

/// What came of some pieces.
#[derive(Debug, Default)]
pub(crate) struct Ingested {
    pub(crate) traces: Vec<IngestedTrace>,
    pub(crate) refused: Vec<RefusedTrace>,
    /// Whole traces that another one of the same id replaced.
    pub(crate) superseded: u64,
    /// Ratings in these pieces, and how many of them are new in the store.
    pub(crate) feedback_found: u64,
    pub(crate) feedback_added: u64,
}

/// A trace that is in the store now.
#[derive(Debug)]
pub(crate) struct IngestedTrace {
    pub(crate) head: TraceHead,
    pub(crate) source: String,
    pub(crate) put: Put,
    /// It came as one, not in spans of which there may be more.
    pub(crate) is_whole: bool,
}

/// A trace that cannot be stored, however often it is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTrace {
    pub trace_id: String,
    /// A lower-case fragment.
    pub message: String,
}

/// A trace to be written, and what is needed to prepare it again.
struct Prepared {
    trace: NewTrace,
    feedback: Vec<SourceFeedback>,
    /// The spans that came; those in the store are not among them.
    parts: Option<Box<TraceParts>>,
}

impl<S: TraceStore + FeedbackStore> Ingest<'_, S> {
    /// Writes these pieces. When it fails, some of them may have been written; none is by half.
    pub(crate) async fn write(&self, pieces: Vec<Piece>) -> Result<Ingested, StoreError> {
        let gathered = gather(pieces);
        let mut ingested =
            Ingested { superseded: gathered.superseded, refused: gathered.refused, ..Ingested::default() };
        let mut waiting = Vec::with_capacity(gathered.traces.len());
        for trace in gathered.traces {
            match prepare(trace) {
                Ok(prepared) => waiting.push(prepared),
                Err(refused) => ingested.refused.push(refused),
            }
        }
        let mut statements = Vec::new();
        for attempt in 0..MAX_ATTEMPTS {
            if waiting.is_empty() {
                break;
            }
            if attempt > 2 {
                // Lets another writer of the same trace go first.
                tokio::time::sleep(Duration::from_millis(u64::from(attempt))).await;
            }
            waiting = self.put(waiting, &mut ingested, &mut statements).await?;
        }
        if let Some(left) = waiting.first() {
            let message = format!("others keep writing the trace {}", left.trace.head.trace_id);
            return Err(StoreError { message, hint: None });
        }
        ingested.feedback_found = statements.iter().map(|of: &SourceStatements| of.feedback.len() as u64).sum();
        if self.with_feedback {
            ingested.feedback_added = feedback::add(self.store, self.now, &statements).await?;
        }
        Ok(ingested)
    }

    /// Writes all traces together, and returns those that have to be prepared again.
    async fn put(
        &self,
        waiting: Vec<Prepared>,
        ingested: &mut Ingested,
        statements: &mut Vec<SourceStatements>,
    ) -> Result<Vec<Prepared>, StoreError> {
        let (traces, rest): (Vec<NewTrace>, Vec<_>) =
            waiting.into_iter().map(|prepared| (prepared.trace, (prepared.feedback, prepared.parts))).unzip();
        let puts = self.store.put_traces(&traces, self.now).await?;
        let mut again = Vec::new();
        for ((trace, (feedback, parts)), put) in traces.into_iter().zip(rest).zip(puts) {
            let prepared = match (put, parts) {
                (Put::Conflict, Some(parts)) => self.merged(parts).await?,
                (Put::Conflict, None) => self.replacing(trace, feedback).await?,
                (put, parts) => {
                    let NewTrace { head, source, .. } = trace;
                    if !feedback.is_empty() {
                        statements.push(SourceStatements::new(&head, &source, feedback));
                    }
                    let is_whole = parts.is_none();
                    ingested.traces.push(IngestedTrace { head, source, put, is_whole });
                    continue;
                }
            };
            match prepared {
                Ok(prepared) => again.push(prepared),
                Err(refused) => ingested.refused.push(refused),
            }
        }
        Ok(again)
    }

    /// Prepares a whole trace that replaces the stored one of its id.
    async fn replacing(
        &self,
        trace: NewTrace,
        feedback: Vec<SourceFeedback>,
    ) -> Result<Result<Prepared, RefusedTrace>, StoreError> {
        let Some(stored) = self.stored(&trace.head.trace_id).await? else {
            let trace = NewTrace { expected: Expected::Nothing, ..trace };
            return Ok(Ok(Prepared { trace, feedback, parts: None }));
        };
        if comes_in_spans(&stored.source) {
            let message = format!(
                "spans of this trace are stored already, from {}: a whole trace, from {}, does not take their place",
                stored.source, trace.source
            );
            return Ok(Err(RefusedTrace { trace_id: trace.head.trace_id, message }));
        }
        if !is_of_one_source(&stored.source, &trace.source) {
            let message = format!(
                "another trace of this id is stored already, from {}: this one, from {}, does not take its place",
                stored.source, trace.source
            );
            return Ok(Err(RefusedTrace { trace_id: trace.head.trace_id, message }));
        }
        let trace = NewTrace { expected: Expected::Raw(short_hash(&stored.raw)), ..trace };
        Ok(Ok(Prepared { trace, feedback, parts: None }))
    }

    /// Merges spans with the stored ones of the same trace.
    async fn merged(&self, parts: Box<TraceParts>) -> Result<Result<Prepared, RefusedTrace>, StoreError> {
        let Some(stored) = self.stored(&parts.trace_id).await? else {
            return Ok(prepare_parts(parts));
        };
        // A document may have any fields: that it reads as spans does not make it spans.
        if !comes_in_spans(&stored.source) {
            let message = format!(
                "a whole trace of this id is stored already, from {}: spans, from {}, do not take its place",
                stored.source, parts.source
            );
            return Ok(Err(RefusedTrace { trace_id: parts.trace_id.clone(), message }));
        }
        let mut all: TraceParts = match serde_json::from_slice(&stored.raw) {
            Ok(all) => all,
            Err(error) => {
                let message = format!("cannot read the stored spans of this trace: {error}");
                return Ok(Err(RefusedTrace { trace_id: parts.trace_id.clone(), message }));
            }
        };
        all.merge((*parts).clone());
        Ok(assembled(&all, parts, Expected::Raw(short_hash(&stored.raw))))
    }

    /// Reads what is stored under an id. Where the trace is written between the two reads, the hash of its payload differs,
    /// and writing is a conflict again.
    async fn stored(&self, trace_id: &str) -> Result<Option<StoredPayload>, StoreError> {
        let Some(raw) = self.store.raw(trace_id).await? else { return Ok(None) };
        let trace = self.store.trace(trace_id).await?;
        Ok(trace.map(|trace| StoredPayload { source: trace.source, raw }))
    }
}

/// The payload that is stored under an id.
struct StoredPayload {
    source: String,
    raw: Vec<u8>,
}

/// Whether a source's traces come in spans. Those of `karat run` are whole.
fn comes_in_spans(source: &str) -> bool {
    Kind::from_name(source).is_some_and(Kind::comes_in_spans)
}

/// Whether one source may have written both. A log that grew may look like one of the other vendor, since only some of its
/// messages show whose they are.
fn is_of_one_source(one: &str, other: &str) -> bool {
    let is_log = |name: &str| matches!(Kind::from_name(name), Some(Kind::OpenAi | Kind::Anthropic));
    one == other || is_log(one) && is_log(other)
}

fn prepare(gathered: Gathered) -> Result<Prepared, RefusedTrace> {
    match gathered {
        // Most traces are new or the same as before: the others are read when the store reports a conflict.
        Gathered::Whole(whole) => prepare_whole(*whole),
        Gathered::Parts(parts) => prepare_parts(parts),
    }
}

fn prepare_whole(whole: Imported) -> Result<Prepared, RefusedTrace> {
    let Imported { kind, trace_id, document, raw, feedback } = whole;
    let head = head_of(&trace_id, &document)?;
    let trace =
        NewTrace { head, source: kind.name().to_owned(), document, raw: Some(raw), expected: Expected::Nothing };
    Ok(Prepared { trace, feedback, parts: None })
}

fn prepare_parts(parts: Box<TraceParts>) -> Result<Prepared, RefusedTrace> {
    assembled(&parts.clone(), parts, Expected::Nothing)
}

/// Assembles a trace from all its spans, some of which came just now.
fn assembled(all: &TraceParts, came: Box<TraceParts>, expected: Expected) -> Result<Prepared, RefusedTrace> {
    let assembled = assemble(all);
    let document = assembled.document.to_text();
    let trace = NewTrace {
        head: head_of(&all.trace_id, &document)?,
        source: all.source.clone(),
        document,
        raw: Some(serde_json::to_vec(all).map_err(|error| unreadable(&all.trace_id, &error))?),
        expected,
    };
    Ok(Prepared { trace, feedback: assembled.feedback, parts: Some(came) })
}

fn head_of(trace_id: &str, document: &str) -> Result<TraceHead, RefusedTrace> {
    let document = TraceDocument::read(document).map_err(|error| unreadable(trace_id, &error))?;
    Ok(TraceHead::of(trace_id, &document))
}

fn unreadable(trace_id: &str, error: &dyn std::error::Error) -> RefusedTrace {
    RefusedTrace { trace_id: trace_id.to_owned(), message: format!("cannot read the trace's document: {error}") }
}
