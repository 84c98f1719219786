//! Traits of a store of evals, feedback and their comparison.
//!
//! Every write is atomic, and durable when the method returns.

use karat_core::port::StoreFuture;
use karat_core::stored::{StoredTrace, TraceFilter};

use crate::agreement::{AgreementCounts, AgreementDay, RatingPattern, VerdictPair};
use crate::contradiction::{Contradiction, ContradictionFilter, Resolution};
use crate::feedback::Feedback;
use crate::review::ReviewCandidate;
use crate::version::{AddedVersion, EvalSummary, EvalVersion, NewVersion, StoredExecution, VersionCounts};

/// Evals, versions and executions.
pub trait EvalStore: Send + Sync {
    /// Adds a version, unless the newest has the same code or is not `version.after`.
    fn add_version<'s>(&'s self, version: &'s NewVersion) -> StoreFuture<'s, AddedVersion>;

    /// Returns all evals by name.
    fn evals(&self) -> StoreFuture<'_, Vec<EvalSummary>>;

    /// Returns an eval's versions, oldest first; empty if there is no such eval.
    fn versions<'s>(&'s self, eval_id: &'s str) -> StoreFuture<'s, Vec<EvalVersion>>;

    /// Returns the verdict counts of each version with executions, oldest first.
    fn version_counts<'s>(&'s self, eval_id: &'s str) -> StoreFuture<'s, Vec<VersionCounts>>;

    /// Returns traces whose current text this version has not judged with the code `code_hash`, ordered by id,
    /// starting after `after`.
    fn unjudged<'s>(
        &'s self,
        eval_id: &'s str,
        version: u64,
        code_hash: &'s str,
        filter: &'s TraceFilter,
        after: Option<&'s str>,
        limit: u64,
    ) -> StoreFuture<'s, Vec<StoredTrace>>;

    fn count_unjudged<'s>(
        &'s self,
        eval_id: &'s str,
        version: u64,
        code_hash: &'s str,
        filter: &'s TraceFilter,
    ) -> StoreFuture<'s, u64>;

    /// Stores executions. An execution replaces an earlier one of the same version and trace.
    fn put_executions<'s>(&'s self, executions: &'s [StoredExecution]) -> StoreFuture<'s, ()>;

    /// Returns a version's executions, ordered by trace id, starting after `after`.
    fn executions<'s>(
        &'s self,
        eval_id: &'s str,
        version: u64,
        after: Option<&'s str>,
        limit: u64,
    ) -> StoreFuture<'s, Vec<StoredExecution>>;

    /// Returns all executions on a trace, by eval name and version.
    fn executions_of_trace<'s>(&'s self, trace_id: &'s str) -> StoreFuture<'s, Vec<StoredExecution>>;
}

/// Ratings by people.
pub trait FeedbackStore: Send + Sync {
    /// Adds feedback and returns for each whether it is new; duplicates (same content, author and time) are stored
    /// once. Fails without storing anything if a trace does not exist.
    fn add_feedback<'s>(&'s self, feedback: &'s [Feedback]) -> StoreFuture<'s, Vec<bool>>;

    /// Returns all feedback on a trace, oldest first.
    fn feedback_of<'s>(&'s self, trace_id: &'s str) -> StoreFuture<'s, Vec<Feedback>>;

    /// Returns feedback, newest first, optionally of one author. `only_current` leaves out superseded and retracted
    /// ratings.
    fn list_feedback<'s>(
        &'s self,
        author: Option<&'s str>,
        only_current: bool,
        limit: Option<u64>,
    ) -> StoreFuture<'s, Vec<Feedback>>;

    /// Returns the combinations of ratings on traces with several authors, with the number of traces of each, in a
    /// fixed order. Only the newest rating of each author counts; retracted ratings do not.
    fn rating_patterns(&self) -> StoreFuture<'_, Vec<RatingPattern>>;

    /// Returns traces that this author has not rated, with the verdicts of the newest versions, ordered by id. If an
    /// eval is given, only its verdicts count and only traces it has judged are returned.
    fn review_candidates<'s>(
        &'s self,
        author: &'s str,
        eval_id: Option<&'s str>,
        filter: &'s TraceFilter,
    ) -> StoreFuture<'s, Vec<ReviewCandidate>>;
}

/// Comparisons of verdicts and ratings.
pub trait ComparisonStore: Send + Sync {
    fn agreement<'s>(&'s self, eval_id: &'s str, version: u64) -> StoreFuture<'s, AgreementCounts>;

    /// Returns the agreement per day on which the traces began, oldest first.
    fn agreement_by_day<'s>(&'s self, eval_id: &'s str, version: u64) -> StoreFuture<'s, Vec<AgreementDay>>;

    /// Returns the part of `agreement_by_day` that is about traces of test runs.
    fn agreement_of_runs_by_day<'s>(&'s self, eval_id: &'s str, version: u64) -> StoreFuture<'s, Vec<AgreementDay>>;

    /// Returns contradictions of the newest versions, newest first.
    fn contradictions<'s>(&'s self, filter: &'s ContradictionFilter) -> StoreFuture<'s, Vec<Contradiction>>;

    fn count_contradictions<'s>(&'s self, filter: &'s ContradictionFilter) -> StoreFuture<'s, u64>;

    /// Stores the decision on the contradiction between this eval's newest version and the trace's rating; false if
    /// there is none.
    fn resolve<'s>(&'s self, eval_id: &'s str, trace_id: &'s str, resolution: &'s Resolution) -> StoreFuture<'s, bool>;

    /// Returns the ids of traces whose rating was last resolved as wrong or irrelevant to this eval, for the current
    /// trace and rating. Resolutions of all versions count, since they are about the rating, not the eval.
    fn disputed_ratings<'s>(&'s self, eval_id: &'s str) -> StoreFuture<'s, Vec<String>>;

    /// Returns the verdicts of two versions on traces that both have judged, ordered by trace id.
    fn verdict_pairs<'s>(&'s self, eval_id: &'s str, before: u64, now: u64) -> StoreFuture<'s, Vec<VerdictPair>>;
}
