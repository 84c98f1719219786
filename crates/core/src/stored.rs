//! What is kept between commands: traces, evals with their versions, executions, contradictions, runs.

mod comparison;
mod eval;
mod run;
mod trace;

pub use comparison::{
    AgreementCounts, AgreementDay, AuthorRating, Contradiction, ContradictionFilter, Resolution, ResolutionKind,
    ReviewCandidate, VerdictPair,
};
pub use eval::{AddedVersion, EvalSummary, EvalVersion, NewVersion, StoredExecution};
pub use run::{StoredCase, StoredRun};
pub use trace::{Expected, NewTrace, Put, StoredTrace, TraceFilter, TraceHead, TraceListed};
