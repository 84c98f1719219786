//! Drafts of cases, as text for the approver.

mod batch;
mod expectation;
mod summary;
mod text;
mod view;

pub use batch::{BatchView, DraftState, DraftView, FindingView, Level, batch_text, batch_text_within};
pub use summary::{open_text, overlaps_text, summary_text, usage_text};
pub use text::{brief_text, numbers_text, plan_notes, plan_question, plan_text, refusal_text, sessions_text};
pub use view::batch_view;
