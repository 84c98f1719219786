//! What came of an import of traces.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// What was imported, what was there already, and what was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat trace import")]
pub struct ImportReport {
    /// Nothing was kept.
    pub dry_run: bool,
    /// Not everything was read; what is counted here was kept.
    pub interrupted: bool,
    /// How many files were read, standard input among them.
    pub files: u64,
    /// Traces that were not there before.
    pub added: u64,
    /// Traces that were there with another document, which evals judge again.
    pub changed: u64,
    /// Traces that were there just so.
    pub unchanged: u64,
    /// Traces that came more than once with another document each time; the last one counts.
    pub superseded: u64,
    /// How many traces came from each kind of source.
    pub sources: BTreeMap<String, u64>,
    /// Steps of all these traces.
    pub steps: u64,
    pub tool_calls: u64,
    /// Steps and tool calls that failed.
    pub errors: u64,
    /// The names of the tools that were called.
    pub tools: Vec<String>,
    pub feedback: ImportedFeedback,
    /// What could not be read, in the order in which it was met.
    pub refused: Vec<RefusedPiece>,
    /// Files of folders whose names do not say that they hold traces.
    pub passed_over: Vec<String>,
}

impl ImportReport {
    /// Returns how many different traces came.
    pub fn traces(&self) -> u64 {
        self.added + self.changed + self.unchanged
    }
}

/// What the source says people said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ImportedFeedback {
    /// Statements in what was read.
    pub found: u64,
    /// Whether they were to be taken.
    pub asked: bool,
    /// Of these, what is new in the store.
    pub added: u64,
}

/// Something that was not imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedPiece {
    pub file: String,
    /// Where in the file: `line 3`, `item 12`; null where it is the whole file.
    pub place: Option<String>,
    pub message: String,
    pub kind: RefusalKind,
}

/// Why something was not imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalKind {
    /// It is not as its kind of source has it.
    Invalid,
    /// Nobody knows what kind of source wrote the file.
    UnknownSource,
    /// The file could not be read to its end, so that nobody knows what else it holds.
    Unreadable,
}
