//! Splits a conversation into steps.

use karat_core::document::{Message, Step, StepInput, StepOutput};
use serde_json::Value;

use crate::lenient::{parse_nested, truncate};
use crate::messages as chat;

/// A conversation, message by message.
#[derive(Debug, Default)]
pub struct Conversation {
    turns: Vec<Turn>,
}

/// A message, with the fields that only a model's message has.
#[derive(Debug, Default)]
struct Turn {
    message: Message,
    reasoning: Option<String>,
    stop_reason: Option<String>,
}

/// The steps of a conversation.
#[derive(Debug, Default)]
pub struct ConversationSteps {
    /// One per message of the model.
    pub steps: Vec<Step>,
    /// The messages after the model's last one.
    pub unanswered: Vec<Message>,
}

impl Conversation {
    /// Adds the system prompt.
    pub fn push_system(&mut self, value: &Value) {
        let text = chat::collect_text(value);
        if !text.is_empty() {
            self.turns.push(Turn { message: chat::plain_message("system", &text), ..Turn::default() });
        }
    }

    /// Adds a message of a chat API. `role` is the default role.
    pub fn push(&mut self, value: &Value, role: &str) -> Result<(), String> {
        if !value.is_object() {
            return Err("a message must be an object".to_owned());
        }
        let Some(parsed) = chat::read_literal(value, role) else {
            // An empty message is valid.
            let has_role = value.get("role").is_some_and(Value::is_string) || value.get("type").is_some();
            return if has_role { Ok(()) } else { Err("a message has no 'role'".to_owned()) };
        };
        reject_unread_calls(&parsed)?;
        self.push_parsed(parsed);
        Ok(())
    }

    /// Adds items of the `OpenAI` Responses API, where each call is an item next to its message.
    pub fn push_items(&mut self, items: &[Value], role: &str) -> Result<(), String> {
        if let Some(parsed) = chat::read_literal(&Value::Array(items.to_vec()), role) {
            reject_unread_calls(&parsed)?;
            self.push_parsed(parsed);
        }
        Ok(())
    }

    fn push_parsed(&mut self, parsed: chat::ParsedMessages) {
        let (mut reasoning, mut stop_reason) = (parsed.reasoning, parsed.stop_reason);
        for message in parsed.messages {
            let is_model = message.role == "assistant";
            self.turns.push(Turn {
                message,
                reasoning: reasoning.take_if(|_| is_model),
                stop_reason: stop_reason.take_if(|_| is_model),
            });
        }
        if let Some(reasoning) = reasoning {
            // In the OpenAI Responses API, reasoning is an item that precedes its message.
            let message = chat::plain_message("assistant", "");
            self.turns.push(Turn { message, reasoning: Some(reasoning), stop_reason });
        }
    }

    pub fn extend(&mut self, values: &[Value]) -> Result<(), String> {
        for (index, value) in values.iter().enumerate() {
            self.push(value, "user").map_err(|reason| format!("messages[{index}]: {reason}"))?;
        }
        Ok(())
    }

    /// Marks the tool results whose content indicates a failure.
    pub fn mark_failures(&mut self, is_failure: impl Fn(&str) -> bool) {
        for turn in self.turns.iter_mut().filter(|turn| turn.message.role == "tool") {
            turn.message.is_error |= is_failure(&turn.message.content);
        }
    }

    /// Builds one step per message of the model, with the results of its calls wherever they appear later.
    pub fn into_steps(self) -> ConversationSteps {
        let mut steps: Vec<Step> = Vec::new();
        let mut new_messages = Vec::new();
        let mut reasoning: Option<String> = None;
        let mut turns = self.turns.into_iter().peekable();
        while let Some(mut turn) = turns.next() {
            if turn.message.role != "assistant" {
                if turn.message.role == "tool" {
                    attach_result(&mut steps, &turn.message);
                }
                new_messages.push(turn.message);
                continue;
            }
            let is_empty = turn.message.content.is_empty() && turn.message.tool_calls.is_empty();
            let is_continued = turns.peek().is_some_and(|next| next.message.role == "assistant");
            if is_empty && is_continued && turn.message.parts.is_empty() {
                append_text(&mut reasoning, turn.reasoning);
                continue;
            }
            append_text(&mut reasoning, turn.reasoning.take());
            steps.push(build_step(std::mem::take(&mut new_messages), Turn { reasoning: reasoning.take(), ..turn }));
        }
        if steps.is_empty() && !new_messages.is_empty() {
            // Keep a question that was never answered.
            steps.push(build_step(std::mem::take(&mut new_messages), Turn::default()));
        }
        ConversationSteps { steps, unanswered: new_messages }
    }
}

fn reject_unread_calls(parsed: &chat::ParsedMessages) -> Result<(), String> {
    match parsed.unread_calls.first() {
        Some(call) => Err(format!("an entry of 'tool_calls' has no tool name: {}", truncate(&call.to_string()))),
        None => Ok(()),
    }
}

fn append_text(into: &mut Option<String>, more: Option<String>) {
    match (into.as_mut(), more) {
        (Some(into), Some(more)) => {
            into.push('\n');
            into.push_str(&more);
        }
        (None, more) => *into = more,
        (Some(_), None) => {}
    }
}

