//! What is valid in an eval file and still likely wrong. A lint never stops a run.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::canonical::canonical_hash;
use crate::case::{Case, Difficulty, EvalFile, Expectation, NO_TOOL, Tier};
use crate::registry::{Registry, same_name};
use crate::token;

/// How much a lint matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Warning,
    Error,
}

/// The rules, by the names that a person sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    BothRoutingKinds,
    SnapshotInRegression,
    EditedRegression,
    FewProofValues,
    ProofEchoesPrompt,
    AmbiguousWithoutSets,
    EdgeWithoutNegative,
    SamePrompt,
    LonelySynonym,
    EmptyStubs,
    ResponseInRoutingOnly,
    LabeledFieldInGolden,
    IdForm,
    UnknownTool,
    IgnoredValue,
    EmptyValue,
    TokenInPattern,
}

impl Rule {
    pub fn severity(self) -> Severity {
        match self {
            Rule::BothRoutingKinds | Rule::SnapshotInRegression | Rule::EditedRegression | Rule::UnknownTool => {
                Severity::Error
            }
            _ => Severity::Warning,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Rule::BothRoutingKinds => "both-routing-kinds",
            Rule::SnapshotInRegression => "snapshot-in-regression",
            Rule::EditedRegression => "edited-regression",
            Rule::FewProofValues => "few-proof-values",
            Rule::ProofEchoesPrompt => "proof-echoes-prompt",
            Rule::AmbiguousWithoutSets => "ambiguous-without-sets",
            Rule::EdgeWithoutNegative => "edge-without-negative",
            Rule::SamePrompt => "same-prompt",
            Rule::LonelySynonym => "lonely-synonym",
            Rule::EmptyStubs => "empty-stubs",
            Rule::ResponseInRoutingOnly => "response-in-routing-only",
            Rule::LabeledFieldInGolden => "labeled-field-in-golden",
            Rule::IdForm => "id-form",
            Rule::UnknownTool => "unknown-tool",
            Rule::IgnoredValue => "ignored-value",
            Rule::EmptyValue => "empty-value",
            Rule::TokenInPattern => "token-in-pattern",
        }
    }
}

/// Something likely wrong in a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lint {
    pub rule: Rule,
    pub case_id: String,
    /// The case's place in the file's list of cases.
    pub case_index: usize,
    /// Where in the case, as a JSON pointer.
    pub pointer: String,
    pub message: String,
}

/// What lints are looked for by.
#[derive(Debug, Clone, Copy, Default)]
pub struct LintContext<'c> {
    pub registry: Option<&'c Registry>,
    /// Cases without stubs are only routed, so that there is no response to judge.
    pub routing_only: bool,
    /// The cases as they stand in the file, where edits are to be found.
    pub raw_cases: Option<&'c [Value]>,
}

/// Finds what is likely wrong, in the order of the cases.
pub fn lint(file: &EvalFile, context: LintContext<'_>) -> Vec<Lint> {
    let mut lints = Vec::new();
    let mut prompts: HashMap<String, &str> = HashMap::new();
    // Cases of one file name the same tools again and again.
    let mut suggestions: HashMap<&str, String> = HashMap::new();
    for (index, case) in file.cases.iter().enumerate() {
        let mut linter = Linter { file, case, index, lints: &mut lints };
        linter.routing();
        linter.proof_values();
        linter.hollow_values();
        linter.difficulty();
        linter.regression(context.raw_cases);
        linter.tokens();
        linter.stubs(context.routing_only);
        linter.golden_fields();
        linter.id_form();
        if let Some(registry) = context.registry {
            linter.unknown_tools(registry, &mut suggestions);
        }
        let prompt = case.input.message.trim().to_lowercase();
        match prompts.get(&prompt) {
            Some(first) => {
                let message = format!("the message is the same as that of '{first}'");
                linter.add(Rule::SamePrompt, "/input/message", message);
            }
            None => {
                prompts.insert(prompt, &case.id);
            }
        }
    }
    lints
}

struct Linter<'f, 'l> {
    file: &'f EvalFile,
    case: &'f Case,
    index: usize,
    lints: &'l mut Vec<Lint>,
}

