//! Lints: each rule fires at the right location, and not elsewhere.

use std::collections::BTreeSet;

use karat_core::case::{EvalFile, Origin};
use karat_core::lint::{Lint, LintContext, Rule, Severity, lint};
use karat_core::registry::{Gap, GapKind, Registry, Tool, ToolLocation};
use karat_core::token::TokenSources;
use karat_json::canonical::canonical_hash;
use karat_json::locate;
use rstest::rstest;
use serde_json::{Map, Value, json};

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
        for found in &lints {
            let pointer = found.pointer_in_file(list);
            let located = locate(&text, &pointer).unwrap_or_else(|| panic!("nothing at {pointer}"));
            let value: Value = serde_json::from_str(&text[located.value]).expect("valid JSON");
            assert_eq!(Some(&value), self.document.pointer(&pointer), "{pointer}");
            assert!(found.case_index.is_none_or(|index| found.case_id == file.cases[index].id));
            assert!(!found.message.is_empty());
        }
        lints
    }

    /// Where a rule fires: the index of the case and the pointer in it.
    fn locations(&self, rule: Rule) -> Vec<String> {
        let lints = self.lints();
        let found = lints.iter().filter(|lint| lint.rule == rule);
        let index = |lint: &Lint| lint.case_index.map(|index| index.to_string()).unwrap_or_default();
        found.map(|lint| format!("{}{}", index(lint), lint.pointer)).collect()
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

#[rstest]
#[case(json!({ "toolsCalled": ["a"], "toolsAcceptable": [["a"]] }), &["0/expect/toolsAcceptable"])]
#[case(json!({ "toolsCalled": [], "toolsAcceptable": [["__none__"]] }), &["0/expect/toolsAcceptable"])]
#[case(json!({ "toolsCalled": ["a"], "toolsNotCalled": ["b"] }), &[])]
#[case(json!({ "toolsAcceptable": [["a"]] }), &[])]
fn both_routing_kinds(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    assert_eq!(input.locations(Rule::BothRoutingKinds), locations);
}

#[rstest]
#[case::by_file("x.regression.json", json!({}), &["0/expect/responseContains"])]
#[case::by_case("x.labeled.json", json!({ "difficulty": "regression" }), &["0/expect/responseContains"])]
#[case::elsewhere("x.labeled.json", json!({ "difficulty": "edge" }), &[])]
#[case::golden("x.golden.json", json!({}), &[])]
fn snapshot_in_regression(#[case] name: &'static str, #[case] mut members: Value, #[case] locations: &[&str]) {
    members["expect"] = json!({ "responseContains": ["{{seed:a}}", "is {{snapshot:a.b[0]}}"] });
    assert_eq!(LintInput::from_case(name, members).locations(Rule::SnapshotInRegression), locations);
}

#[rstest]
#[case(json!({ "responseContainsAny": [["a", "{{snapshot:a}}"]] }), &["0/expect/responseContainsAny"])]
#[case(json!({ "responseNotContains": ["{{snapshot:a}}"] }), &["0/expect/responseNotContains"])]
#[case(
    json!({ "toolParams": [{ "tool": "t", "paramName": "p", "assertion": "oneOf", "value": ["x", "{{snapshot:a}}"] }] }),
    &["0/expect/toolParams"]
)]
#[case(json!({ "responseContains": ["{{seed:snapshot}}", "snapshot", "{{snapshot}}"] }), &[])]
fn snapshot_in_any_value_of_a_regression(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.regression.json", json!({ "expect": expect }));
    assert_eq!(input.locations(Rule::SnapshotInRegression), locations);
}

#[rstest]
#[case::untouched(|_: &mut Value| {}, &[])]
#[case::keys_in_another_order(|case: &mut Value| {
    let map = case.as_object_mut().unwrap();
    *map = std::mem::take(map).into_iter().rev().collect::<Map<_, _>>();
}, &[])]
#[case::number_in_another_form(|case: &mut Value| case["maxTurns"] = json!(3.0), &[])]
#[case::another_message(|case: &mut Value| case["input"]["message"] = json!("Weather in Tokyo? "), &["0"])]
#[case::large_number(|case: &mut Value| case["stubs"] = json!({ "t": 12_345_678_901_234_567_999_u64 }), &["0"])]
#[case::weaker_expectation(|case: &mut Value| case["expect"] = json!({}), &["0"])]
#[case::one_more_member(|case: &mut Value| case["description"] = json!(""), &["0"])]
fn edited_regression(#[case] edit: fn(&mut Value), #[case] locations: &[&str]) {
    let stubs = json!({ "t": 12_345_678_901_234_567_890_u64 });
    let own = json!({ "maxTurns": 3, "stubs": stubs, "expect": { "responseContains": ["a", "b"] } });
    let mut regression = case("rg-x-001", own);
    let hashes = json!({ "rg-x-001": canonical_hash(&regression), "rg-gone-001": "0123456789ab" });
    edit(&mut regression);
    let other = case("rg-x-002", json!({ "input": { "message": "not guarded" } }));
    let document = json!({ "metadata": { "caseHashes": hashes }, "cases": [regression, other] });
    assert_eq!(LintInput::new("x.regression.json", document).locations(Rule::EditedRegression), locations);
}

