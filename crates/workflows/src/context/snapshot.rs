//! Captures the snapshot before a run.

use std::time::Duration;

use karat_core::redact::Redactor;
use karat_http::fetch;
use karat_json::text::shorten;
use karat_process::{Capture, Command, Failure, Keep, Limits};
use serde_json::Value;

use crate::error::Error;
use crate::settings::{SnapshotSource, Variables, WithBase, fill_headers};
use karat_project::{parse_json, read_text};

/// The maximum size of a snapshot.
const MAX_BYTES: usize = 64 << 20;

/// How much of a command's stderr to capture.
const STDERR: Capture = Capture { keep: Keep::First, max_bytes: 4 * 1024 };

/// Captures the snapshot from its source.
pub async fn capture(
    source: &WithBase<SnapshotSource>,
    timeout: Duration,
    variables: &Variables,
    redactor: &Redactor,
) -> Result<Value, Error> {
    let capturing = async {
        match &source.value {
            SnapshotSource::File { file } => {
                let path = source.base.join(file);
                Ok(parse_json(&read_text(&path, "the snapshot")?, &path, "the snapshot")?)
            }
            SnapshotSource::Command { command } => run_command(command, source, redactor).await,
            SnapshotSource::Url { url, headers } => {
                let headers = fill_headers(headers, variables, redactor)?;
                let body = fetch(url, &headers, MAX_BYTES as u64)
                    .await
                    .map_err(|error| Error::invalid(format!("cannot capture the snapshot: {error}")))?;
                read_output(&body, url)
            }
        }
    };
    match tokio::time::timeout(timeout, capturing).await {
        Ok(captured) => captured,
        Err(_) => {
            Err(Error::invalid(format!("cannot capture the snapshot: timed out after {} ms", timeout.as_millis())))
        }
    }
}

async fn run_command(
    command: &[String],
    source: &WithBase<SnapshotSource>,
    redactor: &Redactor,
) -> Result<Value, Error> {
    let (program, arguments) = command.split_first().map_or(("", command), |(first, rest)| (first.as_str(), rest));
    let fail = |problem: String| Error::invalid(format!("cannot capture the snapshot with '{program}': {problem}"));
    let command = Command { stderr: STDERR, ..Command::new(program, arguments, &source.base) };
    // The caller applies the timeout.
    let run = command.run(&[], Limits { stdout_bytes: MAX_BYTES, time: None }).await;
    let finished = run.map_err(|error| match error.failure {
        Failure::Start(error) => fail(error.to_string()),
        other => fail(other.to_string()),
    })?;
    if !finished.status.success() {
        let stderr = redactor.text(finished.stderr.trim());
        return Err(fail(format!("{}: {}", finished.status, shorten(&stderr, 400))));
    }
    read_output(&finished.stdout, program)
}

fn read_output(bytes: &[u8], from: &str) -> Result<Value, Error> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::invalid(format!("the snapshot from '{from}' is not valid JSON: {error}")))
}
