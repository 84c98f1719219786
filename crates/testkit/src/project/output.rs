//! What a command wrote, and what of it is worth comparing.

use std::path::Path;

use regex::{NoExpand, Regex};

use super::real_path;

/// What a command left behind.
#[derive(Debug, Clone)]
pub struct Output {
    /// None where a signal ended the command.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub(super) filters: Filters,
}

impl Output {
    /// Returns code, standard output and standard error as one text without what differs from run to run.
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

    /// Returns standard error with those lines put together again that were broken to fit a terminal.
    pub fn unbroken_stderr(&self) -> String {
        self.stderr.replace("\n  ", " ")
    }

    /// Returns both streams, standard output first.
    pub fn both(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Replaces what differs from run to run: folders, ports, durations and ids.
#[derive(Debug, Clone)]
pub struct Filters(Vec<(Regex, &'static str)>);

impl Filters {
    /// Replaces a project's folder and its home, which both lie in `folder`, and all that [`Self::general`] does.
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

    /// Replaces loopback ports by `[PORT]`, durations by `[TIME]`, rates by `[RATE]` and ids of runs by `[RUN_ID]`.
    pub fn general() -> Self {
        Self(vec![
            (compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"), "[RUN_ID]"),
            (compile(r"\b127\.0\.0\.1:\d+"), "127.0.0.1:[PORT]"),
            (compile(r"\blocalhost:\d+"), "localhost:[PORT]"),
            (compile(r"\b\d+(?:\.\d+)?(?:ms|s)\b"), "[TIME]"),
            (compile(r"\b\d+ traces/s\b"), "[RATE] traces/s"),
        ])
    }

    pub fn apply(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (pattern, by)| pattern.replace_all(&text, NoExpand(by)).into_owned())
    }
}

fn compile(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a filter is a regular expression")
}
