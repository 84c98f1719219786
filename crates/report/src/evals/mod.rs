//! Results of eval functions, as text.

mod run;
mod stored;
mod stored_run;
mod test;

pub use run::eval_run_text;
pub use stored::{eval_details_text, eval_history_text, eval_list_text, evals_added_text};
pub use stored_run::stored_eval_run_text;
pub use test::eval_test_text;

/// Formats milliseconds with a suitable number of digits.
fn milliseconds(value: f64) -> String {
    match value {
        ..1.0 => format!("{value:.3}ms"),
        1.0..100.0 => format!("{value:.1}ms"),
        _ => format!("{value:.0}ms"),
    }
}

/// Converts a count, saturating.
fn saturating_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
