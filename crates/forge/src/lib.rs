//! Drafts eval cases for a tool, for a person to approve.
//!
//! A [`Plan`] says how many cases a tool should have, and [`Slot`]s what each of them is to test. A [`Drafter`] fills
//! the slots of a batch; what it drafts is examined by the [`rules`] before a person sees it. Nothing here touches a
//! file: what was approved becomes the text of an eval file, which the caller writes.
//!
//! [`refine`] lets a model rewrite an eval function after what people said of its verdicts.

mod arrange;
mod brief;
mod draft;
mod drafter;
mod evidence;
pub mod file;
mod growth;
mod plan;
pub mod refine;
pub mod rules;
pub mod session;
mod slot;

pub use self::arrange::{golden_slots, labeled_slots};
pub use self::brief::{Brief, Overlap};
pub use self::draft::{Draft, DraftFinding, Origin, Weight};
pub use self::drafter::{DraftError, Drafter, ModelDrafter, Request, Revision, TemplateDrafter};
pub use self::drafter::{LeftOutTrace, RefusedLine, TraceDrafter, TraceReader, TraceReport};
pub use self::drafter::{TraceTurn, personal_data, trace_turns};
pub use self::evidence::{Evidence, weigh};
pub use self::growth::{Growth, LEAST_JUDGED, propose};
pub use self::plan::{BATCH_SIZE, Plan, TierPlan};
pub use self::slot::{Combination, EdgeKind, Purpose, Slot};
