//! What is kept between commands: traces, evals with their versions, executions, contradictions, runs.

mod comparison;
mod eval;
mod eval_report;
mod run;
mod trace;

pub use comparison::{
    AgreementCounts, AgreementDay, AuthorRating, Contradiction, ContradictionFilter, Resolution, ResolutionKind,
    ReviewCandidate, VerdictPair,
};
pub use eval::{AddedVersion, EvalSummary, EvalVersion, NewVersion, StoredExecution, VersionCounts};
pub use eval_report::{
    EvalAdded, EvalHistory, EvalList, EvalShown, EvalsAdded, PastVersion, StoredEvalRun, StoredEvalRunSummary,
    StoredEvalSummary,
};
pub use run::{StoredCase, StoredRun};
pub use trace::{Expected, NewTrace, Put, StoredTrace, TraceFilter, TraceHead, TraceListed};
