//! Converts an agent's reply to a trace.

use karat_chat::read_reply;
use karat_core::rubric::total_usage;
use karat_core::trace::{ToolCall, Trace, Usage};
use karat_json::text::{shorten, text_form};
use karat_json::{parse, type_name, without_bom};
use serde_json::{Map, Value, json};

use crate::reply_error::{find_error, find_error_event};
pub(crate) use crate::response_map::{ResponseMap, ToolCallMap};
use crate::selector::{SelectedText, Selector};

/// Keys that agents use for their tool calls.
const CALL_KEYS: [&str; 6] = ["tool_calls", "toolcalls", "tools", "steps", "intermediate_steps", "intermediateSteps"];
/// Keys that agents use for the arguments of a call.
const PARAM_KEYS: [&str; 4] = ["arguments", "args", "input", "parameters"];
/// Pointers to the name of a call in other shapes.
const NAME_POINTERS: [&str; 5] = ["/function/name", "/function", "/tool", "/toolName", "/tool_name"];
/// Keys that agents use for their text.
const TEXT_KEYS: [&str; 5] = ["output", "text", "message", "content", "answer"];

/// An agent's answer, or its question if it waits for a person's approval.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) trace: Trace,
    /// Set if the reply was read as a conversation.
    chat: Option<karat_chat::Reply>,
    /// `id`, `callId`, `call`, `question` and `request`.
    pub(crate) approval: Option<Value>,
    /// The event with the first text of the answer.
    pub(crate) first_text_event: Option<usize>,
}

/// The tool calls in a reply.
enum Calls {
    Reported(Vec<ToolCall>),
    /// The reply has no list, so there were no calls.
    None,
    /// It is unknown whether there were calls.
    Unreported,
}

impl Calls {
    /// Returns whether the calls are unreported, and the calls.
    fn split(self) -> (bool, Vec<ToolCall>) {
        match self {
            Self::Reported(calls) => (false, calls),
            Self::None => (false, Vec::new()),
            Self::Unreported => (true, Vec::new()),
        }
    }
}

impl Answer {
    /// Returns the trace. The question of an agent that waits for approval is its response.
    pub(crate) fn into_trace(self) -> Trace {
        let Some(approval) = self.approval else { return self.trace };
        let question = approval.get("question").and_then(Value::as_str).unwrap_or_default();
        // Keep the text before the question.
        let response = match self.trace.response.trim() {
            "" => question.to_owned(),
            text if text.contains(question) => self.trace.response,
            _ => format!("{}\n{question}", self.trace.response),
        };
        Trace { response, stop_reason: Some("approval".to_owned()), ..self.trace }
    }
}

impl ResponseMap {
    /// Converts a reply to a trace; the error says which part is missing or invalid.
    pub(crate) fn parse_trace(&self, reply: &Value) -> Result<Trace, String> {
        Ok(self.read_answer(reply, false, None)?.into_trace())
    }

    /// Reads a reply; a stream is the list of its events. `previous` is the part of the answer before an approval.
    pub(crate) fn read_answer(
        &self,
        reply: &Value,
        is_stream: bool,
        previous: Option<Answer>,
    ) -> Result<Answer, String> {
        if let Some(error) = self.error.as_ref().and_then(|error| error.find_non_null(reply)) {
            return Err(format!("the agent replied with an error: {}", text_form(error)));
        }
        let approval = match &self.approval {
            Some(approval) if approval.when.holds(reply)? => {
                let question = approval.question.find_non_null(reply).map(text_form).unwrap_or_default();
                Some(json!({"question": question}))
            }
            _ => None,
        };
        let answer = match &self.conversation {
            Some(conversation) => self.read_conversation(conversation, reply, is_stream, previous)?,
            None => self.read_parts(reply, is_stream, approval.is_some(), previous)?,
        };
        Ok(Answer { approval: approval.or(answer.approval), ..answer })
    }

