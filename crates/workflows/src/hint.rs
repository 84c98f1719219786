//! What a user can do about an error.

/// A hint. Those that name a command of the command line are typed, so that each surface says them in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    Text(String),
    /// List where people contradict an eval.
    ListContradictions {
        eval: String,
    },
    /// Put an eval function into the store.
    AddEval {
        file: Option<String>,
    },
    /// Write a first eval function.
    NewEval,
    /// Judge the cases that are kept beside an eval function.
    TestEval {
        file: String,
    },
    /// Fix the file of an eval, and add it as a new version.
    FixEval,
    /// Judge the stored traces with an eval.
    JudgeStored {
        eval: String,
    },
    /// List traces by the same filter.
    FilterTraces,
    /// Judge Arrow data as a filter.
    JudgeArrow {
        file: String,
    },
    /// Turn a file into JSON lines with another program.
    ConvertTraces {
        program: &'static str,
        file: String,
    },
    /// Put other code of an eval into the store.
    AddEvalVersion,
    /// Name the overlap map, or make one.
    NameOrMakeOverlapMap,
    /// Write the tool lock.
    WriteToolLock,
    /// List the traces of the store.
    ListTraces,
    /// Print what the source of a trace sent.
    ShowRawTrace {
        trace: String,
    },
    /// Put traces into the store.
    ImportTraces,
    /// Run without a store.
    RunWithoutStore,
    /// Put traces into the store from files, or while agents run.
    ImportOrReceiveTraces,
    /// List who said what of which trace.
    ListFeedback,
    /// List the ratings, and change one.
    ChangeFeedback,
    /// Rate traces.
    RateTraces,
    /// Rewrite the newest version of an eval; the candidate for an older one is in this file.
    RefineNewest {
        eval: String,
        file: String,
    },
    /// Import the valid rows only.
    SkipInvalidRows,
    /// Create the store by using it, or name another.
    CreateStore,
    /// Check the eval files to see what is wrong with one.
    CheckFiles,
    /// Check the file in the place of a new regression file, or name another.
    CheckOrNameRegressionFile,
    /// Run the eval files, or describe the regression case.
    RunEvalsOrDescribeCase,
    /// Give a key of `expect` a stable value.
    ReplaceExpectation {
        key: String,
    },
    /// Name the tool under test, for example one that the trace calls.
    NameToolUnderTest {
        tool: Option<String>,
        trace: String,
    },
    /// List the tools of the registry.
    ListTools,
    /// Read what the drafts of a tool look like.
    ForgeBrief {
        tool: String,
    },
    /// Begin to draft for a tool.
    StartForge {
        tool: Option<String>,
    },
    /// Resume the session of a tool.
    ResumeForge {
        tool: String,
    },
    /// Resume the session that is kept in a file.
    ResumeKeptForge {
        tool: String,
        file: String,
    },
    /// Resume the session of a tool, or forget it.
    ResumeOrRestartForge {
        tool: String,
    },
    /// Forget the session of a tool.
    RestartForge {
        tool: String,
    },
    /// Forget the session of a tool, and take drafts from a file.
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
