//! Google ADK: sessions, and the conversations of eval sets. Keys are in snake case or camel case.

use karat_core::document::{StepUsage, TraceContent};
use serde_json::{Map, Value, json};

use crate::format::TraceFormat;
use crate::piece::ImportedTrace;
use crate::time::parse_any_unit;
use crate::trace_ids::{entry_id, validate_id};
use karat_chat::Conversation;
use karat_chat::lenient::{first, first_count, first_text, is_blank};

const EVAL_CASES: [&str; 2] = ["eval_cases", "evalCases"];
const EVAL_ID: [&str; 2] = ["eval_id", "evalId"];
const APP_NAME: [&str; 2] = ["app_name", "appName"];
const USER_ID: [&str; 2] = ["user_id", "userId"];
const CREATED: [&str; 2] = ["creation_timestamp", "creationTimestamp"];

/// Whether an object is a session, an eval set or an eval case.
pub(crate) fn is_item(object: &Map<String, Value>) -> bool {
    let has = |names: &[&str]| first(object, names).is_some();
    let is_list = |names: &[&str]| first(object, names).is_some_and(Value::is_array);
    is_list(&EVAL_CASES)
        || has(&EVAL_ID) && has(&["conversation", "conversation_scenario", "conversationScenario"])
        || is_list(&["events"]) && has(&APP_NAME) && has(&USER_ID)
}

/// Reads a session, all cases of an eval set, or a single case.
pub(crate) fn read(value: &Value) -> Vec<Result<ImportedTrace, String>> {
    let Some(item) = value.as_object() else { return vec![Err("expected an object".to_owned())] };
    match first(item, &EVAL_CASES) {
        Some(Value::Array(cases)) if cases.is_empty() => vec![Err("the eval set has no eval cases".to_owned())],
        Some(Value::Array(cases)) => cases.iter().map(|case| read_case(case, item)).collect(),
        _ if item.contains_key("events") => vec![read_session(value, item)],
        _ => vec![read_case(value, &Map::new())],
    }
}

fn read_session(value: &Value, session: &Map<String, Value>) -> Result<ImportedTrace, String> {
    let trace_id = validate_id(first_text(session, &["id"]).ok_or("the session has no 'id'")?)?;
    let events = session.get("events").and_then(Value::as_array).ok_or("'events' is not a list")?;
    let mut conversation = AdkConversation::default();
    for (index, event) in events.iter().filter_map(Value::as_object).enumerate() {
        conversation.push_event(event).map_err(|reason| format!("events[{index}]: {reason}"))?;
    }
    let times = || events.iter().filter_map(|event| event.get("timestamp").and_then(parse_any_unit));
    let mut document = conversation.into_document()?;
    document.name = first_text(session, &APP_NAME).map(str::to_owned);
    document.session_id = Some(trace_id.clone());
    document.user_id = first_text(session, &USER_ID).map(str::to_owned);
    document.started_at = times().min();
    document.ended_at = times().max();
    if let Some(state) = session.get("state").filter(|state| !is_blank(state)) {
        document.metadata.insert("state".to_owned(), state.clone());
    }
    Ok(imported(trace_id, document, value))
}

/// Reads the conversation of an eval case. `set` is its eval set.
fn read_case(value: &Value, set: &Map<String, Value>) -> Result<ImportedTrace, String> {
    let case = value.as_object().ok_or("an eval case must be an object")?;
    let eval_id = first_text(case, &EVAL_ID).ok_or("the eval case has no 'eval_id'")?;
    let invocations =
        case.get("conversation").and_then(Value::as_array).ok_or("the eval case has no 'conversation'")?;
    let mut conversation = AdkConversation::default();
    for (index, invocation) in invocations.iter().filter_map(Value::as_object).enumerate() {
        conversation.push_invocation(invocation).map_err(|reason| format!("conversation[{index}]: {reason}"))?;
    }
    let times =
        || invocations.iter().filter_map(|invocation| parse_any_unit(first(invocation.as_object()?, &CREATED)?));
    let mut document = conversation.into_document()?;
    document.name = Some(eval_id.to_owned());
    document.started_at = times().min();
    if let Some(set_id) = first(set, &["eval_set_id", "evalSetId"]) {
        document.metadata.insert("eval_set_id".to_owned(), set_id.clone());
    }
    if let Some(Value::Object(session)) = first(case, &["session_input", "sessionInput"]) {
        document.user_id = first_text(session, &USER_ID).map(str::to_owned);
        if let Some(name) = first(session, &APP_NAME) {
            document.metadata.insert("app_name".to_owned(), name.clone());
        }
    }
    Ok(imported(entry_id(eval_id, value)?, document, value))
}

