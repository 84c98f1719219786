//! What a trace shows: a message, the calls that it led to, and the response.
//!
//! A case sends one message, so only a trace's first turn is of use: what was said later leans on what was said before.

use std::collections::BTreeSet;

use karat_core::document::{CallView, StepView, TraceDocument, UserInput, error_of};
use karat_core::trace::ToolCall;
use karat_json::text::text_form;
use karat_tools::similarity::words;
use serde_json::{Map, Value};

/// Nobody keeps a case with a longer message.
const LONGEST_MESSAGE: usize = 8_000;

/// A trace's first turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observed {
    pub(super) id: String,
    pub(super) message: String,
    /// The message's words, by which traces are compared.
    pub(super) words: BTreeSet<String>,
    /// In the order in which they were made; none failed.
    pub(super) calls: Vec<ToolCall>,
    pub(super) response: String,
    /// How many values prove that the tools ran, up to what a case needs; known once all traces were read.
    pub(super) proofs: usize,
}

impl Observed {
    /// Takes what an agent did in a run.
    pub(super) fn of_run(message: &str, calls: &[ToolCall], response: &str) -> Self {
        Self {
            id: String::new(),
            message: message.to_owned(),
            words: words(message),
            calls: calls.to_vec(),
            response: response.to_owned(),
            proofs: 0,
        }
    }
}

/// What a trace came to.
#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    /// The tool was called, and a case can be made of it.
    Useful(Observed),
    /// The tool was called, but no case can be made of it, for this reason.
    LeftOut { id: String, why: String },
    /// The tool was not called, though this was said.
    Elsewhere { message: Option<String> },
}

/// Looks for a tool in a trace.
pub(super) fn observe(tool: &str, id: String, trace: &TraceDocument) -> Reading {
    let steps: Vec<Step> = trace.steps().map(Step::of).collect();
    let is_called = |steps: &[Step]| steps.iter().flat_map(|step| &step.calls).any(|call| call.name == tool);
    if !is_called(&steps) {
        return Reading::Elsewhere { message: first_turn(steps).ok().map(|turn| turn.message) };
    }
    let turn = match first_turn(steps) {
        Ok(turn) if !is_called(&turn.steps) => {
            Err("the tool is called only after a further message, and a case sends one".to_owned())
        }
        other => other,
    };
    let observed = turn.and_then(|turn| turn.observed(id.clone()));
    observed.map_or_else(|why| Reading::LeftOut { id, why }, Reading::Useful)
}

/// A step of a trace, as far as it matters here.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) input: Option<UserInput>,
    pub(super) output: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) error: Option<String>,
}

impl Step {
    pub(super) fn of(step: StepView<'_>) -> Self {
        Self {
            input: step.user_input(),
            output: step.spoken(),
            calls: step.calls().map(tool_call).collect(),
            error: step.error().map(|error| text_form(error).into_owned()),
        }
    }
}

fn tool_call(call: CallView<'_>) -> ToolCall {
    let params = match call.arguments().map(embedded) {
        Some(Value::Object(params)) => params,
        _ => Map::new(),
    };
    let result = call.result().map(embedded);
    let error = call.error().map(|error| text_form(error).into_owned());
    let error = error
        .or_else(|| (call.success() == Some(false)).then(|| "the call failed".to_owned()))
        .or_else(|| result.as_ref().and_then(result_error));
    let name = call.name().unwrap_or_default().to_owned();
    ToolCall { name, params, success: Some(error.is_none()), result, error, ..ToolCall::default() }
}

/// Returns the value that a text holds, where it holds JSON: many agents pass arguments and results so.
fn embedded(value: &Value) -> Value {
    let inner = value.as_str().filter(|text| text.trim_start().starts_with(['{', '[']));
    inner.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
}

/// Returns the error that a tool answered with: a member `error`, or a text that begins so.
fn result_error(result: &Value) -> Option<String> {
    match result {
        Value::String(text) => {
            let start = text.trim_start().get(..5)?;
            start.eq_ignore_ascii_case("error").then(|| text.clone())
        }
        other => error_of(other).map(|error| text_form(error).into_owned()),
    }
}

/// All that a first message led to.
struct Turn {
    message: String,
    steps: Vec<Step>,
}

impl Turn {
    fn observed(self, id: String) -> Result<Observed, String> {
        let Self { message, steps } = self;
        let message = message.trim().to_owned();
        let characters = message.chars().count();
        if characters > LONGEST_MESSAGE {
            return Err(format!("the message has {characters} characters"));
        }
        let errors = steps.iter().filter_map(|step| step.error.as_deref());
        let failed = steps.iter().flat_map(|step| &step.calls).find(|call| call.error.is_some());
        if let Some(call) = failed {
            return Err(format!("the call of '{}' failed", call.name));
        }
        if errors.count() > 0 {
            return Err("a step failed".to_owned());
        }
        if steps.iter().flat_map(|step| &step.calls).any(|call| call.name.is_empty()) {
            return Err("a call has no tool's name".to_owned());
        }
        let response = steps.last().map_or("", |step| step.output.as_str()).trim().to_owned();
        if response.is_empty() {
            return Err("there is no response".to_owned());
        }
        let words = words(&message);
        let calls = steps.into_iter().flat_map(|step| step.calls).collect();
        Ok(Observed { id, message, words, calls, response, proofs: 0 })
    }
}

