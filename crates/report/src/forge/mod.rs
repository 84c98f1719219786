//! Drafts of cases, as text for the approver.

mod batch;
mod expectation;

pub use batch::{BatchView, DraftState, DraftView, FindingView, Level, batch_text, batch_text_within};
