//! Pieces of traces into the store: imports and the receiver both go through here.
//!
//! A trace is written whole or not at all, and everything that was taken is on disk when [`Ingest::take`] returns. The
//! same pieces again change nothing. Spans never take the place of a whole trace, nor a whole trace that of spans or of
//! another source's: what comes second under an id is refused, since nothing says that both tell of the same work.

mod feedback;
mod gather;
mod totals;

use std::time::Duration;

use karat_core::port::{Clock, FeedbackStore, StoreError, TraceStore};
use karat_core::stored::{Expected, NewTrace, Put, TraceHead};
use karat_json::hash::short_hash;
use karat_traces::{Imported, Kind, Piece, SourceFeedback, TraceParts, assemble};
use serde_json::Value;

use self::gather::{Gathered, gather};
pub(crate) use self::totals::Totals;

/// How often spans are merged anew because somebody else wrote the same trace in the meantime.
const MOST_ROUNDS: u32 = 50;

/// Writes pieces into a store.
pub(crate) struct Ingest<'i, S> {
    store: &'i S,
    clock: &'i dyn Clock,
    with_feedback: bool,
}

/// What came of some pieces.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) traces: Vec<TakenTrace>,
    /// What no store could keep, whatever is done.
    pub(crate) refused: Vec<RefusedTrace>,
    /// Whole traces in whose place another one of the same id came.
    pub(crate) superseded: u64,
    /// Statements of people in these pieces, and how many of them are new in the store.
    pub(crate) feedback_found: u64,
    pub(crate) feedback_added: u64,
}

/// A trace that is in the store now.
#[derive(Debug)]
pub(crate) struct TakenTrace {
    pub(crate) head: TraceHead,
    pub(crate) source: String,
    pub(crate) put: Put,
    /// It came as one, not in spans of which there may be more.
    pub(crate) is_whole: bool,
}

/// A trace that cannot be kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RefusedTrace {
    pub(crate) trace_id: String,
    /// A lower-case fragment.
    pub(crate) message: String,
}

/// A trace on its way, and what is needed to make it anew.
struct Prepared {
    trace: NewTrace,
    feedback: Vec<SourceFeedback>,
    /// The spans that came; what is in the store is not among them.
    parts: Option<Box<TraceParts>>,
}

impl<'i, S: TraceStore + FeedbackStore> Ingest<'i, S> {
    pub(crate) fn new(store: &'i S, clock: &'i dyn Clock) -> Self {
        Self { store, clock, with_feedback: false }
    }

    /// Takes what the source says people said, too.
    pub(crate) fn with_feedback(self, with_feedback: bool) -> Self {
        Self { with_feedback, ..self }
    }

    /// Writes these pieces. When it fails, some of them may have been written; none is by half.
    pub(crate) async fn take(&self, pieces: Vec<Piece>) -> Result<Taken, StoreError> {
        let gathered = gather(pieces);
        let mut taken = Taken { superseded: gathered.superseded, refused: gathered.refused, ..Taken::default() };
        let mut waiting: Vec<Prepared> = gathered.traces.into_iter().map(prepare).collect();
        let mut said = Vec::new();
        for round in 0..MOST_ROUNDS {
            if waiting.is_empty() {
                break;
            }
            if round > 2 {
                // Whoever else writes the same trace is let through.
                tokio::time::sleep(Duration::from_millis(u64::from(round))).await;
            }
            waiting = self.put(waiting, &mut taken, &mut said).await?;
        }
        if let Some(left) = waiting.first() {
            let message = format!("others keep writing the trace {}", left.trace.head.trace_id);
            return Err(StoreError { message, hint: None });
        }
        taken.feedback_found = said.iter().map(|said: &feedback::Said| said.feedback.len() as u64).sum();
        if self.with_feedback {
            taken.feedback_added = feedback::add(self.store, self.clock, &said).await?;
        }
        Ok(taken)
    }

    /// Writes what it can, all of it together, and returns what has to be made anew.
    async fn put(
        &self,
        waiting: Vec<Prepared>,
        taken: &mut Taken,
        said: &mut Vec<feedback::Said>,
    ) -> Result<Vec<Prepared>, StoreError> {
        let (traces, rest): (Vec<NewTrace>, Vec<_>) =
            waiting.into_iter().map(|prepared| (prepared.trace, (prepared.feedback, prepared.parts))).unzip();
        let puts = self.store.put_traces(&traces, self.clock.now()).await?;
        let mut again = Vec::new();
        for ((trace, (feedback, parts)), put) in traces.into_iter().zip(rest).zip(puts) {
            let anew = match (put, parts) {
                (Put::Conflict, Some(parts)) => self.merged(parts).await?,
                (Put::Conflict, None) => self.in_place(trace, feedback).await?,
                (put, parts) => {
                    let NewTrace { head, source, .. } = trace;
                    if !feedback.is_empty() {
                        said.push(feedback::Said::new(&head, &source, feedback));
                    }
                    taken.traces.push(TakenTrace { head, source, put, is_whole: parts.is_none() });
                    continue;
                }
            };
            match anew {
                Ok(prepared) => again.push(prepared),
                Err(refused) => taken.refused.push(refused),
            }
        }
        Ok(again)
    }

