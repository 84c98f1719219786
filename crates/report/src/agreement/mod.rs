//! Agreement of verdicts with ratings, as text.

mod comparison;
mod contradictions;
mod figures;
mod refinement;

use karat_evals::agreement::Estimate;

pub use comparison::version_comparison_text;
pub use contradictions::{contradiction_notes, contradictions_text, resolution_note, resolution_text};
pub use figures::{agreement_notes, agreement_text};
pub use refinement::{adopted_notes, refinement_text, suggestion_note, unchanged_file_note};

/// Width of an interval.
const INTERVAL_WIDTH: usize = 16;

/// Formats a figure with three decimals, without negative zero.
fn digits(value: f64) -> String {
    let text = format!("{value:.3}");
    if text == "-0.000" { "0.000".to_owned() } else { text }
}

/// Formats a figure and its interval in two columns, or a dash.
fn estimate(figure: Option<Estimate>, dash: &str) -> String {
    match figure {
        Some(figure) => {
            let interval = format!("[{}, {}]", digits(figure.low), digits(figure.high));
            format!("{:>6}  {interval:<INTERVAL_WIDTH$}", digits(figure.value))
        }
        None => format!("{dash:>6}  {:INTERVAL_WIDTH$}", ""),
    }
}

/// Formats a p-value.
pub(crate) fn probability(p_value: f64) -> String {
    if p_value < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p_value:.3}") }
}

fn verdict(result: Option<bool>) -> &'static str {
    match result {
        Some(true) => "passed",
        Some(false) => "failed",
        None => "errored",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_figures_with_three_decimals() {
        assert_eq!((digits(-0.0001), digits(0.6666), digits(-0.5)), ("0.000".into(), "0.667".into(), "-0.500".into()));
        assert_eq!(estimate(Estimate::proportion(1, 2), "-"), " 0.500  [0.095, 0.905]  ");
        assert_eq!(estimate(None, "-").trim(), "-");
        assert_eq!((probability(0.00001), probability(0.04)), ("p < 0.001".to_owned(), "p = 0.040".to_owned()));
    }
}
