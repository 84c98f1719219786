//! What is valid in an eval file and still likely wrong. A lint never stops a run.

use std::collections::{BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::canonical::canonical_hash;
use crate::case::{Case, Difficulty, EvalFile, Expectation, NO_TOOL, Tier};
use crate::registry::{Registry, same_name};
use crate::regression::{any_text, is_regression};
use crate::source::pointer_key;
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
    RemovedRegression,
    UnsealedRegression,
    ArchivedRegression,
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
    ToolNotKnown,
    IgnoredValue,
    EmptyValue,
    TokenInPattern,
}

impl Rule {
    pub fn severity(self) -> Severity {
        match self {
            Rule::BothRoutingKinds
            | Rule::SnapshotInRegression
            | Rule::EditedRegression
            | Rule::RemovedRegression
            | Rule::UnknownTool => Severity::Error,
            _ => Severity::Warning,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Rule::BothRoutingKinds => "both-routing-kinds",
            Rule::SnapshotInRegression => "snapshot-in-regression",
            Rule::EditedRegression => "edited-regression",
            Rule::RemovedRegression => "removed-regression",
            Rule::UnsealedRegression => "unsealed-regression",
            Rule::ArchivedRegression => "archived-regression",
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
            Rule::ToolNotKnown => "tool-not-known",
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
    /// The case's place in the file's list of cases; none where the case is not there any more.
    pub case_index: Option<usize>,
    /// Where in the case, or else in the file, as a JSON pointer.
    pub pointer: String,
    pub message: String,
}

impl Lint {
    /// Returns the JSON pointer in the file, whose list of cases is at `cases`.
    pub fn pointer_in_file(&self, cases: &str) -> String {
        match self.case_index {
            Some(index) => format!("{cases}/{index}{}", self.pointer),
            None => self.pointer.clone(),
        }
    }
}

/// What lints are looked for by.
#[derive(Debug, Clone, Copy, Default)]
pub struct LintContext<'c> {
    pub registry: Option<&'c Registry>,
    /// Cases without stubs are only routed, so that there is no response to judge.
    pub routing_only: bool,
    /// The cases as they stand in the file, where edits are to be found.
    pub raw_cases: Option<&'c [Value]>,
    /// The ids of the cases in the file's archive; none where it could not be read, so that nothing is known of them.
    pub archived: Option<&'c BTreeSet<String>>,
}

/// Finds what is likely wrong, in the order of the cases.
pub fn lint(file: &EvalFile, context: LintContext<'_>) -> Vec<Lint> {
    let mut lints = removed_regressions(file, context.archived);
    let mut prompts: HashMap<String, &str> = HashMap::new();
    let mut names = ToolNames::new(context.registry);
    for (index, case) in file.cases.iter().enumerate() {
        let mut linter = Linter { file, case, index, lints: &mut lints };
        linter.routing();
        linter.proof_values();
        linter.hollow_values();
        linter.difficulty();
        linter.regression(context.raw_cases);
        linter.archived(context.archived);
        linter.tokens();
        linter.stubs(context.routing_only);
        linter.golden_fields();
        linter.id_form();
        linter.unknown_tools(case, &mut names);
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

/// Finds cases whose hash is there, but which are neither in the file nor in its archive.
fn removed_regressions(file: &EvalFile, archived: Option<&BTreeSet<String>>) -> Vec<Lint> {
    let hashes = file.metadata.as_ref().and_then(|metadata| metadata.case_hashes.as_ref());
    let (Some(hashes), Some(archived)) = (hashes, archived) else {
        return Vec::new();
    };
    let present: BTreeSet<&str> = file.cases.iter().map(|case| case.id.as_str()).collect();
    let is_gone = |id: &&String| !present.contains(id.as_str()) && !archived.contains(*id);
    let lint = |id: &String| Lint {
        rule: Rule::RemovedRegression,
        case_id: id.clone(),
        case_index: None,
        pointer: format!("/metadata/caseHashes/{}", pointer_key(id)),
        message: "this regression case was removed: restore it, and archive it with 'karat regress archive'".to_owned(),
    };
    hashes.keys().filter(is_gone).map(lint).collect()
}

struct Linter<'l> {
    file: &'l EvalFile,
    case: &'l Case,
    index: usize,
    lints: &'l mut Vec<Lint>,
}

impl Linter<'_> {
    fn add(&mut self, rule: Rule, pointer: &str, message: String) {
        self.lints.push(Lint {
            rule,
            case_id: self.case.id.clone(),
            case_index: Some(self.index),
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
        if self.file.tier == Tier::Golden && values.len() < 2 && !self.asks_first() {
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
        // A file that was never sealed is left alone; a case with a history once had a hash, or should have one.
        let has_history = self.case.created_at.is_some() || self.case.bug_ref.is_some();
        if (hashes.is_some() || has_history) && written.is_none() && is_regression(self.file, self.case) {
            let message = "'caseHashes' lacks this case, so that an edit of it is not found: run 'karat regress seal'";
            self.add(Rule::UnsealedRegression, "/id", message.to_owned());
        }
    }

    fn archived(&mut self, archived: Option<&BTreeSet<String>>) {
        let id = &self.case.id;
        if is_regression(self.file, self.case) && archived.is_some_and(|archived| archived.contains(id)) {
            let message = format!(
                "this case is in the archive too, so archiving it was interrupted or undone: run 'karat regress \
                 archive {id}' again"
            );
            self.add(Rule::ArchivedRegression, "/id", message);
        }
    }

    fn tokens(&mut self) {
        if !is_regression(self.file, self.case) {
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

    /// Tells whether the case is about a tool that has to ask before it is called: then nothing can prove that it was.
    fn asks_first(&self) -> bool {
        let expect = &self.case.expect;
        let is_own = |name: &String| same_name(name, &self.file.tool_name);
        expect.tools_called.is_none() && expect.tools_not_called.iter().flatten().any(is_own)
    }

    fn golden_fields(&mut self) {
        if self.file.tier != Tier::Golden {
            return;
        }
        let expect = &self.case.expect;
        let fields = [
            ("/difficulty", self.case.difficulty.is_some()),
            ("/expect/toolsAcceptable", expect.tools_acceptable.is_some()),
            ("/expect/toolsNotCalled", expect.tools_not_called.is_some() && !self.asks_first()),
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

    fn unknown_tools<'n>(&mut self, case: &'n Case, names: &mut ToolNames<'n>) {
        for (pointer, tool) in named_tools(&case.expect) {
            if let Some((rule, message)) = names.missing(tool) {
                self.add(*rule, &pointer, message.clone());
            }
        }
    }
}

/// Says which tools the registry lacks; each is looked for once, however often it is named.
struct ToolNames<'n> {
    registry: Option<&'n Registry>,
    asked: HashMap<&'n str, Option<(Rule, String)>>,
}

impl<'n> ToolNames<'n> {
    fn new(registry: Option<&'n Registry>) -> Self {
        Self { registry, asked: HashMap::new() }
    }

    fn missing(&mut self, tool: &'n str) -> Option<&(Rule, String)> {
        let registry = self.registry?;
        self.asked.entry(tool).or_insert_with(|| missing_tool(registry, tool)).as_ref()
    }
}

/// Says that the registry lacks a tool, if it does, and which one may have been meant.
pub fn missing_tool(registry: &Registry, tool: &str) -> Option<(Rule, String)> {
    if registry.tool(tool).is_some() {
        return None;
    }
    let near = crate::source::nearest(tool, &registry.names())
        .map_or_else(String::new, |name| format!(" (did you mean '{name}'?)"));
    if registry.gaps().is_empty() {
        return Some((Rule::UnknownTool, format!("the registry has no tool '{tool}'{near}")));
    }
    let message =
        format!("no tool '{tool}' is in what could be read of the registry{near}; it may be in a part that could not");
    Some((Rule::ToolNotKnown, message))
}

/// Tells whether an expectation says that something does not happen.
pub fn asserts_absence(expect: &Expectation) -> bool {
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
