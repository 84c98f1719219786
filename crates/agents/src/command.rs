//! An agent that is a command: one process per case, JSON on stdin and stdout.

use std::path::Path;
use std::time::Instant;

use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, TrialContext};
use karat_core::trace::Trace;
use karat_process::Limits;
use serde_json::{Map, Value, json};

use crate::http_config::{HttpConfig, RequestMap};
use crate::program::{CommandError, Program, parse_json, with_stderr};

/// Starts a program for each message, writes the request to its stdin and parses the reply on its stdout.
#[derive(Debug)]
pub struct CommandAgent {
    identity: String,
    program: Program,
    config: HttpConfig,
}

impl CommandAgent {
    /// Parses a command line; a program name with a `/` is relative to `folder`.
    pub fn new(command: &str, folder: &Path, config: HttpConfig) -> Result<Self, CommandError> {
        let program = Program::new(command, folder)?;
        // A command has no query string, so the message goes into the body.
        let request = RequestMap { query: None, ..config.request.clone() };
        if request.body_with("").is_none() {
            return Err(CommandError::InvalidMessagePath(request.message));
        }
        Ok(Self { identity: format!("command:{command}"), program, config: HttpConfig { request, ..config } })
    }

    /// Returns the program's path, or its bare name if it is looked up on the PATH.
    pub fn program(&self) -> &Path {
        &self.program.0.program
    }

    /// Returns the program's arguments.
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

    fn start<'a>(&'a self, _trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(CommandConversation(self))
    }
}

struct CommandConversation<'a>(&'a CommandAgent);

impl Conversation for CommandConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(async move {
            let started = Instant::now();
            let CommandAgent { program, config, .. } = self.0;
            let body = config.request.body_with(message).unwrap_or_default().to_string();
            let stdout_bytes = usize::try_from(config.max_response_bytes).unwrap_or(usize::MAX);
            let run = program.run(&body, Limits { stdout_bytes, time: None }).await;
            let finished = run.map_err(|message| AgentError::new(message, started.elapsed()))?;
            let parsed = parse_json(&finished).and_then(|reply| {
                config.response.parse_trace(&reply).map_err(|message| with_stderr(&message, &finished.stderr))
            });
            let trace = parsed.map_err(|message| AgentError::new(message, finished.elapsed))?;
            let stderr = Some(finished.stderr).filter(|text| !text.is_empty());
            Ok(Trace { latency_ms: finished.elapsed.as_secs_f64() * 1000.0, stderr, ..trace })
        })
    }
}
