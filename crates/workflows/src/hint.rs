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
    /// List the traces of the store.
    ListTraces,
    /// Put traces into the store.
    ImportTraces,
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
