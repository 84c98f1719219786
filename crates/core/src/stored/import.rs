//! Results of trace imports.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Counts of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat trace import")]
pub struct ImportReport {
    /// Whether nothing was stored.
    pub dry_run: bool,
    /// Whether the import stopped early; what is counted here was stored.
    pub interrupted: bool,
    /// Files read, including standard input.
    pub files: u64,
    /// New traces.
    pub added: u64,
    /// Traces that were stored with another document; evals judge them again.
    pub changed: u64,
    /// Traces that were stored with the same document.
    pub unchanged: u64,
    /// Traces that occurred more than once with different documents; the last one counts.
    pub superseded: u64,
    /// Number of traces per kind of source.
    pub sources: BTreeMap<String, u64>,
    /// Steps of all these traces.
    pub steps: u64,
    pub tool_calls: u64,
    /// Entries of `tool_calls` without a tool name, which are not among the tool calls.
    pub unread_tool_calls: u64,
    /// Steps and tool calls that failed.
    pub errors: u64,
    /// The names of the called tools.
    pub tools: Vec<String>,
    pub feedback: ImportedFeedback,
    /// Parts that could not be read, in order.
    pub refused: Vec<RefusedPiece>,
    /// Files in folders that were skipped because their names are not those of trace files.
    pub passed_over: Vec<String>,
}

impl ImportReport {
    /// Returns the number of distinct traces.
    pub fn traces(&self) -> u64 {
        self.added + self.changed + self.unchanged
    }
}

/// Feedback in the imported traces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImportedFeedback {
    /// Ratings that were found.
    pub found: u64,
    /// Whether the import of ratings was requested.
    pub asked: bool,
    /// Ratings that are new in the store.
    pub added: u64,
}

/// A part that was not imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedPiece {
    pub file: String,
    /// The position in the file: `line 3`, `item 12`; null for the whole file.
    #[serde(rename = "place")]
    pub location: Option<String>,
    pub message: String,
    pub kind: RefusalKind,
}

/// The reason that a part was not imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// It does not have the format of its source.
    Invalid,
    /// The format of the file is unknown.
    UnknownSource,
    /// The file could not be read to the end, so more of it may be missing.
    Unreadable,
}
