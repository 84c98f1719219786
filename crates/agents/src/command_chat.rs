//! A model that is a program: the prompt as JSON to its stdin, the answer as JSON from its stdout.

use std::path::Path;
use std::time::{Duration, Instant};

use karat_core::chat::{ChatModel, ChatPrompt, ChatReply};
use karat_core::port::{AgentError, Pending, UnusableReply, Waiting};
use serde_json::{Map, Value, json};

use crate::program::{CommandError, Output, Program};

/// How large an answer may be.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// How long the program may take for an answer.
const MAX_ANSWER_TIME: Duration = Duration::from_mins(10);

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
            let mut output = Output::default();
            let running = self.program.run(request, MAX_ANSWER_BYTES, &mut output);
            let (status, elapsed) = match tokio::time::timeout(MAX_ANSWER_TIME, running).await {
                Ok(Ok(ended)) => ended,
                Ok(Err(what)) => return Err(AgentError::new(output.beside(&what), started.elapsed())),
                Err(_) => {
                    let what = format!("the program did not answer within {} s", MAX_ANSWER_TIME.as_secs());
                    return Err(AgentError::new(output.beside(&what), started.elapsed()));
                }
            };
            match output.json(status) {
                Ok(value) => Ok(ChatReply { value, usage: None, latency_ms: elapsed.as_secs_f64() * 1000.0 }),
                // The answer is unusable, but the program works, so the caller may ask again.
                Err(why) if status.success() => {
                    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                    Err(AgentError::unusable(why, elapsed, UnusableReply { text, usage: None }))
                }
                Err(why) => Err(AgentError::new(why, elapsed)),
            }
        })
    }
}
