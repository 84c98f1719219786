//! Lints: each rule fires at the right location, and not elsewhere.

mod calls;
mod conversations;
mod injections;
mod regressions;
mod state;
mod tokens;
mod tools;
mod values;

use std::collections::BTreeSet;

use karat_cases::registry::{Registry, Tool};
use karat_cases::token::TokenSources;
use karat_cases::{EvalFile, Origin};
use karat_json::locate;
use karat_lints::{Lint, LintContext, Rule, Severity, lint};
use serde_json::{Value, json};

/// A file with its lint context.
struct LintInput {
    file_name: &'static str,
    document: Value,
    registry: Option<Registry>,
    routing_only: bool,
    archived: Option<BTreeSet<String>>,
    tokens: Option<TokenSources>,
}

impl LintInput {
    fn new(file_name: &'static str, cases: Value) -> Self {
        Self { file_name, document: cases, registry: None, routing_only: false, archived: None, tokens: None }
    }

    /// One case with these members.
    fn from_case(file_name: &'static str, members: Value) -> Self {
        Self::new(file_name, json!([case("gs-x-001", members)]))
    }

    fn lints(&self) -> Vec<Lint> {
        let text = serde_json::to_string_pretty(&self.document).expect("serializable");
        let file = EvalFile::parse(text.as_bytes(), Origin::new(self.file_name))
            .unwrap_or_else(|invalid| panic!("{:?}", invalid.findings));
        let (list, raw_cases) = match self.document.get("cases") {
            Some(cases) => ("/cases", cases),
            None => ("", &self.document),
        };
        let context = LintContext {
            registry: self.registry.as_ref(),
            tokens: self.tokens.as_ref(),
            routing_only: self.routing_only,
            raw_cases: raw_cases.as_array().map(Vec::as_slice),
            archived: self.archived.as_ref(),
            other_cases: None,
        };
        let lints = lint(&file, context);
        for lint in &lints {
            let pointer = lint.pointer_in_file(list);
            let located = locate(&text, &pointer).unwrap_or_else(|| panic!("nothing at {pointer}"));
            let value: Value = serde_json::from_str(&text[located.value]).expect("valid JSON");
            assert_eq!(Some(&value), self.document.pointer(&pointer), "{pointer}");
            assert!(lint.case_index.is_none_or(|index| lint.case_id == file.cases[index].id));
            assert!(!lint.message.is_empty());
        }
        lints
    }

    /// Where a rule fires: the index of the case and the pointer in it.
    fn locations(&self, rule: Rule) -> Vec<String> {
        let lints = self.lints();
        let matches = lints.iter().filter(|lint| lint.rule == rule);
        let index = |lint: &Lint| lint.case_index.map(|index| index.to_string()).unwrap_or_default();
        matches.map(|lint| format!("{}{}", index(lint), lint.pointer)).collect()
    }
}

fn case(id: &str, members: Value) -> Value {
    let mut case = json!({ "id": id, "input": { "message": "Weather in Tokyo?" }, "expect": {} });
    let Value::Object(members) = members else { panic!("expected an object") };
    case.as_object_mut().expect("case object").extend(members);
    case
}

fn registry(names: &[&str]) -> Registry {
    let tool = |name: &&str| Tool { name: (*name).to_owned(), ..Tool::default() };
    Registry::from_tools(names.iter().map(tool))
}

/// A file that breaks every rule that a golden file can break.
fn broken_file() -> LintInput {
    let cases = json!([
        case(
            "x",
            json!({
                "difficulty": "edge",
                "stubs": {},
                "expect": {
                    "toolsCalled": ["get_wether"],
                    "toolsAcceptable": [["get_weather"]],
                    "responseContains": ["Tokyo"],
                    "responseContainsAny": [["one"]],
                    "toolParams": [{ "tool": "get_weather", "paramName": "p", "assertion": "exists", "value": 1 }]
                }
            })
        ),
        case("gs-x-002", json!({ "difficulty": "ambiguous", "expect": { "responseMatches": ["{{seed:a}}"] } })),
        case(
            "gs-x-003",
            json!({
                "difficulty": "regression", "input": { "message": "n" }, "expect": { "responseContains": ["{{snapshot:a}}", ""] }
            })
        ),
        case("gs-x-004", json!({ "difficulty": "regression", "input": { "message": "o" } })),
    ]);
    let hashes = json!({ "gs-x-003": "000000000000", "gs-x-005": "000000000000" });
    let document = json!({ "metadata": { "toolName": "x", "caseHashes": hashes }, "cases": cases });
    let registry = Some(registry(&["get_weather"]));
    let archived = Some(BTreeSet::from(["gs-x-004".to_owned()]));
    LintInput { registry, routing_only: true, archived, ..LintInput::new("x.golden.json", document) }
}

#[test]
fn every_rule_has_a_unique_id_a_summary_and_an_example() {
    let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(names.len(), Rule::ALL.len());
    for rule in Rule::ALL {
        assert_eq!(serde_json::to_value(rule).unwrap(), rule.name());
        assert!(rule.summary().ends_with('.') && !rule.example().is_empty(), "{}", rule.name());
        assert!(rule.draft_severity() >= rule.severity(), "drafts must not be less strict: {}", rule.name());
    }
}

#[test]
fn one_file_can_break_many_rules() {
    let names: BTreeSet<&str> = broken_file().lints().iter().map(|lint| lint.rule.name()).collect();
    assert_eq!(
        names.into_iter().collect::<Vec<_>>(),
        [
            "ambiguous-without-sets",
            "archived-regression",
            "both-routing-kinds",
            "cannot-fail",
            "edge-without-negative",
            "edited-regression",
            "empty-stubs",
            "empty-value",
            "few-proof-values",
            "golden-tool",
            "id-form",
            "ignored-value",
            "labeled-field-in-golden",
            "lonely-synonym",
            "missing-key",
            "proof-echoes-prompt",
            "removed-regression",
            "response-in-routing-only",
            "same-prompt",
            "snapshot-in-regression",
            "token-in-pattern",
            "unknown-tool",
            "unsealed-regression",
        ]
    );
}

#[test]
fn lints_are_in_case_order() {
    let lints = broken_file().lints();
    assert!(lints.is_sorted_by_key(|lint| lint.case_index));
    assert!(Severity::Error > Severity::Warning);
}

#[test]
fn a_good_file_has_no_lints() {
    let golden = json!({ "expect": {
        "toolsCalled": ["get_weather"], "noToolErrors": true, "responseNonEmpty": true, "maxLatencyMs": 5000,
        "responseContains": ["18", "{{snapshot:city}}"], "responseContainsAny": [["sunny", "clear"]],
        "responseNotContains": ["fetchedAt"],
        "toolParams": [{ "tool": "get_weather", "paramName": "city", "assertion": "exists" }]
    } });
    let document = json!({ "metadata": { "toolName": "get_weather" }, "cases": [case("gs-get-weather-001", golden)] });
    let registry = Some(registry(&["get_weather"]));
    let input = LintInput { registry, ..LintInput::new("w.golden.json", document) };
    assert_eq!(input.lints(), Vec::new());
}

#[test]
fn pointers_are_valid_in_both_kinds_of_file() {
    let bare = LintInput::from_case("x.golden.json", json!({ "stubs": {} }));
    let envelope = LintInput::new("x.golden.json", json!({ "cases": bare.document }));
    assert_eq!(bare.lints(), envelope.lints());
    assert_ne!(bare.lints(), Vec::new());
}
