//! Drafts eval cases for a tool, for a person to approve.
//!
//! A [`Plan`] counts the cases that a tool should have, and each [`Slot`] describes one of them. A [`Drafter`] fills
//! the slots that it can and leaves the rest open. Drafts are checked with the rules of `karat check` before a person
//! sees them. This crate does no I/O: approved cases become the text of an eval file, which the caller writes.
//!
//! [`refine`] asks a model to rewrite an eval function from people's ratings of its verdicts.

mod brief;
mod check_draft;
mod combination;
mod coverage;
mod draft;
mod drafter;
mod evidence;
pub mod file;
mod identifier;
mod plan;
pub mod refine;
pub mod session;
mod slot;
mod slots;
mod token_values;

pub use self::brief::{Brief, BriefDocument, OpenSlot, Overlap};
pub use self::check_draft::check_draft;
pub use self::coverage::check_coverage;
pub use self::draft::{Draft, DraftFinding, Origin};
pub use self::drafter::{DraftError, Drafter, ModelDrafter, Request, Revision, TemplateDrafter};
pub use self::drafter::{DraftFile, DraftFileError, FileDrafter};
pub use self::drafter::{InvalidLine, RejectedTrace, TraceDrafter, TraceReader, TraceReport};
pub use self::drafter::{TraceTurn, find_personal_data, leak_markers, proof_values, trace_turns};
pub use self::evidence::{Evidence, assess_run};
pub use self::plan::{BATCH_SIZE, Plan, TierPlan};
pub use self::slot::{Combination, EdgeKind, Purpose, Slot};
pub use self::slots::{golden_slots, labeled_slots};
