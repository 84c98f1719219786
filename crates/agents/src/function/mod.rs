//! An agent that is a Python or JavaScript function of the project.
//!
//! It is called in an interpreter process, which is reused for many cases. The process runs `runner.py` or `runner.cjs`:
//! these load the function, then read one request per line and write one reply per line.

mod interpreter;
mod reply;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_cases::Case;
use karat_core::assertion::Mode;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, TrialContext, WaitGuard};
use karat_core::trace::Trace;
use karat_process::{Command, LineProcess, with_stderr};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::interpreter::find_interpreter;
use self::reply::read_value;
use crate::exchange::{ExchangeObserver, Observer, Purpose};
use crate::history::History;
use crate::http_config::HttpConfig;
use crate::process_pool::{PooledProcess, ProcessPool, no_answer_message};
use crate::program::STDERR;
use crate::reply::parse_reply;

/// How long the interpreter may take to load the function and what it imports.
const LOAD_TIMEOUT: Duration = Duration::from_mins(2);

/// Maximum size of the line that reports whether the function was loaded.
const MAX_LOAD_REPORT_BYTES: usize = 1024 * 1024;

/// Maximum number of bytes that the runner adds to the function's reply.
const MAX_ENVELOPE_BYTES: usize = 1024;

/// The language of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    JavaScript,
}

/// An invalid function agent.
#[derive(Debug, thiserror::Error)]
pub enum FunctionError {
    #[error("'{0}' does not name a function: use 'python:MODULE:FUNCTION', for example 'python:agent:answer'")]
    PythonName(String),
    #[error("'{0}' does not name a file: use 'node:FILE#EXPORT', for example 'node:agent.mjs#answer'")]
    JavaScriptName(String),
    #[error("'agent.interpreter' has an unclosed quote")]
    UnclosedQuote,
    #[error("'agent.interpreter' is empty")]
    NoInterpreter,
}

/// Calls a function of the project with each message.
#[derive(Debug)]
pub struct FunctionAgent {
    identity: String,
    language: Language,
    /// The function's name as configured.
    name: String,
    config: HttpConfig,
    pool: ProcessPool,
    observer: Observer,
}

impl Language {
    /// Returns the language of an agent's kind.
    pub fn from_kind(kind: &str) -> Option<Self> {
        match kind {
            "python" => Some(Self::Python),
            "node" => Some(Self::JavaScript),
            _ => None,
        }
    }

    /// Returns the files of the project that may define a function.
    pub(crate) fn source_candidates(self, name: &str, root: &Path) -> Vec<PathBuf> {
        let Ok((module, _)) = self.split(name) else { return Vec::new() };
        match self {
            Self::Python => {
                let path = root.join(module.replace('.', "/"));
                vec![path.with_extension("py"), path.join("__init__.py")]
            }
            Self::JavaScript => vec![root.join(module)],
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "node",
        }
    }

    /// Splits a name into a module and a function in it.
    fn split(self, name: &str) -> Result<(String, String), FunctionError> {
        match self {
            Self::Python => {
                let parts =
                    name.rsplit_once(':').filter(|(module, function)| !module.is_empty() && !function.is_empty());
                let (module, function) = parts.ok_or_else(|| FunctionError::PythonName(name.to_owned()))?;
                // A file path is converted to a module name.
                let module = module.strip_suffix(".py").unwrap_or(module).trim_start_matches("./").replace('/', ".");
                Ok((module, function.to_owned()))
            }
            Self::JavaScript => {
                let (file, export) = name.rsplit_once('#').unwrap_or((name, "default"));
                if file.is_empty() || export.is_empty() {
                    return Err(FunctionError::JavaScriptName(name.to_owned()));
                }
                Ok((file.to_owned(), export.to_owned()))
            }
        }
    }
}

