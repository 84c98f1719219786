//! Reviews: a person rates traces, the most informative first.
//!
//! [`Review`] is the complete, serialisable state. A terminal, a page or a script shows the step of [`Review::next`]
//! and applies commands. Every rating is on disk when [`ReviewSession::apply`] returns.

use std::collections::BTreeMap;

use karat_core::document::TraceDocument;
use karat_core::port::{Clock, TraceStore};
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_evals::port::{EvalStore, FeedbackStore};
use karat_evals::review::{Decision, ReviewQueue, order};
use karat_evals::version::StoredExecution;
use karat_store::Store;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::context::store::{open_existing_store, with_open_store};
use crate::error::Error;
use crate::feedback::{RateRequest, add_feedback};
use crate::hint::Hint;
use crate::stored_eval::find_eval;
use crate::trace_filter::no_match_error;

/// The source of ratings from a review.
const SOURCE: &str = "review";

#[derive(Debug, Clone)]
pub struct Request {
    pub author: String,
    /// Only traces that this eval has judged; its verdicts determine the order.
    pub eval: Option<String>,
    pub filter: TraceFilter,
    pub limit: Option<u64>,
    /// Show verdicts before a trace is rated.
    pub show_verdicts: bool,
}

/// A review: the traces, the decisions so far, and notes of unrated traces.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Review {
    pub queue: ReviewQueue,
    pub author: String,
    show_verdicts: bool,
    /// By trace id. A rating takes the note with it, so that undo retracts both.
    notes: BTreeMap<String, String>,
}

/// The next step of the reviewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step<'r> {
    /// Rate or skip this trace; the note is stored with the rating.
    Rate { trace_id: &'r str, note: Option<&'r str> },
    /// All traces are decided; the last decision can be undone.
    End,
}

/// A command of the reviewer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Rate(Rating),
    /// Leaves the trace for another review.
    Skip,
    /// Undoes the last decision.
    Undo,
    /// Sets the note of the current trace; an empty note removes it.
    Note(String),
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandOutcome {
    Rated {
        trace_id: String,
        rating: Rating,
    },
    Skipped,
    /// A rating was retracted; the history has both entries.
    RatingUndone(Rating),
    SkipUndone,
    Noted,
    /// There is no current trace, or nothing to undo.
    Nothing,
}

/// The trace that the reviewer sees.
#[derive(Debug, Clone)]
pub struct ReviewedTrace {
    pub trace_id: String,
    pub document: TraceDocument,
    /// The newest verdict of each eval, if the review shows verdicts.
    pub verdicts: Vec<StoredExecution>,
}

impl Review {
    pub fn next(&self) -> Step<'_> {
        match self.queue.current() {
            None => Step::End,
            Some(current) => {
                let note = self.notes.get(&current.trace_id).map(String::as_str);
                Step::Rate { trace_id: &current.trace_id, note }
            }
        }
    }

    fn set_note(&mut self, note: &str) -> CommandOutcome {
        let Some(current) = self.queue.current() else { return CommandOutcome::Nothing };
        let note = note.trim();
        if note.is_empty() {
            self.notes.remove(&current.trace_id);
        } else {
            self.notes.insert(current.trace_id.clone(), note.to_owned());
        }
        CommandOutcome::Noted
    }
}

/// A review with its open store.
pub struct ReviewSession<'c> {
    review: Review,
    store: Store,
    clock: &'c dyn Clock,
}

impl<'c> ReviewSession<'c> {
    /// Finds the traces to rate. Returns an error if there are none.
    pub async fn start(request: Request, context: &Context<'c>) -> Result<Self, Error> {
        let opening = open_existing_store(&context.settings);
        let (store, review) = with_open_store(opening, async |store| find_traces(request, store).await).await?;
        Ok(Self { review, store, clock: context.clock })
    }

    /// Resumes a serialised review.
    pub async fn resume(review: Review, context: &Context<'c>) -> Result<Self, Error> {
        Ok(Self { review, store: open_existing_store(&context.settings).await?, clock: context.clock })
    }

    pub fn review(&self) -> &Review {
        &self.review
    }

    /// Closes the store and returns the state.
    pub async fn close(self) -> Review {
        self.store.close().await;
        self.review
    }

