//! Compares the judge with somebody else's: the checker of the Berkeley Function Calling Leaderboard.
//!
//! `bfcl/` holds 400 questions with their accepted answers and 2,095 lists of calls, right ones and mutations, each with
//! the verdict of BFCL's own checker. Each question becomes an eval case that is read like any other, and each list is
//! judged by it. `bfcl/translate.rs` says how the answers become assertions and what gets lost on the way.

mod translate;

use karat_core::assertion::{Evidence, Mode, Strictness, judge};
use karat_core::case::{EvalFile, Origin};
use karat_core::token::TokenSources;
use karat_core::tokenizer::Tokenizer;
use karat_core::trace::{ToolCall, Trace};
use serde_json::Value;

const QUESTIONS: &str = include_str!("bfcl/questions.jsonl");

/// Where the verdicts differ: question, mutation, what BFCL says, and why it says otherwise.
const DISAGREEMENTS: [(&str, &str, bool, &str); 1] = [(
    "parallel_178",
    "reorder",
    false,
    "the right calls in another order: BFCL gives each answer the first call that fits, and an answer that accepts two \
     companies takes the call that a later answer needs",
)];

#[test]
fn agrees_with_the_function_calling_leaderboard() {
    let (mut lists, mut valid) = (0, 0);
    let mut disagreements = Vec::new();
    for line in QUESTIONS.lines() {
        let question: Value = serde_json::from_str(line).unwrap();
        let bytes = translate::eval_file(&question).to_string();
        let file = EvalFile::read(bytes.as_bytes(), Origin { file_name: "bfcl.golden.json" })
            .unwrap_or_else(|invalid| panic!("{}: {:?}", question["id"], invalid.findings));
        let registry = translate::registry(&question);
        for list in question["lists"].as_array().unwrap() {
            let trace = trace_of(&list["calls"]);
            let evidence = Evidence {
                case: &file.cases[0],
                trace: &trace,
                mode: Mode::RoutingOnly,
                tokens: &TokenSources::default(),
                registry: Some(&registry),
                tokenizer: Tokenizer::default(),
            };
            let verdict = judge(evidence, Strictness::default());
            let expected = list["valid"].as_bool().unwrap();
            lists += 1;
            valid += usize::from(expected);
            if verdict.passed() != expected {
                let failure = verdict.failures.first().map_or("", |failure| &failure.message).to_owned();
                disagreements.push((text(&question["id"]), text(&list["variant"]), expected, failure));
            }
        }
    }
    assert_eq!((lists, valid), (2095, 499), "every list was judged");
    let agreeing = lists - disagreements.len();
    assert!(agreeing * 100 >= lists * 99, "only {agreeing} of {lists} verdicts agree: {disagreements:#?}");
    let found: Vec<_> = disagreements.iter().map(|(id, variant, valid, _)| (&**id, &**variant, *valid)).collect();
    let known = DISAGREEMENTS.map(|(id, variant, valid, _)| (id, variant, valid));
    assert_eq!(found, known, "the verdicts differ elsewhere than known: {disagreements:#?}");
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