#[test]
fn edits_are_detected_only_with_raw_cases() {
    let text = json!({ "metadata": { "caseHashes": { "rg-x-001": "0" } }, "cases": [case("rg-x-001", json!({}))] });
    let file = EvalFile::parse(text.to_string().as_bytes(), Origin::new("x.regression.json")).unwrap();
    assert!(lint(&file, LintContext::default()).iter().all(|lint| lint.rule != Rule::EditedRegression));
}

#[rstest]
#[case("x.golden.json", json!({}), &["0/expect"])]
#[case("x.golden.json", json!({ "responseContains": [] }), &["0/expect"])]
#[case("x.golden.json", json!({ "responseContains": ["18"] }), &["0/expect"])]
#[case("x.golden.json", json!({ "responseContains": ["18", "19"] }), &[])]
#[case("x.labeled.json", json!({ "responseContains": ["18"] }), &[])]
#[case("x.regression.json", json!({}), &[])]
#[case("x.json", json!({}), &["0/expect"])]
fn few_proof_values(#[case] name: &'static str, #[case] expect: Value, #[case] locations: &[&str]) {
    // Without a tier in the file name, the prefix of the id makes it golden.
    assert_eq!(LintInput::from_case(name, json!({ "expect": expect })).locations(Rule::FewProofValues), locations);
}

#[test]
fn approved_drafts_need_no_proof_values() {
    let approval = json!({ "approvedBy": "Ada", "approvedAt": "2026-01-01T00:00:00Z", "drafter": "template", "cases": ["gs-x-001"] });
    let cases = json!([case("gs-x-001", json!({})), case("gs-x-002", json!({}))]);
    let input = LintInput::new("x.golden.json", json!({ "metadata": { "approvals": [approval] }, "cases": cases }));
    assert_eq!(input.locations(Rule::FewProofValues), ["1/expect"]);
}

#[rstest]
#[case(&["Tokyo"], &["0/expect/responseContains"])]
#[case(&["Tokyo", "Weather"], &["0/expect/responseContains"])]
#[case(&["Tokyo", "18"], &[])]
#[case(&["tokyo"], &[])]
#[case(&["{{seed:Tokyo}}"], &[])]
#[case(&[], &[])]
fn proof_echoes_prompt(#[case] values: &[&str], #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": { "responseContains": values } }));
    assert_eq!(input.locations(Rule::ProofEchoesPrompt), locations);
}

#[rstest]
#[case("ambiguous", json!({}), &["0/expect"])]
#[case("ambiguous", json!({ "toolsCalled": ["a"] }), &["0/expect"])]
#[case("ambiguous", json!({ "toolsAcceptable": [["a"]] }), &[])]
#[case("straightforward", json!({ "toolsCalled": ["a"] }), &[])]
#[case("edge", json!({}), &[])]
#[case("regression", json!({}), &[])]
fn ambiguous_without_sets(#[case] difficulty: &str, #[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "difficulty": difficulty, "expect": expect }));
    assert_eq!(input.locations(Rule::AmbiguousWithoutSets), locations);
}

#[rstest]
#[case("edge", json!({}), &["0/expect"])]
#[case("edge", json!({ "toolsCalled": ["a"], "responseNonEmpty": true }), &["0/expect"])]
#[case("edge", json!({ "toolsNotCalled": [], "responseNotContains": [] }), &["0/expect"])]
#[case("edge", json!({ "maxToolCalls": 1 }), &["0/expect"])]
#[case("edge", json!({ "toolsAcceptable": [["a"]] }), &["0/expect"])]
#[case("edge", json!({ "toolsNotCalled": ["a"] }), &[])]
#[case("edge", json!({ "responseNotContains": ["a"] }), &[])]
#[case("edge", json!({ "toolsCalled": [] }), &[])]
#[case("edge", json!({ "maxToolCalls": 0 }), &[])]
#[case("edge", json!({ "toolsAcceptable": [["__none__"]] }), &[])]
#[case("edge", json!({ "toolsAcceptable": [["a"], []] }), &[])]
#[case("ambiguous", json!({}), &[])]
fn edge_without_negative(#[case] difficulty: &str, #[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "difficulty": difficulty, "expect": expect }));
    assert_eq!(input.locations(Rule::EdgeWithoutNegative), locations);
}

