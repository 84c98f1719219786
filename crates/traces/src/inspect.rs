//! Inspect logs: the samples of an evaluation, with their messages and scores.

use karat_core::document::{StepUsage, TraceContent};
use karat_core::rating::Rating;
use serde_json::{Map, Value};

use crate::format::TraceFormat;
use crate::messages::usage;
use crate::piece::{ImportedTrace, SourceFeedback};
use crate::rating::{rating_from_label, rating_from_score};
use crate::time::parse_any_unit;
use crate::trace_ids::{entry_id, validate_id};
use karat_chat::Conversation;
use karat_chat::lenient::{first, first_text, text_of};

/// The prefix of a reference to the `attachments` of a sample.
const ATTACHMENT_PREFIX: &str = "attachment://";

/// Maximum depth within a message at which attachments are replaced.
const MAX_DEPTH: usize = 32;

/// Reads all samples of a log.
pub(crate) fn read(log: &Value) -> Vec<Result<ImportedTrace, String>> {
    match log.get("samples") {
        Some(Value::Array(samples)) => {
            let header = log.get("eval").unwrap_or(&Value::Null);
            samples.iter().map(|sample| read_sample(sample, header)).collect()
        }
        _ => vec![Err("the log has no 'samples'".to_owned())],
    }
}

/// Reads a sample. `header` is the `eval` object of its log. Scores become feedback and are not part of the document.
pub(crate) fn read_sample(value: &Value, header: &Value) -> Result<ImportedTrace, String> {
    let sample = value.as_object().ok_or("a sample must be an object")?;
    let messages = sample.get("messages").and_then(Value::as_array).ok_or("the sample has no list 'messages'")?;
    let empty = Map::new();
    let attachments = sample.get("attachments").and_then(Value::as_object).unwrap_or(&empty);
    let mut conversation = Conversation::default();
    for (index, message) in messages.iter().enumerate() {
        let message = with_attachments(message, attachments, MAX_DEPTH);
        conversation.push(&message, "user").map_err(|reason| format!("messages[{index}]: {reason}"))?;
    }
    let split = conversation.into_steps();

    let text = |value: Option<&Value>| value.filter(|value| !value.is_null()).map(text_of).unwrap_or_default();
    let (id, epoch) = (text(sample.get("id")), text(sample.get("epoch")));
    let task = header.get("task").and_then(Value::as_str).unwrap_or("inspect");
    let trace_id = match first_text(sample, &["uuid"]) {
        Some(uuid) => validate_id(uuid)?,
        None => entry_id(&format!("{task}-{id}-{epoch}"), value)?,
    };
    let mut metadata = Map::new();
    for name in ["id", "epoch", "target", "limit", "metadata"] {
        if let Some(value) = first(sample, &[name]).filter(|value| !karat_chat::lenient::is_blank(value)) {
            let name = if name == "id" { "sample_id" } else { name };
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    if !split.unanswered.is_empty() {
        metadata.insert("unanswered".to_owned(), serde_json::to_value(&split.unanswered).unwrap_or_default());
    }
    let output = sample.get("output").and_then(Value::as_object).unwrap_or(&empty);
    let model = first_text(output, &["model"]).or_else(|| header.get("model").and_then(Value::as_str));
    let mut steps = split.steps;
    if steps.is_empty() {
        return Err("the sample has no messages".to_owned());
    }
    for step in &mut steps {
        step.model = model.map(str::to_owned);
    }
    let document = TraceContent {
        trace_id: trace_id.clone(),
        steps,
        name: Some(format!("{task} {id}")),
        started_at: first(sample, &["started_at"]).or_else(|| header.get("created")).and_then(parse_any_unit),
        ended_at: sample.get("completed_at").and_then(parse_any_unit),
        model: model.map(str::to_owned),
        usage: total_usage(sample),
        error: sample.get("error").and_then(|error| error.get("message")?.as_str()).map(str::to_owned),
        metadata,
        ..TraceContent::default()
    };
    Ok(ImportedTrace {
        format: TraceFormat::Inspect,
        trace_id,
        document: document.to_text(),
        raw: value.to_string().into_bytes(),
        feedback: feedback(sample).into_iter().collect(),
    })
}

/// Replaces references to attachments with their contents.
fn with_attachments(value: &Value, attachments: &Map<String, Value>, depth: usize) -> Value {
    match value {
        Value::String(text) => {
            let attached = text.strip_prefix(ATTACHMENT_PREFIX).and_then(|hash| attachments.get(hash));
            attached.unwrap_or(value).clone()
        }
        Value::Array(items) if depth > 0 => {
            Value::Array(items.iter().map(|item| with_attachments(item, attachments, depth - 1)).collect())
        }
        Value::Object(map) if depth > 0 => Value::Object(
            map.iter().map(|(name, value)| (name.clone(), with_attachments(value, attachments, depth - 1))).collect(),
        ),
        other => other.clone(),
    }
}

fn total_usage(sample: &Map<String, Value>) -> Option<StepUsage> {
    let mut total = StepUsage::default();
    for (_, model) in sample.get("model_usage").and_then(Value::as_object).into_iter().flatten() {
        if let Some(usage) = model.as_object().and_then(usage) {
            total.add(&usage);
        }
    }
    (!total.is_empty()).then_some(total)
}

/// Combines the scores into one rating: negative if one of them is, else positive if one of them is.
fn feedback(sample: &Map<String, Value>) -> Option<SourceFeedback> {
    let scores = sample.get("scores").and_then(Value::as_object).filter(|scores| !scores.is_empty())?;
    let ratings: Vec<Rating> = scores.values().map(rating).collect();
    let rating = [Rating::Negative, Rating::Positive].into_iter().find(|rating| ratings.contains(rating));
    let note = |(name, score): (&String, &Value)| {
        let value = score.get("value").map(text_of).unwrap_or_default();
        let explanation = score.get("explanation").and_then(Value::as_str).filter(|text| !text.is_empty());
        format!("{name}: {value}{}", explanation.map(|text| format!(" ({text})")).unwrap_or_default())
    };
    Some(SourceFeedback {
        author: TraceFormat::Inspect.name().to_owned(),
        rating: rating.unwrap_or(Rating::Neutral),
        note: Some(scores.iter().map(note).collect::<Vec<_>>().join("; ")),
        created_at: None,
    })
}

/// Converts a score: Inspect's scorers write `C`, `I`, `P` and `N`, numbers, booleans or their own labels.
fn rating(score: &Value) -> Rating {
    match score.get("value") {
        Some(Value::String(label)) => match label.as_str() {
            "C" => Rating::Positive,
            "I" | "N" => Rating::Negative,
            label => rating_from_label(label).unwrap_or(Rating::Neutral),
        },
        Some(Value::Bool(passed)) => rating_from_score(if *passed { 1.0 } else { 0.0 }),
        Some(Value::Number(number)) => number.as_f64().map_or(Rating::Neutral, rating_from_score),
        _ => Rating::Neutral,
    }
}
