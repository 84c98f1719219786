//! Traces, as text.

mod block;
mod conversation;
mod import;
mod json_text;
mod list;
mod receive;
mod trace;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) use block::Canvas;
pub use block::Length;
pub(crate) use conversation::conversation_text;
pub use import::import_text;
pub(crate) use json_text::json_text;
pub use list::trace_list_text;
pub use receive::{receive_counts, receive_summary};
pub use trace::trace_text;

/// Formats a time in UTC, to the minute.
pub(crate) fn format_minute(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M").to_string()
}
