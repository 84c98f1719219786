//! Assertions on the text of the response.

use std::ops::ControlFlow;

use super::tally::{Check, Tally};
use super::{Evidence, Field};
use crate::token::Resolved;
use karat_json::text::quoted_list;
use karat_pattern::Pattern;

pub(super) fn non_empty(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    if evidence.case.expect.response_non_empty != Some(true) {
        return ControlFlow::Continue(());
    }
    let check = Check::from_bool(!evidence.trace.response.chars().all(is_white_space), || {
        "expected a response but it is empty".to_owned()
    });
    tally.record(Field::ResponseNonEmpty, check)
}

/// Whether ECMAScript's `trim` removes a character.
fn is_white_space(character: char) -> bool {
    character == '\u{feff}' || character != '\u{85}' && character.is_whitespace()
}

pub(super) fn contains(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let values = evidence.case.expect.response_contains.as_deref().unwrap_or_default();
    for (index, value) in values.iter().enumerate() {
        let check = match evidence.tokens.resolve(value) {
            Resolved::Unresolved(tokens) => {
                tally.record_unresolved(tokens);
                Check::Skipped
            }
            Resolved::Text(text) => Check::from_bool(evidence.trace.response.contains(&text), || {
                format!("expected '{text}' in response but not found")
            }),
        };
        tally.record_item(Field::ResponseContains, index, check)?;
    }
    ControlFlow::Continue(())
}

pub(super) fn contains_any(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let groups = evidence.case.expect.response_contains_any.as_deref().unwrap_or_default();
    for (index, group) in groups.iter().enumerate() {
        let mut texts = Vec::with_capacity(group.len());
        for value in group {
            match evidence.tokens.resolve(value) {
                Resolved::Text(text) => texts.push(text),
                Resolved::Unresolved(tokens) => tally.record_unresolved(tokens),
            }
        }
        if group.is_empty() {
            tally.warn(format!("responseContainsAny: group {index} is empty"));
        }
        let check = if texts.is_empty() {
            Check::Skipped
        } else {
            let held = texts.iter().any(|text| evidence.trace.response.contains(text));
            Check::from_bool(held, || format!("expected one of {} in response but none found", quoted_list(&texts)))
        };
        tally.record_item(Field::ResponseContainsAny, index, check)?;
    }
    ControlFlow::Continue(())
}

pub(super) fn not_contains(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let values = evidence.case.expect.response_not_contains.as_deref().unwrap_or_default();
    for (index, value) in values.iter().enumerate() {
        let check = match evidence.tokens.resolve(value) {
            Resolved::Unresolved(tokens) => {
                tally.record_unresolved(tokens);
                Check::Skipped
            }
            Resolved::Text(text) => Check::from_bool(!evidence.trace.response.contains(&text), || {
                format!("expected no '{text}' in response but found it")
            }),
        };
        tally.record_item(Field::ResponseNotContains, index, check)?;
    }
    ControlFlow::Continue(())
}

pub(super) fn matches(evidence: Evidence<'_>, tally: &mut Tally) -> ControlFlow<()> {
    let patterns = evidence.case.expect.response_matches.as_deref().unwrap_or_default();
    for (index, source) in patterns.iter().enumerate() {
        let outcome = Pattern::compile(source)
            .map_err(|error| error.to_string())
            .and_then(|pattern| pattern.is_match(&evidence.trace.response).map_err(|error| error.to_string()));
        let check = match outcome {
            Ok(true) => Check::Held,
            Ok(false) => Check::Failed(format!("expected the response to match /{source}/ but it does not")),
            Err(error) => Check::Failed(format!("/{source}/ {error}")),
        };
        tally.record_item(Field::ResponseMatches, index, check)?;
    }
    ControlFlow::Continue(())
}
