//! Detects volatile values, which do not belong in assertions.
//!
//! The list is short, since a false positive blocks a good draft: dates with a year or a month's name, times of day,
//! amounts of money with cents, UUIDs, and numbers of eight digits or more.

use karat_cases::token::tokens;

/// Numbers with at least this many digits are treated as ids or timestamps.
const MIN_LONG_NUMBER_DIGITS: usize = 8;

const CURRENCIES: [char; 5] = ['$', '€', '£', '¥', '₹'];
const CURRENCY_WORDS: [&str; 10] = ["usd", "eur", "gbp", "chf", "jpy", "dollars", "euros", "euro", "pounds", "francs"];

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const MONTH_NAMES: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Whether a string contains a volatile value.
pub fn is_volatile(text: &str) -> bool {
    find_volatile(text).is_some()
}

/// A volatile value and its kind.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Volatile {
    pub(super) kind: &'static str,
    pub(super) text: String,
}

/// Finds the first volatile value in a string, outside of tokens.
pub(super) fn find_volatile(text: &str) -> Option<Volatile> {
    let mut literal = String::with_capacity(text.len());
    let mut end = 0;
    for token in tokens(text) {
        literal.push_str(&text[end..token.start]);
        literal.push(' ');
        end = token.start + token.text.len();
    }
    literal.push_str(&text[end..]);
    let words: Vec<&str> = literal.split_whitespace().map(trim_punctuation).filter(|word| !word.is_empty()).collect();
    words.iter().enumerate().find_map(|(index, word)| {
        let next = words.get(index + 1).copied().unwrap_or_default();
        let pair = || format!("{word} {next}");
        let single = [
            (is_uuid(word), "a UUID"),
            (is_date(word), "a date"),
            (is_time(word), "a time of day"),
            (is_price(word), "an amount of money"),
            (has_long_number(word), "a long number"),
        ];
        if let Some((_, kind)) = single.into_iter().find(|(matches, _)| *matches) {
            return Some(Volatile { kind, text: (*word).to_owned() });
        }
        if is_month(word) && is_day(next) || is_day(word) && is_month(next) {
            return Some(Volatile { kind: "a date", text: pair() });
        }
        if is_number(word, 12) && ["am", "pm"].contains(&next.to_lowercase().as_str()) {
            return Some(Volatile { kind: "a time of day", text: pair() });
        }
        let is_currency = CURRENCY_WORDS.contains(&next.to_lowercase().as_str()) || next.starts_with(CURRENCIES);
        (is_currency && has_cents(word)).then(|| Volatile { kind: "an amount of money", text: pair() })
    })
}

fn trim_punctuation(word: &str) -> &str {
    word.trim_matches(|letter: char| !letter.is_alphanumeric() && !CURRENCIES.contains(&letter))
}

fn is_uuid(word: &str) -> bool {
    let mut lengths =
        word.split('-').map(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(part.len()));
    [8, 4, 4, 4, 12].into_iter().all(|length| lengths.next() == Some(Some(length))) && lengths.next().is_none()
}

/// Whether a word is a date with a four-digit year, possibly followed by a time: `2024-05-01T10:00Z`.
fn is_date(word: &str) -> bool {
    let day = word.split_once(['T', 't']).map_or(word, |(day, _)| day);
    ['-', '/', '.'].into_iter().any(|separator| {
        let parts: Vec<&str> = day.split(separator).collect();
        let small = |part: &str| part.len() <= 2 && is_number(part, 31);
        match parts[..] {
            [first, second, third] => {
                is_year(first) && small(second) && small(third) || small(first) && small(second) && is_year(third)
            }
            _ => false,
        }
    })
}

fn is_year(part: &str) -> bool {
    part.len() == 4 && part.parse::<u16>().is_ok_and(|year| (1900..2200).contains(&year))
}

/// Whether a word is a whole number up to `max`.
fn is_number(word: &str, max: u8) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit()) && word.parse::<u8>().is_ok_and(|number| number <= max)
}

