//! What is asked of a store that keeps evals, feedback and their comparison.
//!
//! Whatever a method writes is written whole or not at all, and is on disk when it returns.

use karat_core::port::Stored;
use karat_core::stored::{StoredTrace, TraceFilter};

use crate::agreement::{AgreementCounts, AgreementDay, RatingPattern, VerdictPair};
use crate::contradiction::{Contradiction, ContradictionFilter, Resolution};
use crate::feedback::Feedback;
use crate::review::ReviewCandidate;
use crate::version::{AddedVersion, EvalSummary, EvalVersion, NewVersion, StoredExecution, VersionCounts};

/// Evals and what they said.
pub trait EvalStore: Send + Sync {
    /// Adds a version, unless the newest has the same code, or is not the one that the version is to follow.
    fn add_version<'s>(&'s self, version: &'s NewVersion) -> Stored<'s, AddedVersion>;

    /// Returns all evals by name.
    fn evals(&self) -> Stored<'_, Vec<EvalSummary>>;

    /// Returns an eval's versions, the oldest first; none where there is no such eval.
    fn versions<'s>(&'s self, eval_id: &'s str) -> Stored<'s, Vec<EvalVersion>>;

    /// Returns how often each version of an eval said what, the oldest first; of those that said anything.
    fn version_counts<'s>(&'s self, eval_id: &'s str) -> Stored<'s, Vec<VersionCounts>>;

    /// Returns traces that this version has not judged as they are now, by their ids' order, those after this id.
    fn unjudged<'s>(
        &'s self,
        eval_id: &'s str,
        version: u64,
        filter: &'s TraceFilter,
        after: Option<&'s str>,
        limit: u64,
    ) -> Stored<'s, Vec<StoredTrace>>;

    fn count_unjudged<'s>(&'s self, eval_id: &'s str, version: u64, filter: &'s TraceFilter) -> Stored<'s, u64>;

    /// Puts executions in; one of the same version for the same trace replaces the one before.
    fn put_executions<'s>(&'s self, executions: &'s [StoredExecution]) -> Stored<'s, ()>;

    /// Returns what a version said, by the traces' ids, those after this id.
    fn executions<'s>(
        &'s self,
        eval_id: &'s str,
        version: u64,
        after: Option<&'s str>,
        limit: u64,
    ) -> Stored<'s, Vec<StoredExecution>>;

    /// Returns what all evals said of a trace, by name and version.
    fn executions_of_trace<'s>(&'s self, trace_id: &'s str) -> Stored<'s, Vec<StoredExecution>>;
}

/// What people said.
pub trait FeedbackStore: Send + Sync {
    /// Adds statements, and returns of each whether it is new: the same statement of the same author at the same time
    /// is kept once. Refuses all when a trace is not there.
    fn add_feedback<'s>(&'s self, feedback: &'s [Feedback]) -> Stored<'s, Vec<bool>>;

    /// Returns all statements about a trace, the oldest first.
    fn feedback_of<'s>(&'s self, trace_id: &'s str) -> Stored<'s, Vec<Feedback>>;

    /// Returns statements, the newest first; of one author where one is given, and only what counts where asked, in which
    /// nothing is that was taken back.
    fn list_feedback<'s>(
        &'s self,
        author: Option<&'s str>,
        only_current: bool,
        limit: Option<u64>,
    ) -> Stored<'s, Vec<Feedback>>;

    /// Returns what people say of traces that several rated: who says what, and of how many traces, in a fixed order.
    /// The newest of each author counts, and what was taken back is nothing.
    fn rating_patterns(&self) -> Stored<'_, Vec<RatingPattern>>;

    /// Returns traces that this author has not rated, with what the newest versions of evals say of them, by id. Where an
    /// eval is named, only what it says counts, and only traces that it has judged are returned.
    fn review_candidates<'s>(
        &'s self,
        author: &'s str,
        eval_id: Option<&'s str>,
        filter: &'s TraceFilter,
    ) -> Stored<'s, Vec<ReviewCandidate>>;
}

/// Verdicts beside what people said.
pub trait ComparisonStore: Send + Sync {
    fn agreement<'s>(&'s self, eval_id: &'s str, version: u64) -> Stored<'s, AgreementCounts>;

    /// Returns the same by the day on which the traces began, the oldest first.
    fn agreement_by_day<'s>(&'s self, eval_id: &'s str, version: u64) -> Stored<'s, Vec<AgreementDay>>;

    /// Returns contradictions of the newest versions, the newest first.
    fn contradictions<'s>(&'s self, filter: &'s ContradictionFilter) -> Stored<'s, Vec<Contradiction>>;

    fn count_contradictions<'s>(&'s self, filter: &'s ContradictionFilter) -> Stored<'s, u64>;

    /// Notes what was decided about the contradiction of this eval's newest version on this trace; false where there is
    /// none.
    fn resolve<'s>(&'s self, eval_id: &'s str, trace_id: &'s str, resolution: &'s Resolution) -> Stored<'s, bool>;

    /// Returns the ids of the traces whose rating somebody called wrong, or of no matter to this eval, in what was last
    /// decided about the trace and the rating as they are now: whichever version it was about, since that says something
    /// of the rating and not of the eval.
    fn doubted_labels<'s>(&'s self, eval_id: &'s str) -> Stored<'s, Vec<String>>;

    /// Returns what two versions said of traces that both have judged, by the traces' ids.
    fn verdict_pairs<'s>(&'s self, eval_id: &'s str, before: u64, now: u64) -> Stored<'s, Vec<VerdictPair>>;
}
