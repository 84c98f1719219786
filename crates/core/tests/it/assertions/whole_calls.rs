//! Whole calls: the verdict equals that of trying all alignments.

use std::time::Instant;

use karat_cases::CallsMatch;
use karat_core::assertion::{CallState, Verdict};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Map, Value, json};

use super::{ALL, FIRST, Scenario, messages};

fn judge(calls: &Value, trace: Value) -> Verdict {
    Scenario::new(json!({ "calls": calls }), trace).judge(FIRST)
}

/// An expected call in the random trajectories.
#[derive(Debug, Clone)]
struct Entry {
    tool: &'static str,
    params: Option<Map<String, Value>>,
    includes: bool,
    success: Option<bool>,
}

#[derive(Debug, Clone)]
struct MadeCall {
    tool: &'static str,
    params: Map<String, Value>,
    success: Option<bool>,
}

impl Entry {
    fn to_json(&self) -> Value {
        let mut entry = json!({ "tool": self.tool });
        if let Some(params) = &self.params {
            entry["params"] = json!(params);
        }
        if self.includes {
            entry["paramsMatch"] = json!("includes");
        }
        if let Some(success) = self.success {
            entry["success"] = json!(success);
        }
        entry
    }

    fn matches(&self, made: &MadeCall) -> bool {
        let params = self.params.as_ref().is_none_or(|params| {
            let has_all = params.iter().all(|(key, value)| made.params.get(key) == Some(value));
            has_all && (self.includes || params.len() == made.params.len())
        });
        self.tool == made.tool && params && self.success.is_none_or(|success| made.success == Some(success))
    }
}

/// Whether the lists match, by trying every assignment of entries to calls.
fn passes_by_brute_force(match_mode: CallsMatch, entries: &[Entry], made: &[MadeCall]) -> bool {
    fn assign(entries: &[Entry], made: &[MadeCall], used: &mut Vec<usize>, is_ordered: bool) -> bool {
        let Some((entry, rest)) = entries.split_first() else { return true };
        (0..made.len()).any(|index| {
            let is_free = if is_ordered { used.iter().all(|other| *other < index) } else { !used.contains(&index) };
            if !is_free || !entry.matches(&made[index]) {
                return false;
            }
            used.push(index);
            let found = assign(rest, made, used, is_ordered);
            used.pop();
            found
        })
    }
    /// Tries to give each call an entry of its own.
    fn assign_calls(entries: &[Entry], made: &[MadeCall], used: &mut Vec<usize>) -> bool {
        let Some((call, rest)) = made.split_first() else { return true };
        (0..entries.len()).any(|index| {
            if used.contains(&index) || !entries[index].matches(call) {
                return false;
            }
            used.push(index);
            let found = assign_calls(entries, rest, used);
            used.pop();
            found
        })
    }
    let is_same_length = entries.len() == made.len();
    match match_mode {
        CallsMatch::Exact => is_same_length && assign(entries, made, &mut Vec::new(), true),
        CallsMatch::AnyOrder => is_same_length && assign(entries, made, &mut Vec::new(), false),
        CallsMatch::InOrder => assign(entries, made, &mut Vec::new(), true),
        CallsMatch::Includes => assign(entries, made, &mut Vec::new(), false),
        CallsMatch::Subset => assign_calls(entries, made, &mut Vec::new()),
    }
}

fn params() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop::sample::select(vec![json!(1), json!(2), json!("1")]);
    prop::collection::btree_map(prop::sample::select(vec!["a", "b"]), value, 0..=2)
        .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn tool() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["f", "f", "g"])
}

fn entry() -> impl Strategy<Value = Entry> {
    let success = prop_oneof![4 => Just(None), 1 => any::<bool>().prop_map(Some)];
    (tool(), prop::option::of(params()), any::<bool>(), success).prop_map(|(tool, params, includes, success)| Entry {
        tool,
        params,
        includes,
        success,
    })
}

