//! Langfuse exports: a trace, its observations and its scores.

use std::collections::BTreeMap;

use jiff::Timestamp;
use karat_core::document::TraceContent;
use karat_core::rating::Rating;
use serde_json::{Map, Value};

use crate::assemble::assemble;
use crate::format::TraceFormat;
use crate::parts::{Role, Span, TraceParts};
use crate::piece::{ImportedTrace, SourceFeedback};
use crate::rating::{rating_from_label, rating_from_score};
use crate::time::parse_any_unit;
use crate::trace_ids::validate_id;
use crate::vocabulary;
use karat_chat::lenient::{first, first_count, first_number, first_text, is_blank, unpack_owned};

/// How to get a full trace.
const FULL_TRACE_HINT: &str =
    "fetch the full trace with GET /api/public/traces/ID, or import with --from langfuse --url URL";

/// Reads one trace: `{trace, observations, scores}`, or a trace with its observations and scores inside.
pub(crate) fn read(value: &Value, text: &[u8]) -> Result<ImportedTrace, String> {
    let Some(export) = value.as_object() else {
        return Err("a trace must be an object".to_owned());
    };
    let trace = match export.get("trace") {
        Some(Value::Object(trace)) => trace,
        Some(_) => return Err("'trace' is not an object".to_owned()),
        None => export,
    };
    let is_observation = export.contains_key("type") && export.contains_key("startTime");
    if is_observation && export.contains_key("traceId") {
        return Err("an observation without its trace: expected 'trace' and 'observations' in one object".to_owned());
    }
    let id = match first(trace, &["id"]).or_else(|| first(export, &["traceId"])) {
        Some(Value::String(id)) => validate_id(id)?,
        _ => return Err("the trace has no 'id'".to_owned()),
    };
    let lists = [export.get("observations"), trace.get("observations")];
    let observations = lists.iter().find_map(|list| objects(*list));
    if observations.is_none() {
        // Importing a trace with only the ids of its observations would replace a complete one.
        let id_count = lists.iter().flatten().filter_map(|list| list.as_array()).map(Vec::len).max();
        match id_count {
            None => return Err(format!("missing 'observations'; {FULL_TRACE_HINT}")),
            Some(0) => {}
            Some(_) => return Err(format!("'observations' holds only ids, as in a list of traces; {FULL_TRACE_HINT}")),
        }
    }
    let mut parts = TraceParts::new(TraceFormat::Langfuse, &id);
    for (index, observation) in observations.unwrap_or_default().into_iter().enumerate() {
        let span = span(observation).ok_or_else(|| format!("observations[{index}] has no 'id'"))?;
        parts.spans.insert(span.id.clone(), span);
    }
    if parts.spans.is_empty() {
        parts.spans.insert(id.clone(), trace_span(&id, trace));
    }
    let mut assembled = assemble(&parts);
    describe(&mut assembled.document, trace);
    let scores = objects(export.get("scores")).or_else(|| objects(trace.get("scores"))).unwrap_or_default();
    assembled.feedback.extend(feedback(&scores));
    Ok(ImportedTrace {
        format: TraceFormat::Langfuse,
        trace_id: id,
        document: assembled.document.to_text(),
        raw: text.to_vec(),
        feedback: assembled.feedback,
    })
}

/// Returns the objects of a list, or `None` if it has none: lists of traces have ids instead.
fn objects(list: Option<&Value>) -> Option<Vec<&Map<String, Value>>> {
    let objects: Vec<_> = list?.as_array()?.iter().filter_map(Value::as_object).collect();
    (!objects.is_empty()).then_some(objects)
}

/// Returns a span for the trace itself, if it has no observations.
fn trace_span(id: &str, trace: &Map<String, Value>) -> Span {
    Span {
        id: id.to_owned(),
        name: first_text(trace, &["name"]).unwrap_or_default().to_owned(),
        role: Some(Role::Agent),
        start: trace.get("timestamp").and_then(parse_any_unit),
        input: trace.get("input").filter(|value| !is_blank(value)).map(unpack_owned),
        output: trace.get("output").filter(|value| !is_blank(value)).map(unpack_owned),
        ..Span::default()
    }
}

