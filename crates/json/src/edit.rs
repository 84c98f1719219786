//! Edits JSON documents and leaves all other bytes unchanged.
//!
//! Inserted values follow the layout of their siblings: same indentation and line endings, and on one line if the
//! siblings are. A line that becomes too long is broken into one child per line, outermost container first.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::{Map, Value};

use super::layout::{Layout, MAX_LINE_WIDTH, holds_object, indent_at, line_start};
use super::locate::{MemberRange, children, locate};
use super::{SyntaxError, parse};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// An editable JSON document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText {
    text: String,
    has_bom: bool,
    layout: Layout,
}

/// Position of a new member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    First,
    Last,
}

/// An error when editing a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("no value at '{pointer}'")]
    NotFound { pointer: String },
    #[error("'{pointer}' is not an {expected}")]
    WrongType { pointer: String, expected: &'static str },
    #[error("'{pointer}' already has the key '{key}'")]
    KeyTaken { pointer: String, key: String },
    #[error("the root value cannot be removed")]
    Root,
}

impl JsonText {
    /// Parses a JSON document; a byte order mark is preserved.
    pub fn read(text: &str) -> Result<Self, SyntaxError> {
        let bare = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        parse(bare)?;
        Ok(Self { text: bare.to_owned(), has_bom: bare.len() < text.len(), layout: Layout::of(bare) })
    }

    /// Formats a value with two spaces per level and short arrays on one line.
    pub fn of(value: &Value) -> Self {
        let layout = Layout::of("");
        let text = layout.lines(None, value, "") + "\n";
        Self { text, has_bom: false, layout }
    }

    /// Returns the current text without its byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the current text.
    pub fn into_text(self) -> String {
        if self.has_bom { format!("{BYTE_ORDER_MARK}{}", self.text) } else { self.text }
    }

    /// Adds a member to the object at a JSON pointer.
    pub fn insert(&mut self, object: &str, key: &str, value: &Value, side: Side) -> Result<(), EditError> {
        let range = self.container(object, b'{', "object")?;
        let is_taken = |child: &MemberRange| {
            let name = child.key.clone().and_then(|key| serde_json::from_str::<String>(&self.text[key]).ok());
            name.as_deref() == Some(key)
        };
        if children(&self.text, range.start).iter().any(is_taken) {
            return Err(EditError::KeyTaken { pointer: object.to_owned(), key: key.to_owned() });
        }
        self.insert_child(object, &NewChild { key: Some(key), value, side })
    }

    /// Appends members to the object at a JSON pointer, as repeated [`JsonText::insert`] would, but faster.
    pub fn insert_all(&mut self, object: &str, members: &Map<String, Value>) -> Result<(), EditError> {
        let mut rest = members.iter();
        while let Some((key, value)) = rest.next() {
            self.insert(object, key, value, Side::Last)?;
            let all = children(&self.text, self.container(object, b'{', "object")?.start);
            // Once the layout is settled, with one member per line or all on one line, insert the rest in one step.
            let [.., before, last] = all.as_slice() else { continue };
            let separator = &self.text[before.value.end..start(last)];
            if !separator.contains('\n') && !self.is_single_line() {
                continue;
            }
            let existing: HashSet<String> =
                all.iter().filter_map(|child| serde_json::from_str(&self.text[child.key.clone()?]).ok()).collect();
            if let Some((key, _)) = rest.clone().find(|(key, _)| existing.contains(*key)) {
                return Err(EditError::KeyTaken { pointer: object.to_owned(), key: key.clone() });
            }
            let indent = separator.rsplit('\n').next().unwrap_or_default();
            let lines: String = rest
                .map(|(key, value)| match value {
                    Value::Array(_) | Value::Object(_) if separator.contains('\n') => {
                        format!("{separator}{}", self.layout.lines(Some(key), value, indent))
                    }
                    _ => format!("{separator}{}", self.layout.one_line(Some(key), value)),
                })
                .collect();
            self.text.insert_str(last.value.end, &lines);
            break;
        }
        Ok(())
    }

