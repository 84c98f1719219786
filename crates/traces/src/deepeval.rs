//! `DeepEval`: test cases, test runs and traces. Keys are in snake case or camel case.

use karat_core::document::{Message, Step, StepCall, StepUsage, TraceContent};
use karat_core::rating::Rating;
use serde_json::{Map, Value};

use crate::assemble::assemble;
use crate::format::TraceFormat;
use crate::parts::{Role, Span, TraceParts};
use crate::piece::{ImportedTrace, SourceFeedback};
use crate::time::parse_any_unit;
use crate::trace_ids::{entry_id, validate_id};
use karat_chat::lenient::{first, first_count, first_number, first_text, is_blank, text_of, truncate, unpack_owned};
use karat_chat::{parse_arguments, parse_result, plain_message};

const ACTUAL_OUTPUT: [&str; 2] = ["actual_output", "actualOutput"];
const TOOLS_CALLED: [&str; 2] = ["tools_called", "toolsCalled"];
const TEST_RUN: [&str; 2] = ["test_run_data", "testRunData"];
const CASE_LISTS: [&str; 4] = ["test_cases", "testCases", "conversational_test_cases", "conversationalTestCases"];

/// Keys of a test case, a test run or a trace.
pub(crate) const KEYS: &[&str] = &[
    "test_cases",
    "testCases",
    "conversational_test_cases",
    "conversationalTestCases",
    "test_run_data",
    "testRunData",
    "input",
    "turns",
    "uuid",
];

/// The lists of spans in a trace, with the role of their spans.
const SPAN_LISTS: [([&str; 2], Role); 5] = [
    (["llm_spans", "llmSpans"], Role::Model),
    (["tool_spans", "toolSpans"], Role::Tool),
    (["agent_spans", "agentSpans"], Role::Agent),
    (["retriever_spans", "retrieverSpans"], Role::Other),
    (["base_spans", "baseSpans"], Role::Other),
];

/// Keys of a test case that are kept as metadata, under the first name.
const METADATA: [[&str; 2]; 9] = [
    ["expected_output", "expectedOutput"],
    ["expected_tools", "expectedTools"],
    ["retrieval_context", "retrievalContext"],
    ["context", "context"],
    ["scenario", "scenario"],
    ["expected_outcome", "expectedOutcome"],
    ["user_description", "userDescription"],
    ["comments", "comments"],
    ["additional_metadata", "additionalMetadata"],
];

/// Whether an object is a test case, a test run or a trace.
pub(crate) fn is_item(object: &Map<String, Value>) -> bool {
    let is_list = |name: &&str| object.get(*name).is_some_and(Value::is_array);
    let is_turn = |turn: &Value| turn.get("role").is_some() && turn.get("content").is_some();
    let turns = object.get("turns").and_then(Value::as_array);
    CASE_LISTS.iter().any(is_list)
        || first(object, &TEST_RUN).is_some_and(Value::is_object)
        || object.contains_key("input") && ACTUAL_OUTPUT.iter().any(|name| object.contains_key(*name))
        || turns.is_some_and(|turns| turns.first().is_some_and(is_turn))
        || object.contains_key("uuid") && SPAN_LISTS.iter().flat_map(|(names, _)| names).any(is_list)
}

/// Reads a test case, all cases of a test run, or a trace.
pub(crate) fn read(value: &Value) -> Vec<Result<ImportedTrace, String>> {
    let Some(item) = value.as_object() else { return vec![Err("expected an object".to_owned())] };
    if let Some(run @ Value::Object(_)) = first(item, &TEST_RUN) {
        return read(run);
    }
    if CASE_LISTS.iter().any(|name| item.contains_key(*name)) {
        let cases = CASE_LISTS.iter().filter_map(|name| item.get(*name)?.as_array()).flatten();
        let read: Vec<_> = cases.map(read_case).collect();
        return if read.is_empty() { vec![Err("the test run has no test cases".to_owned())] } else { read };
    }
    if SPAN_LISTS.iter().flat_map(|(names, _)| names).any(|name| item.contains_key(*name)) {
        return vec![read_trace(item, value, Vec::new())];
    }
    vec![read_case(value)]
}

