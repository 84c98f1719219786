//! Detects values of tool results that change over time and so cannot be asserted.

use crate::identifier::words;

/// Last words of the names of fields with volatile values.
const VOLATILE_LAST_WORDS: [&str; 14] = [
    "ago",
    "at",
    "cursor",
    "date",
    "elapsed",
    "etag",
    "expires",
    "latency",
    "ms",
    "nonce",
    "time",
    "timestamp",
    "until",
    "uuid",
];

/// First words of the names of fields with volatile values.
const VOLATILE_FIRST_WORDS: [&str; 6] = ["correlation", "duration", "request", "session", "trace", "updated"];

/// Words in the names of fields with measured values, which differ from run to run.
const MEASURED_WORDS: [&str; 18] = [
    "available",
    "balance",
    "count",
    "degrees",
    "distance",
    "humidity",
    "load",
    "pressure",
    "rank",
    "rate",
    "remaining",
    "speed",
    "stock",
    "temp",
    "temperature",
    "usage",
    "uv",
    "wind",
];

/// Words in the names of fields with personal or secret values.
const SENSITIVE_WORDS: [&str; 14] = [
    "birthday", "card", "email", "iban", "key", "mail", "mobile", "passcode", "password", "phone", "pin", "secret",
    "ssn", "token",
];

/// Whether a field's name suggests a personal or secret value.
pub(super) fn is_sensitive_name(name: &str) -> bool {
    words(name).iter().any(|word| SENSITIVE_WORDS.contains(&word.as_str()))
}

/// Whether a field's name suggests a volatile value.
pub(super) fn is_volatile_name(name: &str) -> bool {
    let words = words(name);
    words.last().is_some_and(|word| VOLATILE_LAST_WORDS.contains(&word.as_str()))
        || words.first().is_some_and(|word| VOLATILE_FIRST_WORDS.contains(&word.as_str()))
}

/// Whether a field's name suggests a measured value.
pub(super) fn is_measured_name(name: &str) -> bool {
    words(name).iter().any(|word| MEASURED_WORDS.contains(&word.as_str()))
}

/// Whether a value looks like a time, a date or a generated id. Covers the values that the lint rules reject, and other
/// forms that occur in tool results.
pub(super) fn is_volatile(text: &str) -> bool {
    if karat_lints::is_volatile(text) {
        return true;
    }
    let is_hex_or_dash = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    (text.len() >= 16 && has_digit && text.bytes().all(is_hex_or_dash)) || has_relative_time(text)
}

fn has_relative_time(text: &str) -> bool {
    let text = text.to_lowercase();
    text.split(|character: char| !character.is_alphabetic())
        .any(|word| matches!(word, "ago" | "now" | "today" | "tomorrow" | "tonight" | "yesterday"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("fetchedAt", true)]
    #[case("departure_time", true)]
    #[case("requestId", true)]
    #[case("TTL_ms", true)]
    #[case("uuid", true)]
    #[case("format", false)]
    #[case("temperature", false)]
    #[case("update", false)]
    #[case("", false)]
    fn detects_volatile_names(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(is_volatile_name(name), expected);
    }

    #[rstest]
    #[case("2024-05-15", true)]
    #[case("on 15.05.2024", true)]
    #[case("at 7:05", true)]
    #[case("1715760000", true)]
    #[case("1715760000123", true)]
    #[case("9f86d081884c7d659a2f", true)]
    #[case("2 hours ago", true)]
    #[case("HAT083", false)]
    #[case("181.2", false)]
    #[case("partly cloudy", false)]
    #[case("12.99 EUR", true)]
    #[case("1.2.3", false)]
    fn detects_volatile_values(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(is_volatile(text), expected);
    }
}
