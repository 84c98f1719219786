//! A program of the user's own that writes its tools down as JSON; it runs because the configuration says so.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use karat_core::registry::{Gap, Registry, Tool, ToolPlace};
use karat_json::{ObjectReader, Path as ValuePath, Problems, read_positive_count, read_strings};
use karat_process::{Command, Failure, Limits, RunError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::json::{RegistryError, read_json};

/// How much a program may write: far more than any list of tools is.
const MAX_BYTES: usize = 64 << 20;

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
        let time = Some(self.timeout_ms.map_or(limit, Duration::from_millis));
        let fails = |what: String, stderr: &str| CommandFailure { what, stderr: stderr.trim().to_owned() };
        let (program, arguments) = self.command.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
        let run = Command::new(program, arguments, folder).run(&[], Limits { stdout_bytes: MAX_BYTES, time }).await;
        let finished = run.map_err(|RunError { failure, stderr }| fails(not_run(&failure), &stderr))?;
        let (status, said) = (finished.status, finished.stderr.as_str());
        if !status.success() {
            // As in "exit status: 3" and "signal: 9 (SIGKILL)".
            return Err(fails(format!("it ended with {}", status.to_string().replacen(": ", " ", 1)), said));
        }
        let text = String::from_utf8(finished.stdout).map_err(|_| fails("its output is not UTF-8".to_owned(), said))?;
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

fn not_run(failure: &Failure) -> String {
    match failure {
        Failure::Start(error) if error.kind() == ErrorKind::NotFound => "there is no such program".to_owned(),
        Failure::Start(error) => format!("it cannot be started: {error}"),
        Failure::TooLarge { limit } => format!("it wrote more than {} MB", limit >> 20),
        Failure::Read(error) => format!("its output cannot be read: {error}"),
        Failure::TimedOut { .. } | Failure::Lost => failure.to_string(),
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
