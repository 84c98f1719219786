//! SWE-agent trajectories (`.traj`): thoughts, actions and observations, and the messages of the model.

use karat_core::document::{StepUsage, TraceContent};
use serde_json::{Map, Value, json};

use crate::format::TraceFormat;
use crate::piece::ImportedTrace;
use crate::trace_ids::{content_id, entry_id};
use karat_chat::Conversation;
use karat_chat::lenient::{first, first_count, first_number, first_text, is_blank, unpack};

/// The tool of an action that is a command, which models write without function calls.
const COMMAND_TOOL: &str = "bash";

/// Whether an object is a trajectory.
pub(crate) fn is_trajectory(object: &Map<String, Value>) -> bool {
    let is_list = |name: &str| object.get(name).is_some_and(Value::is_array);
    is_list("trajectory") && (is_list("history") || object.get("info").is_some_and(Value::is_object))
}

/// Reads one trajectory. Each entry is a step, with its action as a tool call and the observation as the result.
pub(crate) fn read(value: &Value, text: &[u8]) -> Result<ImportedTrace, String> {
    let empty = Map::new();
    let trajectory = value.get("trajectory").and_then(Value::as_array).ok_or("missing list 'trajectory'")?;
    let history = value.get("history").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let history = history.iter().filter_map(Value::as_object).filter(|message| !is_demonstration(message));
    let history: Vec<&Map<String, Value>> = history.collect();
    let mut conversation = Conversation::default();
    for message in prompt(&history, trajectory) {
        conversation.push(&message, "user").map_err(|reason| format!("history: {reason}"))?;
    }
    let mut answers = history.iter().filter(|message| first_text(message, &["role"]) == Some("assistant"));
    for (index, entry) in trajectory.iter().enumerate() {
        let entry = entry.as_object().ok_or_else(|| format!("trajectory[{index}] is not an object"))?;
        // An answer that is repeated after an error is only in one of the two lists.
        let action = entry.get("action");
        let answer = answers.clone().position(|message| message.get("action") == action);
        let answer = answer.and_then(|position| answers.nth(position));
        for message in messages(index, entry, answer.copied()) {
            conversation.push(&message, "assistant").map_err(|reason| format!("trajectory[{index}]: {reason}"))?;
        }
    }
    let split = conversation.into_steps();
    if split.steps.is_empty() {
        return Err("the trajectory is empty".to_owned());
    }

    let info = value.get("info").and_then(Value::as_object).unwrap_or(&empty);
    let config = value.get("replay_config").map(unpack).unwrap_or_default();
    let instance = config.pointer("/problem_statement/id").and_then(Value::as_str).filter(|id| !id.is_empty());
    let model = config.pointer("/agent/model/name").and_then(Value::as_str);
    let trace_id = match instance {
        Some(instance) => entry_id(instance, value)?,
        None => content_id(TraceFormat::SweAgent, value),
    };
    let mut metadata = Map::new();
    for name in ["exit_status", "submission", "swe_agent_version"] {
        if let Some(value) = info.get(name).filter(|value| !is_blank(value)) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(environment) = value.get("environment").filter(|environment| !is_blank(environment)) {
        metadata.insert("environment".to_owned(), environment.clone());
    }
    let mut steps = split.steps;
    for step in &mut steps {
        step.model = model.map(str::to_owned);
    }
    let document = TraceContent {
        trace_id: trace_id.clone(),
        steps,
        name: instance.map(str::to_owned),
        model: model.map(str::to_owned),
        usage: info.get("model_stats").and_then(Value::as_object).and_then(usage),
        metadata,
        ..TraceContent::default()
    };
    Ok(ImportedTrace {
        format: TraceFormat::SweAgent,
        trace_id,
        document: document.to_text(),
        raw: text.to_vec(),
        feedback: Vec::new(),
    })
}

/// Whether a message is part of a demonstration, which precedes the task.
fn is_demonstration(message: &Map<String, Value>) -> bool {
    message.get("is_demo").and_then(Value::as_bool) == Some(true)
}

/// Returns the messages before the first answer.
fn prompt(history: &[&Map<String, Value>], trajectory: &[Value]) -> Vec<Value> {
    let query = trajectory.first().and_then(|entry| entry.get("query")?.as_array()).map(Vec::as_slice);
    let query: Vec<&Map<String, Value>> = query.unwrap_or_default().iter().filter_map(Value::as_object).collect();
    let messages = if history.is_empty() { query.as_slice() } else { history };
    let is_prompt = |message: &&&Map<String, Value>| first_text(message, &["role"]) != Some("assistant");
    let copy = |message: &&Map<String, Value>| json!({"role": message.get("role"), "content": message.get("content")});
    messages.iter().take_while(is_prompt).map(copy).collect()
}

/// Returns the answer and the observation of an entry. `answer` is the message of the history with the same action.
fn messages(index: usize, entry: &Map<String, Value>, answer: Option<&Map<String, Value>>) -> Vec<Value> {
    let text = first_text(entry, &["thought", "response"]).unwrap_or_default();
    let action = first_text(entry, &["action"]).map(str::trim_end).filter(|action| !action.is_empty());
    let calls = answer.and_then(|answer| answer.get("tool_calls")?.as_array()).filter(|calls| !calls.is_empty());
    let calls = match (calls, action) {
        (Some(calls), _) => calls.clone(),
        (None, Some(action)) => {
            let function = json!({"name": COMMAND_TOOL, "arguments": {"command": action}});
            vec![json!({"id": format!("action-{}", index + 1), "function": function})]
        }
        (None, None) => Vec::new(),
    };
    let id = calls.first().and_then(|call| call.get("id")).cloned();
    let mut messages = vec![json!({"role": "assistant", "content": text, "tool_calls": calls})];
    if let (Some(id), Some(observation)) = (id, first(entry, &["observation"])) {
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": observation}));
    }
    messages
}

fn usage(stats: &Map<String, Value>) -> Option<StepUsage> {
    let usage = StepUsage {
        input_tokens: first_count(stats, &["tokens_sent"]),
        output_tokens: first_count(stats, &["tokens_received"]),
        cached_input_tokens: None,
        cost_usd: first_number(stats, &["instance_cost"]),
    };
    (!usage.is_empty()).then_some(usage)
}
