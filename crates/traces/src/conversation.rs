//! The steps that a conversation shows.

use karat_core::document::{Message, Step, StepInput, StepOutput};
use serde_json::Value;

use crate::chat;
use crate::json::parsed;

/// A conversation, message by message.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    turns: Vec<Turn>,
}

/// A message, and what only a model's message has.
#[derive(Debug, Default)]
struct Turn {
    message: Message,
    reasoning: Option<String>,
    stop_reason: Option<String>,
}

/// What is made of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// One for each message of the model.
    pub(crate) steps: Vec<Step>,
    /// What was said after the model's last message.
    pub(crate) unanswered: Vec<Message>,
}

impl Conversation {
    /// Adds what the system is told.
    pub(crate) fn push_system(&mut self, value: &Value) {
        let text = chat::text_within(value);
        if !text.is_empty() {
            self.turns.push(Turn { message: chat::plain("system", &text), ..Turn::default() });
        }
    }

    /// Adds a message of a chat API; `role` speaks where it does not say.
    pub(crate) fn push(&mut self, value: &Value, role: &str) -> Result<(), String> {
        if !value.is_object() {
            return Err("a message is an object".to_owned());
        }
        let Some(said) = chat::read_literal(value, role) else {
            // Somebody who says nothing is no mistake.
            let speaks = value.get("role").is_some_and(Value::is_string) || value.get("type").is_some();
            return if speaks { Ok(()) } else { Err("a message has no 'role'".to_owned()) };
        };
        self.push_said(said);
        Ok(())
    }

    /// Adds the items of `OpenAI`'s Responses, where each call is an item beside the message that it belongs to.
    pub(crate) fn push_items(&mut self, items: &[Value], role: &str) {
        if let Some(said) = chat::read_literal(&Value::Array(items.to_vec()), role) {
            self.push_said(said);
        }
    }

    fn push_said(&mut self, said: chat::Said) {
        let (mut reasoning, mut stop_reason) = (said.reasoning, said.stop_reason);
        for message in said.messages {
            let is_model = message.role == "assistant";
            self.turns.push(Turn {
                message,
                reasoning: reasoning.take_if(|_| is_model),
                stop_reason: stop_reason.take_if(|_| is_model),
            });
        }
        if let Some(reasoning) = reasoning {
            // It stands for itself in OpenAI's Responses API: the message that it leads to comes next.
            let message = chat::plain("assistant", "");
            self.turns.push(Turn { message, reasoning: Some(reasoning), stop_reason });
        }
    }

    /// Adds messages.
    pub(crate) fn extend(&mut self, values: &[Value]) -> Result<(), String> {
        for (index, value) in values.iter().enumerate() {
            self.push(value, "user").map_err(|why| format!("messages[{index}]: {why}"))?;
        }
        Ok(())
    }

    /// Marks results of tools that say that they failed.
    pub(crate) fn mark_failures(&mut self, failed: impl Fn(&str) -> bool) {
        for turn in self.turns.iter_mut().filter(|turn| turn.message.role == "tool") {
            turn.message.is_error |= failed(&turn.message.content);
        }
    }

    /// Makes the steps: each of the model's messages is one, with the results of its calls wherever they come later.
    pub(crate) fn into_steps(self) -> Taken {
        let mut steps: Vec<Step> = Vec::new();
        let mut new = Vec::new();
        let mut thought: Option<String> = None;
        let mut turns = self.turns.into_iter().peekable();
        while let Some(mut turn) = turns.next() {
            if turn.message.role != "assistant" {
                if turn.message.role == "tool" {
                    answer(&mut steps, &turn.message);
                }
                new.push(turn.message);
                continue;
            }
            let silent = turn.message.content.is_empty() && turn.message.tool_calls.is_empty();
            let goes_on = turns.peek().is_some_and(|next| next.message.role == "assistant");
            if silent && goes_on && turn.message.parts.is_empty() {
                join(&mut thought, turn.reasoning);
                continue;
            }
            join(&mut thought, turn.reasoning.take());
            steps.push(step(std::mem::take(&mut new), Turn { reasoning: thought.take(), ..turn }));
        }
        if steps.is_empty() && !new.is_empty() {
            // Nobody answered: what was asked is still to be seen.
            steps.push(step(std::mem::take(&mut new), Turn::default()));
        }
        Taken { steps, unanswered: new }
    }
}

fn join(into: &mut Option<String>, more: Option<String>) {
    match (into.as_mut(), more) {
        (Some(into), Some(more)) => {
            into.push('\n');
            into.push_str(&more);
        }
        (None, more) => *into = more,
        (Some(_), None) => {}
    }
}

