//! What is kept between commands: traces, evals with their versions, executions, contradictions, runs.

mod comparison;
mod eval;
mod eval_report;
mod import;
mod receive;
mod run;
mod shown;
mod trace;

pub use comparison::{
    AgreementCounts, AgreementDay, Contradiction, ContradictionFilter, RatingPattern, Resolution, ResolutionKind,
    ReviewCandidate, VerdictPair,
};
pub use eval::{AddedVersion, EvalSummary, EvalVersion, NewVersion, StoredExecution, VersionCounts};
pub use eval_report::{
    EvalAdded, EvalHistory, EvalList, EvalShown, EvalsAdded, PastVersion, StoredEvalRun, StoredEvalRunSummary,
    StoredEvalSummary,
};
pub use import::{ImportReport, ImportedFeedback, RefusalKind, RefusedPiece};
pub use receive::{Change, ReceiveEvent, ReceiveTotals};
pub use run::{StoredCase, StoredRun};
pub use shown::{ShownTrace, TraceList};
pub use trace::{Expected, NewTrace, Put, StoredTrace, TraceFilter, TraceHead, TraceListed};
