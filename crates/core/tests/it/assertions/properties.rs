//! Properties of arbitrary cases.

use karat_cases::registry::{Registry, Tool};
use karat_cases::token::TokenSources;
use karat_cases::{
    CallSelector, Case, CaseLocation, EvalEntry, Expectation, Input, ParamAssertion, ParamCheck, ToolsCalledMatch,
};
use karat_core::assertion::{AssertionVerdict, Evidence, Failure, Field, Mode, Strictness, Verdict, judge};
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::{ToolCall, Trace, Usage};
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{ALL, FIRST, STRICT};

fn tool_name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "__none__", ""]).prop_map(str::to_owned)
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[abc1. é]{0,4}",
        Just("{{seed:a}}".to_owned()),
        Just("x{{seed:nope}}".to_owned()),
        Just("{{snapshot:b[0]}}".to_owned()),
        any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(word(), inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof![Just("p".to_owned()), Just("type".to_owned()), Just("$ref".to_owned()), word()];
    prop::collection::btree_map(key, value(), 0..3).prop_map(|map| map.into_iter().collect())
}

fn words() -> impl Strategy<Value = Option<Vec<String>>> {
    prop::option::of(prop::collection::vec(word(), 0..3))
}

fn tools() -> impl Strategy<Value = Option<Vec<String>>> {
    prop::option::of(prop::collection::vec(tool_name(), 0..4))
}

fn param_assertion() -> impl Strategy<Value = ParamAssertion> {
    let checks = ParamCheck::NAMES.map(|name| ParamCheck::from_name(name).expect("a check"));
    let paths = prop::sample::select(vec!["", "/0", "/type", "/~x"]);
    let call = prop_oneof![
        prop::sample::select(vec![CallSelector::First, CallSelector::Last, CallSelector::Any, CallSelector::All]),
        (0_usize..4).prop_map(CallSelector::Number),
        Just(CallSelector::Number(usize::MAX)),
    ];
    let checks = prop::sample::select(checks.to_vec());
    (tool_name(), paths, checks, prop::option::of(value()), call, any::<bool>()).prop_map(
        |(tool, path, assertion, value, call, optional)| ParamAssertion {
            tool,
            param_name: "p".to_owned(),
            path: path.to_owned(),
            tolerance: (assertion == ParamCheck::CloseTo).then(|| 1.into()),
            assertion,
            value,
            call,
            optional,
        },
    )
}

fn match_mode() -> impl Strategy<Value = ToolsCalledMatch> {
    prop::sample::select(vec![
        ToolsCalledMatch::Exact,
        ToolsCalledMatch::AnyOrder,
        ToolsCalledMatch::InOrder,
        ToolsCalledMatch::Includes,
    ])
}

prop_compose! {
    fn routing()(
        tools_called in tools(),
        tools_called_match in prop::option::of(match_mode()),
        tools_acceptable in prop::option::of(prop::collection::vec(prop::collection::vec(tool_name(), 0..3), 0..3)),
        tools_not_called in tools(),
        tool_params in prop::option::of(prop::collection::vec(param_assertion(), 0..4)),
        no_tool_errors in any::<Option<bool>>(),
        tool_order in prop::option::of(prop::collection::vec((tool_name(), tool_name()), 0..3)),
        min_tool_calls in prop::option::of(0_u64..4),
        max_tool_calls in prop::option::of(0_u64..4),
        tool_args_valid in any::<Option<bool>>(),
    ) -> Expectation {
        Expectation {
            tools_called, tools_called_match, tools_acceptable, tools_not_called, tool_params, no_tool_errors, tool_order,
            min_tool_calls, max_tool_calls, tool_args_valid,
            ..Expectation::default()
        }
    }
}

prop_compose! {
    fn expectation()(
        routing in routing(),
        response_non_empty in any::<Option<bool>>(),
        response_contains in words(),
        response_contains_any in prop::option::of(prop::collection::vec(prop::collection::vec(word(), 0..3), 0..3)),
        response_not_contains in words(),
        response_matches in words(),
        (max_latency_ms, max_cost_usd, max_first_token_ms) in any::<(Option<f64>, Option<f64>, Option<f64>)>(),
        max_tokens in prop::option::of(0_u64..5),
        response_json_schema in prop::option::of(object()),
        (min_length, max_length) in (prop::option::of(0_u64..5), prop::option::of(0_u64..5)),
        numbers_grounded in any::<Option<bool>>(),
        evals in words(),
    ) -> Expectation {
        Expectation {
            response_non_empty, response_contains, response_contains_any, response_not_contains, response_matches,
            max_latency_ms, max_tokens, response_json_schema, min_length, max_length, max_cost_usd,
            max_first_token_ms, numbers_grounded,
            evals: evals.map(|names| names.into_iter().map(EvalEntry::new).collect()),
            ..routing
        }
    }
}

prop_compose! {
    fn tool_call()(
        name in tool_name(),
        success in any::<Option<bool>>(),
        params in object(),
        result in prop::option::of(value()),
    ) -> ToolCall {
        ToolCall { name, success, params, result, ..ToolCall::default() }
    }
}