#[rstest]
#[case(&["one", "two"], &[])]
#[case(&["one", "one"], &["1/input/message"])]
#[case(&["one", " ONE\n"], &["1/input/message"])]
#[case(&["Straße", "STRASSE"], &[])]
#[case(&["ÉTÉ", "été", "x", "Été "], &["1/input/message", "3/input/message"])]
#[case(&["o ne", "one"], &[])]
fn same_prompt(#[case] prompts: &[&str], #[case] locations: &[&str]) {
    let cases = prompts
        .iter()
        .enumerate()
        .map(|(number, message)| case(&format!("ls-x-{number:03}"), json!({ "input": { "message": message } })));
    assert_eq!(LintInput::new("x.labeled.json", cases.collect()).locations(Rule::SamePrompt), locations);
}

#[rstest]
#[case(json!([["a"], ["b", "c"], ["d"]]), &["0/expect/responseContainsAny/0", "0/expect/responseContainsAny/2"])]
#[case(json!([[], ["a", "b"]]), &["0/expect/responseContainsAny/0"])]
#[case(json!([["a", "b"]]), &[])]
#[case(json!([]), &[])]
fn lonely_synonym(#[case] groups: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": { "responseContainsAny": groups } }));
    assert_eq!(input.locations(Rule::LonelySynonym), locations);
}

#[rstest]
#[case(json!({ "stubs": {} }), &["0/stubs"])]
#[case(json!({ "stubs": { "a": null } }), &[])]
#[case(json!({}), &[])]
fn empty_stubs(#[case] members: Value, #[case] locations: &[&str]) {
    assert_eq!(LintInput::from_case("x.labeled.json", members).locations(Rule::EmptyStubs), locations);
}

#[rstest]
#[case(json!({ "responseNonEmpty": true }), true)]
#[case(json!({ "responseContains": ["a"] }), true)]
#[case(json!({ "responseContainsAny": [["a", "b"]] }), true)]
#[case(json!({ "responseNotContains": ["a"] }), true)]
#[case(json!({ "responseMatches": ["a"] }), true)]
#[case(json!({ "responseJsonSchema": {} }), true)]
#[case(json!({ "maxTokens": 5 }), true)]
#[case(json!({ "minLength": 5 }), true)]
#[case(json!({ "maxLength": 5 }), true)]
#[case(json!({ "numbersGrounded": true }), true)]
#[case(json!({ "responseNonEmpty": false, "numbersGrounded": false }), false)]
#[case(json!({ "responseContains": [], "responseMatches": [], "responseContainsAny": [] }), false)]
#[case(json!({ "evals": ["eval_routing"] }), false)]
#[case(json!({ "toolsCalled": ["a"], "maxLatencyMs": 5, "maxCostUsd": 1, "noToolErrors": true }), false)]
fn response_in_routing_only(#[case] expect: Value, #[case] fires: bool) {
    let input = |members: Value, routing_only: bool| {
        LintInput { routing_only, ..LintInput::from_case("x.labeled.json", members) }
            .locations(Rule::ResponseInRoutingOnly)
    };
    let expected: &[&str] = if fires { &["0/expect"] } else { &[] };
    assert_eq!(input(json!({ "expect": expect }), true), expected);
    let none: &[&str] = &[];
    assert_eq!(input(json!({ "expect": expect }), false), none, "an agent gives a final answer");
    assert_eq!(input(json!({ "expect": expect, "stubs": {} }), true), none, "a stubbed model gives a final answer");
}

