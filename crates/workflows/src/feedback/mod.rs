//! What people say of traces: rate one, take a rating back, list and import ratings.

mod import;

use std::collections::BTreeSet;

use jiff::Timestamp;
use karat_core::rating::Rating;
use karat_evals::feedback::{Feedback, consensus_of};
use karat_evals::port::FeedbackStore;
use schemars::JsonSchema;
use serde::Serialize;

pub use self::import::{FeedbackImportReport, ImportRequest, Imported, InvalidRow, import};
use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::trace_id::resolve_trace_id;

#[derive(Debug, Clone)]
pub struct RateRequest {
    /// The trace's id or its beginning.
    pub trace: String,
    /// None takes the author's rating back.
    pub rating: Option<Rating>,
    pub note: Option<String>,
    pub author: String,
    /// Where the rating is given: `cli`, `review`.
    pub source: &'static str,
}

/// What came of saying something.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "karat feedback add")]
pub struct FeedbackChange {
    /// False: the author had said the same already, and nothing was written.
    pub added: bool,
    /// What the author had said before.
    pub before: Option<Feedback>,
    /// What counts now.
    pub now: Option<Feedback>,
    /// What people say of the trace together.
    pub rating: Option<Rating>,
    /// How many people that is.
    pub authors: u64,
}

pub async fn rate(request: RateRequest, context: &Context<'_>) -> Result<FeedbackChange, Error> {
    context
        .read_store(async |store| {
            let trace_id = resolve_trace_id(store, &request.trace).await?;
            if request.rating.is_none() {
                let statements = store.feedback_of(&trace_id).await?;
                if newest_by(&request.author, &statements).is_none_or(|before| before.rating.is_none()) {
                    let message = format!("{} has said nothing of trace '{trace_id}'", request.author);
                    return Err(Error::invalid(message).hint(Hint::ListFeedback));
                }
            }
            add_statement(RateRequest { trace: trace_id, ..request }, store, context.clock.now()).await
        })
        .await
}

/// Adds a statement about a trace, unless it says nothing new. The request names the trace by its whole id.
pub(crate) async fn add_statement(
    request: RateRequest,
    store: &impl FeedbackStore,
    now: Timestamp,
) -> Result<FeedbackChange, Error> {
    let mut statements = store.feedback_of(&request.trace).await?;
    let before = newest_by(&request.author, &statements).cloned();
    let feedback = Feedback {
        trace_id: request.trace,
        author: request.author,
        rating: request.rating,
        note: request.note.filter(|note| !note.trim().is_empty()),
        source: request.source.to_owned(),
        // What was said before may be dated ahead of this clock, and would still count.
        created_at: Feedback::time_after(before.as_ref(), now),
    };
    let added = !feedback.repeats(before.as_ref());
    if added {
        store.add_feedback(std::slice::from_ref(&feedback)).await?;
        statements.push(feedback.clone());
    }
    let (rating, authors) = consensus_of(&statements);
    let now = if added { Some(feedback) } else { before.clone() };
    Ok(FeedbackChange { added, before, now, rating, authors })
}

/// Returns an author's newest statement; the oldest stand first.
fn newest_by<'f>(author: &str, statements: &'f [Feedback]) -> Option<&'f Feedback> {
    statements.iter().rev().find(|feedback| feedback.author == author)
}

#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// Only of this trace: its id or its beginning.
    pub trace: Option<String>,
    pub author: Option<String>,
    /// Also what does not count any more.
    pub history: bool,
    pub limit: Option<u64>,
}

/// What people said.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "karat feedback list")]
pub struct FeedbackList {
    /// The newest first. Without --history, each author's newest statement on each trace.
    pub feedback: Vec<Feedback>,
    /// There are more than --limit let through.
    pub more: bool,
    /// Nobody said anything of any trace.
    #[serde(skip)]
    pub is_store_empty: bool,
}

pub async fn list(request: ListRequest, context: &Context<'_>) -> Result<FeedbackList, Error> {
    context
        .read_store(async |store| {
            let mut feedback = read(&request, store).await?;
            let is_store_empty = feedback.is_empty() && store.list_feedback(None, false, Some(1)).await?.is_empty();
            let limit = request.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
            let more = feedback.len() > limit;
            feedback.truncate(limit);
            Ok(FeedbackList { feedback, more, is_store_empty })
        })
        .await
}

/// Reads what is asked for, the newest first; at least one more than the limit where there are more.
async fn read(request: &ListRequest, store: &karat_store::Store) -> Result<Vec<Feedback>, Error> {
    let author = request.author.as_deref();
    let Some(trace) = &request.trace else {
        let limit = request.limit.map(|limit| limit.saturating_add(1));
        return Ok(store.list_feedback(author, !request.history, limit).await?);
    };
    let trace_id = resolve_trace_id(store, trace).await?;
    let mut feedback = store.feedback_of(&trace_id).await?;
    feedback.reverse();
    feedback.retain(|feedback| author.is_none_or(|author| feedback.author == author));
    if !request.history {
        let mut known = BTreeSet::new();
        feedback.retain(|feedback| known.insert(feedback.author.clone()) && feedback.rating.is_some());
    }
    Ok(feedback)
}
