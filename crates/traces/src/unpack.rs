//! Values as they were meant: JSON within texts, and times in their many forms.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

/// How many texts may be within each other.
const DEEPEST: usize = 4;

/// Returns what a text says where it is the JSON of an object or a list, or of a text of such. Numbers and words stay
/// text: that `42` is JSON is chance.
pub(crate) fn json_text(text: &str) -> Option<Value> {
    let mut within = None::<String>;
    for _ in 0..DEEPEST {
        let now = within.as_deref().unwrap_or(text).trim();
        match now.as_bytes().first() {
            Some(b'{' | b'[') => return serde_json::from_str(now).ok(),
            Some(b'"') => within = Some(serde_json::from_str(now).ok()?),
            _ => return None,
        }
    }
    None
}

/// Returns the value, and what a text says where it is JSON.
pub(crate) fn unpacked(value: &Value) -> Value {
    match value {
        Value::String(text) => json_text(text).unwrap_or_else(|| value.clone()),
        other => other.clone(),
    }
}

/// Reads a time: a text in ISO 8601, which is UTC where it names no zone, or a number of seconds, milliseconds,
/// microseconds or nanoseconds since 1970. Which of these a number is shows by its size.
pub(crate) fn time(value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) => {
            let text = text.trim();
            text.parse().ok().or_else(|| {
                let civil: DateTime = text.parse().ok()?;
                civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
            })
        }
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

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("{\"a\":1}", Some(json!({"a": 1})))]
    #[case(" [1] ", Some(json!([1])))]
    #[case("\"{\\\"a\\\":1}\"", Some(json!({"a": 1})))]
    #[case("42", None)]
    #[case("true", None)]
    #[case("plain", None)]
    #[case("\"plain\"", None)]
    #[case("{broken", None)]
    #[case("", None)]
    fn only_objects_and_lists_are_unpacked(#[case] text: &str, #[case] expected: Option<Value>) {
        assert_eq!(json_text(text), expected);
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
        assert_eq!(time(&value), expected.map(|text| text.parse().expect("a time")));
    }
}
