//! Extracts the first turn of a trace: a message, the calls that it led to, and the response.
//!
//! A drafted case sends one message, so later turns cannot be used: they depend on the earlier ones.

use std::collections::BTreeSet;

use karat_core::document::{CallView, StepView, TraceDocument, UserInput, error_of};
use karat_core::trace::ToolCall;
use karat_json::text::text_form;
use karat_tools::similarity::words;
use serde_json::{Map, Value};

/// Maximum length of a message.
const MAX_MESSAGE_CHARS: usize = 8_000;

/// A trace's first turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ObservedTurn {
    pub(super) id: String,
    pub(super) message: String,
    /// The words of the message, for comparing traces.
    pub(super) words: BTreeSet<String>,
    /// In call order; none failed.
    pub(super) calls: Vec<ToolCall>,
    pub(super) response: String,
    /// The number of proof values, up to what a case needs; computed after all traces were read.
    pub(super) proofs: usize,
}

impl ObservedTurn {
    /// Creates a turn from a run.
    pub(super) fn from_run(message: &str, calls: &[ToolCall], response: &str) -> Self {
        Self {
            id: String::new(),
            message: message.to_owned(),
            words: words(message),
            calls: calls.iter().map(with_parsed_result).collect(),
            response: response.to_owned(),
            proofs: 0,
        }
    }
}

/// The result of looking for a tool in a trace.
#[derive(Debug, PartialEq)]
pub(super) enum Extraction {
    /// The tool was called, and the turn can become a case.
    Usable(ObservedTurn),
    /// The tool was called, but the trace cannot become a case.
    Rejected { id: String, reason: String },
    /// The tool was not called for this message.
    ToolNotCalled { message: Option<String> },
}

/// Extracts the first turn of a trace if it calls the tool.
pub(super) fn extract_turn(tool: &str, id: String, trace: &TraceDocument) -> Extraction {
    let steps: Vec<Step> = trace.steps().map(Step::new).collect();
    let is_called = |steps: &[Step]| steps.iter().flat_map(|step| &step.calls).any(|call| call.name == tool);
    if !is_called(&steps) {
        return Extraction::ToolNotCalled { message: first_turn(steps).ok().map(|turn| turn.message) };
    }
    let turn = match first_turn(steps) {
        Ok(turn) if !is_called(&turn.steps) => {
            Err("the tool is called only after a second message, but a drafted case sends one".to_owned())
        }
        other => other,
    };
    let observed = turn.and_then(|turn| turn.observed(id.clone()));
    observed.map_or_else(|reason| Extraction::Rejected { id, reason }, Extraction::Usable)
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) input: Option<UserInput>,
    pub(super) output: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) error: Option<String>,
}

impl Step {
    pub(super) fn new(step: StepView<'_>) -> Self {
        Self {
            input: step.user_input(),
            output: step.response_text(),
            calls: step.calls().map(tool_call).collect(),
            error: step.error().map(|error| text_form(error).into_owned()),
        }
    }
}

fn tool_call(call: CallView<'_>) -> ToolCall {
    let params = match call.arguments().map(parse_embedded) {
        Some(Value::Object(params)) => params,
        _ => Map::new(),
    };
    let result = call.result().map(parse_embedded);
    let error = call.error().map(|error| text_form(error).into_owned());
    let error = error
        .or_else(|| (call.success() == Some(false)).then(|| "the call failed".to_owned()))
        .or_else(|| result.as_ref().and_then(result_error));
    let name = call.name().unwrap_or_default().to_owned();
    ToolCall { name, params, success: Some(error.is_none()), result, error, ..ToolCall::default() }
}

/// Returns a call with the JSON in strings of its result parsed, as MCP servers return it.
pub(super) fn with_parsed_result(call: &ToolCall) -> ToolCall {
    let result = call.result.as_ref().map(parse_all_embedded);
    ToolCall { result, ..call.clone() }
}

fn parse_all_embedded(value: &Value) -> Value {
    match parse_embedded(value) {
        Value::Array(items) => items.iter().map(parse_all_embedded).collect(),
        Value::Object(map) => {
            map.into_iter().map(|(name, item)| (name, parse_all_embedded(&item))).collect::<Map<_, _>>().into()
        }
        scalar => scalar,
    }
}

