//! LangSmith runs: single, in lists, or nested with their children.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::format::TraceFormat;
use crate::otlp::ParsedSpans;
use crate::parts::{Role, Span, TraceParts};
use crate::piece::RefusedItem;
use crate::time::parse_any_unit;
use crate::trace_ids::validate_id;
use karat_chat::lenient::{first, first_count, first_number, first_text, is_blank, unpack_owned};

const MAX_RUN_DEPTH: usize = 64;

/// Reads a run and its children as parts of traces, because the runs of a trace may be spread over a file.
pub(crate) fn read(value: &Value) -> ParsedSpans {
    let mut reader = RunReader::default();
    reader.run(value, None, 0);
    ParsedSpans { traces: reader.parts.into_values().collect(), refused: reader.refused }
}

#[derive(Default)]
struct RunReader {
    parts: BTreeMap<String, TraceParts>,
    refused: Vec<RefusedItem>,
}

impl RunReader {
    /// Reads a run and its children. `enclosing` is the id of its trace and of its parent run.
    fn run(&mut self, value: &Value, enclosing: Option<(&str, &str)>, depth: usize) {
        match self.read_run(value, enclosing) {
            Ok((trace, id)) => {
                let children = value.get("child_runs").and_then(Value::as_array).into_iter().flatten();
                if depth == MAX_RUN_DEPTH {
                    self.refuse(value, "child runs are nested too deeply".to_owned());
                    return;
                }
                for child in children {
                    self.run(child, Some((&trace, &id)), depth + 1);
                }
            }
            Err(reason) => self.refuse(value, reason),
        }
    }

    fn refuse(&mut self, run: &Value, message: String) {
        let id = run.get("id").and_then(Value::as_str).unwrap_or("without an id");
        self.refused.push(RefusedItem { location: format!("run {id}"), message });
    }

    fn read_run(&mut self, value: &Value, enclosing: Option<(&str, &str)>) -> Result<(String, String), String> {
        let run = value.as_object().ok_or("a run must be an object")?;
        let id = first_text(run, &["id"]).ok_or("the run has no 'id'")?.to_owned();
        let parent = first_text(run, &["parent_run_id"]).or_else(|| enclosing.map(|(_, parent)| parent));
        let parent = parent.filter(|parent| *parent != id).map(str::to_owned);
        let trace = match first_text(run, &["trace_id"]).or_else(|| enclosing.map(|(trace, _)| trace)) {
            Some(trace) => trace,
            // The id of the root run is the trace id.
            None if parent.is_none() => &id,
            None => root_id(run).ok_or("the run has a parent but no 'trace_id'")?,
        };
        let trace = validate_id(trace)?;
        let parts = self.parts.entry(trace.clone()).or_insert_with(|| TraceParts::new(TraceFormat::LangSmith, &trace));
        parts.spans.insert(id.clone(), span(run, id.clone(), parent));
        Ok((trace, id))
    }
}

/// Returns the id of the root run from the dotted order, which lists all ancestors: `TIMEZID.TIMEZID`.
fn root_id(run: &Map<String, Value>) -> Option<&str> {
    let first = first_text(run, &["dotted_order"])?.split('.').next()?;
    first.split_once('Z').map(|(_, id)| id).filter(|id| !id.is_empty())
}

/// Returns the start time from the dotted order.
fn start_from_order(run: &Map<String, Value>) -> Option<Timestamp> {
    let last = first_text(run, &["dotted_order"])?.split('.').next_back()?;
    let (time, _) = last.split_once('Z')?;
    let digits = time.get(..15)?;
    let fraction = time.get(15..).filter(|fraction| !fraction.is_empty()).unwrap_or("0");
    format!("{digits}.{fraction}Z").parse().ok()
}

fn span(run: &Map<String, Value>, id: String, parent: Option<String>) -> Span {
    let role = match first_text(run, &["run_type"]).unwrap_or_default() {
        "llm" => Some(Role::Model),
        "tool" => Some(Role::Tool),
        "retriever" | "embedding" | "prompt" | "parser" => Some(Role::Other),
        _ => None,
    };
    let error = first(run, &["error"]).map(karat_chat::lenient::text_of).filter(|error| !error.is_empty());
    let field = |name: &str| run.get(name).filter(|value| !is_blank(value)).map(unpack_owned);
    Span {
        id,
        parent,
        name: first_text(run, &["name"]).unwrap_or_default().to_owned(),
        role,
        start: run.get("start_time").and_then(parse_any_unit).or_else(|| start_from_order(run)),
        end: run.get("end_time").and_then(parse_any_unit),
        attributes: attributes(run, role),
        error,
        input: field("inputs"),
        output: field("outputs"),
        ..Span::default()
    }
}

