//! Conversion of strings for both databases.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use karat_core::port::StoreError;

/// Maximum size of a key: an index entry of PostgreSQL takes at most 2,700 bytes for all columns.
const MAX_KEY_BYTES: usize = 1000;
/// Maximum size of a name that shares an index with a key.
const MAX_NAME_BYTES: usize = 250;

const TIME_FORMAT: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// Formats a time in UTC with microseconds and a fixed width, so that strings sort like times.
pub(crate) fn time(time: Timestamp) -> String {
    TIME_FORMAT.timestamp_to_string(&time)
}

/// Replaces NUL with its symbol, since PostgreSQL does not support NUL in strings.
pub(crate) fn replace_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{2400}")) } else { Cow::Borrowed(text) }
}

/// Checks that a key is neither empty nor too long.
pub(crate) fn check_key(subject: &str, key: &str) -> Result<(), StoreError> {
    check(subject, key, MAX_KEY_BYTES)
}

/// Checks that a name is neither empty nor too long.
pub(crate) fn check_name(subject: &str, name: &str) -> Result<(), StoreError> {
    check(subject, name, MAX_NAME_BYTES)
}

fn check(subject: &str, text: &str, limit: usize) -> Result<(), StoreError> {
    let message = if text.is_empty() {
        format!("{subject} is empty")
    } else if text.len() > limit {
        let start: String = text.chars().take(40).collect();
        format!("{subject} '{start}…' is too long: {} bytes (maximum: {limit})", text.len())
    } else {
        return Ok(());
    };
    Err(StoreError { message, hint: None })
}

/// Truncates a name that is only used for lookup.
pub(crate) fn index_prefix(name: &str) -> &str {
    let mut end = name.len().min(MAX_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Returns a pattern for `like … escape '\'` that matches the text anywhere.
pub(crate) fn like_pattern(text: &str) -> String {
    format!("%{}%", escape_like(&text.to_lowercase()))
}

/// Returns a pattern for `like … escape '\'` that matches strings with this suffix.
pub(crate) fn like_suffix(suffix: &str) -> String {
    format!("%{}", escape_like(suffix))
}

fn escape_like(text: &str) -> String {
    text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_fixed_width_and_sort() {
        let times = [
            "1970-01-01T00:00:00Z",
            "2026-11-16T12:00:00Z",
            "2026-11-16T12:00:00.5Z",
            "2026-11-16T14:00:00.123456789+01:00",
        ];
        let texts: Vec<String> = times.iter().map(|text| time(text.parse().expect("a time"))).collect();
        assert_eq!(texts[1], "2026-11-16T12:00:00.000000Z");
        assert_eq!(texts[3], "2026-11-16T13:00:00.123456Z");
        assert!(texts.is_sorted(), "{texts:?}");
    }

    #[test]
    fn truncates_long_names_between_characters() {
        let name = "é".repeat(200);
        assert_eq!(index_prefix(&name).chars().count(), 125);
        assert_eq!(index_prefix("search"), "search");
    }
}
