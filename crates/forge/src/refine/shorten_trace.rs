//! Shortens traces for a prompt: keeps their shape, and truncates long texts and lists.

use karat_json::text::shorten;
use serde_json::{Map, Value};

/// Maximum characters of texts and maximum elements of lists, from generous to strict.
const LIMITS: [(usize, usize); 6] = [(1200, 24), (500, 12), (200, 8), (80, 6), (40, 4), (20, 2)];

/// Maximum nesting depth. It is reduced if the strictest limits are still too generous.
const MAX_DEPTH: usize = 16;

/// Prefixes of metadata keys that reveal the right answer. Code that used them would judge the label instead of the
/// agent.
const ANSWER_KEYS: [&str; 8] =
    ["expected", "ground_truth", "groundtruth", "gold", "reference", "reward", "score", "label"];

/// Removes metadata that reveals the right answer.
fn without_answers(trace: &Value) -> Value {
    let mut output = trace.clone();
    if let Some(metadata) = output.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| {
            let key = key.to_lowercase();
            !ANSWER_KEYS.iter().any(|answer| key.starts_with(answer))
        });
    }
    output
}

/// Shortens a trace to about `max_bytes` of JSON. Lists keep their first and last elements, objects their first
/// members; a placeholder for the rest starts with `…`.
pub(super) fn shorten_trace(trace: &Value, max_bytes: usize) -> Value {
    let trace = without_answers(trace);
    let full_depth = LIMITS.into_iter().map(|(max_chars, max_items)| Limits { max_chars, max_items, depth: MAX_DEPTH });
    let (max_chars, max_items) = LIMITS[LIMITS.len() - 1];
    let shallow = (1..MAX_DEPTH).rev().map(|depth| Limits { max_chars, max_items, depth });
    let mut output = Value::Null;
    for limits in full_depth.chain(shallow) {
        output = limits.apply(&trace);
        if output.to_string().len() <= max_bytes {
            break;
        }
    }
    output
}

/// How much of a trace is kept.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Maximum length of text, in characters.
    max_chars: usize,
    /// Maximum number of elements of a list.
    max_items: usize,
    depth: usize,
}

impl Limits {
    fn apply(self, value: &Value) -> Value {
        match value {
            Value::String(text) => shorten(text, self.max_chars).into(),
            Value::Array(items) if items.is_empty() => value.clone(),
            Value::Object(members) if members.is_empty() => value.clone(),
            Value::Array(items) if self.depth == 0 => format!("… {} elements", items.len()).into(),
            Value::Object(members) if self.depth == 0 => format!("… {} members", members.len()).into(),
            Value::Array(items) => self.deeper().list(items, self.max_items),
            // Members of an object, such as a step, matter more than elements of a list.
            Value::Object(members) => self.deeper().object(members, 2 * self.max_items + 4),
            other => other.clone(),
        }
    }

    fn deeper(self) -> Self {
        Self { depth: self.depth - 1, ..self }
    }

    fn list(self, items: &[Value], max_items: usize) -> Value {
        if items.len() <= max_items {
            return items.iter().map(|item| self.apply(item)).collect();
        }
        let (first, last) = (max_items / 2, items.len() - max_items / 2);
        let between = Value::from(format!("… {} more", last - first));
        let output = items[..first].iter().map(|item| self.apply(item));
        output.chain([between]).chain(items[last..].iter().map(|item| self.apply(item))).collect()
    }

    fn object(self, members: &Map<String, Value>, max_items: usize) -> Value {
        let output = members.iter().take(max_items);
        let mut output: Map<String, Value> =
            output.map(|(key, value)| (shorten(key, self.max_chars.max(40)).into_owned(), self.apply(value))).collect();
        if members.len() > max_items {
            output.insert("…".to_owned(), format!("… {} more", members.len() - max_items).into());
        }
        Value::Object(output)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MAX_BYTES: usize = 6000;

    #[test]
    fn keeps_short_traces() {
        let trace = json!({"trace_id": "t", "steps": [{"output": {"response": "Yes", "score": 1.5}}]});
        assert_eq!(shorten_trace(&trace, MAX_BYTES), trace);
    }

    #[test]
    fn removes_right_answers() {
        let trace = json!({
            "metadata": {"expected_actions": [1], "Expected_Outputs": [2], "reward": 1.0, "task_id": 3},
            "steps": [{"output": {"score": 1}}],
        });
        let output = json!({"metadata": {"task_id": 3}, "steps": [{"output": {"score": 1}}]});
        assert_eq!(shorten_trace(&trace, MAX_BYTES), output);
    }

    #[test]
    fn long_traces_keep_their_shape() {
        let step = json!({"input": {"message": "q".repeat(5000)}, "tool_calls": []});
        let trace = json!({"trace_id": "t", "steps": vec![step; 100]});
        let output = shorten_trace(&trace, MAX_BYTES);
        assert!(output.to_string().len() <= MAX_BYTES, "{}", output.to_string().len());
        let steps = output["steps"].as_array().expect("steps");
        let marks: Vec<&str> = steps.iter().filter_map(Value::as_str).collect();
        assert!(marks.len() == 1 && marks[0].starts_with("… "), "{marks:?}");
        assert!(steps[0]["input"]["message"].as_str().is_some_and(|text| text.starts_with("qqq")));
    }

    #[test]
    fn limits_wide_and_deep_traces() {
        let wide: Map<String, Value> = (0..5000).map(|key| (format!("key-{key}"), json!("v".repeat(90)))).collect();
        let deep = (0..60).fold(json!("x".repeat(500)), |inner, _| json!({"inner": [inner, "y".repeat(50)]}));
        let both = json!({"trace_id": "t", "steps": vec![json!({"input": wide, "output": deep}); 30]});
        for trace in [Value::Object(wide), deep, both] {
            for max_bytes in [800, 3000, MAX_BYTES] {
                let output = shorten_trace(&trace, max_bytes);
                assert!(output.is_object() && output.to_string().len() <= max_bytes, "{output}");
            }
        }
    }
}
