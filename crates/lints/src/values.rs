//! Rules for expected texts: proof values, synonyms, tokens.

use std::collections::BTreeSet;

use super::volatile::find_volatile;
use super::{Linter, Part, Rule};
use karat_cases::registry::Registry;
use karat_cases::token::{self, Resolved, Source, Token, looks_like_token, tokens};
use karat_cases::{ExpectedCalls, ExpectedText, JsonPredicate, TextKind, Tier, UnchangedState};
use karat_json::text::shorten;

/// Minimum number of `responseContains` values in a golden case.
const MIN_PROOF_VALUES: usize = 2;

impl Linter<'_, '_> {
    pub(super) fn values(&mut self) {
        self.synonyms();
        let expect = &self.case.expect;
        for (index, assertion) in expect.tool_params.iter().flatten().enumerate() {
            if assertion.value.is_some() && !assertion.assertion.needs_value() {
                let message = "this assertion ignores 'value'";
                self.add(Rule::IgnoredValue, format!("/expect/toolParams/{index}/value"), message);
            }
        }
        self.call_values();
        self.state_values();
        self.response_ends();
        for text in expect.texts() {
            self.text(&text);
        }
    }

    /// Finds keys of expected calls and conditions that have no effect.
    fn call_values(&mut self) {
        let expect = &self.case.expect;
        let mut predicates: Vec<(String, &JsonPredicate)> = Vec::new();
        for (below, entry, _) in expect.calls.iter().flat_map(ExpectedCalls::entries) {
            let pointer = format!("/expect/calls{below}");
            if entry.params.is_none() {
                let keys = [("paramsMatch", entry.params_match.is_some()), ("ignore", !entry.ignore.is_empty())];
                for (key, _) in keys.into_iter().filter(|(_, is_given)| *is_given) {
                    let message = format!("'{key}' has no effect without 'params'");
                    self.add(Rule::IgnoredValue, format!("{pointer}/{key}"), message);
                }
            }
            for (key, list) in [("where", &entry.conditions), ("result", &entry.result)] {
                predicates.extend(list.iter().enumerate().map(|(at, each)| (format!("{pointer}/{key}/{at}"), each)));
            }
        }
        let response = expect.response_json.iter().flatten().enumerate();
        predicates.extend(response.map(|(at, each)| (format!("/expect/responseJson/{at}"), each)));
        for (pointer, predicate) in predicates {
            if predicate.value.is_some() && !predicate.assertion.needs_value() {
                self.add(Rule::IgnoredValue, format!("{pointer}/value"), "this assertion ignores 'value'");
            }
        }
    }

    /// Finds keys of expected states that have no effect.
    fn state_values(&mut self) {
        let expect = &self.case.expect;
        for (index, predicate) in expect.state.iter().flatten().enumerate() {
            if predicate.value.is_some() && !predicate.assertion.needs_value() {
                let pointer = format!("/expect/state/{index}/value");
                self.add(Rule::IgnoredValue, pointer, "this assertion ignores 'value'");
            }
        }
        for (index, UnchangedState { source, except }) in expect.state_unchanged.iter().flatten().enumerate() {
            for (at, pointer) in except.iter().enumerate() {
                let is_wider = |(other_at, other): (usize, &String)| {
                    pointer
                        .strip_prefix(other.as_str())
                        .is_some_and(|rest| rest.starts_with('/') || rest.is_empty() && other_at < at)
                };
                let wider = except.iter().enumerate().find(|(other_at, other)| is_wider((*other_at, *other)));
                let message = match wider {
                    Some((_, wider)) => format!("this pointer has no effect, since '{wider}' is excepted too"),
                    None if pointer.is_empty() => {
                        format!("\"\" excepts the whole source '{source}', so this entry compares nothing")
                    }
                    None => continue,
                };
                self.add(Rule::IgnoredValue, format!("/expect/stateUnchanged/{index}/except/{at}"), message);
            }
        }
    }

    /// Finds texts that every response starts or ends with.
    fn response_ends(&mut self) {
        let expect = &self.case.expect;
        let ends =
            [("responseStartsWith", &expect.response_starts_with), ("responseEndsWith", &expect.response_ends_with)];
        for (key, text) in ends {
            if text.as_ref().is_some_and(String::is_empty) {
                self.add(Rule::EmptyValue, format!("/expect/{key}"), "every response has an empty string at both ends");
            }
        }
    }

    pub(super) fn proof_values(&mut self) {
        let values = self.total.response_contains.as_deref().unwrap_or_default();
        let is_required = self.part == Part::Case
            && self.file.tier == Tier::Golden
            && !self.expects_no_call_yet()
            && !self.is_accepted();
        if is_required && values.len() < MIN_PROOF_VALUES {
            let message = format!(
                "a golden case needs at least {MIN_PROOF_VALUES} 'responseContains' values to prove that the tool was \
                 used, found {}",
                values.len()
            );
            self.add_for_total(Rule::FewProofValues, "/expect", message);
        }
        let values = self.case.expect.response_contains.as_deref().unwrap_or_default();
        let echoes =
            |value: &String| self.case.messages().any(|message| message.contains(self.resolved(value).as_str()));
        if !values.is_empty() && values.iter().all(echoes) {
            let message =
                "every 'responseContains' value is already in the message, so an agent that only echoes it passes";
            self.add(Rule::ProofEchoesPrompt, "/expect/responseContains", message);
        }
    }