/// Reads a test case: its trace if it has one, else its input, tools and output. Scores are feedback only.
fn read_case(value: &Value) -> Result<ImportedTrace, String> {
    let case = value.as_object().ok_or("a test case must be an object")?;
    let feedback: Vec<SourceFeedback> = feedback(case).into_iter().collect();
    if let Some(Value::Object(trace)) = case.get("trace") {
        return read_trace(trace, value, feedback);
    }
    let steps = if let Some(turns) = case.get("turns").and_then(Value::as_array) {
        turn_steps(turns)?
    } else {
        let input = first(case, &["input"]).map(text_of).ok_or("the test case has no 'input'")?;
        let output = first(case, &ACTUAL_OUTPUT).map(text_of).ok_or("the test case has no 'actual_output'")?;
        vec![step(vec![plain_message("user", &input)], output, first(case, &TOOLS_CALLED))?]
    };
    if steps.is_empty() {
        return Err("the test case has no turns".to_owned());
    }
    let name = first_text(case, &["name"]);
    let trace_id = entry_id(name.unwrap_or(TraceFormat::DeepEval.name()), value)?;
    let mut metadata = Map::new();
    for names in METADATA {
        if let Some(value) = first(case, &names).filter(|value| !is_blank(value)) {
            metadata.insert(names[0].to_owned(), value.clone());
        }
    }
    let usage = StepUsage {
        input_tokens: first_count(case, &["input_token_count", "inputTokenCount"]),
        output_tokens: first_count(case, &["output_token_count", "outputTokenCount"]),
        cached_input_tokens: None,
        cost_usd: first_number(case, &["token_cost", "tokenCost"]),
    };
    let tags = case.get("tags").and_then(Value::as_array).into_iter().flatten();
    let document = TraceContent {
        trace_id: trace_id.clone(),
        steps,
        name: name.map(str::to_owned),
        usage: (!usage.is_empty()).then_some(usage),
        tags: tags.filter_map(Value::as_str).map(str::to_owned).collect(),
        metadata,
        ..TraceContent::default()
    };
    Ok(imported(trace_id, &document, value, feedback))
}

/// Returns a step for each turn of the assistant.
fn turn_steps(turns: &[Value]) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut messages = Vec::new();
    for (index, turn) in turns.iter().enumerate() {
        let turn = turn.as_object().ok_or_else(|| format!("turns[{index}] is not an object"))?;
        let role = first_text(turn, &["role"]).ok_or_else(|| format!("turns[{index}] has no 'role'"))?;
        let content = turn.get("content").map(text_of).unwrap_or_default();
        if role == "assistant" {
            let tools = first(turn, &TOOLS_CALLED);
            let step = step(std::mem::take(&mut messages), content, tools);
            steps.push(step.map_err(|reason| format!("turns[{index}]: {reason}"))?);
        } else {
            messages.push(plain_message(role, &content));
        }
    }
    if !messages.is_empty() {
        // Keep a question that was never answered.
        steps.push(step(messages, String::new(), None)?);
    }
    Ok(steps)
}

fn step(messages: Vec<Message>, response: String, tools: Option<&Value>) -> Result<Step, String> {
    let tools = tools.and_then(Value::as_array).into_iter().flatten();
    let mut step = Step { tool_calls: tools.map(call).collect::<Result<_, _>>()?, ..Step::default() };
    let user = messages.iter().rev().find(|message| message.role == "user");
    step.input.message = user.map(|message| message.content.clone());
    step.input.messages = messages;
    step.output.response = response;
    Ok(step)
}

fn call(tool: &Value) -> Result<StepCall, String> {
    let map = tool.as_object();
    let name = map.and_then(|map| first_text(map, &["name"]));
    let (Some(map), Some(name)) = (map, name) else {
        return Err(format!("an entry of 'tools_called' has no tool name: {}", truncate(&tool.to_string())));
    };
    Ok(StepCall {
        name: name.to_owned(),
        arguments: parse_arguments(first(map, &["input_parameters", "inputParameters"])),
        result: map.get("output").map(parse_result).unwrap_or_default(),
        ..StepCall::default()
    })
}

