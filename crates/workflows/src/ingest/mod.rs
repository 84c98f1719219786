//! Writes pieces of traces to the store, for imports and for the receiver.
//!
//! Each trace is written atomically and is on disk when [`Ingest::write`] returns. Writing is idempotent. Spans never
//! replace a whole trace, and a whole trace never replaces spans or a trace of another source: the second one under an
//! id is refused, since the two may be unrelated.

mod feedback;
mod merge;
mod totals;

use std::time::Duration;

use jiff::Timestamp;
use karat_core::document::TraceDocument;
use karat_core::port::{StoreError, TraceStore};
use karat_core::stored::{ExpectedState, NewTrace, PutOutcome, TraceHead};
use karat_evals::port::FeedbackStore;
use karat_json::hash::short_hash;
use karat_traces::{ImportedTrace, Piece, SourceFeedback, TraceFormat, TraceParts, UNREAD_CALLS_KEY, assemble};

use self::feedback::TraceFeedback;
use self::merge::{MergedTrace, merge_pieces};
pub(crate) use self::totals::Totals;

/// Maximum number of attempts to merge spans while other processes write the same trace.
const MAX_ATTEMPTS: u32 = 50;

/// Writes pieces to a store.
pub(crate) struct Ingest<'i, S> {
    pub(crate) store: &'i S,
    pub(crate) now: Timestamp,
    /// Also store the ratings of the source.
    pub(crate) with_feedback: bool,
}

/// The result of [`Ingest::write`].
#[derive(Debug, Default)]
pub(crate) struct IngestOutcome {
    pub(crate) traces: Vec<IngestedTrace>,
    pub(crate) refused: Vec<RefusedTrace>,
    /// Whole traces that were replaced by another one with the same id.
    pub(crate) superseded: u64,
    /// Ratings in the pieces, and how many of them are new in the store.
    pub(crate) feedback_found: u64,
    pub(crate) feedback_added: u64,
}

/// A stored trace.
#[derive(Debug)]
pub(crate) struct IngestedTrace {
    pub(crate) head: TraceHead,
    pub(crate) source: String,
    pub(crate) put: PutOutcome,
    /// The trace came as a whole, not as spans.
    pub(crate) is_whole: bool,
    /// Number of entries of `tool_calls` without a tool name.
    pub(crate) unread_calls: u64,
}

/// A trace that cannot be stored; a retry does not help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTrace {
    pub trace_id: String,
    /// A lower-case fragment.
    pub message: String,
}

/// A trace to write, with the data to prepare it again after a conflict.
struct PreparedTrace {
    trace: NewTrace,
    feedback: Vec<SourceFeedback>,
    /// The incoming spans, without those in the store.
    parts: Option<Box<TraceParts>>,
}

