//! Typed access to the parts of a trace document.

use jiff::Timestamp;
use serde_json::Value;

use super::input::{UserInput, text_content};

/// A step of a trace.
#[derive(Debug, Clone, Copy)]
pub struct StepView<'d>(&'d Value);

/// A message in the input of a step.
#[derive(Debug, Clone, Copy)]
pub struct MessageView<'d>(&'d Value);

/// A tool call.
#[derive(Debug, Clone, Copy)]
pub struct CallView<'d>(&'d Value);

/// Returns the member `error`, unless it is null, false or empty.
pub fn error_of(value: &Value) -> Option<&Value> {
    let is_error = |error: &&Value| !matches!(error, Value::Null | Value::Bool(false)) && error.as_str() != Some("");
    value.get("error").filter(is_error)
}

pub(super) fn time(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

pub(super) fn texts(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn list<'d>(value: &'d Value, key: &str) -> &'d [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'d>(value: &'d Value, key: &str) -> Option<&'d str> {
    value.get(key).and_then(Value::as_str)
}

fn present<'d>(value: &'d Value, key: &str) -> Option<&'d Value> {
    value.get(key).filter(|member| !member.is_null())
}

impl<'d> StepView<'d> {
    pub(super) fn new(step: &'d Value) -> Self {
        Self(step)
    }

    pub fn model(self) -> Option<&'d str> {
        text(self.0, "model")
    }

    /// Returns the agent that took the step, if there are several.
    pub fn agent(self) -> Option<&'d str> {
        text(self.0, "agent")
    }

    pub fn started_at(self) -> Option<Timestamp> {
        time(self.0.get("started_at"))
    }

    pub fn ended_at(self) -> Option<Timestamp> {
        time(self.0.get("ended_at"))
    }

    pub fn error(self) -> Option<&'d Value> {
        error_of(self.0)
    }

    pub fn calls(self) -> impl ExactSizeIterator<Item = CallView<'d>> {
        list(self.0, "tool_calls").iter().map(CallView)
    }

    fn input(self) -> &'d Value {
        self.0.get("input").unwrap_or(&Value::Null)
    }

    fn output(self) -> &'d Value {
        self.0.get("output").unwrap_or(&Value::Null)
    }

    /// Returns the messages of the input.
    pub fn messages(self) -> impl ExactSizeIterator<Item = MessageView<'d>> {
        list(self.input(), "messages").iter().map(MessageView)
    }

    /// Returns the input's message, or the input itself if it is a string.
    pub fn message(self) -> Option<&'d str> {
        self.input().get("message").unwrap_or(self.input()).as_str()
    }

    /// Returns the input, if it is not text: its `value`, or all of it.
    pub fn input_value(self) -> Option<&'d Value> {
        match self.input() {
            Value::Null | Value::String(_) => None,
            // An explicit null message means no input.
            Value::Object(map) if map.iter().all(|(key, value)| key == "message" && value.is_null()) => None,
            input => Some(input.get("value").unwrap_or(input)),
        }
    }

    /// Returns the user messages, in any supported input shape.
    pub fn user_input(self) -> Option<UserInput> {
        UserInput::find(self.input())
    }

    /// Returns the output's response, or the whole output if its shape is unknown.
    pub fn response(self) -> Option<&'d Value> {
        match self.output() {
            Value::Null => None,
            output @ Value::Object(map) => match map.get("response") {
                None if map.is_empty() || map.contains_key("value") || map.contains_key("reasoning") => None,
                None => Some(output),
                Some(response) => Some(response).filter(|response| !response.is_null()),
            },
            output => Some(output),
        }
    }

    pub fn reasoning(self) -> Option<&'d str> {
        text(self.output(), "reasoning")
    }

    /// Returns the output, if it is not text.
    pub fn output_value(self) -> Option<&'d Value> {
        present(self.output(), "value")
    }

    /// Returns the agent's text, in any supported output shape.
    pub fn response_text(self) -> String {
        text_content(self.output())
    }
}

impl<'d> MessageView<'d> {
    pub fn role(self) -> Option<&'d str> {
        text(self.0, "role")
    }

    /// Returns the tool or agent that sent the message.
    pub fn name(self) -> Option<&'d str> {
        text(self.0, "name")
    }

    pub fn content(self) -> Option<&'d Value> {
        present(self.0, "content")
    }

    /// Returns the call that a tool message answers.
    pub fn tool_call_id(self) -> Option<&'d str> {
        text(self.0, "tool_call_id")
    }

    pub fn is_error(self) -> bool {
        self.0.get("is_error").and_then(Value::as_bool).unwrap_or(false)
    }

    /// Returns the calls that an assistant message makes.
    pub fn calls(self) -> impl ExactSizeIterator<Item = CallView<'d>> {
        list(self.0, "tool_calls").iter().map(CallView)
    }

    /// Returns the types of parts that are neither text nor calls, if given.
    pub fn part_types(self) -> impl ExactSizeIterator<Item = Option<&'d str>> {
        list(self.0, "parts").iter().map(|part| text(part, "type"))
    }
}

impl<'d> CallView<'d> {
    /// Returns the tool name; always present in a step's calls, but may be empty.
    pub fn name(self) -> Option<&'d str> {
        text(self.0, "name")
    }

    pub fn id(self) -> Option<&'d str> {
        text(self.0, "id")
    }

    pub fn arguments(self) -> Option<&'d Value> {
        present(self.0, "arguments")
    }

    /// Returns the result of the tool, which may be null.
    pub fn result(self) -> Option<&'d Value> {
        self.0.get("result")
    }

    pub fn error(self) -> Option<&'d Value> {
        error_of(self.0)
    }

    /// Whether the tool ran without error, if the trace has that.
    pub fn success(self) -> Option<bool> {
        self.0.get("success").and_then(Value::as_bool)
    }
}
