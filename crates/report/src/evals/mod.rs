//! Results of eval functions, as text.

mod run;
mod stored;
mod stored_run;
mod test;

pub use run::eval_run_text;
pub use stored::{eval_details_text, eval_history_text, eval_list_text, evals_added_text};
pub use stored_run::stored_eval_run_text;
pub use test::eval_test_text;

/// Converts a count, saturating.
fn saturating_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