/// Cuts a trace before the user's second message.
fn first_turn(steps: Vec<Step>) -> Result<Turn, String> {
    let mut turn = Turn { message: String::new(), steps: Vec::new() };
    let mut said: Vec<String> = Vec::new();
    for mut step in steps {
        let Some(input) = step.input.take() else {
            turn.steps.push(step);
            continue;
        };
        if input.has_history {
            return Err("the message leans on what was said before".to_owned());
        }
        if said.is_empty() {
            turn.message = input.messages.join("\n");
            said = input.messages;
        } else if is_further(&input, &said, turn.steps.last()) {
            break;
        }
        turn.steps.push(step);
    }
    if turn.message.trim().is_empty() { Err("there is no message of a user".to_owned()) } else { Ok(turn) }
}

/// Tells whether a step was given something that the user said anew.
pub(super) fn is_further(input: &UserInput, said: &[String], before: Option<&Step>) -> bool {
    // Some agents give all that was said to every step, others only what is new.
    let news = input.messages.strip_prefix(said).unwrap_or(&input.messages);
    if input.has_roles {
        return !news.is_empty();
    }
    // A bare text may be a tool's answer, which the agent goes on with.
    let answers = |text: &String, step: &Step| {
        let results = step.calls.iter().filter_map(|call| call.result.as_ref());
        step.output.is_empty() || results.into_iter().any(|result| text_form(result) == text.as_str())
    };
    !news.iter().all(|text| before.is_some_and(|step| answers(text, step)))
}

#[cfg(test)]
mod tests {
    use karat_core::trace::Trace;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn read_value(trace: &Value) -> Reading {
        let document = TraceDocument::read(trace.to_string()).expect("a trace");
        observe("search", "t".to_owned(), &document)
    }

    fn observed(trace: &Value) -> Observed {
        match read_value(trace) {
            Reading::Useful(observed) => observed,
            other => panic!("not useful: {other:?}"),
        }
    }

    fn call() -> Value {
        json!({"name": "search", "arguments": {"q": "rain"}, "result": {"hits": 12}})
    }

    #[test]
    fn karats_own_traces_are_read() {
        let call = ToolCall {
            name: "search".to_owned(),
            success: Some(true),
            params: json!({ "q": "rain" }).as_object().cloned().unwrap_or_default(),
            result: Some(json!({ "hits": 12 })),
            ..ToolCall::default()
        };
        let trace = Trace { response: "12 hits.".to_owned(), tool_calls: vec![call.clone()], ..Trace::default() };
        let observed = observed(&trace.document("t-1", "Is there rain?"));
        assert_eq!((observed.id.as_str(), observed.message.as_str()), ("t", "Is there rain?"));
        assert_eq!((observed.calls, observed.response.as_str()), (vec![call], "12 hits."));
    }

    #[rstest]
    #[case::text(json!("Rain?"))]
    #[case::message(json!({"message": "Rain?"}))]
    #[case::nested(json!({"input": {"prompt": "Rain?"}}))]
    #[case::messages(json!({"messages": [{"role": "system", "content": "Be nice."}, {"role": "user", "content": "Rain?"}]}))]
    #[case::list(json!([{"role": "user", "content": [{"type": "text", "text": "Rain?"}, {"type": "image_url"}]}]))]
    #[case::parts(json!([{"role": "user", "parts": [{"type": "text", "content": "Rain?"}]}]))]
    #[case::human(json!([{"type": "human", "content": " Rain? "}]))]
    fn a_users_message_is_found(#[case] input: Value) {
        let trace = json!({"steps": [{"input": input, "output": "12", "tool_calls": [call()]}]});
        assert_eq!(observed(&trace).message, "Rain?");
    }

    #[rstest]
    #[case::text(json!("12 hits"))]
    #[case::response(json!({"response": "12 hits", "model": "m"}))]
    #[case::message(json!({"role": "assistant", "content": "12 hits"}))]
    #[case::choices(json!({"choices": [{"message": {"role": "assistant", "content": "12 hits"}}]}))]
    #[case::blocks(json!({"content": [{"type": "thinking", "text": "hm"}, {"type": "text", "text": "12 hits"}]}))]
    #[case::messages(json!([{"role": "user", "content": "x"}, {"role": "assistant", "parts": [{"type": "text", "content": "12 hits"}]}]))]
    fn a_response_is_found(#[case] output: Value) {
        let trace = json!({"steps": [{"input": "Rain?", "output": output, "tool_calls": [call()]}]});
        assert_eq!(observed(&trace).response, "12 hits");
    }

