//! Edits of JSON text that leave everything else as it is, byte for byte.
//!
//! What is inserted is laid out as its neighbours are: the same indentation and line ends, on one line where they are
//! on one line. A line that grows too wide is opened, one child on a line, from the outside in.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::{Map, Value};

use super::layout::{Layout, WIDEST_LINE, holds_object, indent_at, line_start};
use super::locate::{Located, children, locate};
use super::{SyntaxError, parse};

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A JSON text under edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText {
    text: String,
    has_mark: bool,
    layout: Layout,
}

/// Where a new member stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    First,
    Last,
}

/// Why a text was not edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("there is nothing at '{pointer}'")]
    NotFound { pointer: String },
    #[error("'{pointer}' is no {expected}")]
    WrongType { pointer: String, expected: &'static str },
    #[error("'{pointer}' has the key '{key}' already")]
    KeyTaken { pointer: String, key: String },
    #[error("the whole text cannot be removed")]
    Root,
}

impl JsonText {
    /// Takes a text that must be JSON; a byte order mark is kept.
    pub fn read(text: &str) -> Result<Self, SyntaxError> {
        let bare = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        parse(bare)?;
        Ok(Self { text: bare.to_owned(), has_mark: bare.len() < text.len(), layout: Layout::of(bare) })
    }

    /// Lays a value out with two spaces a level, short lists on one line.
    pub fn of(value: &Value) -> Self {
        let layout = Layout::of("");
        let text = layout.lines(None, value, "") + "\n";
        Self { text, has_mark: false, layout }
    }

    /// Returns the text as it is now, without its byte order mark.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text as it is now.
    pub fn into_text(self) -> String {
        if self.has_mark { format!("{BYTE_ORDER_MARK}{}", self.text) } else { self.text }
    }

    /// Adds a member to the object at a JSON pointer.
    pub fn insert(&mut self, object: &str, key: &str, value: &Value, side: Side) -> Result<(), EditError> {
        let range = self.container(object, b'{', "object")?;
        let is_taken = |child: &Located| {
            let name = child.key.clone().and_then(|key| serde_json::from_str::<String>(&self.text[key]).ok());
            name.as_deref() == Some(key)
        };
        if children(&self.text, range.start).iter().any(is_taken) {
            return Err(EditError::KeyTaken { pointer: object.to_owned(), key: key.to_owned() });
        }
        self.insert_child(object, &New { key: Some(key), value, side })
    }

