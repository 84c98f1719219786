//! Finds the preset for a running agent, and writes it to the configuration.

use std::path::Path;
use std::time::Duration;

use karat_agents::{DetectedAgent, DetectionAttempt, Evidence, Preset, detect_by_replies, discover};
use karat_json::{Finding, InvalidFile, JsonText, Side};
use karat_project::{create_file, read_text, replace_file};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::context::Context;
use crate::error::Error;

/// The message that is sent if discovery finds nothing.
pub const MESSAGE: &str = "Hello";

/// Maximum time for each reply. An agent that answers with a model may take seconds.
const MAX_REPLY_TIME: Duration = Duration::from_secs(20);

const ENDPOINT_KEY: &str = "agentEndpoint";

/// The result of detecting the agent at a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Detection {
    pub url: String,
    /// The value of `agentEndpoint`, if the agent was recognised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_endpoint: Option<String>,
    /// The preset; absent for the format that karat reads without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How the agent was recognised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// The description of the preset, and hints such as other values of parameters.
    pub notes: Vec<String>,
    /// The kinds that were tried with a message, without success.
    pub tried: Vec<TriedKind>,
    /// The file to which the endpoint was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
}

/// A kind that was tried without success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriedKind {
    /// Absent for the format that karat reads without a preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub problem: String,
}

impl Detection {
    pub fn is_recognised(&self) -> bool {
        self.agent_endpoint.is_some()
    }
}

/// Returns a URL with a scheme.
pub fn complete_url(url: &str) -> String {
    if url.contains("://") { url.to_owned() } else { format!("http://{url}") }
}

/// Requests the documented discovery endpoints of all products. This has no side effects.
pub async fn by_discovery(url: &str) -> Result<Detection, Error> {
    let agent = discover(url).await.map_err(|error| Error::invalid(error.to_string()))?;
    Ok(detection(url, agent, Vec::new()))
}

/// Sends a message in the format of each product.
pub async fn by_replies(url: &str, context: &Context<'_>) -> Detection {
    let timeout = context.settings.timeout.min(MAX_REPLY_TIME);
    let (agent, attempts) = detect_by_replies(url, MESSAGE, timeout).await;
    detection(url, agent, attempts)
}

fn detection(url: &str, agent: Option<DetectedAgent>, attempts: Vec<DetectionAttempt>) -> Detection {
    let tried = |DetectionAttempt { kind, problem }| TriedKind { kind: kind.map(str::to_owned), problem };
    let tried = attempts.into_iter().map(tried).collect();
    let mut detection = Detection {
        url: url.to_owned(),
        agent_endpoint: None,
        kind: None,
        evidence: None,
        notes: Vec::new(),
        tried,
        written: None,
    };
    if let Some(DetectedAgent { kind, endpoint, evidence, notes }) = agent {
        detection.evidence = Some(match evidence {
            Evidence::Discovery(url) => format!("the reply of {url}"),
            Evidence::Path => "the path of the URL".to_owned(),
            Evidence::Reply => format!("the reply to '{MESSAGE}'"),
        });
        detection.agent_endpoint = Some(endpoint);
        detection.notes =
            kind.and_then(Preset::by_name).map(|preset| preset.description).into_iter().chain(notes).collect();
        detection.kind = kind.map(str::to_owned);
    }
    detection
}

/// Writes the endpoint to the project's configuration, and leaves its other keys as they are. Returns the file.
pub fn write(endpoint: &str, context: &Context<'_>) -> Result<String, Error> {
    let file = &context.settings.config_file;
    let display_path = context.settings.display_path(file);
    let _lock = context.edit_lock()?;
    let cannot_write = |error: std::io::Error| Error::cannot_write(&display_path, &error);
    if !file.exists() {
        let text = JsonText::of(&json!({ENDPOINT_KEY: endpoint})).into_text();
        create_file(file, text.as_bytes()).map_err(cannot_write)?;
        return Ok(display_path);
    }
    let text = with_endpoint(file, &display_path, endpoint)?;
    replace_file(file, &text).map_err(cannot_write)?;
    Ok(display_path)
}

/// Returns the configuration with the endpoint.
fn with_endpoint(file: &Path, display_path: &str, endpoint: &str) -> Result<String, Error> {
    let text = read_text(file, "the configuration")?;
    let mut json = JsonText::read(&text).map_err(|error| {
        let findings = vec![Finding::syntax(&text, error)];
        Error::invalid_files(vec![InvalidFile { name: display_path.to_owned(), text: text.clone(), findings }])
    })?;
    let value: Value = serde_json::from_str(json.text()).unwrap_or_default();
    if value.get("matrix").is_some() {
        return Err(Error::invalid(format!("{display_path} has 'matrix', which conflicts with '{ENDPOINT_KEY}'"))
            .hint(format!("add \"{endpoint}\" to 'matrix'")));
    }
    let edited = if value.get(ENDPOINT_KEY).is_some() {
        json.replace(&format!("/{ENDPOINT_KEY}"), &endpoint.into())
    } else {
        json.insert("", ENDPOINT_KEY, &endpoint.into(), Side::First)
    };
    edited.map_err(|error| Error::invalid(format!("cannot edit {display_path}: {error}")))?;
    Ok(json.into_text())
}
