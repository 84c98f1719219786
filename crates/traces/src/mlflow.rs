//! `MLflow` traces as `Trace.to_json()` writes them: `info`, and spans in `data`.

use std::collections::BTreeMap;

use karat_core::document::TraceContent;
use karat_core::rating::Rating;
use serde_json::{Map, Value};

use crate::assemble::assemble;
use crate::format::TraceFormat;
use crate::otlp;
use crate::parts::TraceParts;
use crate::piece::{ImportedTrace, SourceFeedback};
use crate::rating::{rating_from_label, rating_from_score};
use crate::time::parse_any_unit;
use crate::trace_ids::validate_id;
use karat_chat::lenient::{first, first_text, text_of};

/// Reads one trace.
pub(crate) fn read(value: &Value, text: &[u8]) -> Result<ImportedTrace, String> {
    let info = value.get("info").and_then(Value::as_object).ok_or("missing 'info'")?;
    let id = first_text(info, &["trace_id", "request_id"]).ok_or("'info' has no 'trace_id'")?;
    let trace_id = validate_id(id)?;
    let spans = value.get("data").and_then(|data| data.get("spans")).and_then(Value::as_array);
    let mut parts = TraceParts::new(TraceFormat::Mlflow, &trace_id);
    for (index, span) in spans.ok_or("missing list 'data.spans'")?.iter().enumerate() {
        let Value::Object(map) = span else { return Err(format!("data.spans[{index}] is not an object")) };
        let (_, mut span) = otlp::read_span(map.clone()).map_err(|reason| format!("data.spans[{index}]: {reason}"))?;
        for attribute in span.attributes.values_mut() {
            decode(attribute);
        }
        parts.add_span(span);
    }
    let mut assembled = assemble(&parts);
    describe(&mut assembled.document, info);
    assembled.feedback.extend(feedback(info));
    Ok(ImportedTrace {
        format: TraceFormat::Mlflow,
        trace_id,
        document: assembled.document.to_text(),
        raw: text.to_vec(),
        feedback: assembled.feedback,
    })
}

/// Decodes an attribute: `MLflow` writes each value as a JSON string.
fn decode(attribute: &mut Value) {
    if let Value::String(text) = attribute
        && let Ok(inner) = serde_json::from_str::<Value>(text)
    {
        *attribute = inner;
    }
}

fn describe(document: &mut TraceContent, info: &Map<String, Value>) {
    let metadata = first(info, &["trace_metadata", "request_metadata"]).and_then(Value::as_object);
    let tags = info.get("tags").and_then(Value::as_object);
    let text =
        |map: Option<&Map<String, Value>>, name: &str| map.and_then(|map| first_text(map, &[name])).map(str::to_owned);
    document.session_id = document.session_id.take().or_else(|| text(metadata, "mlflow.trace.session"));
    document.user_id = document.user_id.take().or_else(|| text(metadata, "mlflow.trace.user"));
    document.name = text(tags, "mlflow.traceName").or(document.name.take());
    document.started_at =
        document.started_at.or_else(|| first(info, &["request_time", "timestamp_ms"]).and_then(parse_any_unit));
    // Names that start with `mlflow.` are internal to MLflow.
    for (name, value) in metadata.into_iter().chain(tags).flatten().filter(|(name, _)| !name.starts_with("mlflow.")) {
        document.metadata.insert(name.clone(), value.clone());
    }
}

/// Converts the assessments of people into one rating per person.
fn feedback(info: &Map<String, Value>) -> Vec<SourceFeedback> {
    let mut by_author: BTreeMap<String, Vec<&Map<String, Value>>> = BTreeMap::new();
    let assessments = info.get("assessments").and_then(Value::as_array).into_iter().flatten();
    for assessment in assessments.filter_map(Value::as_object) {
        let source = assessment.get("source").and_then(Value::as_object);
        let is_human = source.is_some_and(|source| first_text(source, &["source_type"]) == Some("HUMAN"));
        if is_human && assessment.get("feedback").is_some() {
            let author = source.and_then(|source| first_text(source, &["source_id"]));
            by_author.entry(author.unwrap_or(TraceFormat::Mlflow.name()).to_owned()).or_default().push(assessment);
        }
    }
    let to_feedback = |(author, assessments): (String, Vec<&Map<String, Value>>)| {
        let ratings: Vec<Rating> = assessments.iter().map(|assessment| rating(assessment)).collect();
        let rating = [Rating::Negative, Rating::Positive].into_iter().find(|rating| ratings.contains(rating));
        let notes: Vec<String> = assessments.iter().map(|assessment| note(assessment)).collect();
        let times = assessments.iter().filter_map(|assessment| parse_any_unit(assessment.get("create_time")?));
        SourceFeedback {
            author,
            rating: rating.unwrap_or(Rating::Neutral),
            note: Some(notes.join("; ")),
            created_at: times.max(),
        }
    };
    by_author.into_iter().map(to_feedback).collect()
}

fn value_of(assessment: &Map<String, Value>) -> Option<&Value> {
    assessment.get("feedback")?.get("value")
}

fn rating(assessment: &Map<String, Value>) -> Rating {
    match value_of(assessment) {
        Some(Value::Bool(good)) => rating_from_score(if *good { 1.0 } else { 0.0 }),
        Some(Value::Number(number)) => number.as_f64().map_or(Rating::Neutral, rating_from_score),
        Some(Value::String(label)) => rating_from_label(label).unwrap_or(Rating::Neutral),
        _ => Rating::Neutral,
    }
}

fn note(assessment: &Map<String, Value>) -> String {
    let name = first_text(assessment, &["assessment_name"]).unwrap_or("assessment");
    let value = value_of(assessment).map(text_of).unwrap_or_default();
    let rationale = first_text(assessment, &["rationale"]).map(|text| format!(" ({text})")).unwrap_or_default();
    format!("{name}: {value}{rationale}")
}
