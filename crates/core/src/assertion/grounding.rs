//! Whether the numbers of a response come from somewhere.

use std::collections::HashSet;
use std::ops::ControlFlow;

use serde_json::Value;

use super::tally::{Check, Tally};
use super::{Evidence, Field};
use karat_json::text::quoted_list;

/// How many numbers a failure lists.
const MOST_SHOWN: usize = 10;

pub(super) fn numbers_grounded(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    if evidence.case.expect.numbers_grounded != Some(true) {
        return ControlFlow::Continue(());
    }
    let calls = &evidence.trace.tool_calls;
    if !calls.is_empty() && calls.iter().all(|call| call.result.is_none()) {
        tally.warn("numbersGrounded: the agent does not say what its tools answered".to_owned());
    }
    let mut known = HashSet::new();
    gather_text(&evidence.case.input.message, &mut known);
    for call in calls {
        call.params.values().for_each(|value| gather(value, &mut known));
        call.result.iter().for_each(|value| gather(value, &mut known));
    }
    let mut seen = HashSet::new();
    let mut loose: Vec<&str> = Vec::new();
    for number in numbers(&evidence.trace.response) {
        if !number.list_marker && !number.is_known(&known) && seen.insert(number.text) {
            loose.push(number.text);
        }
    }
    let check = Check::from_bool(loose.is_empty(), || {
        let shown = quoted_list(&loose[..loose.len().min(MOST_SHOWN)]);
        let more = match loose.len().saturating_sub(MOST_SHOWN) {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let verb = if loose.len() == 1 { "does" } else { "do" };
        format!(
            "expected every number to come from a tool result, a parameter or the message but {shown}{more} {verb} not"
        )
    });
    tally.record(Field::NumbersGrounded, check)
}

fn gather(value: &Value, known: &mut HashSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| gather(item, known)),
        Value::Object(map) => {
            for (key, item) in map {
                gather_text(key, known);
                gather(item, known);
            }
        }
        Value::String(text) => gather_text(text, known),
        // As it was written: a long number must not be rounded.
        Value::Number(number) => gather_text(&number.to_string(), known),
        Value::Bool(_) | Value::Null => {}
    }
}

fn gather_text(text: &str, known: &mut HashSet<String>) {
    known.extend(numbers(text).into_iter().map(|number| number.digits));
}

/// A number as it stands in a text.
struct Number<'t> {
    text: &'t str,
    /// Without separators, leading zeros and trailing zeros behind the point; the sign is left out, since a
    /// hyphen before a digit is as often a dash.
    digits: String,
    percent: bool,
    /// It numbers an item of a list: `1. first`.
    list_marker: bool,
}

impl Number<'_> {
    fn is_known(&self, known: &HashSet<String>) -> bool {
        known.contains(&self.digits) || (self.percent && known.contains(&hundredth(&self.digits)))
    }
}

/// Finds the numbers of a text; digits inside a word (`H2O`, `v2`) are part of its name.
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
                // What no double can hold is only equal to itself.
                if float.is_finite() { canonical(&format!("{float}")) } else { written.to_owned() }
            }
            _ => canonical(&text[start..at]),
        };
        let first_in_line = text[line_start..start].chars().all(|before| " \t*#>-".contains(before));
        let behind = &text[at..];
        found.push(Number {
            text: written,
            digits,
            percent: behind.trim_start().starts_with('%'),
            list_marker: first_in_line && (behind.starts_with(". ") || behind.starts_with(") ")),
        });
    }
    found
}

/// Returns where a number ends: digits, groups of three behind a separator, one point with digits.
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

/// Returns the length of what separates groups of digits: a sign, or a space at which no line breaks.
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
    let behind = from + digits;
    (digits > 0 && !bytes.get(behind).is_some_and(u8::is_ascii_alphanumeric)).then_some(behind)
}

fn canonical(number: &str) -> String {
    let plain: String = number.chars().filter(|digit| digit.is_ascii_digit() || *digit == '.').collect();
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
}

/// Returns the number divided by 100, digit by digit, so that `62 %` is grounded by `0.62`.
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
    fn list_markers_are_no_claims() {
        let markers: Vec<bool> = numbers("1. Paris 18\n  2) Rome").iter().map(|number| number.list_marker).collect();
        assert_eq!(markers, [true, false, true]);
    }
}