    /// Adds members to the end of the object at a JSON pointer, as [`JsonText::insert`] does one after the other.
    pub fn insert_all(&mut self, object: &str, members: &Map<String, Value>) -> Result<(), EditError> {
        let mut rest = members.iter();
        while let Some((key, value)) = rest.next() {
            self.insert(object, key, value, Side::Last)?;
            let all = children(&self.text, self.container(object, b'{', "object")?.start);
            // Once each member has a line, or all are on one for ever, nothing more is decided, and many go in at once.
            let [.., before, last] = all.as_slice() else { continue };
            let separator = &self.text[before.value.end..start(last)];
            if !separator.contains('\n') && !self.is_single_line() {
                continue;
            }
            let taken: HashSet<String> =
                all.iter().filter_map(|child| serde_json::from_str(&self.text[child.key.clone()?]).ok()).collect();
            if let Some((key, _)) = rest.clone().find(|(key, _)| taken.contains(*key)) {
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

    /// Adds an element to the end of the list at a JSON pointer.
    pub fn append(&mut self, list: &str, value: &Value) -> Result<(), EditError> {
        self.container(list, b'[', "list")?;
        self.insert_child(list, &New { key: None, value, side: Side::Last })
    }

    /// Removes the member or element at a JSON pointer, with its comma and its line.
    pub fn remove(&mut self, pointer: &str) -> Result<(), EditError> {
        let found = self.find(pointer)?;
        let (parent, _) = pointer.rsplit_once('/').ok_or(EditError::Root)?;
        let container = self.find(parent)?.value;
        let all = children(&self.text, container.start);
        let at = all.iter().position(|child| child.value == found.value).unwrap_or_default();
        let gone = match (at, all.len()) {
            (_, 1) => container.start + 1..container.end - 1,
            (0, _) => start(&all[0])..start(&all[1]),
            _ => all[at - 1].value.end..all[at].value.end,
        };
        self.text.replace_range(gone, "");
        Ok(())
    }

    /// Puts another value in the place of the one at a JSON pointer.
    pub fn replace(&mut self, pointer: &str, value: &Value) -> Result<(), EditError> {
        let Located { value: range, .. } = self.find(pointer)?;
        let one_line = self.layout.one_line(None, value);
        let is_inline = is_filled(&self.text[range.clone()]) && !self.text[range.clone()].contains('\n');
        let new = if self.is_single_line() || (is_inline && self.width_with(&range, &one_line) <= WIDEST_LINE) {
            one_line
        } else {
            self.layout.lines(None, value, indent_at(&self.text, range.start))
        };
        self.text.replace_range(range, &new);
        Ok(())
    }

    fn find(&self, pointer: &str) -> Result<Located, EditError> {
        locate(&self.text, pointer).ok_or_else(|| EditError::NotFound { pointer: pointer.to_owned() })
    }

    fn container(&self, pointer: &str, opening: u8, expected: &'static str) -> Result<Range<usize>, EditError> {
        let range = self.find(pointer)?.value;
        if self.text.as_bytes()[range.start] != opening {
            return Err(EditError::WrongType { pointer: pointer.to_owned(), expected });
        }
        Ok(range)
    }

    /// Tells whether somebody wrote all of it on one line, where it then stays.
    fn is_single_line(&self) -> bool {
        let text = self.text.trim();
        !text.contains('\n') && is_filled(text)
    }

    /// Returns how wide the line becomes on which a range is replaced by a text without line ends.
    fn width_with(&self, range: &Range<usize>, by: &str) -> usize {
        let rest = &self.text[range.end..];
        let rest = &rest[..rest.find(['\r', '\n']).unwrap_or(rest.len())];
        let before = &self.text[line_start(&self.text, range.start)..range.start];
        before.chars().count() + by.chars().count() + rest.chars().count()
    }

    fn insert_child(&mut self, pointer: &str, new: &New<'_>) -> Result<(), EditError> {
        loop {
            let container = self.find(pointer)?.value;
            let all = children(&self.text, container.start);
            let step = match new.side {
                _ if all.is_empty() => self.only_child(pointer, &container, new),
                Side::First => self.beside(pointer, &container, &all[0], new),
                Side::Last => self.beside(pointer, &container, &all[all.len() - 1], new),
            };
            match step {
                Step::Done(range, by) => {
                    self.text.replace_range(range, &by);
                    return Ok(());
                }
                // Opened from the outside in, so that it ends when the container itself has lines for its children.
                Step::Open(range) => self.open(&range),
            }
        }
    }

    fn only_child(&self, pointer: &str, container: &Range<usize>, new: &New<'_>) -> Step {
        let inside = container.start + 1..container.end - 1;
        let is_object = self.text.as_bytes()[container.start] == b'{';
        let outer = self.outermost_line(pointer).filter(|outer| outer != container);
        let is_usual =
            if is_object { self.layout.inline_objects } else { self.layout.inline_lists && !holds_object(new.value) };
        if self.is_single_line() || outer.is_some() || is_usual {
            let padding = self.layout.padding(is_object);
            let line = format!("{padding}{}{padding}", self.layout.one_line(new.key, new.value));
            if self.is_single_line() || self.width_with(&inside, &line) <= WIDEST_LINE {
                return Step::Done(inside, line);
            }
            if let Some(outer) = outer {
                return Step::Open(outer);
            }
        }
        let indent = indent_at(&self.text, container.start);
        let lines = self.layout.lines(new.key, new.value, &format!("{indent}{}", self.layout.unit));
        Step::Done(inside, self.layout.broken("", std::iter::once(lines), "", indent))
    }

    /// Puts the new child before the first or behind the last one.
    fn beside(&self, pointer: &str, container: &Range<usize>, sibling: &Located, new: &New<'_>) -> Step {
        let text = &self.text;
        let own_start = start(sibling);
        let at = if new.side == Side::First { own_start } else { sibling.value.end };
        let joined = |separator: &str, child: &str| match new.side {
            Side::First => Step::Done(at..at, format!("{child},{separator}")),
            Side::Last => Step::Done(at..at, format!(",{separator}{child}")),
        };
        let one_line = self.layout.one_line(new.key, new.value);
        let line = &text[line_start(text, own_start)..own_start];
        let sibling_text = &text[sibling.value.clone()];
        if text[container.start..own_start].contains('\n') && line.trim().is_empty() {
            let is_inline = is_filled(sibling_text) && !sibling_text.contains('\n');
            // Whoever writes wide lines gets them.
            let widest = self.width_with(&(at..at), "").max(WIDEST_LINE);
            let fits = line.chars().count() + one_line.chars().count() < widest;
            let child = if is_inline && fits { one_line } else { self.layout.lines(new.key, new.value, line) };
            return joined(&format!("{}{line}", self.layout.newline), &child);
        }
        let space = self.layout.comma.trim_start_matches(',');
        if sibling_text.contains('\n') {
            let indent = indent_at(text, sibling.value.start);
            return joined(space, &self.layout.lines(new.key, new.value, indent));
        }
        let added = format!(",{space}{one_line}");
        if self.is_single_line() || self.width_with(&(at..at), &added) <= WIDEST_LINE {
            return joined(space, &one_line);
        }
        match self.outermost_line(pointer) {
            Some(outer) => Step::Open(outer),
            None => joined(&format!("{}{}", self.layout.newline, indent_at(text, own_start)), &one_line),
        }
    }

    /// Returns the outermost container on the way to a value, itself included, that is on one line.
    fn outermost_line(&self, pointer: &str) -> Option<Range<usize>> {
        let ends = pointer.match_indices('/').map(|(at, _)| at).chain(std::iter::once(pointer.len()));
        let ranges = ends.filter_map(|end| Some(locate(&self.text, &pointer[..end])?.value));
        ranges.into_iter().find(|range| !self.text[range.clone()].contains('\n'))
    }

    /// Gives every child of a container on one line a line of its own.
    fn open(&mut self, range: &Range<usize>) {
        let text = &self.text;
        let all = children(text, range.start);
        let lines = all.iter().map(|child| &text[start(child)..child.value.end]);
        let ends = (&text[range.start..=range.start], &text[range.end - 1..range.end]);
        let opened = self.layout.broken(ends.0, lines, ends.1, indent_at(text, range.start));
        self.text.replace_range(range.clone(), &opened);
    }
}

/// What is to be inserted.
struct New<'n> {
    key: Option<&'n str>,
    value: &'n Value,
    side: Side,
}

enum Step {
    /// This range is replaced by this text, and that is all.
    Done(Range<usize>, String),
    /// The line would be too wide: the container in this range is to be opened first.
    Open(Range<usize>),
}

fn start(child: &Located) -> usize {
    child.key.as_ref().map_or(child.value.start, |key| key.start)
}

/// Tells whether a value's text is a container with something in it.
fn is_filled(text: &str) -> bool {
    text.starts_with(['{', '[']) && !text[1..text.len() - 1].trim().is_empty()
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
