//! An eval function whose source was read and found to be in order.

use std::sync::Arc;

use karat_json::hash::short_hash;

/// A function that may run: its source was validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The name of its `eval_…` function.
    pub name: String,
    pub source: Arc<str>,
    /// The source's SHA-256, its first twelve hex digits.
    pub code_hash: String,
    /// Nothing that it does can outlive a trace, as far as its syntax shows: it changes no attribute, reaches for no
    /// module's inside, and so on. Where this is false, Python is made new after each trace.
    pub leaves_no_trace: bool,
}

impl Function {
    pub(crate) fn new(name: String, source: &str, leaves_no_trace: bool) -> Self {
        Self { name, source: source.into(), code_hash: short_hash(source.as_bytes()), leaves_no_trace }
    }

    /// Lets a test run what validation refuses: the sandbox is the boundary, whatever was read before.
    #[doc(hidden)]
    pub fn unvalidated(name: &str, source: &str) -> Self {
        Self::new(name.to_owned(), source, false)
    }
}

/// What is wrong with a function's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub rule: Rule,
    /// For a person: a lower-case fragment.
    pub message: String,
    /// What to do about it, where there is something to say.
    pub help: Option<String>,
    /// Where in the source without its byte order mark, in bytes; it may be empty.
    pub range: std::ops::Range<usize>,
}

/// Which rule a finding breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// It is not Python.
    Syntax,
    /// It imports something other than `json`, `re` and `typing`.
    Import,
    /// It uses a name that is blocked, such as `eval` or `open`.
    Name,
    /// It reaches for a double-underscore name.
    Dunder,
    /// There is not exactly one `eval_…` function with one parameter.
    Function,
    /// It is too long, or nested too deeply.
    Size,
}

impl std::fmt::Display for Rule {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Syntax => "syntax",
            Self::Import => "import",
            Self::Name => "name",
            Self::Dunder => "dunder",
            Self::Function => "function",
            Self::Size => "size",
        })
    }
}
