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
        60_000.0..3_600_000.0 => format!("{:.1} min", milliseconds / 60_000.0),
        3_600_000.0..86_400_000.0 => format!("{:.1} h", milliseconds / 3_600_000.0),
        _ => format!("{:.1} days", milliseconds / 86_400_000.0),
    }
}

/// Returns a count with its noun.
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
    fn a_duration_has_the_unit_that_people_would_take(#[case] milliseconds: f64, #[case] expected: &str) {
        assert_eq!(duration(milliseconds), expected);
    }
}
