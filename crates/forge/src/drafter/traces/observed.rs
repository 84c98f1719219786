//! What a trace shows: a message, the calls that it led to, and the response.
//!
//! A case sends one message, so only a trace's first turn is of use: what was said later leans on what was said before.

use std::collections::BTreeSet;

use karat_core::trace::ToolCall;
use karat_json::text::text_form;
use karat_tools::similarity::words;
use serde_json::{Map, Value};

/// Nobody keeps a case with a longer message.
const LONGEST_MESSAGE: usize = 8_000;

/// Where a user's message is, in what a step was given.
const INPUT_KEYS: [&str; 9] =
    ["message", "input", "prompt", "query", "question", "text", "content", "user_message", "user_input"];

/// Where the agent's words are, in what a step gave.
const OUTPUT_KEYS: [&str; 8] = ["response", "content", "text", "output", "message", "answer", "completion", "value"];

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

/// What one line of traces came to.
#[derive(Debug, PartialEq)]
pub(super) enum Reading {
    /// The tool was called, and a case can be made of it.
    Useful(Observed),
    /// The tool was called, but no case can be made of it, for this reason.
    LeftOut { id: String, why: String },
    /// The tool was not called, though this was said.
    Elsewhere { message: Option<String> },
}

/// Reads a trace; or tells what is wrong with its text, in a lower-case fragment.
pub(super) fn read(tool: &str, number: u64, text: &[u8]) -> Result<Reading, String> {
    let trace: Value = serde_json::from_slice(text).map_err(|error| no_json(&error))?;
    let Value::Object(trace) = trace else {
        return Err("expected a JSON object, the trace".to_owned());
    };
    let Some(Value::Array(steps)) = trace.get("steps") else {
        return Err("the trace has no list 'steps'".to_owned());
    };
    let steps = steps.iter().enumerate().map(|(at, step)| Step::read(at, step)).collect::<Result<Vec<_>, _>>()?;
    let id = match trace.get("trace_id") {
        Some(Value::String(id)) if !id.trim().is_empty() => id.clone(),
        Some(Value::Number(id)) => id.to_string(),
        _ => format!("line {number}"),
    };
    let is_called = |steps: &[Step<'_>]| steps.iter().flat_map(|step| &step.calls).any(|call| call.name == tool);
    if !is_called(&steps) {
        return Ok(Reading::Elsewhere { message: first_turn(steps).ok().map(|turn| turn.message) });
    }
    let turn = match first_turn(steps) {
        Ok(turn) if !is_called(&turn.steps) => {
            Err("the tool is called only after a further message, and a case sends one".to_owned())
        }
        other => other,
    };
    let observed = turn.and_then(|turn| turn.observed(id.clone()));
    Ok(observed.map_or_else(|why| Reading::LeftOut { id, why }, Reading::Useful))
}

fn no_json(error: &serde_json::Error) -> String {
    // The line is known, so that only the column is of use.
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("no JSON: {what} at column {}", error.column())
}

/// A step of a trace, as far as it matters here.
#[derive(Debug)]
pub(super) struct Step<'t> {
    pub(super) input: &'t Value,
    pub(super) output: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) error: Option<String>,
}

impl<'t> Step<'t> {
    pub(super) fn read(at: usize, step: &'t Value) -> Result<Self, String> {
        let Value::Object(step) = step else {
            return Err(format!("steps[{at}] is no JSON object"));
        };
        let calls = match step.get("tool_calls") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(calls)) => {
                let read = |(call_at, call)| {
                    read_call(call).ok_or_else(|| format!("steps[{at}].tool_calls[{call_at}] has no 'name'"))
                };
                calls.iter().enumerate().map(read).collect::<Result<_, _>>()?
            }
            Some(_) => return Err(format!("steps[{at}].tool_calls is no list")),
        };
        let output = step.get("output").map_or_else(String::new, spoken);
        Ok(Self { input: step.get("input").unwrap_or(&Value::Null), output, calls, error: error_of(step) })
    }
}

fn read_call(call: &Value) -> Option<ToolCall> {
    let call = call.as_object()?;
    let name = call.get("name")?.as_str().filter(|name| !name.is_empty())?.to_owned();
    let params = match call.get("arguments").map(embedded) {
        Some(Value::Object(params)) => params,
        _ => Map::new(),
    };
    let result = call.get("result").map(embedded);
    let error = error_of(call)
        .or_else(|| (call.get("success") == Some(&Value::Bool(false))).then(|| "the call failed".to_owned()))
        .or_else(|| result.as_ref().and_then(result_error));
    Some(ToolCall { name, params, success: Some(error.is_none()), result, error, ..ToolCall::default() })
}

