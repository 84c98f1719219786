//! Descriptions of how a process ended.

use std::fmt::Write as _;
use std::process::ExitStatus;

/// Maximum number of characters of stderr that an error quotes, in whole lines.
const MAX_QUOTED_CHARS: usize = 300;

/// Returns `exit status 3` or `signal 9 (SIGKILL)`.
pub fn describe_exit(status: ExitStatus) -> String {
    status.to_string().replacen(": ", " ", 1)
}

/// Appends the last lines of stderr to an error message.
pub fn with_stderr(message: &str, stderr: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut quoted = 0;
    for line in stderr.trim_end().lines().rev() {
        quoted += line.chars().count() + 1;
        // Whole lines only: a redactor does not recognise a partial secret.
        if !lines.is_empty() && quoted > MAX_QUOTED_CHARS {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    let mut out = message.to_owned();
    if !lines.is_empty() {
        let _ = write!(out, "; its stderr: {}", lines.join("\n"));
    }
    out
}