prop_compose! {
    fn trace()(
        response in prop_oneof![word(), any::<String>(), object().prop_map(|object| Value::Object(object).to_string())],
        tool_calls in prop::collection::vec(tool_call(), 0..5),
        cost in prop::option::of(any::<Option<f64>>()),
        latency_ms in any::<f64>(),
        first_token_ms in any::<Option<f64>>(),
        calls_unreported in prop::bool::weighted(0.2),
    ) -> Trace {
        let usage = cost.map(|cost_usd| Usage { cost_usd, ..Usage::default() });
        Trace { response, tool_calls, usage, latency_ms, first_token_ms, calls_unreported, ..Trace::default() }
    }
}

prop_compose! {
    /// Arbitrary evidence, sensible or not.
    fn any_evidence()(
        expect in expectation(),
        stubs in prop::option::of(object()),
        message in word(),
        trace in trace(),
        mode in prop::sample::select(vec![Mode::Endpoint, Mode::RoutingOnly, Mode::Stubbed]),
        (seed, snapshot) in (prop::option::of(value()), prop::option::of(value())),
        schemas in prop::option::of(prop::collection::vec((tool_name(), prop::option::of(value())), 0..3)),
        tokenizer in prop::sample::select(Tokenizer::ALL.to_vec()),
    ) -> OwnedEvidence {
        let tool = |(name, schema): (String, Option<Value>)| Tool { name, input_schema: schema.into(), ..Tool::default() };
        let registry = schemas.map(|tools| Registry::from_tools(tools.into_iter().map(tool)));
        OwnedEvidence { case: case(expect, stubs, message), trace, mode, tokens: TokenSources { seed, snapshot }, registry, tokenizer }
    }
}

fn case(expect: Expectation, stubs: Option<Map<String, Value>>, message: String) -> Case {
    Case {
        id: "gs-x-001".to_owned(),
        description: String::new(),
        difficulty: None,
        created_at: None,
        bug_ref: None,
        input: Some(Input { message }),
        turns: None,
        user: None,
        on_turn_failure: None,
        stubs,
        injections: None,
        max_turns: None,
        expect,
        safety: None,
        tags: Vec::new(),
        skip: None,
        location: CaseLocation { line: 1, ..CaseLocation::default() },
    }
}

#[derive(Debug, Clone)]
struct OwnedEvidence {
    case: Case,
    trace: Trace,
    mode: Mode,
    tokens: TokenSources,
    registry: Option<Registry>,
    tokenizer: Tokenizer,
}

impl OwnedEvidence {
    fn judge(&self, strictness: Strictness) -> Verdict {
        let OwnedEvidence { case, trace, mode, tokens, registry, tokenizer } = self;
        let evidence = Evidence {
            case,
            trace,
            earlier: &[],
            mode: *mode,
            tokens,
            registry: registry.as_ref(),
            tokenizer: *tokenizer,
        };
        judge(evidence, strictness)
    }

    /// The number of checks: one for each flag, number, value, group, tool and parameter.
    fn checks(&self) -> usize {
        let expect = &self.case.expect;
        let once = [
            expect.tools_called.is_some(),
            expect.tools_acceptable.is_some(),
            expect.no_tool_errors == Some(true) && self.mode != Mode::RoutingOnly,
            expect.response_non_empty == Some(true),
            expect.max_latency_ms.is_some(),
            expect.max_tokens.is_some(),
            expect.min_tool_calls.is_some(),
            expect.max_tool_calls.is_some(),
            expect.tool_args_valid == Some(true),
            expect.response_json_schema.is_some(),
            expect.min_length.is_some(),
            expect.max_length.is_some(),
            expect.max_cost_usd.is_some(),
            expect.max_first_token_ms.is_some(),
            expect.numbers_grounded == Some(true),
        ];
        let lists = [
            expect.tools_not_called.iter().flatten().count(),
            expect.tool_params.iter().flatten().count(),
            expect.response_contains.iter().flatten().count(),
            expect.response_contains_any.iter().flatten().count(),
            expect.response_not_contains.iter().flatten().count(),
            expect.response_matches.iter().flatten().count(),
            expect.tool_order.iter().flatten().count(),
            expect.evals.iter().flatten().count(),
        ];
        once.into_iter().filter(|is_set| *is_set).count() + lists.iter().sum::<usize>()
    }
}

fn is_about_calls(line: &AssertionVerdict) -> bool {
    Field::ALL.into_iter().any(|field| field.is_about_calls() && field.name() == line.assertion)
}

fn holds(mode: ToolsCalledMatch, expected: &[String], actual: &[String]) -> bool {
    let expect =
        Expectation { tools_called: Some(expected.to_vec()), tools_called_match: Some(mode), ..Expectation::default() };
    evidence(expect, actual).judge(FIRST).passed()
}

