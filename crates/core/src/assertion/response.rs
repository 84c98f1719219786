//! Assertions on the response.

use std::ops::ControlFlow;

use super::tally::{Check, Tally};
use super::text_match::TextSearch;
use super::{Evidence, Field};
use karat_cases::token::Resolved;
use karat_json::text::quoted_list;
use karat_pattern::Pattern;

pub(super) fn non_empty(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    if evidence.case.expect.response_non_empty != Some(true) {
        return ControlFlow::Continue(());
    }
    let is_blank = |character| is_white_space(character) || is_invisible(character);
    let check = Check::from_bool(!evidence.trace.response.chars().all(is_blank), || {
        "expected a response but it is empty".to_owned()
    });
    tally.record(Field::ResponseNonEmpty, check)
}

/// Whether ECMAScript's `trim` removes a character.
fn is_white_space(character: char) -> bool {
    character == '\u{feff}' || character != '\u{85}' && character.is_whitespace()
}

/// Whether a character is invisible: a zero-width space, joiner, direction mark or filler.
fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
}

/// Resolves the tokens of an expected text; `None` if one has no value.
pub(super) fn resolve(value: &str, evidence: Evidence<'_>, tally: &mut Tally) -> Option<String> {
    match evidence.tokens.resolve(value) {
        Resolved::Text(text) => Some(text),
        Resolved::Unresolved(tokens) => {
            tally.record_unresolved(tokens);
            None
        }
    }
}

