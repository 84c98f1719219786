//! Which values are others tomorrow, so that no assertion may hold them.

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

/// Tells whether a field's value belongs to a moment, by the field's name.
pub(super) fn is_volatile_name(name: &str) -> bool {
    let words = words(name);
    words.last().is_some_and(|word| LAST_WORDS.contains(&word.as_str()))
        || words.first().is_some_and(|word| FIRST_WORDS.contains(&word.as_str()))
}

fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_small = false;
    for letter in name.chars() {
        let is_cut = !letter.is_alphanumeric() || (letter.is_uppercase() && after_small);
        after_small = letter.is_lowercase() || letter.is_numeric();
        if is_cut {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Tells whether a value is a time, a date or an id that a machine made.
pub(super) fn is_volatile(text: &str) -> bool {
    let form: String = text.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    let is_date =
        ["0000-00-00", "00/00/0000", "00.00.0000", "0/0/0000", "0.0.0000"].iter().any(|date| form.contains(date));
    let is_time = form.contains("0:00");
    let is_moment =
        (form.len() == 10 || form.len() == 13) && text.starts_with('1') && is_of(&form, |byte| byte == b'0');
    let is_hex = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    let has_digit = form.contains('0');
    is_date || is_time || is_moment || (text.len() >= 16 && has_digit && is_of(text, is_hex)) || is_relative(text)
}

fn is_of(text: &str, kind: impl Fn(u8) -> bool) -> bool {
    text.bytes().all(kind)
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
    #[case("9f86d081-884c-7d65-9a2f", true)]
    #[case("2 hours ago", true)]
    #[case("HAT083", false)]
    #[case("181.2", false)]
    #[case("partly cloudy", false)]
    #[case("5551234567", false)]
    #[case("1.2.3", false)]
    fn values(#[case] text: &str, #[case] is: bool) {
        assert_eq!(is_volatile(text), is);
    }
}
