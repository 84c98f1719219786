//! A model behind a command, which reads the prompt as JSON from stdin and writes the answer as JSON to stdout.

use std::path::Path;
use std::time::{Duration, Instant};

use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::{AgentError, BoxFuture, UnusableReply, WaitObserver};
use karat_process::Limits;
use serde_json::{Map, Value, json};

use crate::program::{CommandError, Program, parse_json};

const LIMITS: Limits = Limits { stdout_bytes: 16 * 1024 * 1024, time: Some(Duration::from_mins(10)) };

/// Runs a program that reads `{"system", "user", "name", "schema"}` and writes an answer that fits the schema.
#[derive(Debug)]
pub struct CommandChatModel {
    identity: String,
    program: Program,
}

impl CommandChatModel {
    /// Parses a command line; a program name with a `/` is relative to `folder`.
    pub fn new(command: &str, folder: &Path) -> Result<Self, CommandError> {
        Ok(Self { identity: format!("command:{command}"), program: Program::new(command, folder)? })
    }
}

impl ChatModel for CommandChatModel {
    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn parameters(&self) -> Map<String, Value> {
        Map::new()
    }

    fn complete<'a>(
        &'a self,
        prompt: &'a ChatPrompt,
        _wait_observer: &'a dyn WaitObserver,
    ) -> BoxFuture<'a, Result<ChatReply, AgentError>> {
        Box::pin(async move {
            let started = Instant::now();
            let ChatPrompt { system, user, name, schema } = prompt;
            let request = json!({"system": system, "user": user, "name": name, "schema": schema}).to_string();
            let run = self.program.run(&request, LIMITS).await;
            let finished = run.map_err(|message| AgentError::new(message, started.elapsed()))?;
            let elapsed = finished.elapsed;
            match parse_json(&finished) {
                Ok(value) => Ok(ChatReply { value, usage: None, latency_ms: elapsed.as_secs_f64() * 1000.0 }),
                // The program works but its answer is unusable, so the caller may retry.
                Err(message) if finished.status.success() => {
                    let text = String::from_utf8_lossy(&finished.stdout).trim().to_owned();
                    Err(AgentError::unusable(message, elapsed, UnusableReply { text, usage: None }))
                }
                Err(message) => Err(AgentError::new(message, elapsed)),
            }
        })
    }
}
