//! Eval functions and the findings of their validation.

use std::sync::Arc;

use karat_core::judgement::EvalOptions;
use karat_json::hash::short_hash;

/// The line above an adopted evaluator.
pub(crate) const ADOPTED_MARK: &str = "# The evaluator, unchanged.";

/// Texts in a function that reads what only a case has.
const CASE_WORDS: [&str; 4] = ["context.params", "context.reference", "context.case", "vars"];

/// A validated eval function.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// The name of its `eval_…` function.
    pub name: String,
    pub source: Arc<str>,
    /// First twelve hex digits of the SHA-256 of the source, and of the options if there are any.
    pub code_hash: String,
    /// The optional features that it uses.
    pub options: EvalOptions,
    /// Whether its second parameter is the context.
    pub takes_context: bool,
    /// `return` statements that always cause an error. They do not prevent the function from running.
    pub warnings: Vec<Finding>,
}

impl Function {
    pub(crate) fn new(name: String, source: &str) -> Self {
        Self {
            name,
            source: source.into(),
            code_hash: short_hash(source.as_bytes()),
            options: EvalOptions::default(),
            takes_context: false,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn with_options(self, options: EvalOptions) -> Self {
        if options.is_default() {
            return self;
        }
        let options_json = serde_json::to_string(&options).unwrap_or_default();
        let code_hash = short_hash([&*self.source, &options_json].join("\0").as_bytes());
        Self { code_hash, options, ..self }
    }

    /// Returns the options as JSON for the guest; empty if the function uses no optional feature.
    pub(crate) fn guest_options(&self) -> String {
        if self.options.is_default() && !self.takes_context {
            return String::new();
        }
        let mut options = serde_json::to_value(&self.options).unwrap_or_default();
        if let Some(members) = options.as_object_mut() {
            members.insert("takesContext".to_owned(), self.takes_context.into());
        }
        options.to_string()
    }

    /// Whether it seems to read what only a case has: the reference, the parameters or the case itself.
    pub fn reads_case(&self) -> bool {
        let own_text = |text: &str| {
            // The code above adapts the context for every evaluator.
            let own = text.rsplit_once(ADOPTED_MARK).map_or(text, |(_, own)| own);
            CASE_WORDS.iter().any(|word| own.contains(word))
        };
        self.takes_context && (own_text(&self.source) || self.options.helpers.values().any(|helper| own_text(helper)))
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
    /// Import of a module that is not allowed.
    Import,
    /// Use of a blocked name, such as `eval` or `open`.
    Name,
    /// Use of a double-underscore name.
    Dunder,
    /// Not exactly one `eval_…` function with the parameters `trace` and, if it needs one, `context`.
    Function,
    /// A `return` that always causes an error, or an invalid `KARAT_RETURNS` or `KARAT_THRESHOLD`.
    Return,
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
            Self::Return => "return",
            Self::Size => "size",
        })
    }
}
