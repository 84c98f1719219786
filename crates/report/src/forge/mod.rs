//! Drafts of cases, as a person reads them before deciding.

mod batch;
mod expectation;

pub use batch::{BatchView, DraftState, DraftView, FindingView, Level, batch_text};
