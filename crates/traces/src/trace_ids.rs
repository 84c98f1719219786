//! Ids of imported traces.

use karat_json::canonical::sorted;
use karat_json::hash::{long_hash, short_hash};
use serde_json::Value;

use crate::format::TraceFormat;

/// Ids are indexed and displayed, so their length is limited.
const MAX_ID_BYTES: usize = 512;

/// Returns the id if it can be stored and displayed.
pub(crate) fn validate_id(id: &str) -> Result<String, String> {
    if id.trim().is_empty() {
        return Err("the trace id is empty".to_owned());
    }
    if id.len() > MAX_ID_BYTES {
        return Err(format!("the trace id is longer than {MAX_ID_BYTES} bytes"));
    }
    if id.chars().any(char::is_control) {
        return Err("the trace id contains control characters".to_owned());
    }
    Ok(id.to_owned())
}

/// Returns an id for a trace without one, derived from its content regardless of key order and whitespace.
pub(crate) fn content_id(format: TraceFormat, value: &Value) -> String {
    format!("{format}-{}", long_hash(sorted(value).to_string().as_bytes()))
}

/// Returns an id for an entry whose own id is unique only within its file: that id, followed by a hash of the content.
pub(crate) fn entry_id(entry: &str, value: &Value) -> Result<String, String> {
    validate_id(&format!("{}-{}", validate_id(entry)?, short_hash(sorted(value).to_string().as_bytes())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn content_id_ignores_key_order() {
        let id = content_id(TraceFormat::OpenAi, &json!({"a": 1, "b": 2}));
        assert_eq!(id, content_id(TraceFormat::OpenAi, &json!({"b": 2, "a": 1})));
        assert_ne!(id, content_id(TraceFormat::OpenAi, &json!({"a": 1, "b": 3})));
        assert!(id.starts_with("openai-") && id.len() == "openai-".len() + 32, "{id}");
    }

    #[test]
    fn rejects_long_ids() {
        assert!(validate_id(&"a".repeat(513)).is_err());
    }
}