/// Whether a word is a time such as `14:30`, `14:30:00.5`, `2:30pm` or `3pm`.
fn is_time(word: &str) -> bool {
    let lower = word.to_lowercase();
    let half = lower.strip_suffix("am").or_else(|| lower.strip_suffix("pm"));
    if half.is_some_and(|hour| is_number(hour, 12)) {
        return true;
    }
    let clock = half.unwrap_or(&lower).trim_end_matches('z');
    let mut parts = clock.split(':');
    let has_hour = parts.next().is_some_and(|hour| hour.len() <= 2 && is_number(hour, 24));
    let has_minute = parts.next().is_some_and(|minute| minute.len() == 2 && is_number(minute, 59));
    let has_second =
        parts.next().is_none_or(|second| second.len() >= 2 && second.starts_with(|digit: char| digit.is_ascii_digit()));
    has_hour && has_minute && has_second && parts.next().is_none()
}

fn is_price(word: &str) -> bool {
    let amount = word.trim_matches(CURRENCIES);
    amount.len() < word.len() && has_cents(amount)
}

/// Whether a word is a number with two decimals: `12.99`, `1,204.50`, `12,99`.
fn has_cents(word: &str) -> bool {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    word.rsplit_once(['.', ','])
        .is_some_and(|(whole, cents)| cents.len() == 2 && is_digits(cents) && whole.split(['.', ',']).all(is_digits))
}

fn has_long_number(word: &str) -> bool {
    word.split(|letter: char| !letter.is_ascii_digit()).any(|digits| digits.len() >= MIN_LONG_NUMBER_DIGITS)
}

/// Whether a word is the name of a month. It must be capitalised, since `may` and `march` are also verbs.
fn is_month(word: &str) -> bool {
    let lower = word.to_lowercase();
    word.starts_with(char::is_uppercase) && (MONTHS.contains(&lower.as_str()) || MONTH_NAMES.contains(&lower.as_str()))
}

/// Whether a word is a day of the month: `3`, `3rd`.
fn is_day(word: &str) -> bool {
    let day = ["st", "nd", "rd", "th"].into_iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word);
    !day.is_empty() && is_number(day, 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::iso_date("due 2024-05-01.", "a date")]
    #[case::timestamp("2024-05-01T10:20:30.123Z", "a date")]
    #[case::slashes("05/31/2024", "a date")]
    #[case::dots("31.5.2024", "a date")]
    #[case::month_first("on March 3, 2024", "a date")]
    #[case::day_first("the 3rd May", "a date")]
    #[case::time("at 14:30", "a time of day")]
    #[case::seconds("09:30:15", "a time of day")]
    #[case::half_day("2:30pm", "a time of day")]
    #[case::whole_hour("3 PM", "a time of day")]
    #[case::dollars("costs $12.99", "an amount of money")]
    #[case::thousands("€1,204.50", "an amount of money")]
    #[case::trailing_sign("12,99€", "an amount of money")]
    #[case::separate_sign("12.99 €", "an amount of money")]
    #[case::code("178.50 USD", "an amount of money")]
    #[case::uuid("id 123e4567-e89b-12d3-a456-426614174000", "a UUID")]
    #[case::epoch("1714557600", "a long number")]
    #[case::number_in_a_word("ORD-20240501", "a long number")]
    fn finds_volatile_values(#[case] text: &str, #[case] kind: &str) {
        assert_eq!(find_volatile(text).map(|value| value.kind), Some(kind));
    }

    #[rstest]
    #[case::word("Paris")]
    #[case::degrees("21°")]
    #[case::decimal("178.50")]
    #[case::percent("3.25%")]
    #[case::year("2024")]
    #[case::version("1.2.3")]
    #[case::address("192.168.10.20")]
    #[case::ratio("16:9")]
    #[case::whole_price("$10")]
    #[case::may_be("you may 5 times")]
    #[case::short_number("4711")]
    #[case::phone("555-1234")]
    #[case::am("I am 12")]
    #[case::day("3rd")]
    #[case::nothing("")]
    fn ignores_stable_values(#[case] text: &str) {
        assert_eq!(find_volatile(text), None);
    }

    proptest! {
        #[test]
        fn accepts_any_string(text in "\\PC{0,40}|[0-9:.,$€/TZamp -]{0,24}") {
            if let Some(value) = find_volatile(&text) {
                prop_assert!(!value.text.is_empty());
            }
        }
    }
}
