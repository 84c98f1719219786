//! Which values of a tool's result are others tomorrow, so that no assertion may hold them.

use karat_core::lint;

use crate::identifier::words;

/// Words of which one as the last of a field's name says that its value belongs to a moment or to one request.
const LAST_WORDS: [&str; 14] = [
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

/// Beginnings of fields' names that do the same.
const FIRST_WORDS: [&str; 6] = ["correlation", "duration", "request", "session", "trace", "updated"];

/// Words in a field's name that mark its value as personal or secret.
const SENSITIVE_WORDS: [&str; 14] = [
    "birthday", "card", "email", "iban", "key", "mail", "mobile", "passcode", "password", "phone", "pin", "secret",
    "ssn", "token",
];

/// Returns whether a field's value is personal or secret, by the field's name.
pub(super) fn is_sensitive_name(name: &str) -> bool {
    words(name).iter().any(|word| SENSITIVE_WORDS.contains(&word.as_str()))
}

/// Tells whether a field's value belongs to a moment, by the field's name.
pub(super) fn is_volatile_name(name: &str) -> bool {
    let words = words(name);
    words.last().is_some_and(|word| LAST_WORDS.contains(&word.as_str()))
        || words.first().is_some_and(|word| FIRST_WORDS.contains(&word.as_str()))
}

/// Tells whether a value is a time, a date or an id that a machine made: what the rules for drafts refuse, and what only
/// a tool answers.
pub(super) fn is_volatile(text: &str) -> bool {
    if lint::is_volatile(text) {
        return true;
    }
    let is_hex = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    (text.len() >= 16 && has_digit && text.bytes().all(is_hex)) || is_relative(text)
}

fn is_relative(text: &str) -> bool {
    let text = text.to_lowercase();
    text.split(|letter: char| !letter.is_alphabetic())
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
    fn names(#[case] name: &str, #[case] is: bool) {
        assert_eq!(is_volatile_name(name), is);
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
    fn values(#[case] text: &str, #[case] is: bool) {
        assert_eq!(is_volatile(text), is);
    }
}