    /// Reads the selected parts.
    fn read_parts(
        &self,
        reply: &Value,
        is_stream: bool,
        is_paused: bool,
        previous: Option<Answer>,
    ) -> Result<Answer, String> {
        if let Some(error) = find_error_event(reply).filter(|_| is_stream) {
            return Err(format!("the agent replied with an error: {error}"));
        }
        let mut warnings = Vec::new();
        let calls = self.read_calls(reply, &mut warnings);
        let has_calls = matches!(&calls, Ok(Calls::Reported(_)));
        let response = match self.read_text(reply, is_stream, has_calls) {
            Err(_) if is_paused => String::new(),
            response => response?,
        };
        let (calls_unreported, tool_calls) = calls?.split();
        let first_text_event = is_stream.then(|| self.response.selector.first_index_of_text(reply)).flatten();
        let mut trace = Trace {
            response,
            calls_unreported,
            tool_calls,
            usage: self.usage.selector.find_non_null(reply).and_then(|usage| read_usage(usage, &mut warnings)),
            model: self.model.selector.find_non_null(reply).and_then(Value::as_str).map(str::to_owned),
            stop_reason: self.read_stop_reason(reply),
            warnings,
            ..Trace::default()
        };
        if let Some(Answer { trace: earlier, .. }) = previous {
            trace.tool_calls.splice(0..0, earlier.tool_calls);
            trace.warnings.splice(0..0, earlier.warnings);
            trace.usage = total_usage([earlier.usage.as_ref(), trace.usage.as_ref()].into_iter());
            trace.calls_unreported |= earlier.calls_unreported;
        }
        Ok(Answer { trace, first_text_event, ..Answer::default() })
    }

    fn read_text(&self, reply: &Value, is_stream: bool, has_calls: bool) -> Result<String, String> {
        let selector = &self.response.selector;
        let pointer = selector.as_str();
        match selector.text(reply, if is_stream { "" } else { "\n" }) {
            SelectedText::Text(text) => Ok(text.into_owned()),
            // An agent that only calls tools may have no text.
            SelectedText::Empty if has_calls => Ok(String::new()),
            SelectedText::Empty => {
                let kind = selector.find(reply).map_or("null", type_name);
                Err(reported_error(reply).unwrap_or_else(|| format!("the reply's text at '{pointer}' is {kind}")))
            }
            SelectedText::NotText(kind) => {
                Err(reported_error(reply).unwrap_or_else(|| format!("the reply's text at '{pointer}' is {kind}")))
            }
            SelectedText::Missing => Err(reported_error(reply).unwrap_or_else(|| {
                let hint = first_present_key(reply, &TEXT_KEYS).map_or_else(String::new, |key| {
                    let quoted = match reply[key].as_str().filter(|_| key == "message") {
                        Some(message) => format!(" ({})", shorten(message, 200)),
                        None => String::new(),
                    };
                    format!(": it has '{key}'{quoted}, which 'agent.response.response' can point to")
                });
                format!("the reply has no text at '{pointer}'{hint}")
            })),
        }
    }

    fn read_calls(&self, reply: &Value, warnings: &mut Vec<String>) -> Result<Calls, String> {
        let selector = &self.tool_calls.selector;
        let Some(calls) = selector
            .list(reply)
            .map_err(|kind| format!("the reply's '{}' is {kind}, not an array", selector.as_str()))?
        else {
            if self.tool_calls.is_configured {
                return Ok(Calls::Unreported);
            }
            let Some(key) = first_present_key(reply, &CALL_KEYS) else {
                return Ok(Calls::None);
            };
            warnings.push(format!(
                "the reply has '{key}' but no 'toolCalls', so no tool call was read: set 'agent.response.toolCalls'"
            ));
            return Ok(Calls::Unreported);
        };
        if let Some(key) = calls.iter().find_map(|call| self.tool_call.unread_params(call)) {
            let pointer = self.tool_call.params.as_str();
            warnings.push(format!(
                "a tool call has '{key}' but nothing at '{pointer}', so its arguments were not read: set \
                 'agent.response.toolCall.params' to \"/{key}\""
            ));
        }
        let read = |(index, call): (usize, &Value)| {
            self.tool_call.read_call(call).map_err(|problem| format!("tool call {index} of the reply {problem}"))
        };
        calls.into_iter().enumerate().map(read).collect::<Result<_, _>>().map(Calls::Reported)
    }

