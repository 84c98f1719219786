//! Data that persists between commands: traces and runs.

mod import;
mod receive;
mod run;
mod trace;

pub use import::{ImportReport, ImportedFeedback, RefusalKind, RefusedPiece};
pub use receive::{Change, ReceiveEvent, ReceiveTotals};
pub use run::{StoredCase, StoredRun};
pub use trace::{ExpectedState, NewTrace, PutOutcome, StoredTrace, TraceFilter, TraceHead, TraceListItem};