/// Returns the value that a text holds, where it holds JSON: many agents pass arguments and results so.
fn embedded(value: &Value) -> Value {
    let inner = value.as_str().filter(|text| text.trim_start().starts_with(['{', '[']));
    inner.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
}

fn error_of(object: &Map<String, Value>) -> Option<String> {
    match object.get("error")? {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        error => Some(text_form(error).into_owned()),
    }
}

/// Returns the error that a tool answered with: a member `error`, or a text that begins so.
fn result_error(result: &Value) -> Option<String> {
    match result {
        Value::Object(object) => error_of(object),
        Value::String(text) => {
            let start = text.trim_start().get(..5)?;
            start.eq_ignore_ascii_case("error").then(|| text.clone())
        }
        _ => None,
    }
}

/// All that a first message led to.
struct Turn<'t> {
    message: String,
    steps: Vec<Step<'t>>,
}

impl Turn<'_> {
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
fn first_turn(steps: Vec<Step<'_>>) -> Result<Turn<'_>, String> {
    let mut turn = Turn { message: String::new(), steps: Vec::new() };
    let mut said: Vec<String> = Vec::new();
    for step in steps {
        let Some(heard) = heard(step.input) else {
            turn.steps.push(step);
            continue;
        };
        if heard.has_history {
            return Err("the message leans on what was said before".to_owned());
        }
        if said.is_empty() {
            turn.message = heard.messages.join("\n");
            said = heard.messages;
        } else if is_further(&heard, &said, turn.steps.last()) {
            break;
        }
        turn.steps.push(step);
    }
    if turn.message.trim().is_empty() { Err("there is no message of a user".to_owned()) } else { Ok(turn) }
}

/// Tells whether a step was given something that the user said anew.
pub(super) fn is_further(heard: &Heard, said: &[String], before: Option<&Step<'_>>) -> bool {
    // Some agents give all that was said to every step, others only what is new.
    let news = heard.messages.strip_prefix(said).unwrap_or(&heard.messages);
    if heard.has_roles {
        return !news.is_empty();
    }
    // A bare text may be a tool's answer, which the agent goes on with.
    let answers = |text: &String, step: &Step<'_>| {
        let results = step.calls.iter().filter_map(|call| call.result.as_ref());
        step.output.is_empty() || results.into_iter().any(|result| text_form(result) == text.as_str())
    };
    !news.iter().all(|text| before.is_some_and(|step| answers(text, step)))
}

/// What of a step's input a user said.
pub(super) struct Heard {
    pub(super) messages: Vec<String>,
    /// The input says who said what.
    has_roles: bool,
    /// The agent had spoken before the user's last words.
    pub(super) has_history: bool,
}

impl Heard {
    fn bare(text: &str) -> Option<Self> {
        let is_something = !text.trim().is_empty();
        is_something.then(|| Self { messages: vec![text.to_owned()], has_roles: false, has_history: false })
    }

    fn of_messages(list: &[Value]) -> Option<Self> {
        let mut heard = Self { messages: Vec::new(), has_roles: true, has_history: false };
        let mut has_spoken = false;
        for message in list {
            match role(message)? {
                "user" | "human" => {
                    let text = spoken(message);
                    if !text.trim().is_empty() {
                        heard.has_history |= has_spoken;
                        heard.messages.push(text);
                    }
                }
                "assistant" | "ai" | "model" => has_spoken = true,
                _ => {}
            }
        }
        (!heard.messages.is_empty()).then_some(heard)
    }
}

fn role(message: &Value) -> Option<&str> {
    message.get("role").or_else(|| message.get("type")).and_then(Value::as_str)
}