impl<'f> Linter<'f, '_> {
    fn add(&mut self, rule: Rule, pointer: &str, message: String) {
        self.lints.push(Lint {
            rule,
            case_id: self.case.id.clone(),
            case_index: self.index,
            pointer: pointer.to_owned(),
            message,
        });
    }

    fn routing(&mut self) {
        let expect = &self.case.expect;
        if expect.tools_called.is_some() && expect.tools_acceptable.is_some() {
            let message = "use 'toolsCalled' or 'toolsAcceptable', not both".to_owned();
            self.add(Rule::BothRoutingKinds, "/expect/toolsAcceptable", message);
        }
        for (index, assertion) in expect.tool_params.iter().flatten().enumerate() {
            if assertion.value.is_some() && !assertion.assertion.needs_value() {
                let message = "'value' means nothing to this assertion".to_owned();
                self.add(Rule::IgnoredValue, &format!("/expect/toolParams/{index}/value"), message);
            }
        }
    }

    fn proof_values(&mut self) {
        let values = self.case.expect.response_contains.as_deref().unwrap_or_default();
        if self.file.tier == Tier::Golden && values.len() < 2 {
            let message = format!(
                "a golden case needs at least 2 'responseContains' values to prove that the tool was used, found {}",
                values.len()
            );
            self.add(Rule::FewProofValues, "/expect", message);
        }
        if !values.is_empty() && values.iter().all(|value| self.case.input.message.contains(value.as_str())) {
            let message = "every 'responseContains' value already stands in the message, so an agent that only echoes \
                           it passes"
                .to_owned();
            self.add(Rule::ProofEchoesPrompt, "/expect/responseContains", message);
        }
        let groups = self.case.expect.response_contains_any.iter().flatten();
        for (index, group) in groups.enumerate().filter(|(_, group)| group.len() < 2) {
            let message = match group.len() {
                0 => "an empty group in 'responseContainsAny' asserts nothing: add the words, or take it out",
                _ => "a group of one synonym in 'responseContainsAny': use 'responseContains', or add the other words",
            };
            self.add(Rule::LonelySynonym, &format!("/expect/responseContainsAny/{index}"), message.to_owned());
        }
    }

    /// Finds values that hold of every response, or mean something else than they look like.
    fn hollow_values(&mut self) {
        let expect = &self.case.expect;
        let groups = expect.response_contains_any.iter().flatten().enumerate();
        let in_groups = groups.flat_map(|(group, texts)| {
            let pointer = move |index| format!("/expect/responseContainsAny/{group}/{index}");
            texts.iter().enumerate().map(move |(index, text)| (pointer(index), text))
        });
        let texts = expect.response_contains.iter().flatten().enumerate();
        let in_texts = texts.map(|(index, text)| (format!("/expect/responseContains/{index}"), text));
        let empty: Vec<String> =
            in_texts.chain(in_groups).filter(|(_, text)| text.is_empty()).map(|(pointer, _)| pointer).collect();
        for pointer in empty {
            self.add(Rule::EmptyValue, &pointer, "an empty text stands in every response".to_owned());
        }
        for (index, _) in
            expect.response_matches.iter().flatten().enumerate().filter(|(_, pattern)| token::holds_token(pattern))
        {
            let message = "tokens have no value in 'responseMatches': this is matched letter by letter".to_owned();
            self.add(Rule::TokenInPattern, &format!("/expect/responseMatches/{index}"), message);
        }
    }

    fn difficulty(&mut self) {
        let expect = &self.case.expect;
        match self.case.difficulty {
            Some(Difficulty::Ambiguous) if expect.tools_acceptable.is_none() => {
                let message = "an ambiguous case names its acceptable tool sets in 'toolsAcceptable'".to_owned();
                self.add(Rule::AmbiguousWithoutSets, "/expect", message);
            }
            Some(Difficulty::Edge) if !asserts_absence(expect) => {
                let message = "an edge case asserts that something does not happen ('toolsNotCalled', \
                               'responseNotContains', or no tool called)"
                    .to_owned();
                self.add(Rule::EdgeWithoutNegative, "/expect", message);
            }
            _ => {}
        }
    }

    fn regression(&mut self, raw_cases: Option<&[Value]>) {
        let hashes = self.file.metadata.as_ref().and_then(|metadata| metadata.case_hashes.as_ref());
        let written = hashes.and_then(|hashes| hashes.get(&self.case.id));
        let raw = raw_cases.and_then(|cases| cases.get(self.index));
        if let (Some(written), Some(raw)) = (written, raw)
            && canonical_hash(raw) != *written
        {
            let message = format!(
                "this case was edited after it was made (hash {}, 'caseHashes' says {written}): restore it, or archive \
                 it and add a new one",
                canonical_hash(raw)
            );
            self.add(Rule::EditedRegression, "", message);
        }
    }

    fn tokens(&mut self) {
        let is_regression = self.file.tier == Tier::Regression || self.case.difficulty == Some(Difficulty::Regression);
        if !is_regression {
            return;
        }
        let Ok(Value::Object(expect)) = serde_json::to_value(&self.case.expect) else {
            return;
        };
        for (key, value) in &expect {
            if any_text(value, &token::holds_snapshot_token) {
                let message = format!("'{key}' uses a snapshot token: a regression case must only hold stable values");
                self.add(Rule::SnapshotInRegression, &format!("/expect/{key}"), message);
            }
        }
    }

    fn stubs(&mut self, routing_only: bool) {
        if self.case.stubs.as_ref().is_some_and(serde_json::Map::is_empty) {
            let message = "'stubs' is empty, so every tool call is answered with an error".to_owned();
            self.add(Rule::EmptyStubs, "/stubs", message);
        }
        let expect = &self.case.expect;
        let judges_response = expect.response_non_empty == Some(true)
            || !is_empty(expect.response_contains.as_deref())
            || !is_empty(expect.response_contains_any.as_deref())
            || !is_empty(expect.response_not_contains.as_deref())
            || !is_empty(expect.response_matches.as_deref())
            || expect.max_tokens.is_some()
            || expect.response_json_schema.is_some()
            || expect.min_length.is_some()
            || expect.max_length.is_some()
            || expect.numbers_grounded == Some(true);
        if routing_only && self.case.stubs.is_none() && judges_response {
            let message = "without 'stubs' a model is only routed, so its response is not the final one".to_owned();
            self.add(Rule::ResponseInRoutingOnly, "/expect", message);
        }
    }

    fn golden_fields(&mut self) {
        if self.file.tier != Tier::Golden {
            return;
        }
        let expect = &self.case.expect;
        let fields = [
            ("/difficulty", self.case.difficulty.is_some()),
            ("/expect/toolsAcceptable", expect.tools_acceptable.is_some()),
            ("/expect/toolsNotCalled", expect.tools_not_called.is_some()),
            ("/expect/responseMatches", expect.response_matches.is_some()),
            ("/expect/maxTokens", expect.max_tokens.is_some()),
        ];
        for (pointer, _) in fields.into_iter().filter(|(_, present)| *present) {
            let key = pointer.rsplit('/').next().unwrap_or(pointer);
            self.add(
                Rule::LabeledFieldInGolden,
                pointer,
                format!("'{key}' belongs in labeled cases, this file is golden"),
            );
        }
    }

    fn id_form(&mut self) {
        let Some(prefix) = self.file.tier.id_prefix() else {
            return;
        };
        let has_form =
            self.case.id.strip_prefix(prefix).and_then(|rest| rest.rsplit_once('-')).is_some_and(|(tool, number)| {
                number.len() >= 3
                    && number.bytes().all(|byte| byte.is_ascii_digit())
                    && same_name(tool, &self.file.tool_name)
            });
        if !has_form {
            let tool = self.file.tool_name.replace('_', "-");
            let message = format!("ids of {} cases look like '{prefix}{tool}-001'", self.file.tier);
            self.add(Rule::IdForm, "/id", message);
        }
    }

    fn unknown_tools(&mut self, registry: &Registry, suggestions: &mut HashMap<&'f str, String>) {
        let suggest = |tool: &str| {
            let near = crate::source::nearest(tool, &registry.names());
            near.map_or_else(String::new, |name| format!(" (did you mean '{name}'?)"))
        };
        let case = self.case;
        for (pointer, tool) in named_tools(&case.expect) {
            if registry.tool(tool).is_none() {
                let near = suggestions.entry(tool).or_insert_with(|| suggest(tool));
                let message = format!("the registry has no tool '{tool}'{near}");
                self.add(Rule::UnknownTool, &pointer, message);
            }
        }
    }
}

