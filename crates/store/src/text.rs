//! Texts as both databases keep them.

use std::borrow::Cow;

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use karat_core::port::StoreError;

/// How long a key may be, in bytes: PostgreSQL's indexes hold no more than 2,700 for all columns together.
const MAX_KEY: usize = 1000;
/// How long a name may be that is in an index beside a key.
const MAX_NAME: usize = 250;

const TIME: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// Returns a time in UTC with microseconds, always of the same width, so that texts sort as times do.
pub(crate) fn time(time: Timestamp) -> String {
    TIME.timestamp_to_string(&time)
}

/// Returns the text as it is kept: PostgreSQL has no zero character, so that a sign for it takes its place.
pub(crate) fn kept(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{2400}")) } else { Cow::Borrowed(text) }
}

/// Refuses a key that is no key.
pub(crate) fn check_key(what: &str, key: &str) -> Result<(), StoreError> {
    check(what, key, MAX_KEY)
}

/// Refuses a name that is no name.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), StoreError> {
    check(what, name, MAX_NAME)
}

fn check(what: &str, text: &str, limit: usize) -> Result<(), StoreError> {
    let wrong = if text.is_empty() {
        format!("{what} is empty")
    } else if text.len() > limit {
        let start: String = text.chars().take(40).collect();
        format!("{what} '{start}…' is too long: {} bytes, and {limit} can be kept", text.len())
    } else {
        return Ok(());
    };
    Err(StoreError { message: wrong, hint: None })
}

/// Returns the beginning of a name that only serves to find things by it.
pub(crate) fn findable(name: &str) -> &str {
    let mut end = name.len().min(MAX_NAME);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Returns a pattern for `like … escape '\'` that finds the text anywhere.
pub(crate) fn anywhere(text: &str) -> String {
    let escaped = text.to_lowercase().replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_one_width_and_sort() {
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
    fn a_long_name_is_cut_between_characters() {
        let name = "é".repeat(200);
        assert_eq!(findable(&name).chars().count(), 125);
        assert_eq!(findable("search"), "search");
    }
}
