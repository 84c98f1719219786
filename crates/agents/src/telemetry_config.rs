//! Telemetry settings of agents.

use karat_json::{ObjectReader, Path, Problems, read_positive_count, read_string};
use schemars::JsonSchema;
use serde::Serialize;

/// How karat reads tool calls from the agent's OpenTelemetry spans. Every request has the header `traceparent`, and the
/// agent's spans belong to its trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TelemetryConfig {
    /// Address on which karat receives spans over HTTP, such as `127.0.0.1:4318`.
    pub otlp: String,
    /// Maximum time from the reply to the last span. Without spans, the case is errored.
    #[serde(default = "default_wait")]
    #[schemars(range(min = 1))]
    pub wait_ms: u64,
}

impl TelemetryConfig {
    pub(crate) fn read(value: &serde_json::Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let otlp = object.required("otlp", path, problems, read_string);
        let wait_ms = object.nullable("waitMs", path, problems, read_positive_count);
        object.close(path, problems);
        Some(Self { otlp: otlp?, wait_ms: wait_ms.unwrap_or_else(default_wait) })
    }
}

fn default_wait() -> u64 {
    5000
}
