//! Human feedback in `OpenInference` annotations.

use karat_core::rating::Rating;
use serde_json::{Map, Value};

use super::indexed;
use crate::parts::Span;
use crate::piece::SourceFeedback;
use crate::rating::{rating_from_label, rating_from_score};
use karat_chat::lenient::{first_number, first_text};

/// Reads the annotations made by people. Those made by models or code are ignored.
pub(crate) fn annotations(span: &Span, source: &str) -> Vec<SourceFeedback> {
    if !span.attributes.keys().any(|name| name.starts_with("annotations.")) {
        return Vec::new();
    }
    let annotations = indexed::list(&span.attributes, "annotations");
    annotations
        .iter()
        .filter_map(Value::as_object)
        .map(|item| item.get("annotation").and_then(Value::as_object).unwrap_or(item))
        .filter(|item| first_text(item, &["annotator_kind"]).is_some_and(|kind| kind.eq_ignore_ascii_case("human")))
        .map(|item| SourceFeedback {
            author: first_text(item, &["annotator", "annotator_id", "user_id", "identifier"])
                .unwrap_or(source)
                .to_owned(),
            rating: rating(item),
            note: note(item),
            created_at: span.end.or(span.start),
        })
        .collect()
}

/// Returns the rating of a known label, else of the score.
fn rating(item: &Map<String, Value>) -> Rating {
    let label = first_text(item, &["label"]).and_then(rating_from_label);
    label.or_else(|| first_number(item, &["score"]).map(rating_from_score)).unwrap_or(Rating::Neutral)
}

/// Returns the annotation's name, label and explanation.
fn note(item: &Map<String, Value>) -> Option<String> {
    let parts: Vec<&str> =
        ["name", "label", "explanation"].iter().filter_map(|name| first_text(item, &[name])).collect();
    (!parts.is_empty()).then(|| parts.join(": "))
}
