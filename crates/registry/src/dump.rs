//! A program of the user's own that writes its tools down as JSON; it runs because the configuration says so.

use std::path::Path;
use std::time::Duration;

use karat_core::registry::{Gap, Registry, Tool, ToolPlace};
use karat_json::{ObjectReader, Path as ValuePath, Problems, read_positive_count, read_strings};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::json::{RegistryError, read_json};
use crate::mcp::{ServerProcess, not_found};

/// How much a program may write: far more than any list of tools is.
const MOST_BYTES: usize = 64 << 20;

/// How long the end of a program is waited for that has closed its output.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// A program whose output is the list of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegistryCommand {
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// How long it may take, in milliseconds: as long as a case if not given.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Why a program gave no tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct CommandFailure {
    /// A lower-case fragment.
    pub what: String,
    /// The last lines that the program wrote to stderr.
    pub stderr: String,
}

impl RegistryCommand {
    /// Reads the key `toolRegistry`.
    pub fn read(value: &Value, path: &ValuePath<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let command = object.optional("command", path, problems, read_strings);
        let timeout_ms = object.optional("timeoutMs", path, problems, read_positive_count);
        object.close(path, problems);
        let command = command.filter(|command| command.first().is_some_and(|program| !program.is_empty()));
        if command.is_none() && problems.is_empty() {
            problems.at(path, "'toolRegistry' must have a 'command': a list of words, the program first");
        }
        Some(Self { command: command?, timeout_ms })
    }

    /// Runs the program in a folder, with nothing to read, and reads what it writes; it and all that it started are
    /// ended when this is dropped or takes too long.
    pub async fn run(&self, folder: &Path, limit: Duration) -> Result<Registry, CommandFailure> {
        let limit = self.timeout_ms.map_or(limit, Duration::from_millis);
        let fails = |what: String, stderr: String| CommandFailure { what, stderr };
        let (process, stdout, stdin) = ServerProcess::start(&self.command, None, folder).map_err(|error| {
            let what = if not_found(&error) {
                "there is no such program".to_owned()
            } else {
                format!("it cannot be started: {error}")
            };
            fails(what, String::new())
        })?;
        drop(stdin);
        let running = async {
            let written = read_all(stdout).await;
            (written, process.ended_within(END_PATIENCE).await)
        };
        let Ok((written, status)) = tokio::time::timeout(limit, running).await else {
            return Err(fails(format!("no end within {} ms", limit.as_millis()), process.stderr()));
        };
        let said = process.stderr();
        let written = written.map_err(|what| fails(what, said.clone()))?;
        match status {
            // As in "exit status: 3" and "signal: 9 (SIGKILL)".
            Some(status) if !status.success() => {
                return Err(fails(format!("it ended with {}", status.to_string().replacen(": ", " ", 1)), said));
            }
            Some(_) => {}
            None => return Err(fails("it closed its output and did not end".to_owned(), said)),
        }
        let text = String::from_utf8(written).map_err(|_| fails("its output is not UTF-8".to_owned(), said.clone()))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if text.trim().is_empty() {
            return Err(fails("it wrote nothing to stdout".to_owned(), said));
        }
        let read = read_json(text, "").map_err(|error| fails(in_output(&error, text), said))?;
        // Where in its output something stood is of no use to anybody.
        let place = ToolPlace { source: format!("command:{}", shell_words::join(&self.command)), position: None };
        let placed = |tool: &Tool| Tool { place: Some(place.clone()), description_place: None, ..tool.clone() };
        let mut registry = Registry::of(read.tools().iter().map(placed));
        for gap in read.gaps() {
            registry.add_gap(Gap { place: place.clone(), ..gap.clone() });
        }
        Ok(registry)
    }
}

fn in_output(error: &RegistryError, text: &str) -> String {
    let said = format!("its output cannot be read: {error}");
    let begins_as_json = text.trim_start().starts_with(['[', '{']);
    if !matches!(error, RegistryError::Syntax { .. }) || begins_as_json {
        return said;
    }
    // Something else than the list came first, and its words say what.
    // Whole words only, so that a secret among them is still known as one.
    let mut words = String::new();
    for word in text.split_whitespace().take_while(|word| word.len() < 60) {
        if words.len() + word.len() > 60 {
            break;
        }
        words = if words.is_empty() { word.to_owned() } else { format!("{words} {word}") };
    }
    if words.is_empty() { said } else { format!("{said}; it begins with '{words}'") }
}

async fn read_all(mut from: impl AsyncRead + Unpin) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    loop {
        match from.read_buf(&mut out).await {
            Ok(0) => return Ok(out),
            Ok(_) if out.len() > MOST_BYTES => return Err(format!("it wrote more than {} MB", MOST_BYTES >> 20)),
            Ok(_) => {}
            Err(error) => return Err(format!("its output cannot be read: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_before_the_list_is_quoted() {
        let text = "Loading the tools of the agent, please wait\n[]";
        let error = read_json(text, "").expect_err("noise");
        let said = in_output(&error, text);
        assert!(said.ends_with("; it begins with 'Loading the tools of the agent, please wait []'"), "{said}");
        let error = read_json("[1", "").expect_err("cut");
        assert!(!in_output(&error, "[1").contains("begins with"));
    }
}
