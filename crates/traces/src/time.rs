//! Parses the time formats of trace sources.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

use karat_chat::lenient::truncate;

/// The unit of a number, according to the name of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanoseconds,
    Microseconds,
}

/// Plausible times of traces, in nanoseconds since the epoch: 2000 to 2100.
const PLAUSIBLE_NANOSECONDS: std::ops::Range<i128> = 946_684_800_000_000_000..4_102_444_800_000_000_000;

/// Converts a number of units since the epoch; zero means no time. If the time is implausible, but plausible in another
/// unit, that unit is used: some exporters write milliseconds into fields named after nanoseconds.
pub(crate) fn from_epoch(count: i128, unit: Unit) -> Option<Timestamp> {
    if count == 0 {
        return None;
    }
    let factors: &[i128] = match unit {
        Unit::Nanoseconds => &[1, 1_000, 1_000_000, 1_000_000_000],
        Unit::Microseconds => &[1_000, 1, 1_000_000, 1_000_000_000],
    };
    let nanoseconds = |factor: &i128| count.checked_mul(*factor);
    let plausible = factors.iter().filter_map(nanoseconds).find(|time| PLAUSIBLE_NANOSECONDS.contains(time));
    Timestamp::from_nanosecond(plausible.or_else(|| nanoseconds(&factors[0]))?).ok()
}

/// Parses a number, a numeric string or an ISO 8601 string.
pub(crate) fn parse_with_unit(value: &Value, unit: Unit) -> Result<Option<Timestamp>, String> {
    let invalid = || format!("invalid time: {}", truncate(&value.to_string()));
    match value {
        Value::Null => Ok(None),
        Value::Number(number) => {
            let count = number.as_i128().or_else(|| number.as_f64().and_then(float_to_i128)).ok_or_else(invalid)?;
            if count < 0 { Err(invalid()) } else { Ok(from_epoch(count, unit)) }
        }
        Value::String(text) if text.trim().is_empty() => Ok(None),
        Value::String(text) => {
            let text = text.trim();
            if let Ok(count) = text.parse::<i128>() {
                return if count < 0 { Err(invalid()) } else { Ok(from_epoch(count, unit)) };
            }
            parse_iso(text).map(Some).ok_or_else(invalid)
        }
        _ => Err(invalid()),
    }
}

/// Parses an ISO 8601 string, in UTC if it has no zone, or a number of seconds, milliseconds, microseconds or
/// nanoseconds since the epoch. The unit is inferred from the size of the number.
pub(crate) fn parse_any_unit(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => parse_iso(text),
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
            #[expect(clippy::cast_possible_truncation, reason = "the bounds above keep it within i64")]
            let microseconds = (size * scale).round() as i64;
            Timestamp::from_microsecond(microseconds).ok()
        }
        _ => None,
    }
}

/// Parses an ISO 8601 string, in UTC if it has no zone.
fn parse_iso(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })
}

#[expect(clippy::cast_possible_truncation, reason = "float casts saturate, and values out of range are rejected later")]
fn float_to_i128(number: f64) -> Option<i128> {
    number.is_finite().then_some(number as i128)
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
    #[case::implausible_in_any_unit(json!(1000), Unit::Nanoseconds, Some("1970-01-01T00:00:00.000001Z"))]
    fn parses_times_with_a_unit(#[case] value: Value, #[case] unit: Unit, #[case] expected: Option<&str>) {
        assert_eq!(parse_with_unit(&value, unit).unwrap(), expected.map(|time| time.parse().unwrap()));
    }

    #[rstest]
    #[case(json!("yesterday"))]
    #[case(json!(-1))]
    #[case(json!([]))]
    fn rejects_invalid_times(#[case] value: Value) {
        assert!(parse_with_unit(&value, Unit::Nanoseconds).unwrap_err().starts_with("invalid time: "));
    }

    #[test]
    fn a_number_beyond_the_calendar_is_not_a_time() {
        assert_eq!(parse_with_unit(&json!(1e300), Unit::Nanoseconds), Ok(None));
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
    fn parses_times_in_any_unit(#[case] value: Value, #[case] expected: Option<&str>) {
        assert_eq!(parse_any_unit(&value), expected.map(|text| text.parse().expect("a time")));
    }
}
