//! The file format of recordings, laid out for readable diffs.

use karat_core::port::AgentError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::{Answer, RecordedError, as_replayed};
use super::key::Key;

const FORMAT_VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordingFile<A> {
    recording: u64,
    asked: Map<String, Value>,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    answer: Option<A>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RecordedError>,
}

/// Why a recording cannot be replayed; follows the file name in messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RecordingError {
    #[error("cannot be read: {0}")]
    Io(String),
    #[error("is corrupt: {0}")]
    Corrupt(String),
    #[error("has unsupported version {0}: record it again")]
    Version(String),
    #[error("belongs to another request; it may have been edited")]
    OtherRequest,
}

/// Serialises a recording.
pub(super) fn write<A: Answer>(key: &Key, outcome: &Result<A, AgentError>) -> Result<Vec<u8>, String> {
    let file = RecordingFile {
        recording: FORMAT_VERSION,
        asked: key.parts().clone(),
        answer: outcome.as_ref().ok().map(Answer::to_recorded),
        error: outcome.as_ref().err().map(RecordedError::new),
    };
    let mut bytes = serde_json::to_vec_pretty(&file).map_err(|error| error.to_string())?;
    bytes.push(b'\n');
    // An unreadable recording, such as an answer nested too deeply to parse, must fail now and not at replay.
    let replayed = outcome.as_ref().map_err(as_replayed);
    match read::<A>(key, &bytes) {
        Ok(read) if read.as_ref().map_err(AgentError::clone) == replayed => Ok(bytes),
        Ok(_) => Err("it cannot be read back unchanged".to_owned()),
        Err(error) => Err(format!("it cannot be read back: the file {error}")),
    }
}

/// Parses a recording and checks that it belongs to the key.
pub(super) fn read<A: Answer>(key: &Key, bytes: &[u8]) -> Result<Result<A, AgentError>, RecordingError> {
    let file: RecordingFile<A::Recorded> = match serde_json::from_slice(bytes) {
        Ok(file) => file,
        Err(error) => return Err(unsupported_version(bytes).unwrap_or(RecordingError::Corrupt(error.to_string()))),
    };
    if file.recording != FORMAT_VERSION {
        return Err(RecordingError::Version(file.recording.to_string()));
    }
    if file.asked != *key.parts() {
        return Err(RecordingError::OtherRequest);
    }
    match (file.answer, file.error) {
        (Some(answer), None) => Ok(Ok(A::from_recorded(answer))),
        (None, Some(error)) => Ok(Err(error.into_error())),
        _ => Err(RecordingError::Corrupt("expected one of 'answer' and 'error'".to_owned())),
    }
}

/// Returns an error if the version differs. Ignores the rest of the file.
fn unsupported_version(bytes: &[u8]) -> Option<RecordingError> {
    #[derive(Deserialize)]
    struct VersionOnly {
        recording: Value,
    }
    let versioned: VersionOnly = serde_json::from_slice(bytes).ok()?;
    (versioned.recording != FORMAT_VERSION).then(|| RecordingError::Version(versioned.recording.to_string()))
}

/// Returns the request of a recording, or `None` if it is not a recording of this version.
pub(super) fn parse_request(bytes: &[u8]) -> Option<Map<String, Value>> {
    #[derive(Deserialize)]
    struct RequestOnly {
        recording: u64,
        asked: Map<String, Value>,
    }
    let RequestOnly { recording, asked } = serde_json::from_slice(bytes).ok()?;
    (recording == FORMAT_VERSION).then_some(asked)
}

/// A string; multiple lines are stored as an array, for readable diffs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Text {
    Line(String),
    Lines(Vec<String>),
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        // Not `lines()`: carriage returns must be preserved.
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