/// Parses a string that contains a JSON object or array, as many agents encode arguments and results.
fn parse_embedded(value: &Value) -> Value {
    let inner = value.as_str().filter(|text| text.trim_start().starts_with(['{', '[']));
    inner.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
}

/// Returns the error in a tool result: a member `error`, or a text that starts with "error".
fn result_error(result: &Value) -> Option<String> {
    match result {
        Value::String(text) => {
            let start = text.trim_start().get(..5)?;
            start.eq_ignore_ascii_case("error").then(|| text.clone())
        }
        other => error_of(other).map(|error| text_form(error).into_owned()),
    }
}

/// A message and the steps that it led to.
struct Turn {
    message: String,
    steps: Vec<Step>,
}

impl Turn {
    fn observed(self, id: String) -> Result<ObservedTurn, String> {
        let Self { message, steps } = self;
        let message = message.trim().to_owned();
        let characters = message.chars().count();
        if characters > MAX_MESSAGE_CHARS {
            return Err(format!("the message has {characters} characters"));
        }
        let errors = steps.iter().filter_map(|step| step.error.as_deref());
        let failed = steps.iter().flat_map(|step| &step.calls).find(|call| call.error.is_some());
        if let Some(call) = failed {
            return Err(format!("the call to '{}' failed", call.name));
        }
        if errors.count() > 0 {
            return Err("a step failed".to_owned());
        }
        if steps.iter().flat_map(|step| &step.calls).any(|call| call.name.is_empty()) {
            return Err("a call has no tool name".to_owned());
        }
        let response = steps.last().map_or("", |step| step.output.as_str()).trim().to_owned();
        if response.is_empty() {
            return Err("no response".to_owned());
        }
        let words = words(&message);
        let calls = steps.into_iter().flat_map(|step| step.calls).collect();
        Ok(ObservedTurn { id, message, words, calls, response, proofs: 0 })
    }
}

/// Returns the steps before the user's second message.
fn first_turn(steps: Vec<Step>) -> Result<Turn, String> {
    let mut turn = Turn { message: String::new(), steps: Vec::new() };
    let mut seen: Vec<String> = Vec::new();
    for mut step in steps {
        let Some(input) = step.input.take() else {
            turn.steps.push(step);
            continue;
        };
        if input.has_history {
            return Err("the message depends on earlier messages".to_owned());
        }
        if seen.is_empty() {
            turn.message = input.messages.join("\n");
            seen = input.messages;
        } else if is_new_message(&input, &seen, turn.steps.last()) {
            break;
        }
        turn.steps.push(step);
    }
    if turn.message.trim().is_empty() { Err("no user message".to_owned()) } else { Ok(turn) }
}

/// Whether the input of a step has a new message of the user.
pub(super) fn is_new_message(input: &UserInput, seen: &[String], before: Option<&Step>) -> bool {
    // Some agents repeat all messages in every step, others pass only new ones.
    let new_messages = input.messages.strip_prefix(seen).unwrap_or(&input.messages);
    if input.has_roles {
        return !new_messages.is_empty();
    }
    // A bare text may be a tool result.
    let is_tool_result = |text: &String, step: &Step| {
        let results = step.calls.iter().filter_map(|call| call.result.as_ref());
        step.output.is_empty() || results.into_iter().any(|result| text_form(result) == text.as_str())
    };
    !new_messages.iter().all(|text| before.is_some_and(|step| is_tool_result(text, step)))
}

#[cfg(test)]
mod tests {
    use karat_core::trace::Trace;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use karat_core::result::CaseDetails;

    fn extract(trace: &Value) -> Extraction {
        let document = TraceDocument::parse(trace.to_string()).expect("a trace");
        extract_turn("search", "t".to_owned(), &document)
    }

    fn observed(trace: &Value) -> ObservedTurn {
        match extract(trace) {
            Extraction::Usable(observed) => observed,
            other => panic!("not usable: {other:?}"),
        }
    }

