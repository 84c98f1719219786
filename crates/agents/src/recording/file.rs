//! A recording as a file: laid out so that a review shows what changed.

use karat_core::port::AgentError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::{Answer, WrittenError};
use super::key::Key;

/// Which form of the file this program writes and reads.
const VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<A> {
    recording: u64,
    asked: Map<String, Value>,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    answer: Option<A>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<WrittenError>,
}

/// Why a file that is there cannot be replayed, as a fragment that fits after its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("cannot be read: {0}")]
    Io(String),
    #[error("is damaged: {0}")]
    Damaged(String),
    #[error("is of another version ({0}): record it again")]
    Version(String),
    #[error("holds the answer to another question: was it edited?")]
    OtherQuestion,
}

/// Returns the file's bytes.
pub(super) fn write<A: Answer>(key: &Key, outcome: &Result<A, AgentError>) -> Result<Vec<u8>, String> {
    let written = Written {
        recording: VERSION,
        asked: key.asked().clone(),
        answer: outcome.as_ref().ok().map(Answer::write),
        error: outcome.as_ref().err().map(WrittenError::of),
    };
    let mut bytes = serde_json::to_vec_pretty(&written).map_err(|error| error.to_string())?;
    bytes.push(b'\n');
    // An answer that nests deeper than any reader goes must be known of now, not when it is missed.
    match read::<A>(key, &bytes) {
        Ok(read) if read == *outcome => Ok(bytes),
        Ok(_) => Err("it would not be read back as it is".to_owned()),
        Err(unreadable) => Err(format!("the file would not be read back: it {unreadable}")),
    }
}

/// Returns what was recorded, if it was recorded for this key.
pub(super) fn read<A: Answer>(key: &Key, bytes: &[u8]) -> Result<Result<A, AgentError>, Unreadable> {
    let written: Written<A::Written> = match serde_json::from_slice(bytes) {
        Ok(written) => written,
        Err(error) => return Err(other_version(bytes).unwrap_or(Unreadable::Damaged(error.to_string()))),
    };
    if written.recording != VERSION {
        return Err(Unreadable::Version(written.recording.to_string()));
    }
    if written.asked != *key.asked() {
        return Err(Unreadable::OtherQuestion);
    }
    match (written.answer, written.error) {
        (Some(answer), None) => Ok(Ok(A::read(answer))),
        (None, Some(error)) => Ok(Err(error.read())),
        _ => Err(Unreadable::Damaged("expected one of 'answer' and 'error'".to_owned())),
    }
}

/// A later version may look different in every other way.
fn other_version(bytes: &[u8]) -> Option<Unreadable> {
    #[derive(Deserialize)]
    struct Versioned {
        recording: Value,
    }
    let versioned: Versioned = serde_json::from_slice(bytes).ok()?;
    (versioned.recording != VERSION).then(|| Unreadable::Version(versioned.recording.to_string()))
}

/// Returns what a recording was asked, whatever came of it; none where it is no recording of this version.
pub(super) fn read_asked(bytes: &[u8]) -> Option<Map<String, Value>> {
    #[derive(Deserialize)]
    struct Asked {
        recording: u64,
        asked: Map<String, Value>,
    }
    let Asked { recording, asked } = serde_json::from_slice(bytes).ok()?;
    (recording == VERSION).then_some(asked)
}

/// A text, line by line where it has several: so a review shows the line that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Text {
    Line(String),
    Lines(Vec<String>),
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        // Only here: a carriage return is a character like any other and stays in its line.
        if text.contains('\n') { Text::Lines(text.split('\n').map(str::to_owned).collect()) } else { Text::Line(text) }
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        match text {
            Text::Line(line) => line,
            Text::Lines(lines) => lines.join("\n"),
        }
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        match text {
            Text::Line(line) => Value::String(line),
            Text::Lines(lines) => Value::Array(lines.into_iter().map(Value::String).collect()),
        }
    }
}