fn build_step(new_messages: Vec<Message>, turn: Turn) -> Step {
    let message =
        new_messages.iter().rev().find(|message| message.role == "user").map(|message| message.content.clone());
    Step {
        input: StepInput { message, messages: new_messages, value: None },
        output: StepOutput { response: turn.message.content, reasoning: turn.reasoning, value: None },
        tool_calls: turn.message.tool_calls,
        stop_reason: turn.stop_reason,
        ..Step::default()
    }
}

/// Attaches a result to the latest call with its id. Without ids, attaches it to the first call of the last step that
/// has no result yet and matches the result's name, if it has one.
fn attach_result(steps: &mut [Step], result: &Message) {
    let call = match &result.tool_call_id {
        Some(id) => {
            let calls = steps.iter_mut().rev().flat_map(|step| step.tool_calls.iter_mut());
            calls.into_iter().find(|call| call.id.as_ref() == Some(id))
        }
        None => steps.last_mut().and_then(|step| {
            step.tool_calls.iter_mut().find(|call| {
                let is_open = call.result.is_null() && call.error.is_none();
                is_open && result.name.as_ref().is_none_or(|name| *name == call.name)
            })
        }),
    };
    let Some(call) = call else { return };
    if result.is_error {
        call.error = Some(if result.content.is_empty() { "error".to_owned() } else { result.content.clone() });
    }
    call.result = parse_nested(&result.content).unwrap_or_else(|| Value::String(result.content.clone()));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn split(messages: &Value) -> ConversationSteps {
        let mut conversation = Conversation::default();
        conversation.extend(messages.as_array().expect("a list")).expect("messages");
        conversation.into_steps()
    }

    #[test]
    fn a_step_has_only_its_new_messages() {
        let split = split(&json!([
            {"role": "system", "content": "Be kind"},
            {"role": "user", "content": "Rain?"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "rain", "arguments": "{\"day\": 1}"}},
                {"id": "2", "type": "function", "function": {"name": "wind", "arguments": "not JSON"}}]},
            {"role": "tool", "tool_call_id": "2", "content": "calm"},
            {"role": "tool", "tool_call_id": "1", "content": "{\"mm\": 3}"},
            {"role": "assistant", "content": "Some"},
            {"role": "user", "content": "Thanks"},
        ]));
        let roles = |step: &Step| step.input.messages.iter().map(|message| message.role.clone()).collect::<Vec<_>>();
        assert_eq!(split.steps.len(), 2);
        assert_eq!(roles(&split.steps[0]), ["system", "user"]);
        assert_eq!(split.steps[0].input.message.as_deref(), Some("Rain?"));
        let calls = &split.steps[0].tool_calls;
        assert_eq!((&calls[0].arguments, &calls[0].result), (&json!({"day": 1}), &json!({"mm": 3})));
        assert_eq!((&calls[1].arguments, &calls[1].result), (&json!("not JSON"), &json!("calm")));
        assert_eq!(roles(&split.steps[1]), ["tool", "tool"]);
        assert_eq!((split.steps[1].input.message.as_deref(), split.steps[1].output.response.as_str()), (None, "Some"));
        assert_eq!(split.unanswered[0].content, "Thanks");
    }

    #[test]
    fn reads_anthropic_content_blocks() {
        let split = split(&json!([
            {"role": "user", "content": [{"type": "text", "text": "Rain?"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm"},
                {"type": "text", "text": "I look"},
                {"type": "tool_use", "id": "1", "name": "rain", "input": {"day": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "1", "is_error": true, "content": [{"type": "text", "text": "no net"}]},
                {"type": "text", "text": "Well?"}]},
            {"role": "assistant", "content": "Sorry"},
        ]));
        let first = &split.steps[0];
        assert_eq!((first.output.response.as_str(), first.output.reasoning.as_deref()), ("I look", Some("Hm")));
        let call = &first.tool_calls[0];
        assert_eq!((&call.arguments, &call.result), (&json!({"day": 1}), &json!("no net")));
        assert_eq!(call.error.as_deref(), Some("no net"));
        assert_eq!(split.steps[1].input.message.as_deref(), Some("Well?"));
        assert!(split.steps[1].input.messages.iter().any(|message| message.role == "tool" && message.is_error));
    }

    #[test]
    fn attaches_results_to_the_latest_call_with_the_id() {
        let call =
            json!({"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": "{}"}}]});
        let result = |text: &str| json!({"role": "tool", "tool_call_id": "1", "content": text});
        let split = split(&json!([call, result("one"), call, result("two")]));
        let results: Vec<_> = split.steps.iter().map(|step| step.tool_calls[0].result.clone()).collect();
        assert_eq!(results, [json!("one"), json!("two")]);
    }

    #[test]
    fn an_unanswered_question_is_a_step() {
        let split = split(&json!([{"role": "user", "content": "Hello?"}]));
        assert_eq!(split.steps[0].input.message.as_deref(), Some("Hello?"));
        assert_eq!(split.steps[0].output.response, "");
        assert!(split.unanswered.is_empty());
    }

    #[test]
    fn rejects_invalid_messages() {
        let mut conversation = Conversation::default();
        assert_eq!(
            conversation.extend(&[json!({"role": "user", "content": ""}), json!(3)]).expect_err("a number"),
            "messages[1]: a message must be an object"
        );
        assert_eq!(
            conversation.extend(&[json!({"text": 3})]).expect_err("no role"),
            "messages[0]: a message has no 'role'"
        );
    }
}
