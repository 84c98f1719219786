//! Calls of programs and URLs, with a time limit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use karat_http::FetchError;
use karat_process::{Command, Failure, Limits, RunError, describe_exit, with_stderr};

/// The maximum size of a state.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// The variable with the id of the case.
const CASE_ID: &str = "KARAT_CASE_ID";

/// Runs a program and returns its stdout. The error quotes its stderr. The program and its children are killed when they
/// exceed the limit, and when the future is dropped.
pub(crate) async fn run_command(
    words: &[String],
    folder: &Path,
    case_id: Option<&str>,
    limit: Duration,
) -> Result<Vec<u8>, String> {
    let (name, arguments) = words.split_first().map_or(("", words), |(name, rest)| (name.as_str(), rest));
    let program = if name.contains('/') { folder.join(name) } else { PathBuf::from(name) };
    let variables = case_id.map(|id| (CASE_ID.to_owned(), id.to_owned())).into_iter().collect();
    let command = Command { variables, ..Command::new(program, arguments, folder) };
    let run = command.run(&[], Limits { stdout_bytes: MAX_BYTES, time: Some(limit) }).await;
    let finished = run.map_err(|RunError { failure, stderr }| match failure {
        Failure::Start(error) => format!("cannot start {name}: {error}"),
        Failure::TimedOut { .. } => with_stderr(&format!("{name} {}", timed_out(limit)), &stderr),
        other => with_stderr(&format!("{name} {other}"), &stderr),
    })?;
    if !finished.status.success() {
        let message = format!("{name} ended with {}", describe_exit(finished.status));
        return Err(with_stderr(&message, &finished.stderr));
    }
    Ok(finished.stdout)
}

/// Awaits a call of a URL until the limit.
pub(crate) async fn call_url(
    call: impl Future<Output = Result<Vec<u8>, FetchError>>,
    limit: Duration,
) -> Result<Vec<u8>, String> {
    let called = tokio::time::timeout(limit, call).await.map_err(|_| format!("the URL {}", timed_out(limit)))?;
    called.map_err(|error| error.to_string())
}

/// Says that a call exceeded the limit, and which key sets it.
pub(crate) fn timed_out(limit: Duration) -> String {
    format!("timed out after {} ms ('hookTimeoutMs')", limit.as_millis())
}

pub(crate) fn headers(headers: &BTreeMap<String, String>) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}
