//! Captures state sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use karat_core::port::{BoxFuture, HookError, StateSources, ToolRunner};
use karat_http::fetch;
use serde_json::{Value, json};

use crate::call::{MAX_BYTES, call_url, headers, run_command, timed_out};
use crate::config::{McpToolCall, SourceConfig, SourceForm, SourceOrigin};

/// A source that is ready to be captured.
pub struct Source {
    /// Its variables are expanded.
    pub config: SourceConfig,
    /// The source without secrets.
    pub definition: Value,
    /// The tools of the server that the source names, if it does.
    pub tools: Option<Arc<dyn ToolRunner>>,
}

impl Source {
    /// Prepares a source; `expanded` is the same with its variables expanded.
    pub fn new(config: &SourceConfig, expanded: SourceConfig, tools: Option<Arc<dyn ToolRunner>>) -> Self {
        let definition = json!(SourceConfig { isolated: false, ..config.clone() });
        Self { config: expanded, definition, tools }
    }
}

/// The state sources of a project.
pub struct ProjectSources {
    sources: BTreeMap<String, Source>,
    /// The folder that programs run in, and that files are relative to.
    folder: PathBuf,
    /// The time limit of each capture.
    limit: Duration,
}

impl ProjectSources {
    pub fn new(sources: BTreeMap<String, Source>, folder: PathBuf, limit: Duration) -> Self {
        Self { sources, folder, limit }
    }

    async fn read(&self, source: &Source, case_id: &str) -> Result<Value, String> {
        let form = source.config.form;
        match &source.config.origin {
            SourceOrigin::Command { command } => {
                let output = run_command(command, &self.folder, Some(case_id), self.limit).await?;
                match form {
                    SourceForm::Json => parse(&output, "the output"),
                    // As in a shell, the line break that ends the output is not part of it.
                    SourceForm::Text => {
                        let text = as_text(output)?;
                        let line = text.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
                        Ok(line.unwrap_or(&text).into())
                    }
                }
            }
            SourceOrigin::Url { url, headers: own } => {
                let body = call_url(fetch(url, &headers(own), MAX_BYTES as u64), self.limit).await?;
                read_bytes(body, form, "the reply")
            }
            SourceOrigin::File { file } => {
                let path = self.folder.join(file);
                let reading = tokio::time::timeout(self.limit, read_file(&path)).await;
                let bytes = reading.unwrap_or_else(|_| Err(format!("reading it {}", timed_out(self.limit))));
                read_bytes(bytes.map_err(|error| format!("{file}: {error}"))?, form, file)
            }
            SourceOrigin::McpTool { mcp_tool } => {
                let calling = call_tool(source, mcp_tool);
                let result = tokio::time::timeout(self.limit, calling).await;
                let result = result.unwrap_or_else(|_| Err(format!("the tool {}", timed_out(self.limit))))?;
                match (form, result) {
                    (SourceForm::Json, Value::String(text)) => parse(text.as_bytes(), "the result"),
                    (SourceForm::Text, result) if !result.is_string() => Ok(result.to_string().into()),
                    (_, result) => Ok(result),
                }
            }
        }
    }
}

async fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let size = tokio::fs::metadata(path).await.map_err(|error| error.to_string())?.len();
    if size > MAX_BYTES as u64 {
        return Err(format!("larger than {MAX_BYTES} bytes"));
    }
    tokio::fs::read(path).await.map_err(|error| error.to_string())
}

async fn call_tool(source: &Source, call: &McpToolCall) -> Result<Value, String> {
    let McpToolCall { server, tool, arguments } = call;
    let tools = source.tools.as_ref().ok_or_else(|| format!("no connection to the MCP server '{server}'"))?;
    let outcome = tools.call(tool, arguments).await.map_err(|error| error.to_string())?;
    match outcome.error {
        Some(error) => Err(format!("the tool '{tool}' of '{server}' failed: {error}")),
        None => Ok(outcome.result),
    }
}

fn read_bytes(bytes: Vec<u8>, form: SourceForm, subject: &str) -> Result<Value, String> {
    match form {
        SourceForm::Json => parse(&bytes, subject),
        SourceForm::Text => as_text(bytes).map(Value::from),
    }
}

fn as_text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| format!("not valid UTF-8: {}", error.utf8_error()))
}

fn parse(bytes: &[u8], subject: &str) -> Result<Value, String> {
    if bytes.trim_ascii().is_empty() {
        return Err(format!("{subject} is empty, expected JSON"));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| format!("{subject} is not valid JSON ({error}); for text, set \"as\": \"text\""))
}

impl StateSources for ProjectSources {
    fn capture<'a>(&'a self, source: &'a str, case_id: &'a str) -> BoxFuture<'a, Result<Value, HookError>> {
        Box::pin(async move {
            let captured = match self.sources.get(source) {
                Some(source) => self.read(source, case_id).await,
                None => Err("there is no such source".to_owned()),
            };
            captured.map_err(|message| HookError(format!("cannot capture the state of '{source}': {message}")))
        })
    }

    fn is_isolated(&self, source: &str) -> bool {
        self.sources.get(source).is_some_and(|source| source.config.isolated)
    }

    fn definition(&self, source: &str) -> Value {
        self.sources.get(source).map(|source| source.definition.clone()).unwrap_or_default()
    }
}