fn text_search(evidence: Evidence<'_>) -> TextSearch<'_> {
    TextSearch::new(&evidence.trace.response, evidence.case.expect.text_match)
}

pub(super) fn contains(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let values = evidence.case.expect.response_contains.as_deref().unwrap_or_default();
    let response = text_search(evidence);
    for (index, value) in values.iter().enumerate() {
        let check = match resolve(value, evidence, tally) {
            None => Check::Skipped,
            Some(text) if text.is_empty() => {
                tally.warn("responseContains: every response contains an empty string".to_owned());
                Check::Skipped
            }
            Some(text) => {
                if let Some(found) = response.near_miss(&text) {
                    tally.record_near_miss(Field::ResponseContains, index, &text, found);
                }
                Check::from_bool(response.contains(&text), || format!("expected '{text}' in response but not found"))
            }
        };
        tally.record_item(Field::ResponseContains, index, check)?;
    }
    ControlFlow::Continue(())
}

pub(super) fn contains_any(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let groups = evidence.case.expect.response_contains_any.as_deref().unwrap_or_default();
    let response = text_search(evidence);
    for (index, group) in groups.iter().enumerate() {
        let mut texts: Vec<String> = group.iter().filter_map(|value| resolve(value, evidence, tally)).collect();
        if texts.iter().any(String::is_empty) {
            tally
                .warn(format!("responseContainsAny: group {index} has an empty string, which every response contains"));
            texts.retain(|text| !text.is_empty());
        }
        if group.is_empty() {
            tally.warn(format!("responseContainsAny: group {index} is empty"));
        }
        let check = if texts.is_empty() {
            Check::Skipped
        } else {
            let passed = texts.iter().any(|text| response.contains(text));
            let near = texts.iter().filter(|_| !passed).find_map(|text| Some((text, response.near_miss(text)?)));
            if let Some((text, found)) = near {
                tally.record_near_miss(Field::ResponseContainsAny, index, text, found);
            }
            Check::from_bool(passed, || format!("expected one of {} in response but none found", quoted_list(&texts)))
        };
        tally.record_item(Field::ResponseContainsAny, index, check)?;
    }
    ControlFlow::Continue(())
}

pub(super) fn not_contains(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let values = evidence.case.expect.response_not_contains.as_deref().unwrap_or_default();
    let response = text_search(evidence);
    for (index, value) in values.iter().enumerate() {
        let check = match resolve(value, evidence, tally) {
            None => Check::Skipped,
            Some(text) if response.contains(&text) => {
                Check::Failed(format!("expected no '{text}' in response but found it"))
            }
            Some(text) => match response.near_miss(&text) {
                None => Check::Passed,
                Some(found) => {
                    tally.record_near_miss(Field::ResponseNotContains, index, &text, found);
                    Check::from_bool(!tally.is_strict(), || {
                        format!(
                            "expected no '{text}' in response but found '{found}', which differs only in capitals or typography"
                        )
                    })
                }
            },
        };
        tally.record_item(Field::ResponseNotContains, index, check)?;
    }
    ControlFlow::Continue(())
}

pub(super) fn matches(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let patterns = evidence.case.expect.response_matches.as_deref().unwrap_or_default();
    for (index, source) in patterns.iter().enumerate() {
        if source.is_empty() {
            tally.warn("responseMatches: an empty pattern matches every response".to_owned());
            tally.record_item(Field::ResponseMatches, index, Check::Skipped)?;
            continue;
        }
        let check = match match_pattern(source, evidence) {
            Ok(true) => Check::Passed,
            Ok(false) => Check::Failed(format!("expected the response to match /{source}/ but it does not")),
            Err(error) => Check::Failed(format!("/{source}/ {error}")),
        };
        tally.record_item(Field::ResponseMatches, index, check)?;
    }
    ControlFlow::Continue(())
}

/// Returns the response without whitespace at its ends.
fn trimmed(evidence: Evidence<'_>) -> &str {
    evidence.trace.response.trim_matches(is_white_space)
}

pub(super) fn equals(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(expected) = &evidence.case.expect.response_equals else {
        return ControlFlow::Continue(());
    };
    let search = TextSearch::new(trimmed(evidence), evidence.case.expect.text_match);
    let check = resolve(expected, evidence, tally).map_or(Check::Skipped, |text| {
        Check::from_bool(search.is_equal(&text), || format!("expected '{text}' but got '{}'", trimmed(evidence)))
    });
    tally.record(Field::ResponseEquals, check)
}

pub(super) fn starts_with(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(expected) = &evidence.case.expect.response_starts_with else {
        return ControlFlow::Continue(());
    };
    let check = check_end(Field::ResponseStartsWith, expected, evidence, tally, |search, text| {
        Check::from_bool(search.starts_with(text), || {
            format!("expected the response to start with '{text}' but it does not")
        })
    });
    tally.record(Field::ResponseStartsWith, check)
}

pub(super) fn ends_with(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let Some(expected) = &evidence.case.expect.response_ends_with else {
        return ControlFlow::Continue(());
    };
    let check = check_end(Field::ResponseEndsWith, expected, evidence, tally, |search, text| {
        Check::from_bool(search.ends_with(text), || {
            format!("expected the response to end with '{text}' but it does not")
        })
    });
    tally.record(Field::ResponseEndsWith, check)
}

fn check_end(
    field: Field,
    expected: &str,
    evidence: Evidence<'_>,
    tally: &mut Tally,
    check: impl FnOnce(&TextSearch<'_>, &str) -> Check,
) -> Check {
    match resolve(expected, evidence, tally) {
        None => Check::Skipped,
        Some(text) if text.is_empty() => {
            tally.warn(format!("{field}: every response has an empty string at both ends"));
            Check::Skipped
        }
        Some(text) => check(&TextSearch::new(trimmed(evidence), evidence.case.expect.text_match), &text),
    }
}

pub(super) fn not_matches(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let patterns = evidence.case.expect.response_not_matches.as_deref().unwrap_or_default();
    for (index, source) in patterns.iter().enumerate() {
        let check =
            resolve(source, evidence, tally).map_or(Check::Skipped, |source| match match_pattern(&source, evidence) {
                Ok(false) => Check::Passed,
                Ok(true) => Check::Failed(format!("expected the response not to match /{source}/ but it does")),
                Err(error) => Check::Failed(format!("/{source}/ {error}")),
            });
        tally.record_item(Field::ResponseNotMatches, index, check)?;
    }
    ControlFlow::Continue(())
}

fn match_pattern(source: &str, evidence: Evidence<'_>) -> Result<bool, String> {
    let pattern = Pattern::compile(source).map_err(|error| error.to_string())?;
    pattern.is_match(&evidence.trace.response).map_err(|error| error.to_string())
}
