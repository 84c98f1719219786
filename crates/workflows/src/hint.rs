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
    /// Put traces into the store.
    ImportTraces,
    /// Run without a store.
    RunWithoutStore,
    /// Put traces into the store from files, or while agents run.
    ImportOrReceiveTraces,
    /// List who said what of which trace.
    ListFeedback,
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