    fn read_stop_reason(&self, reply: &Value) -> Option<String> {
        let reason = self.stop_reason.as_ref()?.find_non_null(reply)?;
        Some(text_form(reason).into_owned())
    }

    /// Reads the conversation. Parts with a selector of their own are read from there instead.
    fn read_conversation(
        &self,
        conversation: &Selector,
        reply: &Value,
        is_stream: bool,
        previous: Option<Answer>,
    ) -> Result<Answer, String> {
        let list;
        let messages = match &conversation.select(reply)[..] {
            [] => {
                let missing = || format!("the reply has no conversation at '{}'", conversation.as_str());
                return Err(reported_error(reply).unwrap_or_else(missing));
            }
            [conversation] => *conversation,
            messages => {
                list = Value::Array(messages.iter().copied().cloned().collect());
                &list
            }
        };
        let chat = read_reply(messages).map_err(|error| reported_error(reply).unwrap_or_else(|| error.to_string()))?;
        let first_text_event = chat.first_text_event.filter(|_| std::ptr::eq(messages, reply));
        let chat = match previous.and_then(|previous| previous.chat) {
            Some(previous) => previous.followed_by(chat),
            None => chat,
        };
        if let Some(error) = &chat.error {
            return Err(format!("the agent replied with an error: {error}"));
        }
        if !chat.is_complete && chat.approval.is_none() {
            return Err("the reply is not complete: the stream was cut off, or the agent is still working".to_owned());
        }
        let mut warnings = Vec::new();
        let (calls_unreported, tool_calls) = match self.tool_calls.configured() {
            Some(_) => self.read_calls(reply, &mut warnings)?.split(),
            None => (chat.calls_unreported, self.tool_call.apply_failure_rule(calls_of(&chat))?),
        };
        let usage =
            self.usage.selector.find_non_null(reply).filter(|_| self.usage.is_configured || chat.usage.is_none());
        let model =
            self.model.selector.find_non_null(reply).filter(|_| self.model.is_configured || chat.model.is_none());
        let trace = Trace {
            response: match self.response.configured() {
                Some(_) => self.read_text(reply, is_stream, !calls_unreported)?,
                None => chat.response().to_owned(),
            },
            tool_calls,
            steps: chat.model_calls(),
            calls_unreported,
            usage: usage.and_then(|usage| read_usage(usage, &mut warnings)).or_else(|| chat.usage.clone()),
            model: model.and_then(Value::as_str).map(str::to_owned).or_else(|| chat.model.clone()),
            stop_reason: self.read_stop_reason(reply).or_else(|| chat.stop_reason.clone()),
            warnings,
            ..Trace::default()
        };
        let approval = chat.approval.as_ref().map(|approval| {
            let mut calls = chat.steps.iter().flat_map(|step| &step.calls);
            let call = calls.find(|call| call.id.is_some() && call.id == approval.call_id).map(|call| &call.call);
            json!({
                "call": call,
                "id": approval.id,
                "callId": approval.call_id,
                "question": approval.question,
                "request": approval.request,
            })
        });
        Ok(Answer { trace, chat: Some(chat), approval, first_text_event })
    }
}