#[rstest]
#[case("x.golden.json", &[
    "0/difficulty", "0/expect/toolsAcceptable", "0/expect/toolsNotCalled", "0/expect/responseMatches", "0/expect/maxTokens"
])]
#[case("x.labeled.json", &[])]
#[case("x.regression.json", &[])]
fn labeled_field_in_golden(#[case] name: &'static str, #[case] locations: &[&str]) {
    let expect =
        json!({ "toolsAcceptable": [["a"]], "toolsNotCalled": ["b"], "responseMatches": ["c"], "maxTokens": 5 });
    let input = LintInput::from_case(name, json!({ "difficulty": "edge", "expect": expect }));
    assert_eq!(input.locations(Rule::LabeledFieldInGolden), locations);
    let shared = json!({ "toolsCalled": ["a"], "responseContains": ["x", "y"], "maxLatencyMs": 5, "minLength": 1 });
    let none: &[&str] = &[];
    assert_eq!(LintInput::from_case(name, json!({ "expect": shared })).locations(Rule::LabeledFieldInGolden), none);
}

#[rstest]
#[case("get_weather.golden.json", "gs-get-weather-001", true)]
#[case("get_weather.golden.json", "gs-get_weather-001", true)]
#[case("get-weather.golden.json", "gs-get_weather-1234", true)]
#[case("get_weather.golden.json", "ls-get-weather-001", false)]
#[case("get_weather.golden.json", "gs-get-weather-01", false)]
#[case("get_weather.golden.json", "gs-get-weather-00a", false)]
#[case("get_weather.golden.json", "gs-get-weather-٠٠١", false)]
#[case("get_weather.golden.json", "gs-get-weather", false)]
#[case("get_weather.golden.json", "gs-001", false)]
#[case("get_weather.golden.json", "gs-get-forecast-001", false)]
#[case("get_weather.golden.json", "GS-get-weather-001", false)]
#[case("get_weather.labeled.json", "ls-get-weather-001", true)]
#[case("get_weather.labeled.json", "gs-get-weather-001", false)]
#[case("get_weather.regression.json", "rg-get-weather-001", true)]
#[case("get_weather.regression.json", "ls-get-weather-001", false)]
#[case("get_weather.json", "whatever", true)]
#[case("get_weather.rubric.json", "whatever", true)]
fn id_form(#[case] name: &'static str, #[case] id: &str, #[case] is_valid: bool) {
    let input = LintInput::new(name, json!([case(id, json!({}))]));
    let expected: &[&str] = if is_valid { &[] } else { &["0/id"] };
    assert_eq!(input.locations(Rule::IdForm), expected);
}

#[rstest]
#[case(json!({ "toolsCalled": ["known", "a"] }), &["0/expect/toolsCalled/1"])]
#[case(json!({ "toolsNotCalled": ["a", "known"] }), &["0/expect/toolsNotCalled/0"])]
#[case(json!({ "toolsAcceptable": [["known"], ["known", "a"]] }), &["0/expect/toolsAcceptable/1/1"])]
#[case(json!({ "toolsAcceptable": [["__none__"], []] }), &[])]
#[case(
    json!({ "toolParams": [{ "tool": "a", "paramName": "p", "assertion": "exists" }] }),
    &["0/expect/toolParams/0/tool"]
)]
#[case(json!({ "toolOrder": [["known", "a"], ["b", "known"]] }), &["0/expect/toolOrder/0/1", "0/expect/toolOrder/1/0"])]
#[case(json!({ "toolsCalled": ["Known", "kno-wn"] }), &["0/expect/toolsCalled/0", "0/expect/toolsCalled/1"])]
#[case(json!({ "toolsCalled": ["known"], "responseContains": ["a"] }), &[])]
fn unknown_tool(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = || LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    let known = LintInput { registry: Some(registry(&["known"])), ..input() };
    assert_eq!(known.locations(Rule::UnknownTool), locations);
    let none: &[&str] = &[];
    assert_eq!(input().locations(Rule::UnknownTool), none, "without a registry no tool is unknown");
    let mut gapped = known;
    let location = ToolLocation { source: "tools.ts".to_owned(), position: None };
    let gap = Gap { kind: GapKind::Unknown, location, message: "a loop makes tools".to_owned() };
    gapped.registry.iter_mut().for_each(|registry| registry.add_gap(gap.clone()));
    assert_eq!(gapped.locations(Rule::UnknownTool), none, "it may be in a gap");
    assert_eq!(gapped.locations(Rule::ToolNotKnown), locations);
}

#[test]
fn suggests_the_nearest_tool() {
    let near = |tool: &str| {
        let input = LintInput::from_case("x.labeled.json", json!({ "expect": { "toolsCalled": [tool] } }));
        let input = LintInput { registry: Some(registry(&["get_forecast", "get_weather"])), ..input };
        input.lints().into_iter().find(|lint| lint.rule == Rule::UnknownTool).unwrap().message
    };
    assert_eq!(near("get_wether"), "the registry has no tool 'get_wether' (did you mean 'get_weather'?)");
    assert_eq!(near("zzz"), "the registry has no tool 'zzz'");
}