    /// Appends an element to the array at a JSON pointer.
    pub fn append(&mut self, array: &str, value: &Value) -> Result<(), EditError> {
        self.container(array, b'[', "array")?;
        self.insert_child(array, &NewChild { key: None, value, side: Side::Last })
    }

    /// Removes the member or element at a JSON pointer, with its comma and its line.
    pub fn remove(&mut self, pointer: &str) -> Result<(), EditError> {
        let member = self.find(pointer)?;
        let (parent, _) = pointer.rsplit_once('/').ok_or(EditError::Root)?;
        let container = self.find(parent)?.value;
        let all = children(&self.text, container.start);
        let at = all.iter().position(|child| child.value == member.value).unwrap_or_default();
        let removed = match (at, all.len()) {
            (_, 1) => container.start + 1..container.end - 1,
            (0, _) => start(&all[0])..start(&all[1]),
            _ => all[at - 1].value.end..all[at].value.end,
        };
        self.text.replace_range(removed, "");
        Ok(())
    }

    /// Replaces the value at a JSON pointer.
    pub fn replace(&mut self, pointer: &str, value: &Value) -> Result<(), EditError> {
        let MemberRange { value: range, .. } = self.find(pointer)?;
        let one_line = self.layout.one_line(None, value);
        let is_inline = is_non_empty_container(&self.text[range.clone()]) && !self.text[range.clone()].contains('\n');
        let new = if self.is_single_line() || (is_inline && self.width_with(&range, &one_line) <= MAX_LINE_WIDTH) {
            one_line
        } else {
            self.layout.lines(None, value, indent_at(&self.text, range.start))
        };
        self.text.replace_range(range, &new);
        Ok(())
    }

    fn find(&self, pointer: &str) -> Result<MemberRange, EditError> {
        locate(&self.text, pointer).ok_or_else(|| EditError::NotFound { pointer: pointer.to_owned() })
    }

    fn container(&self, pointer: &str, opening: u8, expected: &'static str) -> Result<Range<usize>, EditError> {
        let range = self.find(pointer)?.value;
        if self.text.as_bytes()[range.start] != opening {
            return Err(EditError::WrongType { pointer: pointer.to_owned(), expected });
        }
        Ok(range)
    }

    /// Whether the whole document is on one line, which is then preserved.
    fn is_single_line(&self) -> bool {
        let text = self.text.trim();
        !text.contains('\n') && is_non_empty_container(text)
    }

    /// Returns the length of the line after replacing a range with a string without line breaks.
    fn width_with(&self, range: &Range<usize>, by: &str) -> usize {
        let rest = &self.text[range.end..];
        let rest = &rest[..rest.find(['\r', '\n']).unwrap_or(rest.len())];
        let before = &self.text[line_start(&self.text, range.start)..range.start];
        before.chars().count() + by.chars().count() + rest.chars().count()
    }

    fn insert_child(&mut self, pointer: &str, new: &NewChild<'_>) -> Result<(), EditError> {
        loop {
            let container = self.find(pointer)?.value;
            let all = children(&self.text, container.start);
            let step = match new.side {
                _ if all.is_empty() => self.only_child(pointer, &container, new),
                Side::First => self.insert_next_to(pointer, &container, &all[0], new),
                Side::Last => self.insert_next_to(pointer, &container, &all[all.len() - 1], new),
            };
            match step {
                Step::Replace(range, by) => {
                    self.text.replace_range(range, &by);
                    return Ok(());
                }
                // Outermost first, so that the loop ends once the container itself has one child per line.
                Step::Break(range) => self.break_lines(&range),
            }
        }
    }

