//! Drafts eval cases for a tool, for a person to approve.
//!
//! A [`Plan`] says how many cases a tool should have, and [`Slot`]s what each of them tests. A [`Drafter`] fills the slots
//! that it can; each draft is examined by the rules of `karat check` before a person sees it. The rest stays open. Nothing
//! here touches a file: approved cases become the text of an eval file, which the caller writes.
//!
//! [`refine`] lets a model rewrite an eval function after what people said of its verdicts.

mod brief;
mod combination;
mod draft;
mod drafter;
mod evidence;
mod examine;
pub mod file;
mod identifier;
mod plan;
pub mod refine;
pub mod session;
mod slot;
mod slots;
mod token_values;
mod whole;

pub use self::brief::{Brief, BriefDocument, OpenSlot, Overlap};
pub use self::draft::{Draft, DraftFinding, Origin};
pub use self::drafter::{DraftError, Drafter, ModelDrafter, Request, Revision, TemplateDrafter};
pub use self::drafter::{DraftFile, DraftFileError, FileDrafter};
pub use self::drafter::{LeftOutTrace, RefusedLine, TraceDrafter, TraceReader, TraceReport};
pub use self::drafter::{TraceTurn, personal_data, proof_of_run, trace_turns};
pub use self::evidence::{Evidence, weigh};
pub use self::examine::examine;
pub use self::plan::{BATCH_SIZE, Plan, TierPlan};
pub use self::slot::{Combination, EdgeKind, Purpose, Slot};
pub use self::slots::{golden_slots, labeled_slots};
pub use self::whole::examine_whole;