/// Reads a trace. `source` is the value that is stored as its source.
fn read_trace(
    trace: &Map<String, Value>,
    source: &Value,
    mut feedback: Vec<SourceFeedback>,
) -> Result<ImportedTrace, String> {
    let trace_id = validate_id(first_text(trace, &["uuid"]).ok_or("the trace has no 'uuid'")?)?;
    let mut parts = TraceParts::new(TraceFormat::DeepEval, &trace_id);
    for (names, role) in SPAN_LISTS {
        let spans = first(trace, &names).and_then(Value::as_array).into_iter().flatten();
        for (index, value) in spans.enumerate() {
            let span = value.as_object().and_then(|span| read_span(span, role));
            parts.add_span(span.ok_or_else(|| format!("{}[{index}] has no 'uuid'", names[0]))?);
        }
    }
    let mut assembled = assemble(&parts);
    let document = &mut assembled.document;
    let text = |names: &[&str]| first_text(trace, names).map(str::to_owned);
    document.name = text(&["name"]).or(document.name.take());
    document.session_id = document.session_id.take().or_else(|| text(&["thread_id", "threadId"]));
    document.user_id = document.user_id.take().or_else(|| text(&["user_id", "userId"]));
    if let Some(metadata) = trace.get("metadata").and_then(Value::as_object) {
        document.metadata.extend(metadata.clone());
    }
    if feedback.is_empty() {
        feedback.extend(self::feedback(trace));
    }
    Ok(imported(trace_id, &assembled.document, source, feedback))
}

fn read_span(span: &Map<String, Value>, role: Role) -> Option<Span> {
    let id = first_text(span, &["uuid"])?;
    let mut attributes = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            attributes.insert(name.to_owned(), value);
        }
    };
    if role == Role::Model {
        set("gen_ai.request.model", first(span, &["model"]).cloned());
        let count = |names: &[&str]| first_count(span, names).map(Value::from);
        set("gen_ai.usage.input_tokens", count(&["input_token_count", "inputTokenCount"]));
        set("gen_ai.usage.output_tokens", count(&["output_token_count", "outputTokenCount"]));
    }
    let name = first_text(span, &["name"]).unwrap_or_default();
    if role == Role::Agent {
        set("gen_ai.agent.name", Some(Value::from(name)));
    }
    let field = |name: &str| span.get(name).filter(|value| !is_blank(value)).map(unpack_owned);
    let failed = first_text(span, &["status"]) == Some("ERRORED");
    Some(Span {
        id: id.to_owned(),
        parent: first_text(span, &["parent_uuid", "parentUuid"]).filter(|parent| *parent != id).map(str::to_owned),
        name: name.to_owned(),
        role: Some(role),
        start: first(span, &["start_time", "startTime"]).and_then(parse_any_unit),
        end: first(span, &["end_time", "endTime"]).and_then(parse_any_unit),
        attributes,
        error: first_text(span, &["error"]).map(str::to_owned).or_else(|| failed.then(String::new)),
        input: field("input"),
        output: field("output"),
        ..Span::default()
    })
}

/// Converts the metrics of a test case or trace into one rating: negative if any failed.
fn feedback(item: &Map<String, Value>) -> Option<SourceFeedback> {
    let metrics = first(item, &["metrics_data", "metricsData"]).and_then(Value::as_array).into_iter().flatten();
    let metrics: Vec<&Map<String, Value>> = metrics.filter_map(Value::as_object).collect();
    let success = |map: &Map<String, Value>| map.get("success").and_then(Value::as_bool);
    let has_failed = || metrics.iter().any(|metric| success(metric) == Some(false));
    let has_passed = || metrics.iter().any(|metric| success(metric) == Some(true));
    let passed = success(item).or_else(|| (has_failed() || has_passed()).then(|| !has_failed()))?;
    let note = |metric: &&Map<String, Value>| {
        let name = first_text(metric, &["name"]).unwrap_or("metric");
        let score = metric.get("score").map(text_of).unwrap_or_default();
        let reason = first_text(metric, &["reason"]).map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("{name}: {score}{reason}")
    };
    let notes: Vec<String> = metrics.iter().map(note).collect();
    Some(SourceFeedback {
        author: TraceFormat::DeepEval.name().to_owned(),
        rating: if passed { Rating::Positive } else { Rating::Negative },
        note: (!notes.is_empty()).then(|| notes.join("; ")),
        created_at: None,
    })
}

fn imported(trace_id: String, document: &TraceContent, source: &Value, feedback: Vec<SourceFeedback>) -> ImportedTrace {
    ImportedTrace {
        format: TraceFormat::DeepEval,
        trace_id,
        document: document.to_text(),
        raw: source.to_string().into_bytes(),
        feedback,
    }
}
