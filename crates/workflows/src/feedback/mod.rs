//! Feedback: adds, retracts, lists and imports ratings of traces.

mod import;

use std::collections::BTreeSet;

use jiff::Timestamp;
use karat_core::rating::Rating;
use karat_evals::feedback::{Feedback, consensus_of};
use karat_evals::port::FeedbackStore;
use schemars::JsonSchema;
use serde::Serialize;

pub use self::import::{FeedbackImportReport, ImportOutcome, ImportRequest, InvalidRow, import};
use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::trace_id::{resolve_trace_id, short_ids};

#[derive(Debug, Clone)]
pub struct RateRequest {
    /// A trace id or its prefix.
    pub trace: String,
    /// `None` retracts the author's rating.
    pub rating: Option<Rating>,
    pub note: Option<String>,
    pub author: String,
    /// The origin of the rating: `cli` or `review`.
    pub source: &'static str,
}

/// The result of adding feedback.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "karat feedback add")]
pub struct FeedbackChange {
    /// False if the author had already given the same feedback; nothing is written then.
    pub added: bool,
    /// The author's previous feedback.
    pub before: Option<Feedback>,
    /// The author's current feedback.
    pub now: Option<Feedback>,
    /// The combined rating of all authors.
    pub rating: Option<Rating>,
    /// The number of authors who rated the trace.
    pub authors: u64,
}

pub async fn rate(request: RateRequest, context: &Context<'_>) -> Result<FeedbackChange, Error> {
    context
        .read_store(async |store| {
            let trace_id = resolve_trace_id(store, &request.trace).await?;
            if request.rating.is_none() {
                let feedback = store.feedback_of(&trace_id).await?;
                if newest_by(&request.author, &feedback).is_none_or(|before| before.rating.is_none()) {
                    let message = format!("{} has not rated trace '{trace_id}'", request.author);
                    return Err(Error::invalid(message).hint(Hint::ListFeedback));
                }
            }
            add_feedback(RateRequest { trace: trace_id, ..request }, store, context.clock.now()).await
        })
        .await
}

/// Adds feedback to a trace, unless it repeats the author's newest. The request must have the full trace id.
pub(crate) async fn add_feedback(
    request: RateRequest,
    store: &impl FeedbackStore,
    now: Timestamp,
) -> Result<FeedbackChange, Error> {
    let mut all = store.feedback_of(&request.trace).await?;
    let before = newest_by(&request.author, &all).cloned();
    let feedback = Feedback {
        trace_id: request.trace,
        author: request.author,
        rating: request.rating,
        note: request.note.filter(|note| !note.trim().is_empty()),
        source: request.source.to_owned(),
        // Earlier feedback may be dated ahead of this clock and would still be the newest.
        created_at: Feedback::time_after(before.as_ref(), now),
    };
    let added = !feedback.repeats(before.as_ref());
    if added {
        store.add_feedback(std::slice::from_ref(&feedback)).await?;
        all.push(feedback.clone());
    }
    let (rating, authors) = consensus_of(&all);
    let now = if added { Some(feedback) } else { before.clone() };
    Ok(FeedbackChange { added, before, now, rating, authors })
}

/// Returns an author's newest feedback from a list that is sorted oldest first.
fn newest_by<'f>(author: &str, sorted: &'f [Feedback]) -> Option<&'f Feedback> {
    sorted.iter().rev().find(|feedback| feedback.author == author)
}

#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// Only feedback on this trace: an id or its prefix.
    pub trace: Option<String>,
    pub author: Option<String>,
    /// Also list superseded and retracted feedback.
    pub history: bool,
    pub limit: Option<u64>,
    /// Also return shortened ids.
    pub short_ids: bool,
}

/// Feedback on traces.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "karat feedback list")]
pub struct FeedbackList {
    /// Newest first. Without --history, each author's newest feedback on each trace.
    pub feedback: Vec<Feedback>,
    /// Whether --limit cut off the list.
    pub more: bool,
    /// The store has no feedback at all.
    #[serde(skip)]
    pub is_store_empty: bool,
    /// The shortened ids of the traces, in list order; empty if not requested.
    #[serde(skip)]
    pub short_ids: Vec<String>,
}

pub async fn list(request: ListRequest, context: &Context<'_>) -> Result<FeedbackList, Error> {
    context
        .read_store(async |store| {
            let mut feedback = read(&request, store).await?;
            let is_store_empty = feedback.is_empty() && store.list_feedback(None, false, Some(1)).await?.is_empty();
            let limit = request.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
            let more = feedback.len() > limit;
            feedback.truncate(limit);
            let shortened = feedback.iter().filter(|_| request.short_ids);
            let short_ids = short_ids(store, shortened.map(|feedback| feedback.trace_id.as_str())).await?;
            Ok(FeedbackList { feedback, more, is_store_empty, short_ids })
        })
        .await
}

/// Reads the requested feedback, newest first; one more than the limit if there is more.
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
