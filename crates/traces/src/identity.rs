//! What a trace is called.

use karat_json::canonical::sorted;
use karat_json::hash::{long_hash, short_hash};
use serde_json::Value;

use crate::kind::Kind;

/// Ids are in indexes and in lists for people: what is longer is none.
const LONGEST: usize = 512;

/// Returns an id that can be kept and shown.
pub(crate) fn checked_id(id: &str) -> Result<String, String> {
    if id.trim().is_empty() {
        return Err("the trace's id is empty".to_owned());
    }
    if id.len() > LONGEST {
        return Err(format!("the trace's id is longer than {LONGEST} bytes"));
    }
    if id.chars().any(char::is_control) {
        return Err("the trace's id has control characters".to_owned());
    }
    Ok(id.to_owned())
}

/// Returns an id for a trace whose source gives it none: the same content has the same one, whatever its keys' order
/// and white space.
pub(crate) fn id_by_content(kind: Kind, value: &Value) -> String {
    format!("{kind}-{}", long_hash(sorted(value).to_string().as_bytes()))
}

/// Returns an id for an entry whose own id is only its file's: it begins with that, and ends in a hash of the content.
pub(crate) fn id_of_entry(entry: &str, value: &Value) -> Result<String, String> {
    checked_id(&format!("{}-{}", checked_id(entry)?, short_hash(sorted(value).to_string().as_bytes())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn content_names_itself() {
        let id = id_by_content(Kind::OpenAi, &json!({"a": 1, "b": 2}));
        assert_eq!(id, id_by_content(Kind::OpenAi, &json!({"b": 2, "a": 1})));
        assert_ne!(id, id_by_content(Kind::OpenAi, &json!({"a": 1, "b": 3})));
        assert!(id.starts_with("openai-") && id.len() == "openai-".len() + 32, "{id}");
    }

    #[test]
    fn a_long_id_is_none() {
        assert!(checked_id(&"a".repeat(513)).is_err());
    }
}