impl FunctionAgent {
    /// Creates an agent for `MODULE:FUNCTION` or `FILE#EXPORT` of the project in `root`. Nothing is started yet.
    pub fn new(language: Language, name: &str, root: &Path, config: HttpConfig) -> Result<Self, FunctionError> {
        let (module, function) = language.split(name)?;
        let (program, mut arguments) = match &config.interpreter {
            Some(words) => interpreter::parse_interpreter(words, root)?,
            None => (find_interpreter(language, root), Vec::new()),
        };
        let (flag, source) = match language {
            Language::Python => ("-c", include_str!("runner.py")),
            Language::JavaScript => ("-e", include_str!("runner.cjs")),
        };
        arguments.extend([flag, source, &module, &function].map(str::to_owned));
        arguments.push(root.display().to_string());
        let command = Command { stderr: STDERR, ..Command::new(program, &arguments, root) };
        let identity = format!("{}:{name}", language.kind());
        let (name, pool) = (name.to_owned(), ProcessPool::new(command));
        Ok(Self { identity, language, name, config, pool, observer: Observer::default() })
    }

    /// Sets the observer of exchanges.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn ExchangeObserver>) -> Self {
        Self { observer: observer.into(), ..self }
    }

    /// Starts a process and waits until it has loaded the function.
    async fn load(&self) -> Result<LineProcess, String> {
        let mut process = self.pool.start().map_err(|error| {
            let product = match self.language {
                Language::Python => "Python",
                Language::JavaScript => "Node.js",
            };
            format!("{error}: install {product}, or set 'agent.interpreter' to its path")
        })?;
        let line = match tokio::time::timeout(LOAD_TIMEOUT, process.read_line(MAX_LOAD_REPORT_BYTES)).await {
            Ok(Ok(line)) => line,
            Ok(Err(error)) => {
                return Err(no_answer_message("the interpreter", error, MAX_LOAD_REPORT_BYTES, &process).await);
            }
            Err(_) => {
                let message = format!("'{}' was not loaded within {} s", self.name, LOAD_TIMEOUT.as_secs());
                return Err(with_stderr(&message, &process.take_stderr().await));
            }
        };
        match serde_json::from_slice(&line) {
            Ok(LoadReport { failed: None }) => {
                // Discard the output of loading, which does not belong to a case.
                process.take_stderr().await;
                Ok(process)
            }
            Ok(LoadReport { failed: Some(reason) }) => Err(format!("cannot load '{}': {reason}", self.name)),
            Err(_) => {
                let text = String::from_utf8_lossy(&line);
                Err(format!(
                    "'{}' did not start karat's runner: it wrote {text}",
                    self.pool.command().program.display()
                ))
            }
        }
    }

    async fn call(
        &self,
        request: &Value,
        pooled: &mut PooledProcess<'_>,
        trial: TrialContext<'_>,
    ) -> Result<Trace, AgentError> {
        let mut process = if let Some(process) = pooled.take().await {
            process
        } else {
            // Loading takes seconds with some libraries and does not count as latency.
            let _wait = WaitGuard::begin(trial.wait_observer);
            self.load().await.map_err(|message| AgentError::unreachable(message, Duration::ZERO, 1))?
        };
        let request = request.to_string();
        let mut record = self.observer.record(Purpose::Message);
        if let Some(record) = &mut record {
            record.exchange.body = Some(request.clone().into_bytes());
        }
        let started = Instant::now();
        let max_bytes = usize::try_from(self.config.max_response_bytes).unwrap_or(usize::MAX);
        let answer = match process.request(&request, max_bytes.saturating_add(MAX_ENVELOPE_BYTES)).await {
            Ok(answer) => answer,
            Err(error) => {
                let elapsed = started.elapsed();
                let message = no_answer_message("the function's process", error, max_bytes, &process).await;
                if let Some(record) = &mut record {
                    record.exchange.error = Some(message.clone());
                }
                return Err(AgentError::new(message, elapsed));
            }
        };
        let elapsed = started.elapsed();
        let fail = |message: String| AgentError::new(message, elapsed);
        let stderr = process.take_stderr().await;
        let envelope = parse_reply(&answer).ok().and_then(Envelope::read);
        let Some(envelope) = envelope else {
            // Something bypassed the runner and wrote to its stdout. The process is not reused, since the reply may follow.
            let text = String::from_utf8_lossy(&answer);
            return Err(fail(format!("unexpected output on the stdout of the function's process: {text}")));
        };
        pooled.put_back(process);
        if let Some(record) = &mut record {
            match &envelope.result {
                Ok((value, _)) => record.set_output(value.to_string().as_bytes(), &stderr),
                Err(error) => record.exchange.error = Some(error.clone()),
            }
        }
        drop(record);
        let (value, first_token_ms) = envelope.result.map_err(fail)?;
        let trace =
            read_value(&value, &self.config.response).map_err(|message| fail(with_stderr(&message, &stderr)))?;
        let first_token_ms = first_token_ms.or(trace.first_token_ms);
        Ok(Trace { latency_ms: elapsed.as_secs_f64() * 1000.0, first_token_ms, ..trace }.with_stderr(stderr))
    }
}