fn step(new: Vec<Message>, said: Turn) -> Step {
    let message = new.iter().rev().find(|message| message.role == "user").map(|message| message.content.clone());
    Step {
        input: StepInput { message, messages: new, value: None },
        output: StepOutput { response: said.message.content, reasoning: said.reasoning, value: None },
        tool_calls: said.message.tool_calls,
        stop_reason: said.stop_reason,
        ..Step::default()
    }
}

/// Gives a result to its call: the newest one of its id. Where the source has no ids, to the oldest call of the last
/// step that has no result yet, and has the result's name if there is one.
fn answer(steps: &mut [Step], result: &Message) {
    let call = match &result.tool_call_id {
        Some(id) => {
            let calls = steps.iter_mut().rev().flat_map(|step| step.tool_calls.iter_mut());
            calls.into_iter().find(|call| call.id.as_ref() == Some(id))
        }
        None => steps.last_mut().and_then(|step| {
            step.tool_calls.iter_mut().find(|call| {
                let open = call.result.is_null() && call.error.is_none();
                open && result.name.as_ref().is_none_or(|name| *name == call.name)
            })
        }),
    };
    let Some(call) = call else { return };
    if result.is_error {
        call.error = Some(if result.content.is_empty() { "error".to_owned() } else { result.content.clone() });
    }
    call.result = parsed(&result.content).unwrap_or_else(|| Value::String(result.content.clone()));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn taken(messages: &Value) -> Taken {
        let mut conversation = Conversation::default();
        conversation.extend(messages.as_array().expect("a list")).expect("messages");
        conversation.into_steps()
    }

    #[test]
    fn a_step_has_only_what_is_new() {
        let taken = taken(&json!([
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
        let roles = |step: &Step| step.input.messages.iter().map(|one| one.role.clone()).collect::<Vec<_>>();
        assert_eq!(taken.steps.len(), 2);
        assert_eq!(roles(&taken.steps[0]), ["system", "user"]);
        assert_eq!(taken.steps[0].input.message.as_deref(), Some("Rain?"));
        let calls = &taken.steps[0].tool_calls;
        assert_eq!((&calls[0].arguments, &calls[0].result), (&json!({"day": 1}), &json!({"mm": 3})));
        assert_eq!((&calls[1].arguments, &calls[1].result), (&json!("not JSON"), &json!("calm")));
        assert_eq!(roles(&taken.steps[1]), ["tool", "tool"]);
        assert_eq!((taken.steps[1].input.message.as_deref(), taken.steps[1].output.response.as_str()), (None, "Some"));
        assert_eq!(taken.unanswered[0].content, "Thanks");
    }

    #[test]
    fn anthropics_blocks_are_the_same() {
        let taken = taken(&json!([
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
        let first = &taken.steps[0];
        assert_eq!((first.output.response.as_str(), first.output.reasoning.as_deref()), ("I look", Some("Hm")));
        let call = &first.tool_calls[0];
        assert_eq!((&call.arguments, &call.result), (&json!({"day": 1}), &json!("no net")));
        assert_eq!(call.error.as_deref(), Some("no net"));
        assert_eq!(taken.steps[1].input.message.as_deref(), Some("Well?"));
        assert!(taken.steps[1].input.messages.iter().any(|message| message.role == "tool" && message.is_error));
    }

    #[test]
    fn the_same_id_twice_is_the_newer_calls() {
        let call =
            json!({"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "a", "arguments": "{}"}}]});
        let result = |text: &str| json!({"role": "tool", "tool_call_id": "1", "content": text});
        let taken = taken(&json!([call, result("one"), call, result("two")]));
        let results: Vec<_> = taken.steps.iter().map(|step| step.tool_calls[0].result.clone()).collect();
        assert_eq!(results, [json!("one"), json!("two")]);
    }

    #[test]
    fn a_question_without_an_answer_is_a_step() {
        let taken = taken(&json!([{"role": "user", "content": "Hello?"}]));
        assert_eq!(taken.steps[0].input.message.as_deref(), Some("Hello?"));
        assert_eq!(taken.steps[0].output.response, "");
        assert!(taken.unanswered.is_empty());
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let mut conversation = Conversation::default();
        assert_eq!(
            conversation.extend(&[json!({"role": "user", "content": ""}), json!(3)]).expect_err("a number"),
            "messages[1]: a message is an object"
        );
        assert_eq!(
            conversation.extend(&[json!({"text": 3})]).expect_err("no role"),
            "messages[0]: a message has no 'role'"
        );
    }
}