fn imported(trace_id: String, mut document: TraceContent, value: &Value) -> ImportedTrace {
    document.trace_id.clone_from(&trace_id);
    ImportedTrace {
        format: TraceFormat::Adk,
        trace_id,
        document: document.to_text(),
        raw: value.to_string().into_bytes(),
        feedback: Vec::new(),
    }
}

#[derive(Default)]
struct AdkConversation {
    messages: Conversation,
    usage: StepUsage,
    model: Option<String>,
    error: Option<String>,
}

impl AdkConversation {
    fn push_event(&mut self, event: &Map<String, Value>) -> Result<(), String> {
        // The last event of a streamed answer repeats the partial ones.
        if event.get("partial").and_then(Value::as_bool) == Some(true) {
            return Ok(());
        }
        let is_user = first_text(event, &["author"]) == Some("user");
        self.push_content(event.get("content"), if is_user { "user" } else { "assistant" })?;
        if let Some(Value::Object(usage)) = first(event, &["usage_metadata", "usageMetadata"]) {
            self.usage.add(&StepUsage {
                input_tokens: first_count(usage, &["prompt_token_count", "promptTokenCount"]),
                output_tokens: first_count(usage, &["candidates_token_count", "candidatesTokenCount"]),
                cached_input_tokens: first_count(usage, &["cached_content_token_count", "cachedContentTokenCount"]),
                cost_usd: None,
            });
        }
        if let Some(model) = first_text(event, &["model_version", "modelVersion"]) {
            self.model = Some(model.to_owned());
        }
        if let Some(error) = first_text(event, &["error_message", "errorMessage", "error_code", "errorCode"]) {
            self.error = Some(error.to_owned());
        }
        Ok(())
    }

    fn push_invocation(&mut self, invocation: &Map<String, Value>) -> Result<(), String> {
        self.push_content(first(invocation, &["user_content", "userContent"]), "user")?;
        if let Some(Value::Object(data)) = first(invocation, &["intermediate_data", "intermediateData"]) {
            let list = |names: &[&str]| first(data, names).and_then(Value::as_array).into_iter().flatten();
            for event in list(&["invocation_events", "invocationEvents"]).filter_map(Value::as_object) {
                self.push_event(event)?;
            }
            for (names, part) in [
                (["tool_uses", "toolUses"], "function_call"),
                (["tool_responses", "toolResponses"], "function_response"),
            ] {
                let parts: Vec<Value> = list(&names).map(|item| json!({part: item})).collect();
                self.push_content(Some(&json!({"parts": parts})), "assistant")?;
            }
            // Each is a pair of the agent's name and the parts of its response.
            for response in list(&["intermediate_responses", "intermediateResponses"]) {
                self.push_content(response.get(1).map(|parts| json!({"parts": parts})).as_ref(), "assistant")?;
            }
        }
        self.push_content(first(invocation, &["final_response", "finalResponse"]), "assistant")
    }

    fn push_content(&mut self, content: Option<&Value>, role: &str) -> Result<(), String> {
        let parts = content.and_then(|content| content.get("parts")?.as_array()).into_iter().flatten();
        let parts: Vec<Value> = parts.map(without_nulls).filter(|part| !is_blank(part)).collect();
        if parts.is_empty() {
            return Ok(());
        }
        self.messages.push(&json!({"role": role, "parts": parts}), role)
    }

    fn into_document(mut self) -> Result<TraceContent, String> {
        self.messages.mark_failures(is_error);
        let split = self.messages.into_steps();
        if split.steps.is_empty() {
            return Err("the conversation is empty".to_owned());
        }
        let mut steps = split.steps;
        for step in &mut steps {
            step.model.clone_from(&self.model);
        }
        let mut metadata = Map::new();
        if !split.unanswered.is_empty() {
            metadata.insert("unanswered".to_owned(), serde_json::to_value(&split.unanswered).unwrap_or_default());
        }
        Ok(TraceContent {
            steps,
            model: self.model,
            usage: (!self.usage.is_empty()).then_some(self.usage),
            error: self.error,
            metadata,
            ..TraceContent::default()
        })
    }
}

/// Removes the absent members of a part, which eval sets write as null.
fn without_nulls(part: &Value) -> Value {
    match part {
        Value::Object(map) => {
            let present = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(present.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        other => other.clone(),
    }
}

/// Whether a tool failed: the whole result is `{"error": …}`.
fn is_error(result: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(result).is_ok_and(|map| map.len() == 1 && map.contains_key("error"))
}