fn evidence(expect: Expectation, actual: &[String]) -> OwnedEvidence {
    let call = |name: &String| ToolCall { name: name.clone(), ..ToolCall::default() };
    OwnedEvidence {
        case: case(expect, None, String::new()),
        trace: Trace { tool_calls: actual.iter().map(call).collect(), ..Trace::default() },
        mode: Mode::Endpoint,
        tokens: TokenSources::default(),
        registry: None,
        tokenizer: Tokenizer::default(),
    }
}

fn some_tools() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(tool_name(), 0..6)
}

/// Expected tools and related calls.
fn expected_and_actual() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    let related = some_tools().prop_flat_map(|expected| {
        let shuffled = Just(expected.clone()).prop_shuffle();
        let longer = (Just(expected.clone()), some_tools()).prop_map(|(mut calls, more)| {
            calls.extend(more);
            calls
        });
        (Just(expected.clone()), prop_oneof![Just(expected), shuffled, longer.prop_shuffle()])
    });
    prop_oneof![related, (some_tools(), some_tools())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn stricter_match_modes_imply_looser_ones((expected, actual) in expected_and_actual()) {
        use ToolsCalledMatch::{AnyOrder, Exact, InOrder, Includes};
        let [exact, any_order, in_order, includes] =
            [Exact, AnyOrder, InOrder, Includes].map(|mode| holds(mode, &expected, &actual));
        prop_assert!(!exact || any_order);
        prop_assert!(!exact || in_order);
        prop_assert!(!any_order || includes);
        prop_assert!(!in_order || includes);
        // With as many calls as expected there are no extra ones, so looser modes equal stricter ones.
        if expected.len() == actual.len() {
            prop_assert_eq!(includes, any_order);
            prop_assert_eq!(in_order, exact);
        }
    }

    #[test]
    fn any_order_and_includes_ignore_the_order(
        ((expected, actual), shuffled) in expected_and_actual()
            .prop_flat_map(|pair| (Just(pair.clone()), Just(pair.1).prop_shuffle()))
    ) {
        for mode in [ToolsCalledMatch::AnyOrder, ToolsCalledMatch::Includes] {
            prop_assert_eq!(holds(mode, &expected, &actual), holds(mode, &expected, &shuffled));
        }
    }

    #[test]
    fn acceptable_sets_ignore_order_and_repetition(
        sets in prop::collection::vec(prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..3), 1..3),
        (actual, shuffled) in prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..5)
            .prop_flat_map(|calls| (Just(calls.clone()), Just(calls).prop_shuffle())),
    ) {
        let owned = |tools: &[&str]| tools.iter().map(|tool| (*tool).to_owned()).collect::<Vec<String>>();
        let sets = Some(sets.iter().map(|set| owned(set)).collect());
        let expect = Expectation { tools_acceptable: sets, ..Expectation::default() };
        let passes = |calls: &[&str]| evidence(expect.clone(), &owned(calls)).judge(FIRST).passed();
        let twice = [shuffled.as_slice(), actual.as_slice()].concat();
        prop_assert_eq!(passes(&actual), passes(&shuffled));
        prop_assert_eq!(passes(&actual), passes(&twice));
    }

    #[test]
    fn the_first_failure_does_not_depend_on_strictness(evidence in any_evidence()) {
        let (first, all) = (evidence.judge(FIRST), evidence.judge(ALL));
        prop_assert_eq!(first.failures.first(), all.failures.first());
        prop_assert!(first.failures.len() <= 1);
        prop_assert!(first.assertions_run <= all.assertions_run);
        prop_assert!(first.assertions_skipped <= all.assertions_skipped);
        prop_assert!(all.skipped_tokens.starts_with(&first.skipped_tokens));
        if all.passed() {
            prop_assert_eq!(first, all);
        }
    }

    #[test]
    fn every_check_is_counted_once(evidence in any_evidence()) {
        let all = evidence.judge(ALL);
        prop_assert_eq!(all.assertions_run + all.assertions_skipped, evidence.checks());
        prop_assert!(all.failures.len() <= all.assertions_run);
        prop_assert_eq!(all.vacuous, all.assertions_run == 0);
        let first = evidence.judge(FIRST);
        prop_assert!(first.assertions_run + first.assertions_skipped <= evidence.checks());
        let strict = evidence.judge(STRICT);
        let has_unreported_calls = evidence.trace.calls_unreported && all.assertions.iter().any(is_about_calls);
        prop_assert_eq!(strict.passed(), all.passed() && !all.vacuous && !has_unreported_calls);
    }

    #[test]
    fn every_failure_has_its_field_and_a_valid_pointer(evidence in any_evidence()) {
        let case = serde_json::to_value(&evidence.case).unwrap();
        for Failure { assertion, message, pointer } in evidence.judge(ALL).failures {
            let prefix = format!("{assertion}: ");
            prop_assert!(message.starts_with(&prefix) && message.len() > prefix.len());
            prop_assert!(case.pointer(&pointer).is_some(), "nothing at {}", pointer);
        }
    }

    #[test]
    fn judging_is_deterministic(evidence in any_evidence()) {
        prop_assert_eq!(evidence.judge(ALL), evidence.judge(ALL));
    }
}
