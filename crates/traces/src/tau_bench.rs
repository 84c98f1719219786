//! τ-bench trajectories: a conversation with a simulated user, and its reward.

use karat_core::document::TraceContent;
use karat_core::rating::Rating;
use karat_json::canonical::sorted;
use karat_json::hash::short_hash;
use serde_json::{Map, Value};

use crate::format::TraceFormat;
use crate::piece::{ImportedTrace, SourceFeedback};
use karat_chat::Conversation;

/// The prefix of failed tool results.
const ERROR_PREFIX: &str = "Error:";

/// Reads one trajectory.
///
/// The id consists of the task, the trial and a hash of the content, because files of other models and domains use the
/// same task numbers. The reward becomes feedback and is not part of the document, so eval functions cannot see it.
pub(crate) fn read(value: &Value, text: &[u8]) -> Result<ImportedTrace, String> {
    let Some(trajectory) = value.get("traj").and_then(Value::as_array) else {
        return Err("'traj' is not a list of messages".to_owned());
    };
    let mut conversation = Conversation::default();
    for (index, message) in trajectory.iter().enumerate() {
        conversation.push(message, "user").map_err(|reason| format!("traj[{index}]: {reason}"))?;
    }
    conversation.mark_failures(|result| result.starts_with(ERROR_PREFIX));
    let split = conversation.into_steps();
    let number = |name: &str| value.get(name).filter(|value| value.is_u64() || value.is_string());
    let hash = short_hash(sorted(value).to_string().as_bytes());
    let part = |name: &str| number(name).map_or_else(|| "x".to_owned(), |value| value.to_string().replace('"', ""));
    let trace_id = format!("tau-bench-{}-{}-{hash}", id_part(&part("task_id")), id_part(&part("trial")));

    let task = value.get("info").and_then(|info| info.get("task"));
    let mut metadata = Map::new();
    let mut set = |name: &str, value: Option<&Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            metadata.insert(name.to_owned(), value.clone());
        }
    };
    set("task_id", value.get("task_id"));
    set("trial", value.get("trial"));
    set("expected_actions", task.and_then(|task| task.get("actions")));
    set("expected_outputs", task.and_then(|task| task.get("outputs")));
    set("instruction", task.and_then(|task| task.get("instruction")));
    if !split.unanswered.is_empty() {
        metadata.insert("unanswered".to_owned(), serde_json::to_value(&split.unanswered).unwrap_or_default());
    }
    let user = task.and_then(|task| task.get("user_id")).and_then(Value::as_str);
    let document = TraceContent {
        trace_id: trace_id.clone(),
        steps: split.steps,
        name: Some(format!("task {}, trial {}", part("task_id"), part("trial"))),
        user_id: user.map(str::to_owned),
        metadata,
        ..TraceContent::default()
    };
    Ok(ImportedTrace {
        format: TraceFormat::TauBench,
        trace_id,
        document: document.to_text(),
        raw: text.to_vec(),
        feedback: value
            .get("reward")
            .and_then(Value::as_f64)
            .map(|reward| reward_feedback(TraceFormat::TauBench, reward))
            .into_iter()
            .collect(),
    })
}

/// Replaces the characters that are not allowed in an id.
pub(crate) fn id_part(text: &str) -> String {
    text.chars().take(64).map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// Converts a reward: 1 is positive, 0 is negative, values between are neutral.
pub(crate) fn reward_feedback(format: TraceFormat, reward: f64) -> SourceFeedback {
    let rating = match reward {
        reward if reward >= 1.0 => Rating::Positive,
        reward if reward <= 0.0 => Rating::Negative,
        _ => Rating::Neutral,
    };
    let note = Some(format!("reward {reward}"));
    SourceFeedback { author: format.name().to_owned(), rating, note, created_at: None }
}
