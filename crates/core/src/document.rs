//! Trace documents: the JSON form in which traces are judged, stored, shown and drafted from.
//!
//! A document is parsed once, on entry. Eval functions get its text; everything else uses the views, which treat
//! members of unexpected shapes as absent. Text that is not a trace is an error, never an empty trace.

mod answer;
mod content;
mod input;
mod view;

use std::sync::Arc;

use jiff::Timestamp;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

pub use self::answer::{AnswerDocument, RunOrigin};
pub use self::content::{Message, Step, StepCall, StepInput, StepOutput, StepUsage, TraceContent};
pub use self::input::UserInput;
pub use self::view::{CallView, MessageView, StepView, error_of};

use self::view::{texts, time};

/// A parsed trace document: its text, and accessors to its content.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceDocument {
    text: Arc<str>,
    /// An object with a list `steps` of objects, whose `tool_calls` are objects with a name.
    value: Arc<Value>,
}

/// The error for a string that is not a trace document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// A document is one line, so the column is enough.
    #[error("not valid JSON: {message} at column {column}")]
    Json { message: String, column: usize },
    #[error("{location} {problem}")]
    Shape { location: String, problem: &'static str },
}

/// A stored trace whose document cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the document of trace '{trace_id}': {source}")]
pub struct UnreadableTrace {
    pub trace_id: String,
    pub source: DocumentError,
}

impl From<serde_json::Error> for DocumentError {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        let message = text.split(" at line ").next().unwrap_or(&text).to_owned();
        Self::Json { message, column: error.column() }
    }
}

impl DocumentError {
    fn shape(location: impl Into<String>, problem: &'static str) -> Self {
        Self::Shape { location: location.into(), problem }
    }
}

impl TraceDocument {
    pub fn parse(text: impl Into<Arc<str>>) -> Result<Self, DocumentError> {
        let text = text.into();
        let value = serde_json::from_str(&text)?;
        Self::check(&value)?;
        Ok(Self { text, value: Arc::new(value) })
    }

    /// Checks the shape of a trace, as far as the views rely on it.
    pub fn check(value: &Value) -> Result<(), DocumentError> {
        let Value::Object(trace) = value else {
            return Err(DocumentError::shape("the trace", "is not an object"));
        };
        let Some(Value::Array(steps)) = trace.get("steps") else {
            return Err(DocumentError::shape("the trace", "has no 'steps' list"));
        };
        steps.iter().enumerate().try_for_each(|(index, step)| check_step(index, step))
    }

    /// Returns the JSON text, byte for byte as it was parsed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the whole document as JSON.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the trace id; a number is converted to text.
    pub fn trace_id(&self) -> Option<String> {
        match self.value.get("trace_id")? {
            Value::String(id) if !id.trim().is_empty() => Some(id.clone()),
            Value::Number(id) => Some(id.to_string()),
            _ => None,
        }
    }

    pub fn name(&self) -> Option<&str> {
        self.member("name")
    }

    /// Returns the session id; some sources use a number.
    pub fn session_id(&self) -> Option<&Value> {
        self.value.get("session_id")
    }

    pub fn user_id(&self) -> Option<&str> {
        self.member("user_id")
    }

    /// Returns the model of the trace, or of the last step that names one.
    pub fn model(&self) -> Option<&str> {
        self.member("model").or_else(|| self.steps().rev().find_map(StepView::model))
    }

    pub fn started_at(&self) -> Option<Timestamp> {
        time(self.value.get("started_at")).filter(is_plausible)
    }

    pub fn ended_at(&self) -> Option<Timestamp> {
        time(self.value.get("ended_at")).filter(is_plausible)
    }

    pub fn usage(&self) -> StepUsage {
        let usage = |key: &str| self.value.get("usage").and_then(|usage| usage.get(key));
        StepUsage {
            input_tokens: usage("input_tokens").and_then(Value::as_u64),
            output_tokens: usage("output_tokens").and_then(Value::as_u64),
            cached_input_tokens: usage("cached_input_tokens").and_then(Value::as_u64),
            cost_usd: usage("cost_usd").and_then(Value::as_f64),
        }
    }

    /// Returns an error outside the steps.
    pub fn error(&self) -> Option<&Value> {
        error_of(&self.value)
    }

    pub fn tags(&self) -> Vec<&str> {
        texts(self.value.get("tags"))
    }

    /// Returns a metadata value of the whole trace.
    pub fn metadata(&self, key: &str) -> Option<&Value> {
        self.value.get("metadata").and_then(|metadata| metadata.get(key))
    }

