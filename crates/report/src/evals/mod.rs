//! What eval functions said, for a person.

mod run;
mod stored;
mod stored_run;
mod test;

pub use run::eval_run_text;
pub use stored::{eval_history_text, eval_list_text, eval_shown_text, evals_added_text};
pub use stored_run::stored_eval_run_text;
pub use test::eval_test_text;

/// Returns milliseconds with as many digits as say something.
fn milliseconds(value: f64) -> String {
    match value {
        ..1.0 => format!("{value:.3}ms"),
        1.0..100.0 => format!("{value:.1}ms"),
        _ => format!("{value:.0}ms"),
    }
}

/// Returns a count as what counts things here.
fn whole(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