#[rstest]
#[case("exists", Some(json!(1)), &["0/expect/toolParams/0/value"])]
#[case("notExists", Some(Value::Null), &["0/expect/toolParams/0/value"])]
#[case("exists", None, &[])]
#[case("equals", Some(json!(1)), &[])]
#[case("oneOf", Some(json!([1])), &[])]
fn ignored_value(#[case] assertion: &str, #[case] value: Option<Value>, #[case] locations: &[&str]) {
    let mut param = json!({ "tool": "t", "paramName": "p", "assertion": assertion });
    if let Some(value) = value {
        param["value"] = value;
    }
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": { "toolParams": [param] } }));
    assert_eq!(input.locations(Rule::IgnoredValue), locations);
}

#[rstest]
#[case(json!({ "responseContains": ["a", ""] }), &["0/expect/responseContains/1"])]
#[case(json!({ "responseContains": ["", ""] }), &["0/expect/responseContains/0", "0/expect/responseContains/1"])]
// It fails every case, so it is noticed anyway.
#[case(json!({ "responseNotContains": [""] }), &[])]
#[case(json!({ "responseContainsAny": [["a", "b"], ["c", ""]] }), &["0/expect/responseContainsAny/1/1"])]
#[case(json!({ "responseContains": [" ", "{{seed:a}}"], "responseContainsAny": [[]] }), &[])]
#[case(json!({ "responseMatches": [""] }), &["0/expect/responseMatches/0"])]
fn empty_value(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    assert_eq!(input.locations(Rule::EmptyValue), locations);
}

#[rstest]
#[case(json!({ "responseMatches": ["a", "^{{seed:a.b[0]}}$"] }), &["0/expect/responseMatches/1"])]
#[case(json!({ "responseMatches": ["{{snapshot:a}}", "{{seed:a}}"] }), &["0/expect/responseMatches/0", "0/expect/responseMatches/1"])]
#[case(json!({ "responseMatches": ["a{2}", "{{seed a}}", "seed:a"] }), &[])]
#[case(json!({ "responseContains": ["{{seed:a}}"] }), &[])]
#[case(
    json!({ "toolParams": [{ "tool": "t", "paramName": "p", "assertion": "matches", "value": "^{{seed:a}}" }] }),
    &[]
)]
fn token_in_pattern(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    assert_eq!(input.locations(Rule::TokenInPattern), locations);
}

#[rstest]
#[case("x.golden.json", json!({ "toolsCalled": ["x"] }), &[])]
#[case("x.golden.json", json!({ "toolsNotCalled": ["x"] }), &[])]
#[case("x.golden.json", json!({ "toolsCalled": [] }), &[])]
#[case("x.golden.json", json!({}), &["0/expect"])]
#[case("x.golden.json", json!({ "toolsCalled": ["y"] }), &["0/expect/toolsCalled"])]
#[case("x.golden.json", json!({ "toolsCalled": ["x", "x"] }), &["0/expect/toolsCalled"])]
#[case("x.labeled.json", json!({}), &[])]
fn golden_tool(#[case] name: &'static str, #[case] expect: Value, #[case] locations: &[&str]) {
    assert_eq!(LintInput::from_case(name, json!({ "expect": expect })).locations(Rule::GoldenTool), locations);
}