/// The first line that a runner writes.
#[derive(Deserialize)]
struct LoadReport {
    #[serde(default)]
    failed: Option<String>,
}

/// The reply of a runner to a request.
struct Envelope {
    /// The function's reply and the time until its first part, or an error message.
    result: Result<(Value, Option<f64>), String>,
}

impl Envelope {
    fn read(value: Value) -> Option<Self> {
        let Value::Object(mut members) = value else { return None };
        if let Some(Value::String(error)) = members.remove("error") {
            return Some(Self { result: Err(error) });
        }
        let first_token_ms = members.get("firstTokenMs").and_then(Value::as_f64);
        Some(Self { result: Ok((members.remove("reply")?, first_token_ms)) })
    }
}

impl Agent for FunctionAgent {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn determinants(&self, case: &Case, turn: usize) -> Map<String, Value> {
        let HttpConfig { response, max_response_bytes, .. } = &self.config;
        let mut parts = Map::new();
        parts.insert("agent".to_owned(), self.identity().into());
        parts.insert("reply".to_owned(), json!({"response": response, "maxResponseBytes": max_response_bytes}));
        parts.insert("message".to_owned(), case.message(turn).into());
        parts
    }

    fn mode(&self, _case: &Case) -> Mode {
        Mode::Endpoint
    }

    fn prepare(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let process = self.load().await?;
            PooledProcess::new(&self.pool).put_back(process);
            Ok(())
        })
    }

    fn start<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        let pooled = PooledProcess::new(&self.pool);
        Box::new(FunctionConversation { agent: self, pooled, history: History::new(trial) })
    }
}

struct FunctionConversation<'a> {
    agent: &'a FunctionAgent,
    pooled: PooledProcess<'a>,
    history: History<'a>,
}

impl Conversation for FunctionConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(async move {
            let trial = self.history.trial();
            // The conversation is always included: functions use what they need, for example the id as a memory key.
            let mut request = self.history.members();
            request.insert("message".to_owned(), message.into());
            request.insert("caseId".to_owned(), trial.case.id.as_str().into());
            if self.agent.config.telemetry.is_some() {
                request.insert("traceparent".to_owned(), self.history.traceparent().into());
            }
            let trace = self.agent.call(&Value::Object(request), &mut self.pooled, trial).await?;
            self.history.push(message, &trace.response);
            Ok(trace)
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Language::Python, "agent:answer", Some(("agent", "answer")))]
    #[case(Language::Python, "my.agent:Agent.answer", Some(("my.agent", "Agent.answer")))]
    #[case(Language::Python, "./src/agent.py:answer", Some(("src.agent", "answer")))]
    #[case(Language::Python, "agent", None)]
    #[case(Language::Python, "agent:", None)]
    #[case(Language::JavaScript, "src/agent.mjs#answer", Some(("src/agent.mjs", "answer")))]
    #[case(Language::JavaScript, "agent.mjs", Some(("agent.mjs", "default")))]
    #[case(Language::JavaScript, "#answer", None)]
    #[case(Language::JavaScript, "agent.mjs#", None)]
    fn splits_names(#[case] language: Language, #[case] name: &str, #[case] expected: Option<(&str, &str)>) {
        let split = language.split(name).ok();
        let split = split.as_ref().map(|(module, function)| (module.as_str(), function.as_str()));
        assert_eq!(split, expected);
    }
}
