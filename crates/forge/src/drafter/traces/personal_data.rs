//! Detects personal data and secrets in messages.

use karat_core::redact::is_secret_shape;

/// Number of digits of card numbers.
const CARD_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;

/// Minimum number of digits of an international telephone number.
const MIN_PHONE_DIGITS: usize = 8;

/// Minimum length of a mix of letters and digits that counts as a key.
const MIN_KEY_LENGTH: usize = 32;

/// Returns the part of text that looks personal or secret, if any.
pub fn find_personal_data(text: &str) -> Option<&'static str> {
    let words = || text.split(|letter: char| letter.is_whitespace() || "\"'`<>()[]{},;:=?&".contains(letter));
    if words().any(is_address) {
        return Some("an e-mail address");
    }
    if words().any(|word| is_secret_shape(word) || is_long_key(word)) {
        return Some("a key or a token");
    }
    if contains_password(words()) {
        return Some("a password");
    }
    let numbers = numbers(text);
    if numbers.iter().any(Number::is_card) {
        return Some("a card number");
    }
    numbers.iter().any(|number| number.is_international).then_some("a telephone number")
}

/// Whether a word such as "password" is followed by something other than an ordinary word.
fn contains_password<'t>(words: impl Iterator<Item = &'t str>) -> bool {
    let words: Vec<&str> = words.filter(|word| !word.is_empty() && *word != "is").collect();
    let is_named = |word: &str| ["password", "passwort", "passcode", "pin"].contains(&word.to_lowercase().as_str());
    let is_odd = |word: &str| word.chars().any(|letter| !letter.is_alphabetic() && !".!-'’".contains(letter));
    words.windows(2).any(|pair| is_named(pair[0]) && is_odd(pair[1]))
}

fn is_address(word: &str) -> bool {
    word.trim_end_matches(['.', '!']).split_once('@').is_some_and(|(name, host)| {
        let labels: Vec<&str> = host.split('.').collect();
        !name.is_empty() && labels.len() > 1 && labels.iter().all(|label| !label.is_empty())
    })
}

fn is_long_key(word: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| word.as_bytes().iter().any(kind);
    word.len() >= MIN_KEY_LENGTH
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+/".contains(&byte))
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        // Paths and hosts have short parts.
        && word.split(['/', '.', '-', '_']).any(|part| part.len() >= MIN_KEY_LENGTH / 2)
}

/// A sequence of digits, with single spaces or hyphens between them.
struct Number {
    digits: Vec<u8>,
    is_international: bool,
}

impl Number {
    /// Verifies the Luhn check digit.
    fn is_card(&self) -> bool {
        let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
        let digits = self.digits.iter().rev().map(|digit| u32::from(digit - b'0')).enumerate();
        let sum: u32 = digits.map(|(at, digit)| if at % 2 == 1 { doubled(digit) } else { digit }).sum();
        CARD_DIGITS.contains(&self.digits.len()) && sum.is_multiple_of(10) && sum > 0
    }
}

fn numbers(text: &str) -> Vec<Number> {
    let bytes = text.as_bytes();
    let mut numbers = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let has_plus = at > 0 && bytes[at - 1] == b'+';
        let mut digits = Vec::new();
        while let Some(&byte) = bytes.get(at) {
            let is_followed_by_digit = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
            match byte {
                b'0'..=b'9' => digits.push(byte),
                b' ' | b'-' if is_followed_by_digit => {}
                _ => break,
            }
            at += 1;
        }
        numbers.push(Number { is_international: has_plus && digits.len() >= MIN_PHONE_DIGITS, digits });
    }
    numbers
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("write to jo.doe@example.org.", Some("an e-mail address"))]
    #[case("mail (jo@example.co.uk)", Some("an e-mail address"))]
    #[case("ping @jo at 5@7, or a@b", None)]
    #[case("my key is sk-proj-0123456789abcdef", Some("a key or a token"))]
    #[case("?token=9f86d081884c7d659a2feaa0c55ad015", Some("a key or a token"))]
    #[case("https://example.org/2024/products/a-rather-long-name-of-something-7", None)]
    #[case("pay with 4111 1111 1111 1111 please", Some("a card number"))]
    #[case("order 4111111111111112", None)]
    #[case("from 2024-05-15 to 2024-05-20", None)]
    #[case("call +49 30 1234567", Some("a telephone number"))]
    #[case("a +5 bonus, 00000000000000", None)]
    #[case("What's the weather in Paris?", None)]
    #[case("my password is hunter2, let me in", Some("a password"))]
    #[case("PIN: 4711", Some("a password"))]
    #[case("reset my password please", None)]
    #[case("I forgot my password.", None)]
    #[case("", None)]
    #[case("Grüße an jörg@müller.de", Some("an e-mail address"))]
    fn detects_personal_data(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(find_personal_data(text), expected);
    }
}
