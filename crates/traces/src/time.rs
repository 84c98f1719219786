//! Times as sources write them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

/// What a number counts, by what its field is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanoseconds,
    Microseconds,
}

/// The years in which traces are made.
const PLAUSIBLE: std::ops::Range<i128> = 946_684_800_000_000_000..4_102_444_800_000_000_000;

/// Returns the time that a number of units since 1970 says; zero says none. A number that gives no year of this century, but
/// does in a larger unit, is meant in that unit: exporters have written milliseconds under a name that says nanoseconds.
pub(crate) fn since_1970(count: i128, unit: Unit) -> Option<Timestamp> {
    if count == 0 {
        return None;
    }
    let factors: &[i128] = match unit {
        Unit::Nanoseconds => &[1, 1_000, 1_000_000, 1_000_000_000],
        Unit::Microseconds => &[1_000, 1, 1_000_000, 1_000_000_000],
    };
    let nanoseconds = |factor: &i128| count.checked_mul(*factor);
    let meant = factors.iter().filter_map(nanoseconds).find(|time| PLAUSIBLE.contains(time));
    Timestamp::from_nanosecond(meant.or_else(|| nanoseconds(&factors[0]))?).ok()
}

/// Reads a time: a number, the text of one, or ISO 8601. Returns an error where it is none of these.
pub(crate) fn read(value: &Value, unit: Unit) -> Result<Option<Timestamp>, String> {
    let unreadable = || format!("no time: {}", shortened(&value.to_string()));
    match value {
        Value::Null => Ok(None),
        Value::Number(number) => {
            let count = number.as_i128().or_else(|| number.as_f64().and_then(whole)).ok_or_else(unreadable)?;
            if count < 0 { Err(unreadable()) } else { Ok(since_1970(count, unit)) }
        }
        Value::String(text) if text.trim().is_empty() => Ok(None),
        Value::String(text) => {
            let text = text.trim();
            if let Ok(count) = text.parse::<i128>() {
                return if count < 0 { Err(unreadable()) } else { Ok(since_1970(count, unit)) };
            }
            iso(text).map(Some).ok_or_else(unreadable)
        }
        _ => Err(unreadable()),
    }
}

/// Reads a time: a text in ISO 8601, which is UTC where it names no zone, or a number of seconds, milliseconds,
/// microseconds or nanoseconds since 1970. Which of these a number is shows by its size.
pub(crate) fn guessed(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => iso(text),
        Value::Number(number) => {
            let whole = number.as_i64();
            let size = number.as_f64()?;
            let scale = match size {
                size if size < 1e8 => return None,
                size if size < 1e11 => 1e6,
                size if size < 1e14 => 1e3,
                size if size < 1e17 => 1.0,
                _ => return Timestamp::from_nanosecond(i128::from(whole?)).ok(),
            };
            #[expect(clippy::cast_possible_truncation, reason = "the bounds above keep it within what i64 holds")]
            let microseconds = (size * scale).round() as i64;
            Timestamp::from_microsecond(microseconds).ok()
        }
        _ => None,
    }
}

/// Reads a time in ISO 8601, which is UTC where it names no zone.
fn iso(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "casts of floats saturate, and what is out of range is refused later"
)]
fn whole(number: f64) -> Option<i128> {
    number.is_finite().then_some(number as i128)
}

/// Returns the beginning of a text, for a message about it.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::text(json!("1771237534567093000"), Unit::Nanoseconds, Some("2026-02-16T10:25:34.567093Z"))]
    #[case::number(json!(1_771_237_534_567_093_000_u64), Unit::Nanoseconds, Some("2026-02-16T10:25:34.567093Z"))]
    #[case::milliseconds_called_nanoseconds(json!(1_771_237_534_567_u64), Unit::Nanoseconds, Some("2026-02-16T10:25:34.567Z"))]
    #[case::seconds_called_nanoseconds(json!("1771237534"), Unit::Nanoseconds, Some("2026-02-16T10:25:34Z"))]
    #[case::microseconds(json!(1_771_237_534_567_093_u64), Unit::Microseconds, Some("2026-02-16T10:25:34.567093Z"))]
    #[case::iso(json!("2026-02-16T11:25:34+01:00"), Unit::Nanoseconds, Some("2026-02-16T10:25:34Z"))]
    #[case::zero(json!("0"), Unit::Nanoseconds, None)]
    #[case::empty(json!(""), Unit::Nanoseconds, None)]
    #[case::small_stays_as_it_is_called(json!(1000), Unit::Nanoseconds, Some("1970-01-01T00:00:00.000001Z"))]
    fn times(#[case] value: Value, #[case] unit: Unit, #[case] expected: Option<&str>) {
        assert_eq!(read(&value, unit).unwrap(), expected.map(|time| time.parse().unwrap()));
    }

    #[rstest]
    #[case(json!("yesterday"))]
    #[case(json!(-1))]
    #[case(json!([]))]
    fn what_is_no_time(#[case] value: Value) {
        assert!(read(&value, Unit::Nanoseconds).unwrap_err().starts_with("no time: "));
    }

    #[test]
    fn a_number_past_all_calendars_is_no_time() {
        assert_eq!(read(&json!(1e300), Unit::Nanoseconds), Ok(None));
    }

    #[rstest]
    #[case(json!("2025-06-11T14:01:32.598Z"), Some("2025-06-11T14:01:32.598Z"))]
    #[case(json!("2025-06-11T16:01:32+02:00"), Some("2025-06-11T14:01:32Z"))]
    #[case(json!("2025-06-11T14:01:32.598001"), Some("2025-06-11T14:01:32.598001Z"))]
    #[case(json!("2025-06-11 14:01:32"), Some("2025-06-11T14:01:32Z"))]
    #[case(json!(1_749_650_492), Some("2025-06-11T14:01:32Z"))]
    #[case(json!(1_749_650_492.5), Some("2025-06-11T14:01:32.5Z"))]
    #[case(json!(1_749_650_492_598_u64), Some("2025-06-11T14:01:32.598Z"))]
    #[case(json!(1_749_650_492_598_001_u64), Some("2025-06-11T14:01:32.598001Z"))]
    #[case(json!(1_749_650_492_598_001_002_u64), Some("2025-06-11T14:01:32.598001002Z"))]
    #[case(json!(12), None)]
    #[case(json!(-5e30), None)]
    #[case(json!("yesterday"), None)]
    #[case(json!(null), None)]
    fn times_have_many_forms(#[case] value: Value, #[case] expected: Option<&str>) {
        assert_eq!(guessed(&value), expected.map(|text| text.parse().expect("a time")));
    }
}