    /// Reads the current trace; `None` if all are decided.
    pub async fn current(&self) -> Result<Option<ReviewedTrace>, Error> {
        let Step::Rate { trace_id, .. } = self.review.next() else { return Ok(None) };
        let removed = || Error::conflict(format!("trace '{trace_id}' is no longer in the store"));
        let trace = self.store.trace(trace_id).await?.ok_or_else(removed)?;
        let document = trace.document()?;
        let mut verdicts: Vec<StoredExecution> = Vec::new();
        if self.review.show_verdicts {
            let mut executions = self.store.executions_of_trace(trace_id).await?;
            // Skip verdicts on earlier states of the trace.
            executions.retain(|execution| execution.trace_hash == trace.head.hash);
            for execution in executions {
                // Executions are sorted by eval and version: keep the last of each eval.
                verdicts.pop_if(|before| before.eval_id == execution.eval_id);
                verdicts.push(execution);
            }
        }
        Ok(Some(ReviewedTrace { trace_id: trace_id.to_owned(), document, verdicts }))
    }

    /// Applies a command. A rating is on disk when this returns.
    pub async fn apply(&mut self, command: Command) -> Result<CommandOutcome, Error> {
        match command {
            Command::Rate(rating) => self.rate(rating).await,
            Command::Skip if self.review.queue.current().is_none() => Ok(CommandOutcome::Nothing),
            Command::Skip => {
                self.review.queue.decide(Decision::Skipped);
                Ok(CommandOutcome::Skipped)
            }
            Command::Undo => self.undo().await,
            Command::Note(note) => Ok(self.review.set_note(&note)),
        }
    }

    async fn rate(&mut self, rating: Rating) -> Result<CommandOutcome, Error> {
        let Step::Rate { trace_id, note } = self.review.next() else { return Ok(CommandOutcome::Nothing) };
        let (trace_id, note) = (trace_id.to_owned(), note.map(str::to_owned));
        self.add_feedback(&trace_id, Some(rating), note).await?;
        self.review.notes.remove(&trace_id);
        self.review.queue.decide(Decision::Rated(rating));
        Ok(CommandOutcome::Rated { trace_id, rating })
    }

    async fn undo(&mut self) -> Result<CommandOutcome, Error> {
        let Some((candidate, decision)) = self.review.queue.last() else { return Ok(CommandOutcome::Nothing) };
        let applied = match decision {
            Decision::Rated(rating) => {
                self.add_feedback(&candidate.trace_id, None, None).await?;
                CommandOutcome::RatingUndone(rating)
            }
            Decision::Skipped => CommandOutcome::SkipUndone,
        };
        self.review.queue.undo();
        Ok(applied)
    }

    async fn add_feedback(&self, trace_id: &str, rating: Option<Rating>, note: Option<String>) -> Result<(), Error> {
        let author = self.review.author.clone();
        let request = RateRequest { trace: trace_id.to_owned(), rating, note, author, source: SOURCE };
        add_feedback(request, &self.store, self.clock.now()).await?;
        Ok(())
    }
}

async fn find_traces(request: Request, store: &Store) -> Result<Review, Error> {
    let eval = match &request.eval {
        Some(name) => Some(find_eval(store, name).await?.eval_id),
        None => None,
    };
    let candidates = store.review_candidates(&request.author, eval.as_deref(), &request.filter).await?;
    if candidates.is_empty() {
        return Err(nothing_to_review(&request, store).await?);
    }
    let mut queue = order(candidates);
    let limit = request.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let omitted = queue.len().saturating_sub(limit);
    queue.truncate(limit);
    Ok(Review {
        queue: ReviewQueue::new(queue, omitted),
        author: request.author,
        show_verdicts: request.show_verdicts,
        notes: BTreeMap::new(),
    })
}

async fn nothing_to_review(request: &Request, store: &Store) -> Result<Error, Error> {
    let Request { author, filter, .. } = request;
    let all = store.count_traces(&TraceFilter::default()).await?;
    let matching = store.count_traces(filter).await?;
    Ok(match (all, matching, &request.eval) {
        (0, _, _) => Error::nothing_selected("no traces in the store").hint(Hint::ImportTraces),
        (_, 0, _) => no_match_error(filter, store).await?,
        (_, _, Some(eval)) => Error::nothing_selected(format!("{author} has rated every trace that {eval} has judged"))
            .hint(Hint::JudgeStored { eval: eval.clone() }),
        (_, _, None) => Error::nothing_selected(format!("{author} has rated every trace")).hint(Hint::ChangeFeedback),
    })
}
