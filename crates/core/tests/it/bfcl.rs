//! Compares verdicts with those of the checker of the Berkeley Function Calling Leaderboard.
//!
//! `bfcl/` has 400 questions with accepted answers and 2,095 lists of calls, correct ones and mutations, each with the
//! verdict of BFCL's own checker. Each question becomes an eval case, and each list is judged by it. See
//! `bfcl/translate.rs` for how answers become assertions and what is lost. More mutations of the correct calls are made
//! here.

mod translate;

use std::collections::BTreeMap;

use karat_cases::registry::Registry;
use karat_cases::token::TokenSources;
use karat_cases::{EvalFile, Origin};
use karat_core::assertion::{Evidence, Mode, Strictness, Verdict, judge};
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::{ToolCall, Trace};
use rstest::rstest;
use serde_json::{Map, Value, json};

const QUESTIONS: &str = include_str!("bfcl/questions.jsonl");

/// Known disagreements: question, mutation, BFCL's verdict, and its cause.
const DISAGREEMENTS: [(&str, &str, bool, &str); 1] = [(
    "parallel_178",
    "reorder",
    false,
    "the right calls in another order: BFCL matches greedily, so an answer that accepts two companies takes the call \
     that a later answer needs",
)];

#[test]
fn agrees_with_the_function_calling_leaderboard() {
    let (mut lists, mut valid) = (0, 0);
    let mut disagreements = Vec::new();
    for question in questions() {
        let suite = Suite::new(&question);
        for list in question["lists"].as_array().unwrap() {
            let verdict = suite.judge(&list["calls"]);
            let expected = list["valid"].as_bool().unwrap();
            lists += 1;
            valid += usize::from(expected);
            if verdict.passed() != expected {
                let failure = verdict.failures.first().map_or("", |failure| &failure.message).to_owned();
                disagreements.push((text(&question["id"]), text(&list["variant"]), expected, failure));
            }
        }
    }
    assert_eq!((lists, valid), (2095, 499), "not all lists were judged");
    let agreements = lists - disagreements.len();
    assert!(agreements * 100 >= lists * 99, "only {agreements} of {lists} verdicts agree: {disagreements:#?}");
    let unexpected: Vec<_> = disagreements.iter().map(|(id, variant, valid, _)| (&**id, &**variant, *valid)).collect();
    let known = DISAGREEMENTS.map(|(id, variant, valid, _)| (id, variant, valid));
    assert_eq!(unexpected, known, "unexpected disagreements: {disagreements:#?}");
}

/// Judges calls that are not in the data, to check that the translated cases distinguish right from wrong.
#[rstest]
#[case::other_letters_and_order("parallel_0", play([("maroon-5", json!(15)), ("TAYLOR SWIFT", json!(20))]), true)]
#[case::one_answer_twice("parallel_0", play([("Maroon 5", json!(15)), ("Maroon 5", json!(15))]), false)]
#[case::text_for_a_number("parallel_0", play([("Maroon 5", json!("15")), ("Taylor Swift", json!(20))]), false)]
#[case::not_an_accepted_answer("parallel_0", play([("Maroon 55", json!(15)), ("Taylor Swift", json!(20))]), false)]
#[case::unknown_parameter("simple_python_4", solve(&json!({"a": 2, "b": 6, "c": 5, "d": 1})), false)]
#[case::members_in_another_order("multiple_8", find(&json!({"max": 400_000, "min": 300_000})), true)]
#[case::member_missing("multiple_8", find(&json!({"min": 300_000})), false)]
#[case::extra_member("multiple_8", find(&json!({"min": 300_000, "max": 400_000, "mid": 1})), false)]
#[case::values_swapped_between_calls("parallel_0", play([("Maroon 5", json!(20)), ("Taylor Swift", json!(15))]), false)]
#[case::optional_omitted("simple_python_14", derive("3X**2+2x-1", None), true)]
#[case::optional_wrong("simple_python_14", derive("3x**2 + 2x - 1", Some(1.0)), false)]
fn distinguishes_right_from_wrong(#[case] id: &str, #[case] calls: Value, #[case] passes: bool) {
    assert_eq!(judge_calls(id, &calls).passed(), passes, "{:?}", judge_calls(id, &calls).failures);
}

