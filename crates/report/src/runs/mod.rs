//! Runs of the output folder, as text.

mod diff;
mod list;
mod show;

pub use diff::run_comparison_text;
pub use list::run_list_text;
pub use show::saved_run_text;

use crate::terminal_text::printable;
use crate::traces::format_minute;

/// Formats the start of a run to the minute, in UTC.
fn format_start(timestamp: &str) -> String {
    timestamp.parse().map_or_else(|_| printable(timestamp).into_owned(), format_minute)
}
