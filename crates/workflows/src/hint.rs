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
    /// Put other code of an eval into the store.
    AddEvalVersion,
    /// List the traces of the store.
    ListTraces,
    /// Put traces into the store.
    ImportTraces,
    /// Put traces into the store from files, or while agents run.
    ImportOrReceiveTraces,
    /// List who said what of which trace.
    ListFeedback,
    /// Import the valid rows only.
    SkipInvalidRows,
    /// Create the store by using it, or name another.
    CreateStore,
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
