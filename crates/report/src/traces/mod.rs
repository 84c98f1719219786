//! Traces, for a person.

mod block;
mod conversation;
mod import;
mod list;
mod spaced;
mod trace;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub use block::Length;
pub use conversation::conversation_text;
pub use import::import_text;
pub use list::trace_list_text;
pub use trace::trace_text;

/// Returns a time in UTC, to the minute.
fn minute(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M").to_string()
}

/// Returns how long something took, with as many digits as say something.
fn duration(milliseconds: f64) -> String {
    match milliseconds {
        ..1000.0 => format!("{milliseconds:.0} ms"),
        1000.0..60_000.0 => format!("{:.1} s", milliseconds / 1000.0),
        _ => format!("{:.1} min", milliseconds / 60_000.0),
    }
}

/// Returns a count with its noun.
fn count(number: u64, noun: &str) -> String {
    crate::tools::counted(usize::try_from(number).unwrap_or(usize::MAX), noun)
}
