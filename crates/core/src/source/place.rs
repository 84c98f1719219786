//! Where in which file something was found.

use std::ops::Range;

use serde::Serialize;

use super::{Problem, Subject, SyntaxError, locate};

/// A line and column, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    /// Returns the position of a byte offset.
    pub fn of(text: &str, offset: usize) -> Self {
        let before = &text[..offset.min(text.len())];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// A span of a text with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub range: Range<usize>,
    pub position: Position,
}

impl Place {
    pub fn new(text: &str, range: Range<usize>) -> Self {
        let position = Position::of(text, range.start);
        Self { range, position }
    }
}

/// Something wrong in a text, with its place: what a person is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub place: Place,
    pub pointer: Option<String>,
    pub case_id: Option<String>,
    pub message: String,
    pub help: Option<String>,
}

impl Finding {
    /// Finds a problem's place; what has none points at the start of the text.
    pub fn locate(text: &str, problem: Problem) -> Self {
        let found = locate(text, &problem.pointer);
        let range = match (found, problem.subject) {
            (Some(found), Subject::Key) => found.key.unwrap_or(found.value),
            (Some(found), Subject::Value) => found.value,
            (None, _) => 0..0,
        };
        Self {
            place: Place::new(text, range),
            pointer: Some(problem.pointer),
            case_id: problem.case_id,
            message: problem.message,
            help: problem.help,
        }
    }

    pub fn syntax(text: &str, error: SyntaxError) -> Self {
        let end = text[error.offset..].chars().next().map_or(error.offset, |next| error.offset + next.len_utf8());
        Self {
            place: Place::new(text, error.offset..end),
            pointer: None,
            case_id: None,
            message: error.message,
            help: None,
        }
    }
}