/// Known loss of the translation: BFCL rejects it.
#[test]
fn accepts_an_integer_with_a_point() {
    assert!(judge_calls("simple_python_4", &solve(&json!({"a": 2.0, "b": 6, "c": 5}))).passed());
}

/// A change of correct calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mutation {
    /// The values of a parameter are swapped between two calls.
    Swap,
    NumberAsText,
    BooleanAsText,
    TextAsList,
    /// An integer is written with a point, which is equal in JSON.
    WithPoint,
    ExtraArgument,
    DropArgument,
    DoubleCall,
    DropCall,
    /// A call is made twice in place of another one.
    RepeatCall,
    Reorder,
}

/// Returns all changes of correct calls that differ from them.
fn mutations(gold: &[Value]) -> Vec<(Mutation, Value)> {
    let mut changed = Vec::new();
    let with = |index: usize, arguments: Map<String, Value>| {
        let mut calls = gold.to_vec();
        let (name, _) = translate::only_member(&gold[index]);
        calls[index] = json!({ name: arguments });
        Value::from(calls)
    };
    for (index, call) in gold.iter().enumerate() {
        let (name, arguments) = translate::only_member(call);
        for (key, value) in arguments {
            let replaced = |value: Value| {
                let mut arguments = arguments.clone();
                arguments[key] = value;
                with(index, arguments)
            };
            match value {
                Value::Number(number) => {
                    changed.push((Mutation::NumberAsText, replaced(json!(number.to_string()))));
                    if let Some(whole) = value.as_i64() {
                        let point = serde_json::from_str(&format!("{whole}.0")).expect("a number");
                        changed.push((Mutation::WithPoint, replaced(point)));
                    }
                }
                Value::Bool(flag) => changed.push((Mutation::BooleanAsText, replaced(json!(flag.to_string())))),
                Value::String(_) => changed.push((Mutation::TextAsList, replaced(json!([value])))),
                _ => {}
            }
            let mut fewer = arguments.clone();
            fewer.shift_remove(key);
            changed.push((Mutation::DropArgument, with(index, fewer)));
            for (other_index, other) in gold.iter().enumerate().skip(index + 1) {
                let (other_name, other_arguments) = translate::only_member(other);
                // With one differing parameter, swapping its values only reorders the calls.
                let differing =
                    arguments.iter().filter(|(key, value)| other_arguments.get(*key) != Some(value)).count();
                let Some(other_value) = other_arguments.get(key).filter(|other| *other != value) else { continue };
                if name == other_name && differing > 1 {
                    let mut calls = gold.to_vec();
                    calls[index][name][key] = other_value.clone();
                    calls[other_index][name][key] = value.clone();
                    changed.push((Mutation::Swap, Value::from(calls)));
                }
            }
        }
        let mut more = arguments.clone();
        more.insert("unknown_argument".to_owned(), json!(1));
        changed.push((Mutation::ExtraArgument, with(index, more)));
        let mut doubled = gold.to_vec();
        doubled.push(call.clone());
        changed.push((Mutation::DoubleCall, Value::from(doubled)));
        let mut dropped = gold.to_vec();
        dropped.remove(index);
        changed.push((Mutation::DropCall, Value::from(dropped)));
        let other = &gold[(index + 1) % gold.len()];
        if other != call {
            let mut repeated = gold.to_vec();
            repeated[index] = other.clone();
            changed.push((Mutation::RepeatCall, Value::from(repeated)));
        }
    }
    if gold.len() > 1 {
        changed.push((Mutation::Reorder, gold.iter().rev().cloned().collect()));
    }
    changed
}

