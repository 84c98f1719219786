//! Checks that the numbers of a response are grounded in tool results, parameters or the messages so far.

use std::collections::HashSet;
use std::ops::ControlFlow;

use serde_json::Value;

use super::tally::{Check, Tally};
use super::{Evidence, Field};
use karat_json::text::quoted_list;

/// Maximum number of ungrounded numbers listed in a failure.
const MAX_LISTED_NUMBERS: usize = 10;

pub(super) fn numbers_grounded(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    if evidence.case.expect.numbers_grounded != Some(true) {
        return ControlFlow::Continue(());
    }
    let calls = &evidence.trace.tool_calls;
    if !calls.is_empty() && calls.iter().all(|call| call.result.is_none()) {
        tally.warn("numbersGrounded: the agent does not report tool results".to_owned());
    }
    let mut known = HashSet::new();
    let earlier_messages = evidence.earlier.iter().map(|exchange| exchange.message.as_str());
    earlier_messages.chain(evidence.case.messages()).for_each(|message| collect_text(message, &mut known));
    let earlier_calls = evidence.earlier.iter().flat_map(|exchange| &exchange.trace.tool_calls);
    for call in earlier_calls.chain(calls) {
        call.params.values().for_each(|value| collect_value(value, &mut known));
        call.result.iter().for_each(|value| collect_value(value, &mut known));
    }
    let mut seen = HashSet::new();
    let mut ungrounded: Vec<&str> = Vec::new();
    for number in numbers(&evidence.trace.response) {
        if !number.is_list_marker && !number.is_known(&known) && seen.insert(number.text) {
            ungrounded.push(number.text);
        }
    }
    let check = Check::from_bool(ungrounded.is_empty(), || {
        let listed_numbers = quoted_list(&ungrounded[..ungrounded.len().min(MAX_LISTED_NUMBERS)]);
        let more = match ungrounded.len().saturating_sub(MAX_LISTED_NUMBERS) {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let verb = if ungrounded.len() == 1 { "does" } else { "do" };
        format!(
            "expected every number to come from a tool result, a parameter or the message but {listed_numbers}{more} {verb} not"
        )
    });
    tally.record(Field::NumbersGrounded, check)
}

/// Returns the numbers of a text, in the form in which they are compared.
pub(crate) fn known_numbers(text: &str) -> Vec<String> {
    numbers(text).into_iter().map(|number| number.digits).collect()
}

/// Returns the numbers of a text that are not known, as written.
pub(crate) fn ungrounded_numbers<'t>(text: &'t str, known: &HashSet<String>) -> Vec<&'t str> {
    let unknown = numbers(text).into_iter().filter(|number| !number.is_list_marker && !number.is_known(known));
    unknown.map(|number| number.text).collect()
}

fn collect_value(value: &Value, known: &mut HashSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_value(item, known)),
        Value::Object(map) => {
            for (key, item) in map {
                collect_text(key, known);
                collect_value(item, known);
            }
        }
        Value::String(text) => collect_text(text, known),
        // Use the number as written, since long numbers must not be rounded.
        Value::Number(number) => collect_text(&number.to_string(), known),
        Value::Bool(_) | Value::Null => {}
    }
}

fn collect_text(text: &str, known: &mut HashSet<String>) {
    known.extend(known_numbers(text));
}

/// A number in a string.
struct Number<'t> {
    text: &'t str,
    /// Without separators, leading zeros, and trailing zeros after the point. The sign is dropped, since a hyphen
    /// before a digit is often a dash.
    digits: String,
    is_percent: bool,
    /// Whether it numbers a list item, as in `1. first`.
    is_list_marker: bool,
}

impl Number<'_> {
    fn is_known(&self, known: &HashSet<String>) -> bool {
        known.contains(&self.digits) || (self.is_percent && known.contains(&hundredth(&self.digits)))
    }
}