    pub fn steps(&self) -> impl DoubleEndedIterator<Item = StepView<'_>> + ExactSizeIterator {
        let steps = self.value.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        steps.iter().map(StepView::new)
    }

    /// Returns the calls of all steps, in order.
    pub fn calls(&self) -> impl Iterator<Item = CallView<'_>> {
        self.steps().flat_map(StepView::calls)
    }

    fn member(&self, key: &str) -> Option<&str> {
        self.value.get(key).and_then(Value::as_str)
    }
}

/// Writes the original text unchanged.
impl Serialize for TraceDocument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.text).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// Agents do not run before 1970: an earlier time comes from an unset clock or is not a time.
fn is_plausible(time: &Timestamp) -> bool {
    *time >= Timestamp::UNIX_EPOCH
}

fn check_step(index: usize, step: &Value) -> Result<(), DocumentError> {
    let Value::Object(step) = step else {
        return Err(DocumentError::shape(format!("steps[{index}]"), "is not an object"));
    };
    match step.get("tool_calls") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(calls)) => calls.iter().enumerate().try_for_each(|(call_index, call)| {
            let error = |key: &str, problem| {
                Err(DocumentError::shape(format!("steps[{index}].tool_calls[{call_index}]{key}"), problem))
            };
            match call.as_object().map(|call| call.get("name")) {
                None => error("", "is not an object"),
                Some(None | Some(Value::Null)) => error("", "has no 'name'"),
                Some(Some(Value::String(_))) => Ok(()),
                Some(Some(_)) => error(".name", "is not a string"),
            }
        }),
        Some(_) => Err(DocumentError::shape(format!("steps[{index}].tool_calls"), "is not a list")),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn preserves_the_text_byte_for_byte() {
        let text = r#"{"trace_id": "t-1",  "steps": [{"x": 1.50}], "mine": 1e2}"#;
        let document = TraceDocument::parse(text).expect("valid trace");
        assert_eq!((document.text(), document.trace_id().as_deref()), (text, Some("t-1")));
        assert_eq!(serde_json::to_string(&[document]).expect("serializable"), format!("[{text}]"));
    }

    #[rstest]
    #[case("", "not valid JSON: EOF while parsing a value at column 0")]
    #[case(r#"{"steps": ["#, "not valid JSON: EOF while parsing a list at column 11")]
    #[case("null", "the trace is not an object")]
    #[case("[1]", "the trace is not an object")]
    #[case("{}", "the trace has no 'steps' list")]
    #[case(r#"{"trace_id": "a", "steps": "none"}"#, "the trace has no 'steps' list")]
    #[case(r#"{"steps": [{}, 3]}"#, "steps[1] is not an object")]
    #[case(r#"{"steps": [{"tool_calls": {}}]}"#, "steps[0].tool_calls is not a list")]
    #[case(r#"{"steps": [{"tool_calls": [1]}]}"#, "steps[0].tool_calls[0] is not an object")]
    #[case(r#"{"steps": [{"tool_calls": [{"name": "a"}, {}]}]}"#, "steps[0].tool_calls[1] has no 'name'")]
    #[case(r#"{"steps": [{"tool_calls": [{"name": 1}]}]}"#, "steps[0].tool_calls[0].name is not a string")]
    fn rejects_text_that_is_not_a_trace(#[case] text: &str, #[case] expected: &str) {
        let source = TraceDocument::parse(text).expect_err("not a trace");
        assert_eq!(source.to_string(), expected);
        let error = UnreadableTrace { trace_id: "t-1".to_owned(), source };
        assert_eq!(error.to_string(), format!("cannot read the document of trace 't-1': {expected}"));
    }

    #[test]
    fn rejects_deep_nesting() {
        let text = format!("{{\"steps\": {}", "[".repeat(100_000));
        assert!(TraceDocument::parse(text).is_err_and(|error| error.to_string().contains("recursion limit")));
    }

    #[test]
    fn ignores_members_of_unexpected_shapes() {
        let text = r#"{"trace_id": 7, "name": 3, "tags": ["a", 1], "usage": {"input_tokens": "many", "cost_usd": 1},
            "started_at": "yesterday", "error": false, "steps": [{"tool_calls": null, "error": ""}]}"#;
        let document = TraceDocument::parse(text).expect("valid trace");
        assert_eq!((document.trace_id().as_deref(), document.name()), (Some("7"), None));
        assert_eq!((document.tags(), document.started_at(), document.error()), (vec!["a"], None, None));
        assert_eq!(document.usage(), StepUsage { cost_usd: Some(1.0), ..StepUsage::default() });
        assert_eq!((document.calls().count(), document.steps().filter(|step| step.error().is_some()).count()), (0, 0));
    }
}