impl ToolCallMap {
    /// Returns the key under which a call has its arguments, if that is not where they are read.
    fn unread_params(&self, call: &Value) -> Option<&'static str> {
        if self.params.find_non_null(call).is_some() {
            return None;
        }
        let has_arguments = |value: &Value| match value {
            Value::Object(arguments) => !arguments.is_empty(),
            Value::String(text) => !matches!(text.trim(), "" | "{}"),
            _ => false,
        };
        PARAM_KEYS.into_iter().find(|key| call.get(key).is_some_and(has_arguments))
    }

    fn read_call(&self, call: &Value) -> Result<ToolCall, String> {
        let name = match self.name.find(call) {
            Some(Value::String(name)) if name.is_empty() => {
                return Err(format!("has an empty name at '{}'", self.name.as_str()));
            }
            Some(Value::String(name)) => name.clone(),
            _ => {
                let has_text = |pointer: &&&str| call.pointer(pointer).is_some_and(Value::is_string);
                let advice = match NAME_POINTERS.iter().find(has_text) {
                    None => String::new(),
                    Some(&"/function/name") => ": for calls in OpenAI's form set 'agent.response.toolCall' to \
                        {\"name\": \"/function/name\", \"params\": \"/function/arguments\"}"
                        .to_owned(),
                    Some(pointer) => format!(": set 'agent.response.toolCall.name' to \"{pointer}\""),
                };
                return Err(format!("has no name at '{}'{advice}", self.name.as_str()));
            }
        };
        let (params, raw_params) = match self.params.find_non_null(call) {
            None => (Map::new(), None),
            Some(Value::Object(params)) => (params.clone(), None),
            // Models send an empty string if there are no arguments.
            Some(Value::String(text)) if text.trim().is_empty() => (Map::new(), None),
            Some(Value::String(text)) => match parse(text) {
                Ok(Value::Object(params)) => (params, None),
                _ => (Map::new(), Some(text.clone())),
            },
            Some(other) => (Map::new(), Some(other.to_string())),
        };
        let mut success = match self.success.find_non_null(call) {
            None => None,
            Some(Value::Bool(success)) => Some(*success),
            Some(other) => return Err(format!("('{name}') has a 'success' that is {}", type_name(other))),
        };
        if let Some(failed) = &self.failed {
            success = Some(!failed.holds(call)? && success.unwrap_or(true));
        }
        Ok(ToolCall {
            success,
            duration_ms: self.duration_ms.find_non_null(call).and_then(Value::as_f64).filter(|millis| *millis >= 0.0),
            params,
            raw_params,
            result: self.result.find(call).cloned(),
            name,
            ..ToolCall::default()
        })
    }

    /// Applies the rule for failures to the calls of a conversation. It adds to the failures that the protocol reports, and
    /// a call without an outcome is not a success.
    fn apply_failure_rule(&self, mut calls: Vec<ToolCall>) -> Result<Vec<ToolCall>, String> {
        let Some(failed) = &self.failed else { return Ok(calls) };
        for call in &mut calls {
            let ToolCall { name, params, result, error, .. } = &*call;
            let has_outcome = result.is_some() || error.is_some();
            let is_failed = failed.holds(&json!({"name": name, "params": params, "result": result, "error": error}))?;
            call.success = match call.success {
                _ if is_failed => Some(false),
                None => has_outcome.then_some(true),
                reported => reported,
            };
        }
        Ok(calls)
    }
}

/// Returns the calls of a conversation, with their steps where these are known.
fn calls_of(chat: &karat_chat::Reply) -> Vec<ToolCall> {
    let is_known = chat.model_calls().is_some();
    let calls = (0..).zip(&chat.steps).flat_map(|(index, step)| step.calls.iter().map(move |call| (index, &call.call)));
    calls.map(|(index, call)| ToolCall { step: is_known.then_some(index), ..call.clone() }).collect()
}

fn reported_error(reply: &Value) -> Option<String> {
    find_error(reply).map(|error| format!("the agent replied with an error: {error}"))
}

/// Returns the first of the keys that the reply has.
fn first_present_key<'k>(reply: &Value, keys: &[&'k str]) -> Option<&'k str> {
    keys.iter().copied().find(|key| reply.get(key).is_some_and(|value| !value.is_null()))
}

/// Parses the body of a reply; a duplicate key is an error, since it is unclear which one counts.
pub(crate) fn parse_reply(body: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(without_bom(body)).map_err(|error| error.to_string())?;
    parse(text).map_err(|error| error.describe(text))
}

