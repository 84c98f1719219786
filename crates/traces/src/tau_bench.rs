//! τ-bench's trajectories: a conversation with a simulated user, and the reward that it earned.

use karat_core::document::TraceContent;
use karat_core::rating::Rating;
use karat_json::canonical::sorted;
use karat_json::hash::short_hash;
use serde_json::{Map, Value};

use crate::conversation::Conversation;
use crate::kind::Kind;
use crate::piece::{Imported, SourceFeedback};

/// A tool of the benchmark that fails says so in its result.
const FAILURE: &str = "Error:";

/// Reads one trajectory.
///
/// Its id names the task and the trial, and ends in a hash of the whole: files of other models and other domains have
/// the same tasks' numbers. The reward is feedback and nowhere in the document, so that no eval function can read the
/// answer off it.
pub(crate) fn read(value: &Value, text: &[u8]) -> Result<Imported, String> {
    let Some(trajectory) = value.get("traj").and_then(Value::as_array) else {
        return Err("'traj' is not a list of messages".to_owned());
    };
    let mut conversation = Conversation::default();
    for (index, message) in trajectory.iter().enumerate() {
        conversation.push(message, "user").map_err(|why| format!("traj[{index}]: {why}"))?;
    }
    conversation.mark_failures(|result| result.starts_with(FAILURE));
    let taken = conversation.into_steps();
    let number = |name: &str| value.get(name).filter(|value| value.is_u64() || value.is_string());
    let hash = short_hash(sorted(value).to_string().as_bytes());
    let part = |name: &str| number(name).map_or_else(|| "x".to_owned(), |value| value.to_string().replace('"', ""));
    let trace_id = format!("tau-bench-{}-{}-{hash}", id_part(&part("task_id")), id_part(&part("trial")));

    let task = value.get("info").and_then(|info| info.get("task"));
    let mut metadata = Map::new();
    let mut tell = |name: &str, value: Option<&Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            metadata.insert(name.to_owned(), value.clone());
        }
    };
    tell("task_id", value.get("task_id"));
    tell("trial", value.get("trial"));
    tell("expected_actions", task.and_then(|task| task.get("actions")));
    tell("expected_outputs", task.and_then(|task| task.get("outputs")));
    tell("instruction", task.and_then(|task| task.get("instruction")));
    if !taken.unanswered.is_empty() {
        metadata.insert("unanswered".to_owned(), serde_json::to_value(&taken.unanswered).unwrap_or_default());
    }
    let user = task.and_then(|task| task.get("user_id")).and_then(Value::as_str);
    let document = TraceContent {
        trace_id: trace_id.clone(),
        steps: taken.steps,
        name: Some(format!("task {}, trial {}", part("task_id"), part("trial"))),
        user_id: user.map(str::to_owned),
        metadata,
        ..TraceContent::default()
    };
    Ok(Imported {
        kind: Kind::TauBench,
        trace_id,
        document: document.to_text(),
        raw: text.to_vec(),
        feedback: value.get("reward").and_then(Value::as_f64).map(feedback).into_iter().collect(),
    })
}

/// Keeps what may stand in an id.
fn id_part(text: &str) -> String {
    text.chars().take(64).map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}

/// A whole reward is good and none is bad; what is between says neither.
fn feedback(reward: f64) -> SourceFeedback {
    let rating = match reward {
        reward if reward >= 1.0 => Rating::Positive,
        reward if reward <= 0.0 => Rating::Negative,
        _ => Rating::Neutral,
    };
    let note = Some(format!("reward {reward}"));
    SourceFeedback { author: Kind::TauBench.name().to_owned(), rating, note, created_at: None }
}
