//! Traces as a model is told of them: in their own shape, with long texts and long lists cut.

use karat_json::text::shorten;
use serde_json::{Map, Value};

/// How long texts are and how many elements lists have, at first and where that is too much.
const MEASURES: [(usize, usize); 6] = [(1200, 24), (500, 12), (200, 8), (80, 6), (40, 4), (20, 2)];

/// How deep a trace is told. Where even the shortest measure is too much, less and less.
const DEEPEST: usize = 16;

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

/// Shortens a trace to about so many bytes of JSON. It keeps its shape: of a list the first and the last elements are
/// told, of a wide object the first members; what stands for the rest begins with `…`.
pub(super) fn shortened(trace: &Value, most_bytes: usize) -> Value {
    let trace = without_answers(trace);
    let measures = MEASURES.into_iter().map(|(longest, most)| Measure { longest, most, depth: DEEPEST });
    let (longest, most) = MEASURES[MEASURES.len() - 1];
    let shallow = (1..DEEPEST).rev().map(|depth| Measure { longest, most, depth });
    let mut told = Value::Null;
    for measure in measures.chain(shallow) {
        told = measure.cut(&trace);
        if told.to_string().len() <= most_bytes {
            break;
        }
    }
    told
}

/// How much is told.
#[derive(Debug, Clone, Copy)]
struct Measure {
    /// Of a text, in characters.
    longest: usize,
    /// Of a list's elements.
    most: usize,
    depth: usize,
}

impl Measure {
    fn cut(self, value: &Value) -> Value {
        match value {
            Value::String(text) => shorten(text, self.longest).into(),
            Value::Array(items) if items.is_empty() => value.clone(),
            Value::Object(members) if members.is_empty() => value.clone(),
            Value::Array(items) if self.depth == 0 => format!("… {} elements", items.len()).into(),
            Value::Object(members) if self.depth == 0 => format!("… {} members", members.len()).into(),
            Value::Array(items) => self.deeper().list(items, self.most),
            // A step has about a dozen members, which are worth more than elements of a list.
            Value::Object(members) => self.deeper().object(members, 2 * self.most + 4),
            other => other.clone(),
        }
    }

    fn deeper(self) -> Self {
        Self { depth: self.depth - 1, ..self }
    }

    fn list(self, items: &[Value], most: usize) -> Value {
        if items.len() <= most {
            return items.iter().map(|item| self.cut(item)).collect();
        }
        let (first, last) = (most / 2, items.len() - most / 2);
        let between = Value::from(format!("… {} more", last - first));
        let told = items[..first].iter().map(|item| self.cut(item));
        told.chain([between]).chain(items[last..].iter().map(|item| self.cut(item))).collect()
    }

    fn object(self, members: &Map<String, Value>, most: usize) -> Value {
        let told = members.iter().take(most);
        let mut told: Map<String, Value> =
            told.map(|(key, value)| (shorten(key, self.longest.max(40)).into_owned(), self.cut(value))).collect();
        if members.len() > most {
            told.insert("…".to_owned(), format!("… {} more", members.len() - most).into());
        }
        Value::Object(told)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MOST_BYTES: usize = 6000;

    #[test]
    fn a_short_trace_is_told_whole() {
        let trace = json!({"trace_id": "t", "steps": [{"output": {"response": "Yes", "score": 1.5}}]});
        assert_eq!(shortened(&trace, MOST_BYTES), trace);
    }

    #[test]
    fn no_right_answer_is_told() {
        let trace = json!({
            "metadata": {"expected_actions": [1], "Expected_Outputs": [2], "reward": 1.0, "task_id": 3},
            "steps": [{"output": {"score": 1}}],
        });
        let told = json!({"metadata": {"task_id": 3}, "steps": [{"output": {"score": 1}}]});
        assert_eq!(shortened(&trace, MOST_BYTES), told);
    }

    #[test]
    fn a_long_trace_keeps_its_shape() {
        let step = json!({"input": {"message": "q".repeat(5000)}, "tool_calls": []});
        let trace = json!({"trace_id": "t", "steps": vec![step; 100]});
        let told = shortened(&trace, MOST_BYTES);
        assert!(told.to_string().len() <= MOST_BYTES, "{}", told.to_string().len());
        let steps = told["steps"].as_array().expect("steps");
        let marks: Vec<&str> = steps.iter().filter_map(Value::as_str).collect();
        assert!(marks.len() == 1 && marks[0].starts_with("… "), "{marks:?}");
        assert!(steps[0]["input"]["message"].as_str().is_some_and(|text| text.starts_with("qqq")));
    }

    #[test]
    fn nothing_is_endless() {
        let wide: Map<String, Value> = (0..5000).map(|key| (format!("key-{key}"), json!("v".repeat(90)))).collect();
        let deep = (0..60).fold(json!("x".repeat(500)), |inner, _| json!({"inner": [inner, "y".repeat(50)]}));
        let both = json!({"trace_id": "t", "steps": vec![json!({"input": wide, "output": deep}); 30]});
        for trace in [Value::Object(wide), deep, both] {
            for most_bytes in [800, 3000, MOST_BYTES] {
                let told = shortened(&trace, most_bytes);
                assert!(told.is_object() && told.to_string().len() <= most_bytes, "{told}");
            }
        }
    }
}
