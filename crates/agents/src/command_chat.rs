//! A model that is a program: the prompt as JSON to its stdin, the answer as JSON from its stdout.

use std::path::Path;
use std::time::{Duration, Instant};

use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::{AgentError, Pending, UnusableReply, Waiting};
use karat_process::Limits;
use serde_json::{Map, Value, json};

use crate::program::{CommandError, Program, read_json};

/// The limits of an answer.
const LIMITS: Limits = Limits { stdout_bytes: 16 * 1024 * 1024, time: Some(Duration::from_mins(10)) };

/// Asks a program: it reads `{"system", "user", "name", "schema"}` and writes an answer of that schema.
#[derive(Debug)]
pub struct CommandChatModel {
    identity: String,
    program: Program,
}

impl CommandChatModel {
    /// Takes a command line; a program with a `/` is relative to `folder`.
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
        _waiting: &'a dyn Waiting,
    ) -> Pending<'a, Result<ChatReply, AgentError>> {
        Box::pin(async move {
            let started = Instant::now();
            let ChatPrompt { system, user, name, schema } = prompt;
            let request = json!({"system": system, "user": user, "name": name, "schema": schema}).to_string();
            let run = self.program.run(&request, LIMITS).await;
            let finished = run.map_err(|what| AgentError::new(what, started.elapsed()))?;
            let elapsed = finished.elapsed;
            match read_json(&finished) {
                Ok(value) => Ok(ChatReply { value, usage: None, latency_ms: elapsed.as_secs_f64() * 1000.0 }),
                // The answer is unusable, but the program works, so the caller may ask again.
                Err(why) if finished.status.success() => {
                    let text = String::from_utf8_lossy(&finished.stdout).trim().to_owned();
                    Err(AgentError::unusable(why, elapsed, UnusableReply { text, usage: None }))
                }
                Err(why) => Err(AgentError::new(why, elapsed)),
            }
        })
    }
}
