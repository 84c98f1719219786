//! Compares verdicts with those of the checker of the Berkeley Function Calling Leaderboard.
//!
//! `bfcl/` has 400 questions with accepted answers and 2,095 lists of calls, correct ones and mutations, each with the
//! verdict of BFCL's own checker. Each question becomes an eval case, and each list is judged by it. See
//! `bfcl/translate.rs` for how answers become assertions and what is lost.

mod translate;

use karat_core::assertion::{Evidence, Mode, Strictness, Verdict, judge};
use karat_core::case::{EvalFile, Origin};
use karat_core::registry::Registry;
use karat_core::token::TokenSources;
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::{ToolCall, Trace};
use rstest::rstest;
use serde_json::{Value, json};

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
    let found: Vec<_> = disagreements.iter().map(|(id, variant, valid, _)| (&**id, &**variant, *valid)).collect();
    let known = DISAGREEMENTS.map(|(id, variant, valid, _)| (id, variant, valid));
    assert_eq!(found, known, "unexpected disagreements: {disagreements:#?}");
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
#[case::optional_omitted("simple_python_14", derive("3X**2+2x-1", None), true)]
#[case::optional_wrong("simple_python_14", derive("3x**2 + 2x - 1", Some(1.0)), false)]
fn distinguishes_right_from_wrong(#[case] id: &str, #[case] calls: Value, #[case] passes: bool) {
    assert_eq!(judge_calls(id, &calls).passed(), passes, "{:?}", judge_calls(id, &calls).failures);
}

/// Known losses of the translation: BFCL rejects both.
#[rstest]
#[case::values_swapped_between_calls("parallel_0", play([("Maroon 5", json!(20)), ("Taylor Swift", json!(15))]))]
#[case::integer_with_a_point("simple_python_4", solve(&json!({"a": 2.0, "b": 6, "c": 5})))]
fn accepts_values_lost_in_translation(#[case] id: &str, #[case] calls: Value) {
    assert!(judge_calls(id, &calls).passed());
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
        let bytes = translate::eval_file(question).to_string();
        let file = EvalFile::parse(bytes.as_bytes(), Origin::new("bfcl.golden.json"))
            .unwrap_or_else(|invalid| panic!("{}: {:?}", question["id"], invalid.findings));
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
