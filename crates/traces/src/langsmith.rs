//! LangSmith's runs: one by one, in lists, or with their children within.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::identity::checked_id;
use crate::json::{first, first_count, first_number, first_text, is_blank, unpacked_copy};
use crate::kind::Kind;
use crate::otlp::SpansRead;
use crate::parts::{Role, Span, TraceParts};
use crate::piece::Refused;
use crate::time::guessed;

/// How many runs may be within each other.
const DEEPEST: usize = 64;

/// Reads a run and its children. A trace's runs may be spread over a file, so that each is a part of it.
pub(crate) fn read(value: &Value) -> SpansRead {
    let mut reading = Reading::default();
    reading.run(value, None, 0);
    SpansRead { traces: reading.parts.into_values().collect(), refused: reading.refused }
}

#[derive(Default)]
struct Reading {
    parts: BTreeMap<String, TraceParts>,
    refused: Vec<Refused>,
}

impl Reading {
    /// Reads a run; `within` is the trace and the run that it stands in.
    fn run(&mut self, value: &Value, within: Option<(&str, &str)>, depth: usize) {
        match self.read_run(value, within) {
            Ok((trace, id)) => {
                let children = value.get("child_runs").and_then(Value::as_array).into_iter().flatten();
                if depth == DEEPEST {
                    self.refuse(value, "its children are too deep within each other".to_owned());
                    return;
                }
                for child in children {
                    self.run(child, Some((&trace, &id)), depth + 1);
                }
            }
            Err(why) => self.refuse(value, why),
        }
    }

    fn refuse(&mut self, run: &Value, message: String) {
        let id = run.get("id").and_then(Value::as_str).unwrap_or("without an id");
        self.refused.push(Refused { place: format!("run {id}"), message });
    }

    fn read_run(&mut self, value: &Value, within: Option<(&str, &str)>) -> Result<(String, String), String> {
        let run = value.as_object().ok_or("a run is an object")?;
        let id = first_text(run, &["id"]).ok_or("the run has no 'id'")?.to_owned();
        let parent = first_text(run, &["parent_run_id"]).or_else(|| within.map(|(_, parent)| parent));
        let parent = parent.filter(|parent| *parent != id).map(str::to_owned);
        let trace = match first_text(run, &["trace_id"]).or_else(|| within.map(|(trace, _)| trace)) {
            Some(trace) => trace,
            // The first run of a trace gives it its id.
            None if parent.is_none() => &id,
            None => root(run).ok_or("the run has a parent and no 'trace_id'")?,
        };
        let trace = checked_id(trace)?;
        let parts = self.parts.entry(trace.clone()).or_insert_with(|| TraceParts::new(Kind::LangSmith, &trace));
        parts.spans.insert(id.clone(), span(run, id.clone(), parent));
        Ok((trace, id))
    }
}

/// Returns the trace's first run by the order, which has all runs above this one: `TIMEZID.TIMEZID`.
fn root(run: &Map<String, Value>) -> Option<&str> {
    let first = first_text(run, &["dotted_order"])?.split('.').next()?;
    first.split_once('Z').map(|(_, id)| id).filter(|id| !id.is_empty())
}

/// Returns when a run began, by its place in the order.
fn ordered_at(run: &Map<String, Value>) -> Option<Timestamp> {
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
    let error = first(run, &["error"]).map(crate::json::text_of).filter(|error| !error.is_empty());
    let field = |name: &str| run.get(name).filter(|value| !is_blank(value)).map(unpacked_copy);
    Span {
        id,
        parent,
        name: first_text(run, &["name"]).unwrap_or_default().to_owned(),
        role,
        start: run.get("start_time").and_then(guessed).or_else(|| ordered_at(run)),
        end: run.get("end_time").and_then(guessed),
        attributes: attributes(run, role),
        error,
        input: field("inputs"),
        output: field("outputs"),
        ..Span::default()
    }
}

/// Returns what a run says beside what went in and out, by the names that spans have for it.
fn attributes(run: &Map<String, Value>, role: Option<Role>) -> Map<String, Value> {
    let nothing = Map::new();
    let extra = run.get("extra").and_then(Value::as_object).unwrap_or(&nothing);
    let part = |name: &str| extra.get(name).and_then(Value::as_object).unwrap_or(&nothing);
    let (metadata, parameters) = (part("metadata"), part("invocation_params"));
    let mut attributes = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            attributes.insert(name.to_owned(), value);
        }
    };
    let text = |text: Option<&str>| text.map(Value::from);
    let within = |part: &str| run.get(part).and_then(Value::as_object).unwrap_or(&nothing);
    let (inputs, outputs) = (within("inputs"), within("outputs"));
    let used = outputs.get("usage_metadata").and_then(Value::as_object).unwrap_or(&nothing);
    let cached = used.get("input_token_details").and_then(Value::as_object).unwrap_or(&nothing);
    if role == Some(Role::Model) {
        let model = first_text(metadata, &["ls_model_name"])
            .or_else(|| first_text(parameters, &["model", "model_name"]))
            .or_else(|| first_text(inputs, &["model"]));
        set("gen_ai.request.model", text(model));
        set("gen_ai.response.model", text(first_text(outputs, &["model"])));
        set("gen_ai.provider.name", text(first_text(metadata, &["ls_provider"])));
        let count = |here: &str, there: &str| first_count(run, &[here]).or_else(|| first_count(used, &[there]));
        set("gen_ai.usage.input_tokens", count("prompt_tokens", "input_tokens").map(Value::from));
        set("gen_ai.usage.output_tokens", count("completion_tokens", "output_tokens").map(Value::from));
        set("gen_ai.usage.cache_read.input_tokens", first_count(cached, &["cache_read"]).map(Value::from));
        set("gen_ai.usage.cost", first_number(run, &["total_cost"]).map(Value::from));
    }
    // A run's own `session_id` is the project that it is kept in.
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

/// Returns what people said. LangSmith counts feedback by its key; it is a person's where all of it came from `app`,
/// LangSmith's own pages. What came by `api` may be anybody's.
fn annotations(run: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let stats = run.get("feedback_stats").and_then(Value::as_object);
    let mut said = Vec::new();
    for (key, stat) in stats.into_iter().flatten() {
        let Some(stat) = stat.as_object() else { continue };
        let sources = stat.get("sources").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if sources.is_empty() || !sources.iter().all(is_person) {
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
        said.push(annotation);
    }
    said
}

/// A source is a word, an object with its type, or the JSON text of such an object.
fn is_person(source: &Value) -> bool {
    let source = unpacked_copy(source);
    source.as_str().or_else(|| source.get("type").and_then(Value::as_str)) == Some("app")
}