    #[rstest]
    #[case::results_as_messages(json!([{"role": "tool", "content": "{\"hits\":12}"}]))]
    #[case::results_as_blocks(json!([{"role": "user", "content": [{"type": "tool_result", "content": "12"}]}]))]
    #[case::all_again(json!([{"role": "user", "content": "Rain?"}, {"role": "assistant", "content": ""}, {"role": "tool", "content": "12"}]))]
    #[case::the_same(json!("Rain?"))]
    #[case::a_tools_answer(json!("{\"hits\":12}"))]
    #[case::nothing(json!(null))]
    fn steps_of_one_turn_belong_together(#[case] input: Value) {
        let trace = json!({"steps": [
            {"input": [{"role": "user", "content": "Rain?"}], "output": "Let me look.", "tool_calls": [call()]},
            {"input": input, "output": "12 hits"},
        ]});
        assert_eq!(observed(&trace).response, "12 hits");
    }

    #[test]
    fn what_is_said_later_is_left_out() {
        let later = json!([{"role": "user", "content": "And snow?"}]);
        let trace = json!({"steps": [
            {"input": "Rain?", "output": "12 hits", "tool_calls": [call()]},
            {"input": later, "output": null, "tool_calls": [call()], "error": "boom"},
        ]});
        assert_eq!((observed(&trace).calls.len(), observed(&trace).response.as_str()), (1, "12 hits"));
        let bare = json!({"steps": [
            {"input": "Rain?", "output": "12 hits", "tool_calls": [call()]},
            {"input": "And snow?", "output": "none"},
        ]});
        assert_eq!(observed(&bare).response, "12 hits");
    }

    #[rstest]
    #[case::second_message(json!([{"input": "Hello", "output": "Hi!"}, {"input": "Rain?", "output": "12", "tool_calls": [call()]}]), "the tool is called only after a further message, and a case sends one")]
    #[case::history(json!([{"input": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}, {"role": "user", "content": "Rain?"}], "output": "12", "tool_calls": [call()]}]), "the message leans on what was said before")]
    #[case::step_error(json!([{"input": "Rain?", "output": "12", "tool_calls": [call()], "error": "boom"}]), "a step failed")]
    #[case::call_error(json!([{"input": "Rain?", "output": "12", "tool_calls": [{"name": "search", "error": "boom"}]}]), "the call of 'search' failed")]
    #[case::success(json!([{"input": "Rain?", "output": "12", "tool_calls": [{"name": "search", "success": false}]}]), "the call of 'search' failed")]
    #[case::error_result(json!([{"input": "Rain?", "output": "12", "tool_calls": [{"name": "search", "result": {"error": "boom"}}]}]), "the call of 'search' failed")]
    #[case::error_text(json!([{"input": "Rain?", "output": "12", "tool_calls": [{"name": "search", "result": "Error: no such place"}]}]), "the call of 'search' failed")]
    #[case::nameless(json!([{"input": "Rain?", "output": "12", "tool_calls": [call(), {"name": ""}]}]), "a call has no tool's name")]
    #[case::silent(json!([{"input": "Rain?", "output": null, "tool_calls": [call()]}]), "there is no response")]
    #[case::nobody(json!([{"input": {"city": 3}, "output": "12", "tool_calls": [call()]}]), "there is no message of a user")]
    #[case::blank(json!([{"input": " ", "output": "12", "tool_calls": [call()]}]), "there is no message of a user")]
    fn what_no_case_can_be_made_of(#[case] steps: Value, #[case] why: &str) {
        let reading = read_value(&json!({"trace_id": "t", "steps": steps}));
        assert_eq!(reading, Reading::LeftOut { id: "t".to_owned(), why: why.to_owned() });
    }

    #[test]
    fn an_endless_message_is_left_out() {
        let trace = json!({"trace_id": "t", "steps": [
            {"input": "é".repeat(LONGEST_MESSAGE + 1), "output": "12", "tool_calls": [call()]}
        ]});
        let why = "the message has 8001 characters".to_owned();
        assert_eq!(read_value(&trace), Reading::LeftOut { id: "t".to_owned(), why });
    }

    #[test]
    fn where_the_tool_is_not_called_the_message_is_kept() {
        let elsewhere = |message: Option<&str>| Reading::Elsewhere { message: message.map(str::to_owned) };
        let trace = json!({"steps": [{"input": "Rain?", "output": "No.", "tool_calls": [{"name": "other"}]}]});
        assert_eq!(read_value(&trace), elsewhere(Some("Rain?")));
        assert_eq!(read_value(&json!({"steps": []})), elsewhere(None));
    }
}
