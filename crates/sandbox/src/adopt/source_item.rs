//! The parts of the code to copy.

use ruff_python_ast::Stmt;
use ruff_text_size::TextRange;

/// A part of the code to copy.
pub(super) enum SourceItem<'a> {
    /// A statement, and what replaces the imports inside of it.
    Statement(&'a Stmt, Vec<Edit>),
    Import(ImportKind, String),
}

/// A replaced import inside of a statement.
pub(super) struct Edit {
    pub(super) range: TextRange,
    pub(super) text: String,
    /// Whether it was an import from the framework.
    pub(super) is_stand_in: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImportKind {
    Future,
    /// An assignment in place of an import from the framework.
    StandIn,
    Module,
}