#[test]
fn whole_calls_reject_every_mutation_of_correct_calls() {
    let mut counts: BTreeMap<Mutation, (usize, usize)> = BTreeMap::new();
    let mut gold_count = 0;
    for question in questions() {
        let lists = question["lists"].as_array().unwrap();
        let gold = lists.iter().find(|list| list["variant"] == "gold").expect("correct calls");
        let suite = Suite {
            file: parse(&question["id"], &translate::eval_file_of_calls(&question["id"], &gold["calls"])),
            registry: translate::registry(&question),
        };
        assert!(suite.judge(&gold["calls"]).passed(), "{}", question["id"]);
        gold_count += 1;
        for (mutation, calls) in mutations(gold["calls"].as_array().unwrap()) {
            let passed = suite.judge(&calls).passed();
            // 5.0 is 5 in JSON, and the order does not count.
            let is_equal = matches!(mutation, Mutation::WithPoint | Mutation::Reorder);
            assert_eq!(passed, is_equal, "{} {mutation:?}: {calls}", question["id"]);
            let (total, accepted) = counts.entry(mutation).or_default();
            *total += 1;
            *accepted += usize::from(passed);
        }
    }
    assert_eq!(gold_count, 400);
    let lines = counts.iter().map(|(mutation, (total, accepted))| format!("{mutation:?}: {accepted} of {total} pass"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r"
    Swap: 0 of 390 pass
    NumberAsText: 0 of 716 pass
    BooleanAsText: 0 of 57 pass
    TextAsList: 0 of 756 pass
    WithPoint: 616 of 616 pass
    ExtraArgument: 0 of 571 pass
    DropArgument: 0 of 1618 pass
    DoubleCall: 0 of 571 pass
    DropCall: 0 of 571 pass
    RepeatCall: 0 of 269 pass
    Reorder: 100 of 100 pass
    ");
}

fn play<const COUNT: usize>(songs: [(&str, Value); COUNT]) -> Value {
    songs
        .into_iter()
        .map(|(artist, minutes)| json!({"spotify.play": {"artist": artist, "duration": minutes}}))
        .collect()
}

fn solve(arguments: &Value) -> Value {
    json!([{"solve_quadratic_equation": arguments}])
}

fn find(budget: &Value) -> Value {
    let arguments = json!({"location": "san diego", "propertyType": "villa", "bedrooms": 3, "budget": budget});
    json!([{"realestate.find_properties": arguments}])
}

fn derive(function: &str, at: Option<f64>) -> Value {
    let mut arguments = json!({"function": function});
    if let Some(at) = at {
        arguments["x_value"] = json!(at);
    }
    json!([{"calculate_derivative": arguments}])
}

fn judge_calls(id: &str, calls: &Value) -> Verdict {
    let question = questions().find(|question| question["id"] == id).expect("known question");
    Suite::new(&question).judge(calls)
}

fn questions() -> impl Iterator<Item = Value> {
    QUESTIONS.lines().map(|line| serde_json::from_str(line).expect("valid JSON line"))
}

/// A question as an eval file with the agent's tools.
struct Suite {
    file: EvalFile,
    registry: Registry,
}

impl Suite {
    fn new(question: &Value) -> Self {
        let file = parse(&question["id"], &translate::eval_file(question));
        Self { file, registry: translate::registry(question) }
    }

    fn judge(&self, calls: &Value) -> Verdict {
        let evidence = Evidence {
            case: &self.file.cases[0],
            trace: &trace_of(calls),
            earlier: &[],
            mode: Mode::RoutingOnly,
            tokens: &TokenSources::default(),
            registry: Some(&self.registry),
            tokenizer: Tokenizer::default(),
        };
        judge(evidence, Strictness::default())
    }
}

fn parse(id: &Value, file: &Value) -> EvalFile {
    EvalFile::parse(file.to_string().as_bytes(), Origin::new("bfcl.golden.json"))
        .unwrap_or_else(|invalid| panic!("{id}: {:?}", invalid.findings))
}

fn trace_of(calls: &Value) -> Trace {
    let call = |call: &Value| {
        let (name, arguments) = translate::only_member(call);
        ToolCall { name: name.to_owned(), params: arguments.clone(), ..ToolCall::default() }
    };
    Trace { tool_calls: calls.as_array().into_iter().flatten().map(call).collect(), ..Trace::default() }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
