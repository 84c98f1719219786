//! The output of a command, filtered for comparison.

use std::path::Path;

use regex::{NoExpand, Regex};

use super::real_path;

/// The exit code and output of a command.
#[derive(Debug, Clone)]
pub struct Output {
    /// `None` if the command was killed by a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub(super) filters: Filters,
}

impl Output {
    /// Returns exit code, standard output and standard error as one text, without values that differ between runs.
    pub fn filtered(&self) -> String {
        let code = self.code.map_or_else(|| "killed".to_owned(), |code| code.to_string());
        let (stdout, stderr) = (self.filtered_stdout(), self.filtered_stderr());
        let end = |stream: &str| if stream.is_empty() || stream.ends_with('\n') { "" } else { "⏎\n" };
        let (stdout_end, stderr_end) = (end(&stdout), end(&stderr));
        format!("exit: {code}\n----- stdout -----\n{stdout}{stdout_end}----- stderr -----\n{stderr}{stderr_end}")
    }

    pub fn filtered_stdout(&self) -> String {
        self.filters.apply(&self.stdout)
    }

    pub fn filtered_stderr(&self) -> String {
        self.filters.apply(&self.stderr)
    }

    /// Returns standard error with wrapped lines joined.
    pub fn unwrapped_stderr(&self) -> String {
        let mut text = String::new();
        for line in self.stderr.lines() {
            let continued = line.starts_with("  ") && !text.is_empty();
            if continued {
                text.pop();
                text.push(' ');
            }
            text.push_str(if continued { line.trim_start() } else { line });
            text.push('\n');
        }
        text
    }

    /// Returns standard output followed by standard error.
    pub fn both(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Replaces values that differ between runs: folders, ports, durations and ids.
#[derive(Debug, Clone)]
pub struct Filters(Vec<(Regex, &'static str)>);

impl Filters {
    /// Replaces the project and home folders inside `folder`, and everything in [`Self::general`].
    pub(super) fn of(folder: &Path) -> Self {
        let mut filters = Vec::new();
        for folder in [real_path(folder), folder.to_owned()] {
            let folder = regex::escape(&folder.to_string_lossy());
            filters.push((compile(&format!("{folder}[/\\\\]home")), "[HOME]"));
            filters.push((compile(&format!("{folder}[/\\\\]project")), "[DIR]"));
        }
        filters.extend(Self::general().0);
        Self(filters)
    }

    /// Replaces loopback ports by `[PORT]`, durations by `[TIME]`, rates by `[RATE]` and run ids by `[RUN_ID]`.
    pub fn general() -> Self {
        Self(vec![
            (compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "[RUN_ID]"),
            (compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:[PORT]"),
            (compile(r"\blocalhost:\d+"), "localhost:[PORT]"),
            (compile(r"\b\d+(?:\.\d+)? ?(?:ms|s)\b"), "[TIME]"),
            (compile(r"\b\d+ traces/s\b"), "[RATE] traces/s"),
        ])
    }

    pub fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (pattern, replacement)| {
            pattern.replace_all(&text, NoExpand(replacement)).into_owned()
        })
    }
}

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("valid regular expression")
}
