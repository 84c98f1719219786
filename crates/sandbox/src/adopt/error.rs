//! Errors of the selection of an evaluator.

/// Why no evaluator can be adopted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdoptError {
    #[error("{0}")]
    Invalid(String),
    #[error("no function '{0}' in the file")]
    Unknown(String),
    /// With the functions that can be adopted if they are named.
    #[error("no evaluator of a known framework")]
    NoneFound { functions: Vec<String> },
    #[error("the base class '{base}' of '{class}' is in another file, '{module}'")]
    ForeignBase { class: String, base: String, module: String },
    #[error("several evaluators: {}", .0.join(", "))]
    Several(Vec<String>),
}