impl<S: TraceStore + FeedbackStore> Ingest<'_, S> {
    /// Writes the pieces. After an error some traces may have been written, each completely.
    pub(crate) async fn write(&self, pieces: Vec<Piece>) -> Result<IngestOutcome, StoreError> {
        let batch = merge_pieces(pieces);
        let mut ingested =
            IngestOutcome { superseded: batch.superseded, refused: batch.refused, ..IngestOutcome::default() };
        let mut waiting = Vec::with_capacity(batch.traces.len());
        for trace in batch.traces {
            match prepare(trace) {
                Ok(prepared) => waiting.push(prepared),
                Err(refused) => ingested.refused.push(refused),
            }
        }
        let mut feedback = Vec::new();
        for attempt in 0..MAX_ATTEMPTS {
            if waiting.is_empty() {
                break;
            }
            if attempt > 2 {
                // Let other writers of the same trace finish.
                tokio::time::sleep(Duration::from_millis(u64::from(attempt))).await;
            }
            waiting = self.put(waiting, &mut ingested, &mut feedback).await?;
        }
        if let Some(left) = waiting.first() {
            let message = format!("cannot merge trace {}: other processes keep writing it", left.trace.head.trace_id);
            return Err(StoreError { message, hint: None });
        }
        ingested.feedback_found = feedback.iter().map(|trace: &TraceFeedback| trace.ratings.len() as u64).sum();
        if self.with_feedback {
            ingested.feedback_added = feedback::add(self.store, self.now, &feedback).await?;
        }
        Ok(ingested)
    }

    /// Writes the traces in one transaction. Returns those that have to be written again after a conflict.
    async fn put(
        &self,
        waiting: Vec<PreparedTrace>,
        ingested: &mut IngestOutcome,
        all_feedback: &mut Vec<TraceFeedback>,
    ) -> Result<Vec<PreparedTrace>, StoreError> {
        let (traces, rest): (Vec<NewTrace>, Vec<_>) =
            waiting.into_iter().map(|prepared| (prepared.trace, (prepared.feedback, prepared.parts))).unzip();
        let puts = self.store.put_traces(&traces, self.now).await?;
        let mut again = Vec::new();
        for ((trace, (feedback, parts)), put) in traces.into_iter().zip(rest).zip(puts) {
            let prepared = match (put, parts) {
                (PutOutcome::Conflict, Some(parts)) => self.merge_with_stored(parts).await?,
                (PutOutcome::Conflict, None) => self.replace_stored(trace, feedback).await?,
                (put, parts) => {
                    let NewTrace { head, source, document, .. } = trace;
                    if !feedback.is_empty() {
                        all_feedback.push(TraceFeedback::new(&head, &source, feedback));
                    }
                    let is_whole = parts.is_none();
                    let unread_calls = count_unread_calls(document);
                    ingested.traces.push(IngestedTrace { head, source, put, is_whole, unread_calls });
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

    /// Prepares a whole trace to replace the stored one with the same id.
    async fn replace_stored(
        &self,
        trace: NewTrace,
        feedback: Vec<SourceFeedback>,
    ) -> Result<Result<PreparedTrace, RefusedTrace>, StoreError> {
        let Some(stored) = self.read_stored(&trace.head.trace_id).await? else {
            let trace = NewTrace { expected: ExpectedState::Absent, ..trace };
            return Ok(Ok(PreparedTrace { trace, feedback, parts: None }));
        };
        if is_span_based(&stored.source) {
            let message = format!(
                "spans of this trace from {} are already stored: a whole trace from {} cannot replace them",
                stored.source, trace.source
            );
            return Ok(Err(RefusedTrace { trace_id: trace.head.trace_id, message }));
        }
        if !is_same_source(&stored.source, &trace.source) {
            let message = format!(
                "another trace with this id from {} is already stored: a trace from {} cannot replace it",
                stored.source, trace.source
            );
            return Ok(Err(RefusedTrace { trace_id: trace.head.trace_id, message }));
        }
        let trace = NewTrace { expected: ExpectedState::RawHash(short_hash(&stored.raw)), ..trace };
        Ok(Ok(PreparedTrace { trace, feedback, parts: None }))
    }

    /// Merges spans with the stored ones of the same trace.
    async fn merge_with_stored(
        &self,
        parts: Box<TraceParts>,
    ) -> Result<Result<PreparedTrace, RefusedTrace>, StoreError> {
        let Some(stored) = self.read_stored(&parts.trace_id).await? else {
            return Ok(prepare_parts(parts));
        };
        // Check the source, not the payload: a document of another source may also parse as spans.
        if !is_span_based(&stored.source) {
            let message = format!(
                "a whole trace with this id from {} is already stored: spans from {} cannot replace it",
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
        Ok(assemble_trace(&all, parts, ExpectedState::RawHash(short_hash(&stored.raw))))
    }

    /// Reads the stored trace with an id. If it is written between the two reads, the hash of its payload differs and
    /// the write conflicts again.
    async fn read_stored(&self, trace_id: &str) -> Result<Option<StoredPayload>, StoreError> {
        let Some(raw) = self.store.raw(trace_id).await? else { return Ok(None) };
        let trace = self.store.trace(trace_id).await?;
        Ok(trace.map(|trace| StoredPayload { source: trace.source, raw }))
    }
}

/// The payload and source of a stored trace.
struct StoredPayload {
    source: String,
    raw: Vec<u8>,
}

/// Whether traces of this source come in spans. Those of `karat run` are whole.
fn is_span_based(source: &str) -> bool {
    TraceFormat::from_name(source).is_some_and(TraceFormat::is_span_based)
}

/// Whether both traces may come from the same source. The detected vendor of a chat log can change as the log grows,
/// since only some messages are specific to a vendor.
fn is_same_source(first: &str, second: &str) -> bool {
    let is_log =
        |name: &str| matches!(TraceFormat::from_name(name), Some(TraceFormat::OpenAi | TraceFormat::Anthropic));
    first == second || is_log(first) && is_log(second)
}

fn prepare(trace: MergedTrace) -> Result<PreparedTrace, RefusedTrace> {
    match trace {
        // Assume that the trace is new; the store reports a conflict if it is not.
        MergedTrace::Whole(whole) => prepare_whole(*whole),
        MergedTrace::Parts(parts) => prepare_parts(parts),
    }
}

fn prepare_whole(whole: ImportedTrace) -> Result<PreparedTrace, RefusedTrace> {
    let ImportedTrace { format, trace_id, document, raw, feedback } = whole;
    let head = head_of(&trace_id, &document)?;
    let trace =
        NewTrace { head, source: format.name().to_owned(), document, raw: Some(raw), expected: ExpectedState::Absent };
    Ok(PreparedTrace { trace, feedback, parts: None })
}

fn prepare_parts(parts: Box<TraceParts>) -> Result<PreparedTrace, RefusedTrace> {
    assemble_trace(&parts.clone(), parts, ExpectedState::Absent)
}

/// Assembles a trace from all its spans; `incoming` has only the new ones.
fn assemble_trace(
    all: &TraceParts,
    incoming: Box<TraceParts>,
    expected: ExpectedState,
) -> Result<PreparedTrace, RefusedTrace> {
    let assembled = assemble(all);
    let document = assembled.document.to_text();
    let trace = NewTrace {
        head: head_of(&all.trace_id, &document)?,
        source: all.source.clone(),
        document,
        raw: Some(serde_json::to_vec(all).map_err(|error| unreadable(&all.trace_id, &error))?),
        expected,
    };
    Ok(PreparedTrace { trace, feedback: assembled.feedback, parts: Some(incoming) })
}

/// Counts the entries of `tool_calls` that could not be read, which the document's metadata lists.
fn count_unread_calls(document: String) -> u64 {
    // Almost no document has any, so it is not parsed again.
    if !document.contains(UNREAD_CALLS_KEY) {
        return 0;
    }
    let document = TraceDocument::parse(document).ok();
    let unread = document.as_ref().and_then(|document| document.metadata(UNREAD_CALLS_KEY)?.as_array());
    unread.map_or(0, |unread| unread.len() as u64)
}

fn head_of(trace_id: &str, document: &str) -> Result<TraceHead, RefusedTrace> {
    let document = TraceDocument::parse(document).map_err(|error| unreadable(trace_id, &error))?;
    Ok(TraceHead::from_document(trace_id, &document))
}

fn unreadable(trace_id: &str, error: &dyn std::error::Error) -> RefusedTrace {
    RefusedTrace { trace_id: trace_id.to_owned(), message: format!("cannot read the trace's document: {error}") }
}