    /// Whether a person approved the case as a draft, with something that an answer must contain. The findings were
    /// displayed at that time.
    fn is_accepted(&self) -> bool {
        self.is_approved() && self.expects_content()
    }

    /// Whether an assertion checks the content of the answer.
    fn expects_content(&self) -> bool {
        let expect = self.total;
        expect.response_contains.as_ref().is_some_and(|values| !values.is_empty())
            || expect.response_contains_any.as_ref().is_some_and(|groups| !groups.is_empty())
            || expect.response_matches.as_ref().is_some_and(|patterns| !patterns.is_empty())
            || expect.response_json_schema.is_some()
            || expect.response_equals.as_ref().is_some_and(|text| !text.is_empty())
            || expect.response_json.as_ref().is_some_and(|predicates| !predicates.is_empty())
            || expect.response_similar.as_ref().is_some_and(|texts| !texts.is_empty())
            || expect.numbers_grounded == Some(true)
            || expect.evals.as_ref().is_some_and(|evals| !evals.is_empty())
            || expect.state.as_ref().is_some_and(|predicates| !predicates.is_empty())
    }

    fn is_approved(&self) -> bool {
        let approvals = self.file.metadata.iter().flat_map(|metadata| metadata.approvals.iter().flatten());
        approvals.flat_map(|approval| &approval.cases).any(|id| id == self.case.written_id())
    }

    fn synonyms(&mut self) {
        for (index, group) in self.case.expect.response_contains_any.iter().flatten().enumerate() {
            let distinct: BTreeSet<&str> = group.iter().map(|text| text.trim()).collect();
            let message = match distinct.len() {
                0 => "an empty group in 'responseContainsAny' asserts nothing: add the words, or remove it",
                1 => "a group of one synonym in 'responseContainsAny': use 'responseContains', or add the other words",
                _ => continue,
            };
            self.add(Rule::LonelySynonym, format!("/expect/responseContainsAny/{index}"), message);
        }
    }

    fn text(&mut self, expected: &ExpectedText<'_>) {
        let ExpectedText { kind, pointer, text } = expected;
        if matches!(kind, TextKind::Contained | TextKind::Synonym) && text.is_empty() {
            self.add(Rule::EmptyValue, pointer, "every response contains an empty string");
        }
        if *kind == TextKind::Pattern {
            if text.is_empty() && pointer.starts_with("/expect/responseMatches") {
                self.add(Rule::EmptyValue, pointer, "an empty pattern matches every response");
            }
            if pointer.starts_with("/expect/responseMatches") && token::contains_token(text) {
                let message = "tokens are not resolved in 'responseMatches'; this is matched literally";
                self.add(Rule::TokenInPattern, pointer, message);
            }
            return;
        }
        for token in tokens(text) {
            self.token(pointer, token);
        }
        if looks_like_token(text) {
            let message = format!(
                "'{}' is not a token: tokens are {{{{seed:…}}}}, {{{{snapshot:…}}}} and, with 'each', {{{{row:…}}}}",
                shorten(text, 60)
            );
            self.add(Rule::StrayToken, pointer, message);
        }
        // A hook can reset state, so that its values do not change.
        if !matches!(kind, TextKind::Forbidden | TextKind::Parameter | TextKind::State)
            && let Some(volatile) = find_volatile(text)
            && !self.is_stable(*kind, &volatile.text)
        {
            let message =
                format!("'{}' is {}, which may change: use a token or a shorter string", volatile.text, volatile.kind);
            self.add(Rule::VolatileValue, pointer, message);
        }
    }

    fn token(&mut self, pointer: &str, token: Token<'_>) {
        let Some(sources) = self.context.tokens else {
            return;
        };
        let short = shorten(token.text, 80);
        let message = if !token.is_well_formed() {
            format!("the path of '{short}' is malformed: paths look like 'cities[0].name'")
        } else if token.source == Source::Snapshot || sources.lookup(token).is_some() {
            return;
        } else if sources.seed.is_none() {
            format!("'{short}' has no value: there is no seed manifest")
        } else {
            let near = sources.nearest_path(token);
            let near = near.map_or_else(String::new, |path| format!(" (did you mean '{{{{seed:{path}}}}}'?)"));
            format!("'{short}' has no value in the seed manifest{near}")
        };
        self.add(Rule::UnresolvedToken, pointer, message);
    }

    /// Resolves the tokens of a string, if their values are known.
    pub(super) fn resolved(&self, text: &str) -> String {
        match self.context.tokens.map(|tokens| tokens.resolve(text)) {
            Some(Resolved::Text(value)) => value,
            _ => text.to_owned(),
        }
    }

    /// Whether a value is stable after all, because it occurs in the message or a stub, or for an argument in a schema.
    fn is_stable(&self, kind: TextKind, value: &str) -> bool {
        let mut stubs = self.case.stubs.iter().flat_map(|stubs| stubs.values());
        let tools = self.context.registry.map(Registry::tools).unwrap_or_default();
        let mut schemas =
            tools.iter().filter(|_| kind == TextKind::Argument).filter_map(|tool| tool.input_schema.get());
        self.case.messages().any(|message| message.contains(value))
            || stubs.any(|stub| stub.to_string().contains(value))
            || schemas.any(|schema| schema.to_string().contains(value))
    }
}
