//! Hints: what a user can do about an error.

/// A hint. Hints that refer to a command are typed, so that each surface can phrase them in its own terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    Text(String),
    /// List the contradictions of an eval.
    ListContradictions {
        eval: String,
    },
    /// Add an eval function to the store.
    AddEval {
        file: Option<String>,
    },
    /// Create an eval function.
    NewEval,
    /// Run the cases next to an eval function.
    TestEval {
        file: String,
    },
    /// Fix the file of an eval and add it as a new version.
    FixEval,
    /// Judge the stored traces with an eval.
    JudgeStored {
        eval: String,
    },
    /// List traces with the same filter.
    FilterTraces,
    /// Judge Arrow data in a pipeline.
    JudgeArrow {
        file: String,
    },
    /// Convert a file to JSON lines with another program.
    ConvertTraces {
        program: &'static str,
        file: String,
    },
    /// Add a new version of an eval to the store.
    AddEvalVersion,
    /// Specify the overlap map, or create one.
    NameOrCreateOverlapMap,
    /// Write the tool lock.
    WriteToolLock,
    /// List the traces of the store.
    ListTraces,
    /// Print a trace as its source sent it.
    ShowRawTrace {
        trace: String,
    },
    /// Import traces into the store.
    ImportTraces,
    /// Run without a store.
    RunWithoutStore,
    /// Import traces into the store, or receive them from running agents.
    ImportOrReceiveTraces,
    /// List feedback.
    ListFeedback,
    /// List the ratings and change one.
    ChangeFeedback,
    /// Rate traces.
    RateTraces,
    /// Refine the newest version of an eval; the candidate for an older version is in this file.
    RefineNewest {
        eval: String,
        file: String,
    },
    /// Import the valid rows only.
    SkipInvalidRows,
    /// Create the store by using it, or specify another one.
    CreateStore,
    /// Check the eval files to find the problem.
    CheckFiles,
    /// Check the existing file at the path of a new regression file, or specify another path.
    CheckOrNameRegressionFile,
    /// List the runs.
    ListRuns,
    /// Run the eval files.
    RunEvals,
    /// Select traces of test runs.
    SelectRunTraces,
    /// Replace the value of a key of `expect` with a stable one.
    ReplaceExpectation {
        key: String,
    },
    /// Specify the tool under test, for example one that the trace calls.
    NameToolUnderTest {
        tool: Option<String>,
        trace: String,
    },
    /// List the tools of the registry.
    ListTools,
    /// Print the brief for the drafts of a tool.
    ForgeBrief {
        tool: String,
    },
    /// Start a forge session for a tool.
    StartForge {
        tool: Option<String>,
    },
    /// Resume the forge session of a tool.
    ResumeForge {
        tool: String,
    },
    /// Resume the forge session that is saved in a file.
    ResumeSavedForge {
        tool: String,
        file: String,
    },
    /// Resume the forge session of a tool, or discard it.
    ResumeOrRestartForge {
        tool: String,
    },
    /// Discard the forge session of a tool.
    RestartForge {
        tool: String,
    },
    /// Discard the forge session of a tool and read drafts from a file.
    RestartForgeWithDrafts {
        tool: String,
    },
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
