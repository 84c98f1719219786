//! What eval functions said, for a person.

mod run;
mod test;

pub use run::eval_run_text;
pub use test::eval_test_text;

/// Returns milliseconds with as many digits as say something.
fn milliseconds(value: f64) -> String {
    match value {
        ..1.0 => format!("{value:.3}ms"),
        1.0..100.0 => format!("{value:.1}ms"),
        _ => format!("{value:.0}ms"),
    }
}