#[rstest]
#[case::both("x.golden.json", json!({ "expect": { "toolsCalled": ["x"] } }), "noToolErrors|responseNonEmpty")]
#[case::one("x.golden.json", json!({ "expect": { "toolsCalled": ["x"], "noToolErrors": false } }), "responseNonEmpty")]
#[case::implied("x.golden.json", json!({ "expect": { "toolsCalled": ["x"], "responseContains": ["18"] } }), "noToolErrors")]
#[case::asks_first("x.golden.json", json!({ "expect": { "toolsCalled": [], "responseNonEmpty": true } }), "")]
#[case::labeled("x.labeled.json", json!({ "expect": { "responseNonEmpty": true } }), "difficulty|toolsCalled")]
#[case::edge("x.labeled.json", json!({ "difficulty": "edge", "expect": { "toolsNotCalled": ["x"] } }), "")]
#[case::ambiguous("x.labeled.json", json!({ "difficulty": "ambiguous", "expect": {} }), "")]
#[case::regression("x.regression.json", json!({}), "difficulty|createdAt|bugRef")]
#[case::no_bug("x.regression.json", json!({ "difficulty": "regression", "createdAt": "2025-01-15" }), "bugRef")]
#[case::other_tier("x.labeled.json", json!({ "difficulty": "regression" }), "createdAt|bugRef")]
fn missing_keys(#[case] name: &'static str, #[case] members: Value, #[case] keys: &str) {
    let lints = LintInput::from_case(name, members).lints();
    let messages: Vec<&str> =
        lints.iter().filter(|lint| lint.rule == Rule::MissingKey).map(|lint| lint.message.as_str()).collect();
    assert_eq!(messages.is_empty(), keys.is_empty(), "{messages:?}");
    let messages = messages.join("; ");
    let all = ["noToolErrors", "responseNonEmpty", "difficulty", "createdAt", "bugRef", "toolsCalled"];
    let expected: Vec<&str> = keys.split('|').collect();
    for key in all {
        assert_eq!(messages.contains(&format!("'{key}'")), expected.contains(&key), "{key}: {messages}");
    }
}

#[test]
fn nothing_is_missing_in_routing_only_and_sealed_cases() {
    let golden = LintInput::from_case("x.golden.json", json!({ "expect": { "toolsCalled": ["x"] } }));
    let golden = LintInput { routing_only: true, ..golden };
    assert_eq!(golden.locations(Rule::MissingKey), Vec::<String>::new());
    let sealed = case("rg-x-001", json!({ "expect": { "responseNonEmpty": true } }));
    let hashes = json!({ "rg-x-001": canonical_hash(&sealed) });
    let document = json!({ "metadata": { "caseHashes": hashes }, "cases": [sealed] });
    assert_eq!(LintInput::new("x.regression.json", document).locations(Rule::MissingKey), Vec::<String>::new());
}

#[rstest]
#[case("2026-01-15T09:00:00Z", &[])]
#[case("2026-01-15T09:00:00.123+02:00", &[])]
#[case("2026-01-15", &[])]
#[case("yesterday", &["0/createdAt"])]
#[case("15.01.2026", &["0/createdAt"])]
#[case("", &["0/createdAt"])]
fn created_at(#[case] time: &str, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.regression.json", json!({ "createdAt": time }));
    assert_eq!(input.locations(Rule::CreatedAt), locations);
}

#[rstest]
#[case(json!({ "toolsCalled": ["x", "y"] }), &[])]
#[case(json!({ "toolsCalled": ["x"] }), &["0/expect/toolsCalled"])]
#[case(json!({ "toolsCalled": ["y", "z"] }), &["0/expect/toolsCalled"])]
#[case(json!({}), &["0/expect"])]
fn straightforward_tools(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "difficulty": "straightforward", "expect": expect }));
    assert_eq!(input.locations(Rule::StraightforwardTools), locations);
}

#[rstest]
#[case(json!([["x"], ["y"]]), &[])]
#[case(json!([["__none__"]]), &[])]
#[case(json!([["y"], ["z"]]), &["0/expect/toolsAcceptable"])]
fn ambiguous_tools(#[case] sets: Value, #[case] locations: &[&str]) {
    let expect = json!({ "toolsAcceptable": sets });
    let input = LintInput::from_case("x.labeled.json", json!({ "difficulty": "ambiguous", "expect": expect }));
    assert_eq!(input.locations(Rule::AmbiguousTools), locations);
}

#[rstest]
#[case("Call get_weather for Oslo", None, &["0/input/message"])]
#[case("Call `getForecast`.", None, &["0/input/message"])]
#[case("Call get_weather for Oslo", Some("edge"), &[])]
#[case("Get weather for Oslo", None, &[])]
#[case("What does my_get_weather_2 do?", None, &[])]
fn message_names_tool(#[case] message: &str, #[case] difficulty: Option<&str>, #[case] locations: &[&str]) {
    let mut members = json!({ "input": { "message": message } });
    if let Some(difficulty) = difficulty {
        members["difficulty"] = json!(difficulty);
    }
    let registry = Some(registry(&["get_weather", "getForecast"]));
    let input = LintInput { registry, ..LintInput::from_case("x.labeled.json", members) };
    assert_eq!(input.locations(Rule::MessageNamesTool), locations);
}