/// Reads token counts and the cost under any of the common names. Invalid values are ignored with a warning.
fn read_usage(usage: &Value, warnings: &mut Vec<String>) -> Option<Usage> {
    let mut find = |names: &[&str], is_valid: fn(&Value) -> bool| {
        let (name, value) =
            names.iter().find_map(|name| Some((name, usage.get(name).filter(|value| !value.is_null())?)))?;
        if is_valid(value) {
            return Some(value);
        }
        warnings
            .push(format!("the reply's '{name}' is ignored: {} is not a valid value", shorten(&value.to_string(), 60)));
        None
    };
    let is_count: fn(&Value) -> bool = Value::is_u64;
    let is_cost: fn(&Value) -> bool = |value| value.as_f64().is_some_and(|cost| cost >= 0.0);
    let usage = Usage {
        input_tokens: find(&["inputTokens", "input_tokens", "promptTokens", "prompt_tokens"], is_count)
            .and_then(Value::as_u64),
        output_tokens: find(&["outputTokens", "output_tokens", "completionTokens", "completion_tokens"], is_count)
            .and_then(Value::as_u64),
        cost_usd: find(&["costUsd", "cost_usd"], is_cost).and_then(Value::as_f64),
        ..Usage::default()
    };
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use karat_json::{Path, Problems};
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "called with json! literals")]
    fn map(value: Value) -> ResponseMap {
        let mut problems = Problems::default();
        let map = ResponseMap::read(&value, &Path::Root, &mut problems);
        assert!(problems.is_empty(), "{:?}", problems.into_list());
        map.expect("valid")
    }

    #[test]
    fn reads_parts_at_configured_pointers() {
        let map = map(json!({
            "response": "/output/0/text",
            "toolCalls": "/steps",
            "toolCall": {"name": "/function/name", "params": "/function/arguments"},
        }));
        let reply = json!({
            "output": [{"text": "hi"}], "model": "m", "usage": {"prompt_tokens": 3, "completion_tokens": 4},
            "steps": [{"function": {"name": "t", "arguments": "{\"a\": 1}"}, "result": null}],
        });
        let trace = map.parse_trace(&reply).expect("the reply is valid");
        assert_eq!((trace.response.as_str(), trace.tool_names()), ("hi", vec!["t"]));
        assert_eq!(trace.tool_calls[0].params["a"], 1);
        assert_eq!(trace.tool_calls[0].result, Some(Value::Null));
        assert_eq!(trace.usage.expect("usage is given").output_tokens, Some(4));
    }

    #[test]
    fn warns_about_similar_keys() {
        let map = ResponseMap::default();
        let trace = map.parse_trace(&json!({"response": "hi", "tool_calls": []})).expect("valid");
        let warning = "the reply has 'tool_calls' but no 'toolCalls', so no tool call was read: set \
                       'agent.response.toolCalls'";
        assert_eq!(trace.warnings, [warning]);
        let trace = map.parse_trace(&json!({"response": "hi", "toolCalls": [], "tools": [1]})).expect("valid");
        assert_eq!(trace.warnings, Vec::<String>::new());
        let warnings = |call: Value| {
            let trace = map.parse_trace(&json!({"response": "hi", "toolCalls": [{"name": "a"}, call]}));
            trace.expect("valid").warnings
        };
        let warning = |key: &str| {
            format!(
                "a tool call has '{key}' but nothing at '/params', so its arguments were not read: set \
                 'agent.response.toolCall.params' to \"/{key}\""
            )
        };
        for key in ["arguments", "args", "input", "parameters"] {
            assert_eq!(warnings(json!({"name": "b", key: {"id": "4411"}})), [warning(key)]);
            assert_eq!(warnings(json!({"name": "b", key: {}})), Vec::<String>::new());
            assert_eq!(warnings(json!({"name": "b", "params": {}, key: {"id": 1}})), Vec::<String>::new());
        }
        assert_eq!(warnings(json!({"name": "b", "arguments": "{\"id\": 1}"})), [warning("arguments")]);
        let error = map.parse_trace(&json!({"output": "hi"})).expect_err("no text");
        assert_eq!(
            error,
            "the reply has no text at '/response': it has 'output', which 'agent.response.response' can point to"
        );
    }

    #[test]
    fn ignores_impossible_usage() {
        let map = ResponseMap::default();
        let reply = json!({"response": "", "usage": {"inputTokens": -3, "outputTokens": 4, "costUsd": -500}});
        let trace = map.parse_trace(&reply).expect("valid");
        assert_eq!(trace.usage, Some(Usage { output_tokens: Some(4), ..Usage::default() }));
        assert_eq!(
            trace.warnings,
            [
                "the reply's 'inputTokens' is ignored: -3 is not a valid value",
                "the reply's 'costUsd' is ignored: -500 is not a valid value",
            ]
        );
        let text = json!({"response": "", "usage": {"costUsd": "NaN"}});
        assert_eq!(map.parse_trace(&text).expect("valid").usage, None);
    }

    #[test]
    fn reads_bodies_strictly() {
        let text = "\u{feff}{\"id\": 12345678901234567890123}";
        assert_eq!(parse_reply(text.as_bytes()).expect("JSON").to_string(), "{\"id\":12345678901234567890123}");
        let error = parse_reply(b"{\"a\": 1, \"a\": 2}").expect_err("a duplicate key");
        assert_eq!(error, "duplicate key 'a' at line 1 column 10");
    }

    /// The rule adds to the failures that the protocol reports.
    #[test]
    fn the_rule_for_failures_applies_to_calls_with_an_outcome() {
        let map = map(json!({
            "conversation": "",
            "toolCall": {"failed": {"path": "/result/error", "notNull": true}},
        }));
        let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": id, "arguments": "{}"});
        let output = |id: &str, text: &str| json!({"type": "function_call_output", "call_id": id, "output": text});
        let server_call = |name: &str, error: Value| json!({"type": "mcp_call", "id": name, "name": name, "arguments": "{}", "output": "18", "error": error});
        let reply = json!({"object": "response", "status": "completed", "output": [
            call("good"), output("good", "{\"celsius\": 18}"),
            call("bad"), output("bad", "{\"error\": \"offline\"}"),
            call("unknown"),
            server_call("reported_good", Value::Null), server_call("reported_bad", json!("offline")),
        ]});
        let trace = map.parse_trace(&reply).expect("valid");
        let outcomes: Vec<_> = trace.tool_calls.iter().map(|call| (call.name.as_str(), call.success)).collect();
        let expected = [
            ("good", Some(true)),
            ("bad", Some(false)),
            ("unknown", None),
            ("reported_good", Some(true)),
            ("reported_bad", Some(false)),
        ];
        assert_eq!(outcomes, expected);
    }

    #[test]
    fn an_empty_string_means_no_arguments() {
        let reply = json!({"response": "", "toolCalls": [{"name": "t", "params": ""}]});
        let trace = ResponseMap::default().parse_trace(&reply).expect("valid");
        assert!(trace.tool_calls[0].params.is_empty());
    }

    #[test]
    fn reports_invalid_parts() {
        let map = ResponseMap::default();
        for (reply, message) in [
            (json!([]), "the reply has no text at '/response'"),
            (json!({"response": null}), "the reply's text at '/response' is null"),
            (json!({"response": "", "toolCalls": {}}), "the reply's '/toolCalls' is an object, not an array"),
            (json!({"response": "", "toolCalls": [{}]}), "tool call 0 of the reply has no name at '/name'"),
            (
                json!({"response": "", "toolCalls": [{"name": ""}]}),
                "tool call 0 of the reply has an empty name at '/name'",
            ),
            (
                json!({"response": "", "toolCalls": [{"name": "t", "success": "yes"}]}),
                "tool call 0 of the reply ('t') has a 'success' that is a string",
            ),
        ] {
            assert_eq!(map.parse_trace(&reply).expect_err("the reply is invalid"), message);
        }
    }
}
