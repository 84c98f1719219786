//! An agent that is a program: one process for each case, JSON in and JSON out.

use std::path::Path;
use std::time::Instant;

use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::{Agent, AgentError, Ask, Pending};
use karat_core::trace::Trace;
use karat_process::Limits;
use serde_json::{Map, Value, json};

use crate::http_config::{HttpConfig, RequestMap};
use crate::program::{CommandError, Program, read_json, with_stderr};

/// Starts a program for each message, writes the request to its stdin and reads the answer from its stdout.
#[derive(Debug)]
pub struct CommandAgent {
    identity: String,
    program: Program,
    config: HttpConfig,
}

impl CommandAgent {
    /// Takes a command line; a program with a `/` is relative to `folder`.
    pub fn new(command: &str, folder: &Path, config: HttpConfig) -> Result<Self, CommandError> {
        let program = Program::new(command, folder)?;
        // A program has no query: the message stands in the body.
        let request = RequestMap { query: None, ..config.request.clone() };
        if request.body_with("").is_none() {
            return Err(CommandError::NoPlace(request.message));
        }
        Ok(Self { identity: format!("command:{command}"), program, config: HttpConfig { request, ..config } })
    }

    /// Returns the program, or its name when it is looked for as a shell does.
    pub fn program(&self) -> &Path {
        &self.program.0.program
    }

    /// Returns what the program is started with.
    pub fn arguments(&self) -> &[String] {
        &self.program.0.arguments
    }
}

impl Agent for CommandAgent {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn determinants(&self, case: &Case) -> Map<String, Value> {
        let HttpConfig { request, response, max_response_bytes, .. } = &self.config;
        let mut parts = Map::new();
        parts.insert("agent".to_owned(), self.identity().into());
        let mapping = json!({"request": request, "response": response, "maxResponseBytes": max_response_bytes});
        parts.insert("request".to_owned(), mapping);
        parts.insert("message".to_owned(), case.input.message.as_str().into());
        parts
    }

    fn mode(&self, _case: &Case) -> Mode {
        Mode::Endpoint
    }

    fn answer<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Result<Trace, AgentError>> {
        Box::pin(async move {
            let started = Instant::now();
            let request = self.config.request.body_with(&ask.case.input.message).unwrap_or_default().to_string();
            let stdout_bytes = usize::try_from(self.config.max_response_bytes).unwrap_or(usize::MAX);
            let run = self.program.run(&request, Limits { stdout_bytes, time: None }).await;
            let finished = run.map_err(|what| AgentError::new(what, started.elapsed()))?;
            let read = read_json(&finished).and_then(|reply| {
                self.config.response.trace(&reply).map_err(|what| with_stderr(&what, &finished.stderr))
            });
            let trace = read.map_err(|what| AgentError::new(what, finished.elapsed))?;
            let stderr = Some(finished.stderr).filter(|text| !text.is_empty());
            Ok(Trace { latency_ms: finished.elapsed.as_secs_f64() * 1000.0, stderr, ..trace })
        })
    }
}