#[rstest]
#[case(json!({ "responseContains": ["{{seed:city}}"] }), &[])]
#[case(json!({ "responseContains": ["{{seed:citty}}"] }), &["0/expect/responseContains/0"])]
#[case(json!({ "responseNotContains": ["{{seed:a..b}}"] }), &["0/expect/responseNotContains/0"])]
#[case(json!({ "responseContains": ["{{snapshot:anything}}"] }), &[])]
#[case(
    json!({ "toolParams": [{ "tool": "t", "paramName": "p", "assertion": "oneOf", "value": ["x", "{{seed:no}}"] }] }),
    &["0/expect/toolParams/0/value/1"]
)]
fn unresolved_token(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = || LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    let sources = TokenSources { seed: Some(json!({ "city": "Oslo" })), snapshot: None };
    assert_eq!(LintInput { tokens: Some(sources), ..input() }.locations(Rule::UnresolvedToken), locations);
    let none: &[&str] = &[];
    assert_eq!(input().locations(Rule::UnresolvedToken), none, "the manifest is unknown");
}

#[rstest]
#[case("{{ seed:city }}", true)]
#[case("{{Seed:city}}", true)]
#[case("{{SNAPSHOT : price}}", true)]
#[case("{{seed:city}", true)]
#[case("{{ row:city }}", true)]
#[case("{{Row:city}}", true)]
#[case("{{row:city}}", false)]
#[case("{{seed:city}}", false)]
#[case("{{name}}", false)]
#[case("seed:city", false)]
fn stray_token(#[case] text: &str, #[case] fires: bool) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": { "responseNotContains": [text] } }));
    let expected: &[&str] = if fires { &["0/expect/responseNotContains/0"] } else { &[] };
    assert_eq!(input.locations(Rule::StrayToken), expected);
}

#[rstest]
#[case::message(json!({ "input": { "message": "in {{row:city}}?" } }), &["0/input/message"])]
#[case::stubs(json!({ "stubs": { "x": [{ "city": "{{row:city}}" }] } }), &["0/stubs"])]
#[case::expect(json!({ "expect": { "responseContains": ["{{row:city}}"] } }), &["0/expect"])]
#[case::rows(
    json!({
        "input": { "message": "in {{row:city}}?" }, "expect": { "responseContains": ["{{row:city}}"] },
        "each": [{ "city": "Oslo" }],
    }),
    &[]
)]
#[case::no_token(json!({ "input": { "message": "{{row}} row:city {{ row:city }}" } }), &[])]
fn row_token(#[case] members: Value, #[case] locations: &[&str]) {
    assert_eq!(LintInput::from_case("x.labeled.json", members).locations(Rule::RowToken), locations);
}

#[test]
fn a_misspelt_row_token_in_a_message_is_a_stray_token() {
    let members = json!({ "input": { "message": "in {{ row:city }}?" }, "each": [{ "city": "Oslo" }] });
    assert_eq!(LintInput::from_case("x.labeled.json", members).locations(Rule::StrayToken), ["0/input/message"]);
}

#[rstest]
#[case(json!({ "responseContains": ["2026-05-01"] }), &["0/expect/responseContains/0"])]
#[case(json!({ "responseContainsAny": [["12:30", "noon"]] }), &["0/expect/responseContainsAny/0/0"])]
#[case(json!({ "responseNotContains": ["2026-05-01"] }), &[])]
#[case(json!({ "responseContains": ["due {{seed:due}}"] }), &[])]
#[case(json!({ "responseContains": ["18"] }), &[])]
fn volatile_value(#[case] expect: Value, #[case] locations: &[&str]) {
    let input = LintInput::from_case("x.labeled.json", json!({ "expect": expect }));
    assert_eq!(input.locations(Rule::VolatileValue), locations);
}

#[rstest]
#[case(json!({ "toolsCalled": ["a"], "toolsNotCalled": ["a"] }), Rule::Contradiction, &["0/expect/toolsCalled/0"])]
#[case(json!({ "minToolCalls": 3, "maxToolCalls": 2 }), Rule::Contradiction, &["0/expect/minToolCalls"])]
#[case(
    json!({ "responseContains": ["Paris"], "responseNotContains": ["Par"] }),
    Rule::Contradiction,
    &["0/expect/responseContains/0"]
)]
#[case(
    json!({ "toolsCalled": ["a"], "toolParams": [{ "tool": "b", "paramName": "p", "assertion": "exists" }] }),
    Rule::UnusedAssertion,
    &["0/expect/toolParams/0/tool"]
)]
#[case(json!({ "noToolErrors": false }), Rule::CannotFail, &["0/expect"])]
#[case(json!({ "toolsCalled": ["a"] }), Rule::CannotFail, &[])]
fn contradictions_and_vacuous_cases(#[case] expect: Value, #[case] rule: Rule, #[case] locations: &[&str]) {
    assert_eq!(LintInput::from_case("x.labeled.json", json!({ "expect": expect })).locations(rule), locations);
}

