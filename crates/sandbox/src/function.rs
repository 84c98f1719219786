//! Eval functions and the findings of their validation.

use std::sync::Arc;

use karat_json::hash::short_hash;

/// A validated eval function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The name of its `eval_…` function.
    pub name: String,
    pub source: Arc<str>,
    /// First twelve hex digits of the source's SHA-256.
    pub code_hash: String,
}

impl Function {
    pub(crate) fn new(name: String, source: &str) -> Self {
        Self { name, source: source.into(), code_hash: short_hash(source.as_bytes()) }
    }

    /// Creates a function without validation, for tests of the sandbox boundary.
    #[doc(hidden)]
    pub fn unvalidated(name: &str, source: &str) -> Self {
        Self::new(name.to_owned(), source)
    }
}

/// A problem in a function's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub rule: Rule,
    /// A lower-case fragment.
    pub message: String,
    /// How to fix it.
    pub help: Option<String>,
    /// Byte range in the source without its byte order mark; may be empty.
    pub range: std::ops::Range<usize>,
}

/// The rule that a finding violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Invalid Python syntax.
    Syntax,
    /// Import of a module other than `json`, `re` and `typing`.
    Import,
    /// Use of a blocked name, such as `eval` or `open`.
    Name,
    /// Use of a double-underscore name.
    Dunder,
    /// Not exactly one `eval_…` function with one parameter.
    Function,
    /// Too long or too deeply nested.
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