    /// Makes a whole trace anew that takes the place of the one that is there.
    async fn in_place(
        &self,
        trace: NewTrace,
        feedback: Vec<SourceFeedback>,
    ) -> Result<Result<Prepared, RefusedTrace>, StoreError> {
        let Some(there) = self.there(&trace.head.trace_id).await? else {
            let trace = NewTrace { expected: Expected::Nothing, ..trace };
            return Ok(Ok(Prepared { trace, feedback, parts: None }));
        };
        if comes_in_spans(&there.source) {
            let message = format!(
                "spans of this trace are stored already, from {}: a whole trace, from {}, does not take their place",
                there.source, trace.source
            );
            return Ok(Err(RefusedTrace { trace_id: trace.head.trace_id, message }));
        }
        if !is_of_one_source(&there.source, &trace.source) {
            let message = format!(
                "another trace of this id is stored already, from {}: this one, from {}, does not take its place",
                there.source, trace.source
            );
            return Ok(Err(RefusedTrace { trace_id: trace.head.trace_id, message }));
        }
        let trace = NewTrace { expected: Expected::Raw(short_hash(&there.raw)), ..trace };
        Ok(Ok(Prepared { trace, feedback, parts: None }))
    }

    /// Puts spans together with those of the same trace that are there.
    async fn merged(&self, parts: Box<TraceParts>) -> Result<Result<Prepared, RefusedTrace>, StoreError> {
        let Some(there) = self.there(&parts.trace_id).await? else {
            return Ok(Ok(prepare_parts(parts)));
        };
        // A document may have any fields: that it reads as spans does not make it spans.
        let known = comes_in_spans(&there.source).then(|| serde_json::from_slice::<TraceParts>(&there.raw).ok());
        let Some(mut all) = known.flatten() else {
            let message = format!(
                "a whole trace of this id is stored already, from {}: spans, from {}, do not take its place",
                there.source, parts.source
            );
            return Ok(Err(RefusedTrace { trace_id: parts.trace_id.clone(), message }));
        };
        all.merge((*parts).clone());
        Ok(Ok(made_of(&all, parts, Expected::Raw(short_hash(&there.raw)))))
    }

    /// Returns what is stored under an id. Were the trace written between the two questions, the hash of its raw payload
    /// would be another one, and writing would be a conflict again.
    async fn there(&self, trace_id: &str) -> Result<Option<There>, StoreError> {
        let Some(raw) = self.store.raw(trace_id).await? else { return Ok(None) };
        let trace = self.store.trace(trace_id).await?;
        Ok(trace.map(|trace| There { source: trace.source, raw }))
    }
}

/// What is stored under an id.
struct There {
    source: String,
    raw: Vec<u8>,
}

/// Tells whether a source's traces come in spans. A run of karat's own is no kind of source, and its traces are whole.
fn comes_in_spans(source: &str) -> bool {
    Kind::from_name(source).is_some_and(Kind::comes_in_spans)
}

/// Tells whether one source may have written both. Whose messages a log holds shows only by some of them, so that a log
/// that grew may look like the other kind.
fn is_of_one_source(one: &str, other: &str) -> bool {
    let is_log = |name: &str| matches!(Kind::from_name(name), Some(Kind::OpenAi | Kind::Anthropic));
    one == other || is_log(one) && is_log(other)
}

fn prepare(gathered: Gathered) -> Prepared {
    match gathered {
        // Most traces are new or the same as before: the store is asked for the others when it says so.
        Gathered::Whole(whole) => prepare_whole(*whole),
        Gathered::Parts(parts) => prepare_parts(parts),
    }
}

fn prepare_whole(whole: Imported) -> Prepared {
    let Imported { kind, trace_id, document, raw, feedback } = whole;
    let head = TraceHead::of(&trace_id, &serde_json::from_str(&document).unwrap_or_default(), &document);
    let source = kind.name().to_owned();
    let trace = NewTrace { head, source, document, raw, expected: Expected::Nothing };
    Prepared { trace, feedback, parts: None }
}

fn prepare_parts(parts: Box<TraceParts>) -> Prepared {
    made_of(&parts.clone(), parts, Expected::Nothing)
}

/// Makes a trace of all its spans, some of which came just now.
fn made_of(all: &TraceParts, came: Box<TraceParts>, expected: Expected) -> Prepared {
    let assembled = assemble(all);
    let document = assembled.document.to_text();
    let value: Value = serde_json::from_str(&document).unwrap_or_default();
    let trace = NewTrace {
        head: TraceHead::of(&all.trace_id, &value, &document),
        source: all.source.clone(),
        document,
        raw: serde_json::to_vec(all).unwrap_or_default(),
        expected,
    };
    Prepared { trace, feedback: assembled.feedback, parts: Some(came) }
}