/// Returns the fields of a run other than input and output as span attributes.
fn attributes(run: &Map<String, Value>, role: Option<Role>) -> Map<String, Value> {
    let empty = Map::new();
    let extra = run.get("extra").and_then(Value::as_object).unwrap_or(&empty);
    let part = |name: &str| extra.get(name).and_then(Value::as_object).unwrap_or(&empty);
    let (metadata, parameters) = (part("metadata"), part("invocation_params"));
    let mut attributes = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            attributes.insert(name.to_owned(), value);
        }
    };
    let text = |text: Option<&str>| text.map(Value::from);
    let object = |part: &str| run.get(part).and_then(Value::as_object).unwrap_or(&empty);
    let (inputs, outputs) = (object("inputs"), object("outputs"));
    let usage = outputs.get("usage_metadata").and_then(Value::as_object).unwrap_or(&empty);
    let cached = usage.get("input_token_details").and_then(Value::as_object).unwrap_or(&empty);
    if role == Some(Role::Model) {
        let model = first_text(metadata, &["ls_model_name"])
            .or_else(|| first_text(parameters, &["model", "model_name"]))
            .or_else(|| first_text(inputs, &["model"]));
        set("gen_ai.request.model", text(model));
        set("gen_ai.response.model", text(first_text(outputs, &["model"])));
        set("gen_ai.provider.name", text(first_text(metadata, &["ls_provider"])));
        let count =
            |run_key: &str, usage_key: &str| first_count(run, &[run_key]).or_else(|| first_count(usage, &[usage_key]));
        set("gen_ai.usage.input_tokens", count("prompt_tokens", "input_tokens").map(Value::from));
        set("gen_ai.usage.output_tokens", count("completion_tokens", "output_tokens").map(Value::from));
        set("gen_ai.usage.cache_read.input_tokens", first_count(cached, &["cache_read"]).map(Value::from));
        set("gen_ai.usage.cost", first_number(run, &["total_cost"]).map(Value::from));
    }
    // A run's own `session_id` is the id of its project.
    set("session.id", text(first_text(metadata, &["session_id", "thread_id", "conversation_id"])));
    set("user.id", text(first_text(metadata, &["user_id"])));
    set("tag.tags", run.get("tags").filter(|tags| !is_blank(tags)).cloned());
    let calls = run.get("outputs").and_then(|outputs| outputs.get("output")).unwrap_or(&Value::Null);
    set(
        "gen_ai.tool.call.id",
        text(calls.get("tool_call_id").and_then(Value::as_str)).filter(|_| role == Some(Role::Tool)),
    );
    for (number, annotation) in annotations(run).into_iter().enumerate() {
        for (name, value) in annotation {
            attributes.insert(format!("annotations.{number}.annotation.{name}"), value);
        }
    }
    attributes
}

/// Returns the feedback of people as annotations. LangSmith aggregates feedback by key. A key counts as human if all
/// of its feedback came from `app`, the LangSmith UI; feedback from `api` may be automated.
fn annotations(run: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let stats = run.get("feedback_stats").and_then(Value::as_object);
    let mut annotations = Vec::new();
    for (key, stat) in stats.into_iter().flatten() {
        let Some(stat) = stat.as_object() else { continue };
        let sources = stat.get("sources").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if sources.is_empty() || !sources.iter().all(is_human) {
            continue;
        }
        let values = stat.get("values").and_then(Value::as_object);
        let label = values.filter(|values| values.len() == 1).and_then(|values| values.keys().next());
        let comments = stat.get("comments").and_then(Value::as_array).into_iter().flatten();
        let comments: Vec<&str> = comments.filter_map(Value::as_str).collect();
        let mut annotation = Map::new();
        annotation.insert("name".to_owned(), json!(key));
        annotation.insert("annotator_kind".to_owned(), json!("HUMAN"));
        if let Some(label) = label {
            annotation.insert("label".to_owned(), json!(label));
        }
        if let Some(average) = stat.get("avg").and_then(Value::as_f64) {
            annotation.insert("score".to_owned(), json!(average));
        }
        if !comments.is_empty() {
            annotation.insert("explanation".to_owned(), json!(comments.join("; ")));
        }
        annotations.push(annotation);
    }
    annotations
}

/// A source is a string, an object with a type, or the JSON text of such an object.
fn is_human(source: &Value) -> bool {
    let source = unpack_owned(source);
    source.as_str().or_else(|| source.get("type").and_then(Value::as_str)) == Some("app")
}