/// Finds what a user said in a step's input, which may be anything.
pub(super) fn heard(input: &Value) -> Option<Heard> {
    match input {
        Value::String(text) => Heard::bare(text),
        Value::Array(list) => Heard::of_messages(list),
        Value::Object(object) => {
            if let Some(Value::Array(list)) = object.get("messages") {
                return Heard::of_messages(list);
            }
            if object.contains_key("role") {
                return Heard::of_messages(std::slice::from_ref(input));
            }
            INPUT_KEYS.iter().filter_map(|key| object.get(*key)).find_map(heard)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Finds the words in a message or in a step's output, which may be anything.
fn spoken(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) if list.iter().any(|one| one.get("role").is_some()) => {
            let mut own = list.iter().filter(|one| matches!(role(one), Some("assistant" | "ai" | "model")));
            own.next_back().map_or_else(String::new, spoken)
        }
        // The parts of one message: texts, beside images, calls and their results.
        Value::Array(parts) => {
            let is_text = |part: &&Value| {
                part.is_string() || part.get("type").is_none_or(|kind| kind == "text" || kind == "output_text")
            };
            let texts: Vec<String> = parts.iter().filter(is_text).map(spoken).filter(|text| !text.is_empty()).collect();
            texts.join("\n")
        }
        Value::Object(object) => {
            if let Some(list @ Value::Array(_)) = object.get("messages") {
                return spoken(list);
            }
            if let Some(choice) = object.get("choices").and_then(|choices| choices.get(0)) {
                return spoken(choice);
            }
            let texts = OUTPUT_KEYS.iter().chain(&["parts"]).filter_map(|key| object.get(*key)).map(spoken);
            texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use karat_core::trace::Trace;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn read_value(trace: &Value) -> Result<Reading, String> {
        read("search", 7, trace.to_string().as_bytes())
    }

    fn observed(trace: &Value) -> Observed {
        match read_value(trace) {
            Ok(Reading::Useful(observed)) => observed,
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
        assert_eq!((observed.id.as_str(), observed.message.as_str()), ("t-1", "Is there rain?"));
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
        let trace = json!({"trace_id": 5, "steps": [{"input": input, "output": "12", "tool_calls": [call()]}]});
        assert_eq!((observed(&trace).id, observed(&trace).message), ("5".to_owned(), "Rain?".to_owned()));
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
        assert_eq!(observed(&trace).id, "line 7");
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
    #[case::silent(json!([{"input": "Rain?", "output": null, "tool_calls": [call()]}]), "there is no response")]
    #[case::nobody(json!([{"input": {"city": 3}, "output": "12", "tool_calls": [call()]}]), "there is no message of a user")]
    #[case::blank(json!([{"input": " ", "output": "12", "tool_calls": [call()]}]), "there is no message of a user")]
    fn what_no_case_can_be_made_of(#[case] steps: Value, #[case] why: &str) {
        let reading = read_value(&json!({"trace_id": "t", "steps": steps}));
        assert_eq!(reading, Ok(Reading::LeftOut { id: "t".to_owned(), why: why.to_owned() }));
    }

    #[test]
    fn an_endless_message_is_left_out() {
        let trace = json!({"trace_id": "t", "steps": [
            {"input": "é".repeat(LONGEST_MESSAGE + 1), "output": "12", "tool_calls": [call()]}
        ]});
        let why = "the message has 8001 characters".to_owned();
        assert_eq!(read_value(&trace), Ok(Reading::LeftOut { id: "t".to_owned(), why }));
    }

    #[test]
    fn where_the_tool_is_not_called_the_message_is_kept() {
        let elsewhere = |message: Option<&str>| Ok(Reading::Elsewhere { message: message.map(str::to_owned) });
        let trace = json!({"steps": [{"input": "Rain?", "output": "No.", "tool_calls": [{"name": "other"}]}]});
        assert_eq!(read_value(&trace), elsewhere(Some("Rain?")));
        assert_eq!(read_value(&json!({"steps": []})), elsewhere(None));
    }

    #[rstest]
    #[case(b"", "no JSON: EOF while parsing a value at column 0")]
    #[case(br#"{"steps": ["#, "no JSON: EOF while parsing a list at column 11")]
    #[case(b"[1]", "expected a JSON object, the trace")]
    #[case(br#"{"trace_id": "a"}"#, "the trace has no list 'steps'")]
    #[case(br#"{"steps": [1]}"#, "steps[0] is no JSON object")]
    #[case(br#"{"steps": [{"tool_calls": {}}]}"#, "steps[0].tool_calls is no list")]
    #[case(
        br#"{"steps": [{"tool_calls": [{"name": "a"}, {"function": {}}]}]}"#,
        "steps[0].tool_calls[1] has no 'name'"
    )]
    #[case(b"{\"steps\": [\"\xff\"]}", "no JSON: invalid unicode code point at column 13")]
    fn what_is_no_trace_is_refused(#[case] text: &[u8], #[case] why: &str) {
        assert_eq!(read("search", 1, text), Err(why.to_owned()));
    }

    #[test]
    fn depth_without_end_is_refused() {
        let text = format!("{{\"steps\": {}", "[".repeat(100_000));
        assert!(read("search", 1, text.as_bytes()).is_err_and(|why| why.contains("recursion limit")));
    }
}