fn asserts_absence(expect: &Expectation) -> bool {
    !is_empty(expect.tools_not_called.as_deref())
        || !is_empty(expect.response_not_contains.as_deref())
        || expect.tools_called.as_ref().is_some_and(Vec::is_empty)
        || expect.max_tool_calls == Some(0)
        || expect.tools_acceptable.iter().flatten().any(|set| set.is_empty() || set[0] == NO_TOOL)
}

/// Tells whether a list asserts nothing, being absent or empty.
fn is_empty<T>(list: Option<&[T]>) -> bool {
    list.is_none_or(<[T]>::is_empty)
}

fn any_text(value: &Value, holds: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => holds(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, holds)),
        Value::Object(map) => map.values().any(|item| any_text(item, holds)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Lists every tool that an expectation names, with its place.
pub(crate) fn named_tools(expect: &Expectation) -> Vec<(String, &str)> {
    let mut named: Vec<(String, &str)> = Vec::new();
    let lists = [("toolsCalled", &expect.tools_called), ("toolsNotCalled", &expect.tools_not_called)];
    for (key, list) in lists {
        let tools = list.iter().flatten().enumerate();
        named.extend(tools.map(|(index, tool)| (format!("/expect/{key}/{index}"), tool.as_str())));
    }
    for (set_index, set) in expect.tools_acceptable.iter().flatten().enumerate() {
        let tools = set.iter().enumerate().filter(|(_, tool)| *tool != NO_TOOL);
        named
            .extend(tools.map(|(index, tool)| (format!("/expect/toolsAcceptable/{set_index}/{index}"), tool.as_str())));
    }
    for (index, assertion) in expect.tool_params.iter().flatten().enumerate() {
        named.push((format!("/expect/toolParams/{index}/tool"), &assertion.tool));
    }
    for (index, (before, after)) in expect.tool_order.iter().flatten().enumerate() {
        named.push((format!("/expect/toolOrder/{index}/0"), before));
        named.push((format!("/expect/toolOrder/{index}/1"), after));
    }
    named
}
