//! τ²-bench results: conversations of an agent with a simulated user, their rewards, and the tasks.

use std::collections::HashMap;

use karat_core::document::TraceContent;
use serde_json::{Map, Value, json};

use crate::format::TraceFormat;
use crate::messages::usage;
use crate::piece::ImportedTrace;
use crate::tau_bench::{id_part, reward_feedback};
use crate::time::parse_any_unit;
use crate::trace_ids::entry_id;
use karat_chat::Conversation;
use karat_chat::lenient::{first_number, first_text, text_of};

/// Reads all simulations of a result file, or a single simulation.
pub(crate) fn read(value: &Value) -> Vec<Result<ImportedTrace, String>> {
    let Some(simulations) = value.get("simulations").and_then(Value::as_array) else {
        return vec![read_simulation(value, None, None)];
    };
    let tasks = value.get("tasks").and_then(Value::as_array).into_iter().flatten();
    let tasks: HashMap<String, &Value> = tasks.filter_map(|task| Some((task.get("id").map(text_of)?, task))).collect();
    let model = value.get("info").and_then(|info| info.get("agent_info")?.get("llm")?.as_str());
    let task_of = |simulation: &Value| tasks.get(&text_of(simulation.get("task_id")?)).copied();
    simulations.iter().map(|simulation| read_simulation(simulation, task_of(simulation), model)).collect()
}

/// Reads a simulation. The reward becomes feedback and is not part of the document, so eval functions cannot see it.
fn read_simulation(value: &Value, task: Option<&Value>, model: Option<&str>) -> Result<ImportedTrace, String> {
    let simulation = value.as_object().ok_or("a simulation must be an object")?;
    let messages = simulation.get("messages").and_then(Value::as_array).ok_or("missing list 'messages'")?;
    let mut conversation = Conversation::default();
    let mut user_calls: Vec<Value> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if let Some(message) = without_user_tools(message, &mut user_calls) {
            conversation.push(&message, "user").map_err(|reason| format!("messages[{index}]: {reason}"))?;
        }
    }
    let split = conversation.into_steps();

    let mut metadata = Map::new();
    let mut set = |name: &str, value: Option<&Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            metadata.insert(name.to_owned(), value.clone());
        }
    };
    for name in ["task_id", "trial", "seed", "termination_reason"] {
        set(name, simulation.get(name));
    }
    let criteria = task.and_then(|task| task.get("evaluation_criteria"));
    set("expected_actions", criteria.and_then(|criteria| criteria.get("actions")));
    let reward_info = simulation.get("reward_info");
    set("action_checks", reward_info.and_then(|info| info.get("action_checks")));
    set("user_scenario", task.and_then(|task| task.get("user_scenario")));
    set("user_tool_calls", (!user_calls.is_empty()).then_some(Value::Array(user_calls)).as_ref());
    if !split.unanswered.is_empty() {
        set("unanswered", serde_json::to_value(&split.unanswered).ok().as_ref());
    }

    let part = |name: &str| simulation.get(name).map_or_else(|| "x".to_owned(), text_of);
    let label = format!("tau2-bench-{}-{}", id_part(&part("task_id")), id_part(&part("trial")));
    let trace_id = entry_id(first_text(simulation, &["id"]).unwrap_or(&label), value)?;
    let mut steps = split.steps;
    for step in &mut steps {
        step.model = model.map(str::to_owned);
    }
    let document = TraceContent {
        trace_id: trace_id.clone(),
        steps,
        name: Some(format!("task {}, trial {}", part("task_id"), part("trial"))),
        started_at: simulation.get("start_time").and_then(parse_any_unit),
        ended_at: simulation.get("end_time").and_then(parse_any_unit),
        model: model.map(str::to_owned),
        usage: total_usage(simulation, messages),
        metadata,
        ..TraceContent::default()
    };
    let reward = reward_info.and_then(|info| info.get("reward")?.as_f64());
    Ok(ImportedTrace {
        format: TraceFormat::Tau2Bench,
        trace_id,
        document: document.to_text(),
        raw: value.to_string().into_bytes(),
        feedback: reward.map(|reward| reward_feedback(TraceFormat::Tau2Bench, reward)).into_iter().collect(),
    })
}

/// Returns a message as the agent sees it. The simulated user has tools of its own: its calls are collected
/// separately, with their results, and are not the agent's.
fn without_user_tools(message: &Value, user_calls: &mut Vec<Value>) -> Option<Value> {
    let is_users = |value: &Value| value.get("requestor").and_then(Value::as_str) == Some("user");
    let Some(map) = message.as_object() else { return Some(message.clone()) };
    match first_text(map, &["role"]) {
        Some("tool") if is_users(message) => {
            let known = user_calls.iter_mut().rev().find(|call| call.get("id") == map.get("id"));
            if let Some(Value::Object(call)) = known {
                let outcome = if map.get("error") == Some(&Value::Bool(true)) { "error" } else { "result" };
                call.insert(outcome.to_owned(), map.get("content").cloned().unwrap_or_default());
            }
            None
        }
        Some("user") => {
            let mut map = map.clone();
            if let Some(Value::Array(calls)) = map.shift_remove("tool_calls") {
                let call =
                    |call: &Value| json!({"id": call["id"], "name": call["name"], "arguments": call["arguments"]});
                user_calls.extend(calls.iter().map(call));
            }
            map.get("content").is_some_and(|content| !content.is_null()).then_some(Value::Object(map))
        }
        _ => Some(message.clone()),
    }
}

/// Returns the usage of the agent, without that of the simulated user.
fn total_usage(simulation: &Map<String, Value>, messages: &[Value]) -> Option<karat_core::document::StepUsage> {
    let mut total = karat_core::document::StepUsage::default();
    for message in messages.iter().filter(|message| message.get("role").is_some_and(|role| role == "assistant")) {
        if let Some(usage) = message.get("usage").and_then(Value::as_object).and_then(usage) {
            total.add(&usage);
        }
    }
    total.cost_usd = first_number(simulation, &["agent_cost"]);
    (!total.is_empty()).then_some(total)
}