    fn call() -> Value {
        json!({"name": "search", "arguments": {"q": "rain"}, "result": {"hits": 12}})
    }

    #[test]
    fn reads_traces_of_karat() {
        let call = ToolCall {
            name: "search".to_owned(),
            success: Some(true),
            params: json!({ "q": "rain" }).as_object().cloned().unwrap_or_default(),
            result: Some(json!({ "hits": 12 })),
            ..ToolCall::default()
        };
        let trace = Trace { response: "12 hits.".to_owned(), tool_calls: vec![call.clone()], ..Trace::default() };
        let document = CaseDetails::from(trace).document("t-1", "Is there rain?", None).to_value();
        let observed = observed(&document);
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
    fn finds_the_user_message(#[case] input: Value) {
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
    fn finds_the_response(#[case] output: Value) {
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
    fn steps_with_tool_results_belong_to_the_turn(#[case] input: Value) {
        let trace = json!({"steps": [
            {"input": [{"role": "user", "content": "Rain?"}], "output": "Let me look.", "tool_calls": [call()]},
            {"input": input, "output": "12 hits"},
        ]});
        assert_eq!(observed(&trace).response, "12 hits");
    }

    #[test]
    fn ignores_later_turns() {
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
    #[case::second_message(json!([{"input": "Hello", "output": "Hi!"}, {"input": "Rain?", "output": "12", "tool_calls": [call()]}]), "the tool is called only after a second message, but a drafted case sends one")]
    #[case::history(json!([{"input": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}, {"role": "user", "content": "Rain?"}], "output": "12", "tool_calls": [call()]}]), "the message depends on earlier messages")]
    #[case::step_error(json!([{"input": "Rain?", "output": "12", "tool_calls": [call()], "error": "boom"}]), "a step failed")]
    #[case::call_error(json!([{"input": "Rain?", "output": "12", "tool_calls": [{"name": "search", "error": "boom"}]}]), "the call to 'search' failed")]
    #[case::success(json!([{"input": "Rain?", "output": "12", "tool_calls": [{"name": "search", "success": false}]}]), "the call to 'search' failed")]
    #[case::error_result(json!([{"input": "Rain?", "output": "12", "tool_calls": [{"name": "search", "result": {"error": "boom"}}]}]), "the call to 'search' failed")]
    #[case::error_text(json!([{"input": "Rain?", "output": "12", "tool_calls": [{"name": "search", "result": "Error: no such place"}]}]), "the call to 'search' failed")]
    #[case::nameless(json!([{"input": "Rain?", "output": "12", "tool_calls": [call(), {"name": ""}]}]), "a call has no tool name")]
    #[case::silent(json!([{"input": "Rain?", "output": null, "tool_calls": [call()]}]), "no response")]
    #[case::no_message(json!([{"input": {"city": 3}, "output": "12", "tool_calls": [call()]}]), "no user message")]
    #[case::blank(json!([{"input": " ", "output": "12", "tool_calls": [call()]}]), "no user message")]
    fn rejects_unusable_traces(#[case] steps: Value, #[case] reason: &str) {
        let extraction = extract(&json!({"trace_id": "t", "steps": steps}));
        assert_eq!(extraction, Extraction::Rejected { id: "t".to_owned(), reason: reason.to_owned() });
    }

    #[test]
    fn rejects_long_messages() {
        let trace = json!({"trace_id": "t", "steps": [
            {"input": "é".repeat(MAX_MESSAGE_CHARS + 1), "output": "12", "tool_calls": [call()]}
        ]});
        let reason = "the message has 8001 characters".to_owned();
        assert_eq!(extract(&trace), Extraction::Rejected { id: "t".to_owned(), reason });
    }

    #[test]
    fn returns_the_message_if_the_tool_is_not_called() {
        let not_called = |message: Option<&str>| Extraction::ToolNotCalled { message: message.map(str::to_owned) };
        let trace = json!({"steps": [{"input": "Rain?", "output": "No.", "tool_calls": [{"name": "other"}]}]});
        assert_eq!(extract(&trace), not_called(Some("Rain?")));
        assert_eq!(extract(&json!({"steps": []})), not_called(None));
    }
}