#[test]
fn checks_parameters_and_stubs_against_the_registry() {
    let schema = json!({ "type": "object", "properties": { "units": { "enum": ["metric", "imperial"] } } });
    let tool = Tool { name: "get_weather".to_owned(), input_schema: Some(schema).into(), ..Tool::default() };
    let param = |name: &str, value: &str| json!({ "tool": "get_weather", "paramName": name, "assertion": "equals", "value": value });
    let members = json!({
        "stubs": { "get_wether": 1 },
        "expect": {
            "toolsCalled": ["get_weather"],
            "toolParams": [param("units", "metric"), param("units", "kelvin"), param("unit", "metric")],
        }
    });
    let input = LintInput {
        registry: Some(Registry::from_tools([tool])),
        ..LintInput::from_case("get_weather.labeled.json", members)
    };
    assert_eq!(input.locations(Rule::ParamValue), ["0/expect/toolParams/1/value"]);
    assert_eq!(input.locations(Rule::UnknownParam), ["0/expect/toolParams/2/paramName"]);
    assert_eq!(input.locations(Rule::MissingStub), ["0/stubs"]);
    assert_eq!(input.locations(Rule::UnknownTool), ["0/stubs/get_wether"]);
}

#[test]
fn pointers_are_valid_in_both_kinds_of_file() {
    let bare = LintInput::from_case("x.golden.json", json!({ "stubs": {} }));
    let envelope = LintInput::new("x.golden.json", json!({ "cases": bare.document }));
    assert_eq!(bare.lints(), envelope.lints());
    assert_ne!(bare.lints(), Vec::new());
}

#[test]
fn finds_removed_regression_cases_unless_archived() {
    let document = json!({"metadata": {"caseHashes": {"rg-x/-001": "a", "rg-x-002": "b"}}, "cases": []});
    let mut input = LintInput::new("x.regression.json", document);
    assert_eq!(input.locations(Rule::RemovedRegression), Vec::<String>::new(), "the archive is unknown");
    input.archived = Some(BTreeSet::from(["rg-x-002".to_owned()]));
    assert_eq!(input.locations(Rule::RemovedRegression), ["/metadata/caseHashes/rg-x~1-001"]);
}

#[rstest]
#[case("x.regression.json", json!({}), true, &["0/id"])]
#[case("x.regression.json", json!({}), false, &[])]
#[case("x.regression.json", json!({"bugRef": "#1"}), false, &["0/id"])]
#[case("x.regression.json", json!({"createdAt": "2026-01-01T00:00:00Z"}), false, &["0/id"])]
#[case("x.labeled.json", json!({"bugRef": "#1"}), false, &[])]
#[case("x.labeled.json", json!({"difficulty": "regression"}), true, &["0/id"])]
#[case("x.labeled.json", json!({"difficulty": "edge"}), true, &[])]
fn finds_unsealed_regression_cases(
    #[case] name: &'static str,
    #[case] members: Value,
    #[case] has_hashes: bool,
    #[case] locations: &[&str],
) {
    let metadata = if has_hashes { json!({"caseHashes": {}}) } else { json!({}) };
    let document = json!({"metadata": metadata, "cases": [case("rg-x-001", members)]});
    assert_eq!(LintInput::new(name, document).locations(Rule::UnsealedRegression), locations);
}

#[rstest]
#[case("x.regression.json", Some("rg-x-001"), &["0/id"])]
#[case("x.regression.json", Some("rg-x-002"), &[])]
#[case("x.regression.json", None, &[])]
#[case("x.labeled.json", Some("rg-x-001"), &[])]
fn finds_archived_regression_cases(
    #[case] name: &'static str,
    #[case] archived: Option<&str>,
    #[case] locations: &[&str],
) {
    let archived = archived.map(|id| BTreeSet::from([id.to_owned()]));
    let document = json!({"cases": [case("rg-x-001", json!({}))]});
    assert_eq!(LintInput { archived, ..LintInput::new(name, document) }.locations(Rule::ArchivedRegression), locations);
}
