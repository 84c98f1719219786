//! Traces, as text.

mod block;
mod conversation;
mod import;
mod json_text;
mod list;
mod trace;

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) use block::Canvas;
pub use block::Length;
pub use conversation::conversation_text;
pub use import::import_text;
pub(crate) use json_text::json_text;
pub use list::trace_list_text;
pub use trace::trace_text;

/// Formats a time in UTC, to the minute.
pub(crate) fn minute(time: Timestamp) -> String {
    time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M").to_string()
}

/// Formats a duration with a suitable unit.
pub(crate) fn duration(milliseconds: f64) -> String {
    match milliseconds {
        ..1000.0 => format!("{milliseconds:.0} ms"),
        1000.0..60_000.0 => format!("{:.1} s", milliseconds / 1000.0),
        60_000.0..3_600_000.0 => format!("{:.1} min", milliseconds / 60_000.0),
        3_600_000.0..86_400_000.0 => format!("{:.1} h", milliseconds / 3_600_000.0),
        _ => format!("{:.1} days", milliseconds / 86_400_000.0),
    }
}

/// Formats a count with its noun.
fn count(number: u64, noun: &str) -> String {
    crate::tools::counted(usize::try_from(number).unwrap_or(usize::MAX), noun)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(12.0, "12 ms")]
    #[case(1500.0, "1.5 s")]
    #[case(90_000.0, "1.5 min")]
    #[case(5_400_000.0, "1.5 h")]
    #[case(7_937_538_000.0, "91.9 days")]
    fn formats_durations_with_a_suitable_unit(#[case] milliseconds: f64, #[case] expected: &str) {
        assert_eq!(duration(milliseconds), expected);
    }
}