fn made() -> impl Strategy<Value = MadeCall> {
    (tool(), params(), prop::option::weighted(0.9, any::<bool>())).prop_map(|(tool, params, success)| MadeCall {
        tool,
        params,
        success,
    })
}

/// A trajectory in which the made calls are often similar to the expected ones.
fn trajectory() -> impl Strategy<Value = (CallsMatch, Vec<Entry>, Vec<MadeCall>)> {
    let match_mode = prop::sample::select(CallsMatch::NAMES.to_vec());
    let match_mode = match_mode.prop_map(|name| CallsMatch::from_name(name).expect("a mode"));
    let lists = prop::collection::vec((entry(), made(), any::<bool>()), 0..=5);
    (match_mode, lists, prop::collection::vec(made(), 0..=2), any::<prop::sample::Index>()).prop_map(
        |(match_mode, lists, more, at)| {
            let entries: Vec<Entry> = lists.iter().map(|(entry, ..)| entry.clone()).collect();
            let similar = |(entry, made, is_similar): &(Entry, MadeCall, bool)| match &entry.params {
                Some(params) if *is_similar => {
                    MadeCall { tool: entry.tool, params: params.clone(), success: Some(true) }
                }
                _ => made.clone(),
            };
            let mut made: Vec<MadeCall> = lists.iter().map(similar).collect();
            if !made.is_empty() {
                let middle = at.index(made.len());
                if !match_mode.is_ordered() {
                    made.rotate_left(middle);
                }
            }
            if match_mode == CallsMatch::Subset && !made.is_empty() {
                made.pop();
            } else if !matches!(match_mode, CallsMatch::Exact | CallsMatch::AnyOrder) || more.len() == 2 {
                made.extend(more);
            }
            (match_mode, entries, made)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]
    #[test]
    fn agrees_with_trying_all_alignments((match_mode, entries, made) in trajectory()) {
        // Invalid: every answer would match.
        prop_assume!(!entries.is_empty() || match_mode.needs_every_call());
        let list: Vec<Value> = entries.iter().map(Entry::to_json).collect();
        let calls: Vec<Value> = made
            .iter()
            .map(|made| match made.success {
                Some(success) => json!({ "name": made.tool, "params": made.params, "success": success }),
                None => json!({ "name": made.tool, "params": made.params }),
            })
            .collect();
        let verdict = judge(&json!({ "match": match_mode.name(), "list": list }), json!({ "toolCalls": calls }));
        prop_assert_eq!(verdict.passed(), passes_by_brute_force(match_mode, &entries, &made), "{:?}", messages(&verdict));
        if let Some(alignment) = &verdict.calls {
            let mut found: Vec<usize> = alignment.pairs.iter().filter_map(|pair| pair.entry).collect();
            found.sort_unstable();
            prop_assert_eq!(found, (0..entries.len()).collect::<Vec<_>>());
            let mut found: Vec<usize> = alignment.pairs.iter().filter_map(|pair| pair.call).collect();
            found.sort_unstable();
            prop_assert_eq!(found, (0..made.len()).collect::<Vec<_>>());
            prop_assert!(alignment.only_order_differs || alignment.pairs.iter().any(|pair| pair.state.is_problem()));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the test measures time")]
fn now() -> Instant {
    Instant::now()
}

#[rstest]
#[case::fails(1)]
#[case::matches(0)]
fn fifty_calls_are_matched_in_milliseconds(#[case] offset: u64) {
    let call = |index: u64| json!({ "id": index, "city": "Paris", "filter": { "price": { "max": index * 7 % 50 } } });
    let list: Vec<Value> = (0..50).map(|index| json!({ "tool": "search", "params": call(index) })).collect();
    let calls: Vec<Value> =
        (0..50).rev().map(|index| json!({ "name": "search", "params": call(index + offset) })).collect();
    let scenario =
        Scenario::new(json!({ "calls": { "match": "anyOrder", "list": list } }), json!({ "toolCalls": calls }));
    let start = now();
    let verdict = scenario.judge(ALL);
    let elapsed = start.elapsed();
    assert_eq!(verdict.passed(), offset == 0);
    // Less than 10 ms with optimisation. Without it, and with other tests at the same time, it takes longer.
    assert!(elapsed.as_millis() < 2_000, "{elapsed:?}");
}

#[test]
fn aligns_the_nearest_calls() {
    let verdict = judge(
        &json!({ "match": "anyOrder", "list": [
            { "tool": "book", "params": { "city": "Oslo", "nights": 2 } },
            { "tool": "book", "params": { "city": "Rome", "nights": 3 } },
            { "tool": "pay" },
        ] }),
        json!({ "toolCalls": [
            { "name": "book", "params": { "city": "Rome", "nights": 4 } },
            { "name": "book", "params": { "city": "Oslo", "nights": 2 } },
            { "name": "mail", "params": {} },
        ] }),
    );
    let alignment = verdict.calls.expect("an alignment");
    let pairs: Vec<_> = alignment.pairs.iter().map(|pair| (pair.state, pair.entry, pair.call)).collect();
    assert_eq!(
        pairs,
        [
            (CallState::Matched, Some(0), Some(1)),
            (CallState::Different, Some(1), Some(0)),
            (CallState::Missing, Some(2), None),
            (CallState::Unexpected, None, Some(2)),
        ]
    );
    assert_eq!(alignment.pairs[1].differences.len(), 1);
    assert_eq!(alignment.pairs[1].differences[0].pointer, "/nights");
}

#[rstest]
#[case::token_in_params(json!({ "list": [{ "tool": "f", "params": { "a": ["{{seed:nope}}"] } }] }))]
#[case::token_in_a_condition(json!({ "list": [{ "tool": "f", "where": [{ "assertion": "equals", "value": "{{seed:nope}}" }] }] }))]
#[case::token_in_a_result(json!({ "list": [{ "tool": "f", "result": [{ "assertion": "contains", "value": "x{{seed:nope}}" }] }] }))]
#[case::token_in_another_list(json!({ "anyOf": [[{ "tool": "f" }], [{ "tool": "f", "params": { "a": "{{seed:nope}}" } }]] }))]
#[case::forbidden(json!({ "forbidden": [{ "tool": "f", "params": { "a": "{{seed:nope}}" } }] }))]
#[case::step_is_not_known(json!({ "list": [{ "tool": "f", "step": 0 }] }))]
#[case::forbidden_step_is_not_known(json!({ "forbidden": [{ "tool": "f", "step": 0 }] }))]
fn a_check_that_cannot_be_made_is_skipped_and_counted(#[case] calls: Value) {
    let verdict = judge(&calls, json!({ "toolCalls": [{ "name": "f", "params": { "a": [1] } }] }));
    assert_eq!((verdict.assertions_run, verdict.assertions_skipped), (0, 1));
    let has_token = calls.to_string().contains("nope");
    assert_eq!((verdict.skipped_tokens.len(), verdict.warnings.len()), if has_token { (1, 0) } else { (0, 1) });
}

#[test]
fn the_list_and_each_forbidden_call_are_checks() {
    let calls = json!({ "list": [{ "tool": "f" }], "forbidden": [{ "tool": "g" }, { "tool": "f" }, { "tool": "h" }] });
    let scenario = Scenario::new(json!({ "calls": calls }), json!({ "toolCalls": [{ "name": "f", "params": {} }] }));
    let verdict = scenario.judge(ALL);
    assert_eq!((verdict.assertions_run, verdict.failures.len()), (4, 1));
    assert_eq!(verdict.failures[0].pointer, "/expect/calls/forbidden/1");
    assert_eq!(scenario.judge(FIRST).assertions_run, 3);
}