/// Converts an observation.
fn span(observation: &Map<String, Value>) -> Option<Span> {
    let id = first_text(observation, &["id"])?.to_owned();
    let metadata = observation.get("metadata").map(unpack_owned).unwrap_or_default();
    let part = |name: &str| metadata.get(name).and_then(Value::as_object).cloned();
    let mut attributes = part("attributes").unwrap_or_default();
    let failed = first_text(observation, &["level"]) == Some("ERROR");
    let message = || first_text(observation, &["statusMessage"]).unwrap_or_default().to_owned();
    let mut role = role(observation, &attributes);
    let mut output = observation.get("output").filter(|value| !is_blank(value)).map(unpack_owned);
    let mut tool_error = None;
    if role.is_none()
        && let Some(answer) = output.as_ref().and_then(tool_message)
    {
        // LangGraph tools are ordinary observations whose output is the tool message.
        role = Some(Role::Tool);
        for (attribute, key) in [("gen_ai.tool.call.id", "tool_call_id"), ("gen_ai.tool.name", "name")] {
            set_if_missing(&mut attributes, attribute, answer.get(key));
        }
        let failed = first_text(answer, &["status"]) == Some("error");
        tool_error = failed.then(|| answer.get("content").map(karat_chat::lenient::text_of).unwrap_or_default());
        output = answer.get("content").map(unpack_owned);
    }
    if first_text(observation, &["type"]) == Some("GENERATION") {
        add_usage(&mut attributes, observation);
    }
    Some(Span {
        parent: first_text(observation, &["parentObservationId"]).filter(|parent| *parent != id).map(str::to_owned),
        id,
        name: first_text(observation, &["name"]).unwrap_or_default().to_owned(),
        role,
        start: observation.get("startTime").and_then(parse_any_unit),
        end: observation.get("endTime").and_then(parse_any_unit),
        attributes,
        error: failed.then(message).or(tool_error),
        input: observation.get("input").filter(|value| !is_blank(value)).map(unpack_owned).map(without_definitions),
        output,
        resource: part("resourceAttributes").unwrap_or_default(),
        scope: metadata.get("scope").and_then(|scope| scope.get("name")).and_then(Value::as_str).map(str::to_owned),
        ..Span::default()
    })
}

/// Returns the role by the type of an observation. For type `SPAN` and for generations of the AI SDK, whose outer spans
/// are generations too, the attributes decide.
fn role(observation: &Map<String, Value>, attributes: &Map<String, Value>) -> Option<Role> {
    match first_text(observation, &["type"])? {
        "GENERATION" if attributes.contains_key("ai.operationId") => None,
        "GENERATION" if first_text(attributes, &["gen_ai.operation.name"]).is_some_and(is_embedding) => {
            Some(Role::Other)
        }
        "GENERATION" => Some(Role::Model),
        "TOOL" => Some(Role::Tool),
        "AGENT" => Some(Role::Agent),
        "EVENT" | "EMBEDDING" | "RETRIEVER" | "EVALUATOR" | "GUARDRAIL" => Some(Role::Other),
        _ => None,
    }
}

fn is_embedding(operation: &str) -> bool {
    matches!(operation, "embeddings" | "embedding")
}

/// Returns the tool message that is an observation's whole output.
fn tool_message(output: &Value) -> Option<&Map<String, Value>> {
    vocabulary::tool_message(output).filter(|message| message.contains_key("tool_call_id"))
}

/// Removes tool definitions, which some integrations list as messages of role `tool`.
fn without_definitions(input: Value) -> Value {
    fn is_definition(item: &Value) -> bool {
        let content = item.get("content").map(unpack_owned).unwrap_or_default();
        item.get("role").and_then(Value::as_str) == Some("tool")
            && item.get("tool_call_id").is_none()
            && content.get("type").and_then(Value::as_str) == Some("function")
            && content
                .get("function")
                .is_some_and(|function| function.get("name").is_some() && function.get("arguments").is_none())
    }
    match input {
        Value::Array(items) => Value::Array(items.into_iter().filter(|item| !is_definition(item)).collect()),
        other => other,
    }
}

fn set_if_missing(attributes: &mut Map<String, Value>, name: &str, value: Option<&Value>) {
    if let Some(value) = value.filter(|value| !value.is_null())
        && !attributes.contains_key(name)
    {
        attributes.insert(name.to_owned(), value.clone());
    }
}

/// Adds model, usage and cost of a generation as span attributes.
fn add_usage(attributes: &mut Map<String, Value>, observation: &Map<String, Value>) {
    set_if_missing(attributes, "gen_ai.request.model", first(observation, &["model", "providedModelName"]));
    let empty = Map::new();
    let part = |name: &str| observation.get(name).and_then(Value::as_object).filter(|map| !map.is_empty());
    let details = part("usageDetails").or_else(|| part("usage")).unwrap_or(&empty);
    let count = |detail_keys: &[&str], observation_keys: &[&str]| {
        first_count(details, detail_keys)
            .or_else(|| first_count(observation, observation_keys).filter(|count| *count > 0))
    };
    let input = count(&["input", "prompt_tokens", "input_tokens"], &["inputUsage", "promptTokens"]);
    let output = count(&["output", "completion_tokens", "output_tokens"], &["outputUsage", "completionTokens"]);
    let read = count(
        &["cache_read_input_tokens", "input_cached_tokens", "input_cache_read", "prompt_details.cache_read"],
        &[],
    );
    let written = count(&["cache_creation_input_tokens", "input_cache_creation", "prompt_details.cache_write"], &[]);
    // Some sources include cached tokens in the input, some count them separately. The total shows which; without one,
    // Anthropic's names do.
    let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let sum = input.unwrap_or(0).saturating_add(output.unwrap_or(0));
    let excludes_cached = match count(&["total"], &[]) {
        Some(total) => total >= sum.saturating_add(cached),
        None => {
            ["cache_read_input_tokens", "cache_creation_input_tokens"].iter().any(|name| details.contains_key(*name))
        }
    };
    let input = input.map(|input| if excludes_cached { input.saturating_add(cached) } else { input });
    let cost = first_number(observation, &["totalCost", "calculatedTotalCost"]).filter(|cost| *cost > 0.0);
    set_if_missing(attributes, "gen_ai.usage.input_tokens", input.map(Value::from).as_ref());
    set_if_missing(attributes, "gen_ai.usage.output_tokens", output.map(Value::from).as_ref());
    set_if_missing(attributes, "gen_ai.usage.cache_read.input_tokens", read.map(Value::from).as_ref());
    set_if_missing(attributes, "gen_ai.usage.cost", cost.map(Value::from).as_ref());
}

