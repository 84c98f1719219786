//! What is kept between commands: traces, and runs of eval files.

mod import;
mod receive;
mod run;
mod trace;

pub use import::{ImportReport, ImportedFeedback, RefusalKind, RefusedPiece};
pub use receive::{Change, ReceiveEvent, ReceiveTotals};
pub use run::{StoredCase, StoredRun};
pub use trace::{Expected, NewTrace, Put, StoredTrace, TraceFilter, TraceHead, TraceListed};
