//! Positions and findings in a source text.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;

use super::locate::Locator;
use super::{Problem, Subject, SyntaxError};

/// A 1-based line and column; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    const START: Position = Position { line: 1, column: 1 };

    /// Returns the position of a byte offset.
    pub fn of(text: &str, offset: usize) -> Self {
        Self::START.after(&text[..offset.min(text.len())])
    }

    /// Returns the position at the end of a string that starts here.
    fn after(self, passed: &str) -> Self {
        match passed.rfind('\n') {
            Some(end) => Self {
                line: self.line + passed.bytes().filter(|&byte| byte == b'\n').count(),
                column: passed[end + 1..].chars().count() + 1,
            },
            None => Self { line: self.line, column: self.column + passed.chars().count() },
        }
    }
}

impl SyntaxError {
    /// Returns the message with its line and column in the text.
    pub fn describe(&self, text: &str) -> String {
        let Position { line, column } = Position::of(text, self.offset);
        format!("{} at line {line} column {column}", self.message)
    }
}

/// A span of the source text with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    pub range: Range<usize>,
    pub position: Position,
}

impl Location {
    pub fn new(text: &str, range: Range<usize>) -> Self {
        let position = Position::of(text, range.start);
        Self { range, position }
    }
}

/// Returns the positions of many values, in the order of `pointers`. The text is scanned once.
pub fn locate_values(text: &str, pointers: &[String]) -> Vec<Option<Position>> {
    let mut locator = Locator::new(text);
    let starts: Vec<Option<usize>> =
        pointers.iter().map(|pointer| locator.locate(pointer).map(|member| member.value.start)).collect();
    let mut order: Vec<usize> = (0..starts.len()).collect();
    order.sort_by_key(|&index| starts[index]);
    let (mut offset, mut position) = (0, Position::START);
    let mut positions = vec![None; starts.len()];
    for index in order {
        if let Some(start) = starts[index] {
            position = position.after(&text[offset..start]);
            offset = start;
            positions[index] = Some(position);
        }
    }
    positions
}

/// A problem with its position in the source text, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub location: Location,
    pub pointer: Option<String>,
    pub case_id: Option<String>,
    pub message: String,
    pub help: Option<String>,
}

impl Finding {
    /// Locates problems in one scan of the text, and returns them in text order. A problem that cannot be located
    /// points at the start.
    pub fn locate_all(text: &str, problems: Vec<Problem>) -> Vec<Self> {
        let untagged = problems.into_iter().map(|problem| (problem, ())).collect();
        Self::locate_tagged(text, untagged).into_iter().map(|(finding, ())| finding).collect()
    }

    /// Like [`Self::locate_all`], but each problem keeps its tag.
    pub fn locate_tagged<M>(text: &str, problems: Vec<(Problem, M)>) -> Vec<(Self, M)> {
        let mut locator = Locator::new(text);
        let mut located: Vec<(Range<usize>, Problem, M)> =
            problems.into_iter().map(|(problem, tag)| (range_of(&mut locator, &problem), problem, tag)).collect();
        located.sort_by_key(|(range, _, _)| range.start);
        let (mut offset, mut position) = (0, Position::START);
        let find = |(range, problem, tag): (Range<usize>, Problem, M)| {
            position = position.after(&text[offset..range.start]);
            offset = range.start;
            (Self::new(Location { range, position }, problem), tag)
        };
        located.into_iter().map(find).collect()
    }

    /// Creates findings from problems with byte ranges, in one scan of the text, and returns them in text order.
    pub fn from_ranges(text: &str, mut problems: Vec<(Range<usize>, String, Option<String>)>) -> Vec<Self> {
        problems.sort_by_key(|(range, _, _)| range.start);
        let (mut offset, mut position) = (0, Position::START);
        let find = |(range, message, help): (Range<usize>, String, Option<String>)| {
            position = position.after(&text[offset..range.start]);
            offset = range.start;
            Self { location: Location { range, position }, pointer: None, case_id: None, message, help }
        };
        problems.into_iter().map(find).collect()
    }

    fn new(location: Location, problem: Problem) -> Self {
        Self {
            location,
            pointer: Some(problem.pointer),
            case_id: problem.case_id,
            message: problem.message,
            help: problem.help,
        }
    }

    /// Returns a file's text without its byte order mark; invalid UTF-8 is a finding.
    pub fn text_of(bytes: &[u8]) -> Result<&str, Vec<Self>> {
        let Ok(text) = std::str::from_utf8(bytes) else {
            let error = SyntaxError { offset: 0, message: "the file is not valid UTF-8".to_owned() };
            return Err(vec![Self::syntax("", error)]);
        };
        Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
    }

    /// Creates a finding for a syntax error in a file, in words about the file.
    pub fn syntax(text: &str, error: SyntaxError) -> Self {
        let SyntaxError { mut offset, mut message } = error;
        if let Some(part) = message.strip_prefix("EOF while parsing ") {
            message = match text.trim() {
                "" => "the file is empty".to_owned(),
                _ if part == "a value" => "the file ends where a value is expected".to_owned(),
                _ => format!("the file ends in the middle of {part}"),
            };
            // After the last line there is nothing to show.
            offset = text.trim_end().char_indices().next_back().map_or(0, |(offset, _)| offset);
        } else if message == "expected ident" {
            // The parser's name for `true`, `false` and `null`.
            "expected JSON".clone_into(&mut message);
        }
        let end = text[offset..].chars().next().map_or(offset, |next| offset + next.len_utf8());
        Self { location: Location::new(text, offset..end), pointer: None, case_id: None, message, help: None }
    }
}

/// Returns the range of a problem. A value that is not in the text, such as one of a table's row, has the location of the
/// nearest value around it.
fn range_of(locator: &mut Locator<'_>, problem: &Problem) -> Range<usize> {
    let mut pointer = problem.pointer.as_str();
    loop {
        match (locator.locate(pointer), problem.subject, pointer.rsplit_once('/')) {
            (Some(member), Subject::Key, _) => return member.key.unwrap_or(member.value),
            (Some(member), Subject::Value, _) => return member.value,
            (None, _, Some((parent, _))) if !parent.is_empty() => pointer = parent,
            (None, ..) => return 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locates_values_in_any_order() {
        let text = "{\"é\": [1,\n  {\"b\": 2}], \"c\": 3}";
        let pointers = ["/c", "/nowhere", "/é/1/b", "/é/0"].map(str::to_owned);
        let positions = locate_values(text, &pointers);
        let positions: Vec<Option<(usize, usize)>> =
            positions.into_iter().map(|position| position.map(|position| (position.line, position.column))).collect();
        assert_eq!(positions, [Some((2, 19)), None, Some((2, 9)), Some((1, 8))]);
    }
}
