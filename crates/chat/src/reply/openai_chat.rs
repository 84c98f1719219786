//! Chat completions of `OpenAI` and compatible servers: whole replies, and streams of chunks.

use std::collections::HashMap;

use karat_core::trace::Usage;
use serde_json::{Map, Value};

use super::turn::{CallIndex, Outcome, TurnBuilder};
use super::{error_text, message_list, usage};
use crate::lenient::first_text;

/// Reads a completion that is not streamed.
pub(super) fn read_completion(completion: &Map<String, Value>, turn: &mut TurnBuilder) {
    turn.is_complete = true;
    turn.set_model(first_text(completion, &["model"]));
    let choice = completion.get("choices").and_then(|choices| choices.get(0));
    let message = choice.and_then(|choice| choice.get("message"));
    if let Some(message) = message {
        message_list::push(message, turn);
        turn.calls_unreported = message.get("tool_calls").is_none();
    } else if let Some(text) = choice.and_then(|choice| choice.get("text")?.as_str()) {
        turn.calls_unreported = true;
        turn.add_text(text);
    }
    turn.set_stop_reason(choice.and_then(|choice| choice.get("finish_reason")?.as_str()));
    // Some servers repeat the usage in the message.
    if let Some(usage) = usage::read(completion.get("usage")) {
        turn.usage = Some(usage);
    }
}

/// Reads the chunks of one completion, or of several if the server runs the tools itself.
pub(super) fn read_stream(chunks: &[Value], turn: &mut TurnBuilder) {
    let mut stream = Stream { calls_unreported: true, ..Stream::default() };
    for (index, chunk) in chunks.iter().enumerate() {
        turn.at_event(index);
        match chunk {
            Value::Object(chunk) => stream.push(chunk, turn),
            // The end of a stream, if the decoder leaves it in.
            Value::String(text) if text == "[DONE]" => turn.is_complete = true,
            _ => {}
        }
    }
    stream.end_completion(turn);
    turn.calls_unreported = stream.calls_unreported;
}

#[derive(Default)]
struct Stream {
    completion_id: Option<String>,
    calls: HashMap<u64, CallIndex>,
    last_index: Option<u64>,
    /// Pieces of the result that is streamed now, with the id of its call.
    result: Option<(Option<String>, String)>,
    /// The latest usage of the completion: some servers repeat it with every chunk.
    usage: Option<Usage>,
    is_finished: bool,
    calls_unreported: bool,
}

impl Stream {
    fn push(&mut self, chunk: &Map<String, Value>, turn: &mut TurnBuilder) {
        turn.set_model(first_text(chunk, &["model"]));
        let id = first_text(chunk, &["id"]);
        if id.is_some() && self.completion_id.as_deref() != id {
            if self.completion_id.is_some() && self.is_finished {
                self.end_completion(turn);
                turn.start_step();
            }
            self.completion_id = id.map(str::to_owned);
        }
        if let Some(usage) = usage::read(chunk.get("usage")) {
            self.usage = Some(usage);
        }
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            turn.fail(error_text(error).unwrap_or_else(|| error.to_string()));
        }
        let choices = chunk.get("choices").and_then(Value::as_array).into_iter().flatten();
        // The first of several choices is the answer.
        for choice in choices.filter(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0) {
            let delta = choice.get("delta").or_else(|| choice.get("message")).and_then(Value::as_object);
            if let Some(delta) = delta {
                self.push_delta(delta, turn);
            }
            if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
                turn.set_stop_reason(Some(reason));
                self.is_finished = true;
                turn.is_complete = true;
            }
        }
    }

    fn push_delta(&mut self, delta: &Map<String, Value>, turn: &mut TurnBuilder) {
        if delta.get("role").and_then(Value::as_str) == Some("tool") {
            self.push_result(delta, turn);
            return;
        }
        if delta.get("role").is_some_and(Value::is_string) {
            self.end_result(turn);
        }
        if let Some(text) = first_text(delta, &["reasoning_content", "reasoning"]) {
            turn.add_reasoning(text);
        }
        if let Some(text) = first_text(delta, &["content", "refusal"]) {
            match &mut self.result {
                Some((_, result)) => result.push_str(text),
                None => turn.add_text(text),
            }
        }
        self.calls_unreported &= !delta.contains_key("tool_calls");
        for call in delta.get("tool_calls").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
        {
            self.push_call(call, turn);
        }
        if let Some(function) = delta.get("function_call").and_then(Value::as_object) {
            self.push_function(None, 0, function, turn);
        }
    }

    fn push_call(&mut self, call: &Map<String, Value>, turn: &mut TurnBuilder) {
        let function = call.get("function").or_else(|| call.get("custom")).and_then(Value::as_object).unwrap_or(call);
        let id = first_text(call, &["id"]);
        // Without an index, an id starts a call and anything else continues it.
        let next = u64::try_from(self.calls.len()).unwrap_or(u64::MAX);
        let index = match (call.get("index").and_then(Value::as_u64), id, self.last_index) {
            (Some(index), ..) => index,
            (None, None, Some(last)) => last,
            _ => next,
        };
        self.push_function(id, index, function, turn);
    }

    fn push_function(&mut self, id: Option<&str>, index: u64, function: &Map<String, Value>, turn: &mut TurnBuilder) {
        let name = first_text(function, &["name"]).unwrap_or_default();
        let known = self.calls.get(&index).copied().filter(|call| {
            // Some servers give every call of a message the index 0.
            let known_id = turn.call_id(*call);
            id.is_none() || known_id.is_none() || known_id == id
        });
        let call = match known {
            Some(call) => {
                turn.complete_call(call, id, name);
                call
            }
            None => turn.new_call(id, name),
        };
        self.calls.insert(index, call);
        self.last_index = Some(index);
        match function.get("arguments").or_else(|| function.get("input")) {
            Some(Value::String(piece)) => turn.add_arguments(call, piece),
            Some(whole @ Value::Object(_)) => turn.set_arguments(call, whole),
            _ => {}
        }
    }

    fn push_result(&mut self, delta: &Map<String, Value>, turn: &mut TurnBuilder) {
        self.end_result(turn);
        let id = first_text(delta, &["tool_call_id"]).map(str::to_owned);
        let text = delta.get("content").map(crate::messages::collect_text).unwrap_or_default();
        self.result = Some((id, text));
    }

    fn end_result(&mut self, turn: &mut TurnBuilder) {
        if let Some((id, text)) = self.result.take() {
            turn.finish_call(id.as_deref(), None, Outcome::unknown(&Value::String(text)));
        }
    }

    fn end_completion(&mut self, turn: &mut TurnBuilder) {
        self.end_result(turn);
        if let Some(usage) = self.usage.take() {
            turn.add_usage(&usage);
        }
        self.calls.clear();
        self.last_index = None;
        self.is_finished = false;
    }
}