/// Finds the numbers in a string, except digits inside a word (`H2O`, `v2`).
fn numbers(text: &str) -> Vec<Number<'_>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    let mut line_start = 0;
    while at < bytes.len() {
        let is_fraction = bytes[at] == b'.'
            && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
            && !(at > 0 && bytes[at - 1].is_ascii_alphanumeric());
        if !bytes[at].is_ascii_digit() && !is_fraction {
            at += 1;
            if bytes[at - 1] == b'\n' {
                line_start = at;
            }
            continue;
        }
        let start = at;
        at = number_end(bytes, start);
        let in_word = text[..start].chars().next_back().is_some_and(|before| before.is_alphabetic() || before == '_');
        if in_word {
            continue;
        }
        let exponent = exponent_end(bytes, at);
        let written = &text[start..exponent.unwrap_or(at)];
        let digits = match (exponent, written.parse::<f64>()) {
            (Some(end), Ok(float)) => {
                at = end;
                // A number beyond the range of f64 equals only itself.
                if float.is_finite() { canonical(&format!("{float}")) } else { written.to_owned() }
            }
            _ => canonical(&text[start..at]),
        };
        let first_in_line = text[line_start..start].chars().all(|before| " \t*#>-".contains(before));
        let rest = &text[at..];
        found.push(Number {
            text: written,
            digits,
            is_percent: rest.trim_start().starts_with('%'),
            is_list_marker: first_in_line && (rest.starts_with(". ") || rest.starts_with(") ")),
        });
    }
    found
}

/// Returns where a number ends: digits, three-digit groups with separators, a point with digits.
fn number_end(bytes: &[u8], start: usize) -> usize {
    let digits_from = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = start + digits_from(start);
    if end - start <= 3 {
        while let Some(separator) = separator_length(&bytes[end..])
            && digits_from(end + separator) == 3
        {
            end += separator + 3;
        }
    }
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits_from(end + 1);
        if fraction > 0 {
            end += 1 + fraction;
        }
    }
    end
}

/// Returns the length of a digit group separator: a character or a non-breaking space.
fn separator_length(bytes: &[u8]) -> Option<usize> {
    let separators = [",", "_", "'", "\u{a0}", "\u{202f}", "\u{2009}"];
    separators.iter().find(|separator| bytes.starts_with(separator.as_bytes())).map(|separator| separator.len())
}

fn exponent_end(bytes: &[u8], end: usize) -> Option<usize> {
    if !matches!(bytes.get(end)?, b'e' | b'E') {
        return None;
    }
    let sign = usize::from(matches!(bytes.get(end + 1)?, b'+' | b'-'));
    let from = end + 1 + sign;
    let digits = bytes.get(from..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let after = from + digits;
    (digits > 0 && !bytes.get(after).is_some_and(u8::is_ascii_alphanumeric)).then_some(after)
}

fn canonical(number: &str) -> String {
    let plain: String = number.chars().filter(|digit| digit.is_ascii_digit() || *digit == '.').collect();
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// Returns the number divided by 100, computed on digits, so that `0.62` grounds `62 %`.
fn hundredth(digits: &str) -> String {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let padded = format!("{whole:0>3}");
    let (head, tail) = padded.split_at(padded.len() - 2);
    canonical(&format!("{head}.{tail}{fraction}"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("18°C and 62% at 1,234.50 or 1'000", &["18", "62", "1234.5", "1000"])]
    #[case("H2O v2 GPT4 2nd 15kph", &["2", "15"])]
    #[case("2025-01-15 at 09:05", &["2025", "1", "15", "9", "5"])]
    #[case("1e3 2.5E-2 3em", &["1000", "0.025", "3"])]
    #[case("version 1.2.3", &["1.2", "3"])]
    #[case("1,2,3 and 12,34", &["1", "2", "3", "12", "34"])]
    #[case("0 00 0.0 007", &["0", "0", "0", "7"])]
    #[case("1\u{a0}234\u{202f}567 or .5 but 12 345", &["1234567", "0.5", "12", "345"])]
    fn finds_numbers(#[case] text: &str, #[case] expected: &[&str]) {
        let found: Vec<String> = numbers(text).into_iter().map(|number| number.digits).collect();
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case("62", "0.62")]
    #[case("5", "0.05")]
    #[case("150", "1.5")]
    #[case("12.5", "0.125")]
    fn percent_is_a_hundredth(#[case] digits: &str, #[case] expected: &str) {
        assert_eq!(hundredth(digits), expected);
    }

    #[test]
    fn recognizes_list_markers() {
        let markers: Vec<bool> = numbers("1. Paris 18\n  2) Rome").iter().map(|number| number.is_list_marker).collect();
        assert_eq!(markers, [true, false, true]);
    }
}
