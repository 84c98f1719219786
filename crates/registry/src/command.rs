//! Runs a configured command that prints the tools as JSON.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use karat_cases::registry::{Gap, Registry, Tool, ToolLocation};
use karat_json::{ObjectReader, Path as ValuePath, Problems, read_positive_count, read_strings};
use karat_process::{Command, Failure, Limits, RunError};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::json::{RegistryError, read_json};

const MAX_OUTPUT_BYTES: usize = 64 << 20;

/// A command whose output is the list of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RegistryCommand {
    /// The program and its arguments.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Time limit in milliseconds; defaults to the time limit of a case.
    #[schemars(range(min = 1))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Why a command did not return tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CommandFailure {
    /// A lower-case fragment.
    pub message: String,
    /// The last lines of stderr.
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
            problems.at(path, "'toolRegistry' must have a 'command': a list of the program and its arguments");
        }
        Some(Self { command: command?, timeout_ms })
    }

    /// Runs the command in a folder, with empty stdin, and parses its output. The process and its children are killed
    /// on timeout or when the future is dropped.
    pub async fn run(&self, folder: &Path, limit: Duration) -> Result<Registry, CommandFailure> {
        let time = Some(self.timeout_ms.map_or(limit, Duration::from_millis));
        let fails = |message: String, stderr: &str| CommandFailure { message, stderr: stderr.trim().to_owned() };
        let (program, arguments) = self.command.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
        let run =
            Command::new(program, arguments, folder).run(&[], Limits { stdout_bytes: MAX_OUTPUT_BYTES, time }).await;
        let finished = run.map_err(|RunError { failure, stderr }| fails(failure_message(&failure), &stderr))?;
        let (status, stderr) = (finished.status, finished.stderr.as_str());
        if !status.success() {
            // Shows "exit status: 3" as "exit status 3".
            return Err(fails(format!("it ended with {}", status.to_string().replacen(": ", " ", 1)), stderr));
        }
        let text = String::from_utf8(finished.stdout)
            .map_err(|_| fails("its output is not valid UTF-8".to_owned(), stderr))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        if text.trim().is_empty() {
            return Err(fails("it wrote nothing to stdout".to_owned(), stderr));
        }
        let read = read_json(text, "").map_err(|error| fails(output_error(&error, text), stderr))?;
        // Positions in the output are of no use.
        let location = ToolLocation { source: format!("command:{}", shell_words::join(&self.command)), position: None };
        let located =
            |tool: &Tool| Tool { location: Some(location.clone()), description_location: None, ..tool.clone() };
        let mut registry = Registry::from_tools(read.tools().iter().map(located));
        for gap in read.gaps() {
            registry.add_gap(Gap { location: location.clone(), ..gap.clone() });
        }
        Ok(registry)
    }
}

fn output_error(error: &RegistryError, text: &str) -> String {
    let message = format!("its output cannot be read: {error}");
    let starts_as_json = text.trim_start().starts_with(['[', '{']);
    if !matches!(error, RegistryError::Syntax { .. }) || starts_as_json {
        return message;
    }
    // Quote the text before the list, in whole words, so that secrets in it are still redacted.
    let mut words = String::new();
    for word in text.split_whitespace().take_while(|word| word.len() < 60) {
        if words.len() + word.len() > 60 {
            break;
        }
        words = if words.is_empty() { word.to_owned() } else { format!("{words} {word}") };
    }
    if words.is_empty() { message } else { format!("{message}; it begins with '{words}'") }
}

fn failure_message(failure: &Failure) -> String {
    match failure {
        Failure::Start(error) if error.kind() == ErrorKind::NotFound => "program not found".to_owned(),
        Failure::Start(error) => format!("it cannot be started: {error}"),
        Failure::TooLarge { limit } => format!("it wrote more than {} MB", limit >> 20),
        Failure::Read(error) => format!("its output cannot be read: {error}"),
        Failure::TimedOut { .. } | Failure::Wait => failure.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_text_before_the_list() {
        let text = "Loading the tools of the agent, please wait\n[]";
        let error = read_json(text, "").expect_err("not JSON");
        let message = output_error(&error, text);
        assert!(message.ends_with("; it begins with 'Loading the tools of the agent, please wait []'"), "{message}");
        let error = read_json("[1", "").expect_err("truncated JSON");
        assert!(!output_error(&error, "[1").contains("begins with"));
    }
}