    fn only_child(&self, pointer: &str, container: &Range<usize>, new: &NewChild<'_>) -> Step {
        let inside = container.start + 1..container.end - 1;
        let is_object = self.text.as_bytes()[container.start] == b'{';
        let outer = self.outermost_inline(pointer).filter(|outer| outer != container);
        let is_inline_layout =
            if is_object { self.layout.inline_objects } else { self.layout.inline_lists && !holds_object(new.value) };
        if self.is_single_line() || outer.is_some() || is_inline_layout {
            let padding = self.layout.padding(is_object);
            let line = format!("{padding}{}{padding}", self.layout.one_line(new.key, new.value));
            if self.is_single_line() || self.width_with(&inside, &line) <= MAX_LINE_WIDTH {
                return Step::Replace(inside, line);
            }
            if let Some(outer) = outer {
                return Step::Break(outer);
            }
        }
        let indent = indent_at(&self.text, container.start);
        let lines = self.layout.lines(new.key, new.value, &format!("{indent}{}", self.layout.unit));
        Step::Replace(inside, self.layout.multi_line("", std::iter::once(lines), "", indent))
    }

    /// Inserts the new child before the first or after the last one.
    fn insert_next_to(
        &self,
        pointer: &str,
        container: &Range<usize>,
        sibling: &MemberRange,
        new: &NewChild<'_>,
    ) -> Step {
        let text = &self.text;
        let own_start = start(sibling);
        let at = if new.side == Side::First { own_start } else { sibling.value.end };
        let joined = |separator: &str, child: &str| match new.side {
            Side::First => Step::Replace(at..at, format!("{child},{separator}")),
            Side::Last => Step::Replace(at..at, format!(",{separator}{child}")),
        };
        let one_line = self.layout.one_line(new.key, new.value);
        let line = &text[line_start(text, own_start)..own_start];
        let sibling_text = &text[sibling.value.clone()];
        if text[container.start..own_start].contains('\n') && line.trim().is_empty() {
            let is_inline = is_non_empty_container(sibling_text) && !sibling_text.contains('\n');
            // Respect lines that are already longer.
            let max_width = self.width_with(&(at..at), "").max(MAX_LINE_WIDTH);
            let fits = line.chars().count() + one_line.chars().count() < max_width;
            let child = if is_inline && fits { one_line } else { self.layout.lines(new.key, new.value, line) };
            return joined(&format!("{}{line}", self.layout.newline), &child);
        }
        let space = self.layout.comma.trim_start_matches(',');
        if sibling_text.contains('\n') {
            let indent = indent_at(text, sibling.value.start);
            return joined(space, &self.layout.lines(new.key, new.value, indent));
        }
        let added = format!(",{space}{one_line}");
        if self.is_single_line() || self.width_with(&(at..at), &added) <= MAX_LINE_WIDTH {
            return joined(space, &one_line);
        }
        match self.outermost_inline(pointer) {
            Some(outer) => Step::Break(outer),
            None => joined(&format!("{}{}", self.layout.newline, indent_at(text, own_start)), &one_line),
        }
    }

    /// Returns the outermost container on the path to a value, itself included, that is on one line.
    fn outermost_inline(&self, pointer: &str) -> Option<Range<usize>> {
        let ends = pointer.match_indices('/').map(|(at, _)| at).chain(std::iter::once(pointer.len()));
        let ranges = ends.filter_map(|end| Some(locate(&self.text, &pointer[..end])?.value));
        ranges.into_iter().find(|range| !self.text[range.clone()].contains('\n'))
    }

    /// Breaks a container on one line into one child per line.
    fn break_lines(&mut self, range: &Range<usize>) {
        let text = &self.text;
        let all = children(text, range.start);
        let lines = all.iter().map(|child| &text[start(child)..child.value.end]);
        let ends = (&text[range.start..=range.start], &text[range.end - 1..range.end]);
        let opened = self.layout.multi_line(ends.0, lines, ends.1, indent_at(text, range.start));
        self.text.replace_range(range.clone(), &opened);
    }
}

/// A child to insert.
struct NewChild<'n> {
    key: Option<&'n str>,
    value: &'n Value,
    side: Side,
}

enum Step {
    /// Replace this range with this text.
    Replace(Range<usize>, String),
    /// The line would be too long: break the container in this range first.
    Break(Range<usize>),
}

fn start(child: &MemberRange) -> usize {
    child.key.as_ref().map_or(child.value.start, |key| key.start)
}

/// Whether the text is a non-empty container.
fn is_non_empty_container(text: &str) -> bool {
    text.starts_with(['{', '[']) && !text[1..text.len() - 1].trim().is_empty()
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
