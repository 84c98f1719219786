//! Traces as a model is told of them: in their own shape, with long texts and long lists cut.

use karat_core::text::shorten;
use serde_json::{Map, Value};

/// How much of a trace is told, in bytes of JSON.
const MOST_BYTES: usize = 6000;

/// How long texts are and how many elements lists have, at first and where that is too much.
const MEASURES: [(usize, usize); 4] = [(1200, 24), (500, 12), (200, 8), (80, 6)];

/// How metadata is called that says what should have come out. Code that went by it would judge the label, and not the
/// agent.
const ANSWERS: [&str; 8] = ["expected", "ground_truth", "groundtruth", "gold", "reference", "reward", "score", "label"];

/// Leaves out what the source knows of the right answer.
fn without_answers(trace: &Value) -> Value {
    let mut told = trace.clone();
    if let Some(metadata) = told.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| {
            let key = key.to_lowercase();
            !ANSWERS.iter().any(|answer| key.starts_with(answer))
        });
    }
    told
}

/// Shortens a trace. Of a list the first and the last elements are told; what stands for the rest begins with `…`.
pub(super) fn shortened(trace: &Value) -> Value {
    let trace = &without_answers(trace);
    let mut told = trace.clone();
    for (longest, most) in MEASURES {
        told = cut(trace, longest, most);
        if told.to_string().len() <= MOST_BYTES {
            return told;
        }
    }
    // Whatever it is, it is no longer than this.
    if told.to_string().len() > 2 * MOST_BYTES { shorten(&told.to_string(), MOST_BYTES).into() } else { told }
}

fn cut(value: &Value, longest: usize, most: usize) -> Value {
    match value {
        Value::String(text) => shorten(text, longest).into(),
        Value::Array(items) if items.len() > most => {
            let (first, last) = (most / 2, items.len() - most / 2);
            let between = Value::from(format!("… {} more", last - first));
            let told = items[..first].iter().map(|item| cut(item, longest, most));
            told.chain([between]).chain(items[last..].iter().map(|item| cut(item, longest, most))).collect()
        }
        Value::Array(items) => items.iter().map(|item| cut(item, longest, most)).collect(),
        Value::Object(members) => {
            let told = members.iter().map(|(key, value)| (key.clone(), cut(value, longest, most)));
            Value::Object(told.collect::<Map<String, Value>>())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_short_trace_is_told_whole() {
        let trace = json!({"trace_id": "t", "steps": [{"output": {"response": "Yes", "score": 1.5}}]});
        assert_eq!(shortened(&trace), trace);
    }

    #[test]
    fn no_right_answer_is_told() {
        let trace = json!({
            "metadata": {"expected_actions": [1], "Expected_Outputs": [2], "reward": 1.0, "task_id": 3},
            "steps": [{"output": {"score": 1}}],
        });
        let told = json!({"metadata": {"task_id": 3}, "steps": [{"output": {"score": 1}}]});
        assert_eq!(shortened(&trace), told);
    }

    #[test]
    fn a_long_trace_keeps_its_shape() {
        let step = json!({"input": {"message": "q".repeat(5000)}, "tool_calls": []});
        let trace = json!({"trace_id": "t", "steps": vec![step; 100]});
        let told = shortened(&trace);
        assert!(told.to_string().len() <= MOST_BYTES, "{}", told.to_string().len());
        let steps = told["steps"].as_array().expect("steps");
        let marks: Vec<&str> = steps.iter().filter_map(Value::as_str).collect();
        assert!(marks.len() == 1 && marks[0].starts_with("… "), "{marks:?}");
        assert!(steps[0]["input"]["message"].as_str().is_some_and(|text| text.starts_with("qqq")));
    }

    #[test]
    fn nothing_is_endless() {
        let wide: Map<String, Value> = (0..5000).map(|key| (format!("key-{key}"), json!("v"))).collect();
        assert!(shortened(&Value::Object(wide)).to_string().len() <= 2 * MOST_BYTES);
    }
}