/// Adds the fields of the trace as a whole.
fn describe(document: &mut TraceContent, trace: &Map<String, Value>) {
    let text = |name: &str| first_text(trace, &[name]).map(str::to_owned);
    document.name = text("name").or(document.name.take());
    document.session_id = text("sessionId").or(document.session_id.take());
    document.user_id = text("userId").or(document.user_id.take());
    document.started_at = document.started_at.or_else(|| trace.get("timestamp").and_then(parse_any_unit));
    if let Some(tags) = trace.get("tags").and_then(Value::as_array).filter(|tags| !tags.is_empty()) {
        document.tags = tags.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    }
    if let Some(Value::Object(metadata)) = trace.get("metadata").map(unpack_owned) {
        // Written by the instrumentation, and also present in the spans.
        let instrumentation_keys = ["attributes", "resourceAttributes", "scope"];
        document
            .metadata
            .extend(metadata.into_iter().filter(|(name, _)| !instrumentation_keys.contains(&name.as_str())));
    }
    for name in ["environment", "release", "version"] {
        if let Some(value) = first_text(trace, &[name]).filter(|value| *value != "default") {
            document.metadata.insert(name.to_owned(), value.into());
        }
    }
}

/// Converts the scores of people into one rating per person.
///
/// A person may give a trace several scores. The rating is negative if one of them is, else positive if one of them is.
fn feedback(scores: &[&Map<String, Value>]) -> Vec<SourceFeedback> {
    let mut by_author: BTreeMap<String, Vec<&Map<String, Value>>> = BTreeMap::new();
    for score in scores.iter().filter(|score| first_text(score, &["source"]) == Some("ANNOTATION")) {
        if first_text(score, &["dataType"]) != Some("CORRECTION") {
            let author = first_text(score, &["authorUserId"]).unwrap_or(TraceFormat::Langfuse.name());
            by_author.entry(author.to_owned()).or_default().push(score);
        }
    }
    let scored_at = |score: &Map<String, Value>| -> Option<Timestamp> {
        first(score, &["timestamp", "updatedAt", "createdAt"]).and_then(parse_any_unit)
    };
    by_author
        .into_iter()
        .map(|(author, mut scores)| {
            scores.sort_by_cached_key(|score| (scored_at(score), first_text(score, &["id"]).map(str::to_owned)));
            let ratings: Vec<Rating> = scores.iter().map(|score| rating(score)).collect();
            let rating = [Rating::Negative, Rating::Positive].into_iter().find(|rating| ratings.contains(rating));
            let notes: Vec<String> = scores.iter().map(|score| note(score)).collect();
            SourceFeedback {
                author,
                rating: rating.unwrap_or(Rating::Neutral),
                note: Some(notes.join("; ")).filter(|note| !note.is_empty()),
                created_at: scores.iter().filter_map(|score| scored_at(score)).max(),
            }
        })
        .collect()
}

/// Converts a score: a category by its label, a number by its value.
fn rating(score: &Map<String, Value>) -> Rating {
    let label = first_text(score, &["stringValue"]).or_else(|| first_text(score, &["value"]));
    let boolean = score.get("value").and_then(Value::as_bool).map(|value| if value { 1.0 } else { 0.0 });
    if first_text(score, &["dataType"]) == Some("CATEGORICAL") {
        return label.and_then(rating_from_label).unwrap_or(Rating::Neutral);
    }
    match first_number(score, &["value"]).or(boolean) {
        Some(value) => rating_from_score(value),
        None => label.and_then(rating_from_label).unwrap_or(Rating::Neutral),
    }
}

fn note(score: &Map<String, Value>) -> String {
    let name = first_text(score, &["name"]).unwrap_or("score");
    let value = first(score, &["stringValue", "value"]).map(karat_chat::lenient::text_of).unwrap_or_default();
    let comment = first_text(score, &["comment"]).map(|comment| format!(" ({comment})")).unwrap_or_default();
    format!("{name}: {value}{comment}")
}
