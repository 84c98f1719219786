//! The source texts of tools, to show findings in them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use karat_cases::registry::ToolLocation;
use karat_json::{Location, Position, without_bom};

use crate::settings::Settings;

/// Extra bytes to search beyond the length of a description, since quotes and escapes take space.
const SEARCH_SLACK: usize = 200;

/// Reads each source text once, on demand.
pub(super) struct Sources {
    base: PathBuf,
    /// The source of tools without a location.
    pub(super) registry: String,
    texts: BTreeMap<String, Option<Arc<SourceText>>>,
}

/// A text and the offsets of its lines.
struct SourceText {
    text: Arc<str>,
    line_starts: Vec<usize>,
}

impl Sources {
    pub(super) fn new(settings: &Settings) -> Self {
        Self::with_base(settings.layout.current_dir.clone(), settings.display_path(&settings.tool_registry.path))
    }

    /// Creates sources with names relative to a folder.
    pub(super) fn with_base(base: PathBuf, registry: String) -> Self {
        Self { base, registry, texts: BTreeMap::new() }
    }

    /// Locates an excerpt of a description after `location`; without one, the value at `location` up to the
    /// end of the line.
    pub(super) fn locate(
        &mut self,
        location: &ToolLocation,
        excerpt: Option<Excerpt<'_>>,
    ) -> Option<(Arc<str>, Location)> {
        let position = location.position?;
        let source = self.text(&location.source)?;
        let start = source.offset(position)?;
        let rest = &source.text[start..];
        let range = excerpt.and_then(|excerpt| excerpt.find(rest)).unwrap_or_else(|| {
            let line = rest.lines().next().unwrap_or_default();
            0..value_length(line)
        });
        let range = start + range.start..start + range.end;
        let position = source.position(range.start);
        Some((Arc::clone(&source.text), Location { range, position }))
    }

    fn text(&mut self, source: &str) -> Option<Arc<SourceText>> {
        if let Some(known) = self.texts.get(source) {
            return known.clone();
        }
        let bytes = std::fs::read(self.base.join(source)).ok();
        let text = bytes.map(|bytes| Arc::new(SourceText::new(&String::from_utf8_lossy(without_bom(&bytes)))));
        self.texts.insert(source.to_owned(), text.clone());
        text
    }
}

/// A part of a description, to find in the source.
#[derive(Clone, Copy)]
pub(super) struct Excerpt<'e> {
    pub(super) text: &'e str,
    /// The length of the whole description.
    pub(super) description_length: usize,
}

impl Excerpt<'_> {
    fn find(self, rest: &str) -> Option<std::ops::Range<usize>> {
        let end = (self.description_length + SEARCH_SLACK).min(rest.len());
        let end = (end..=rest.len()).find(|&index| rest.is_char_boundary(index))?;
        let start = rest[..end].find(self.text)?;
        Some(start..start + self.text.len())
    }
}

/// Returns the length of the value at the start of a line, up to a delimiter outside of quotes and brackets.
fn value_length(line: &str) -> usize {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut is_escaped = false;
    let end = line.char_indices().find_map(|(at, letter)| {
        match (quote, letter) {
            _ if is_escaped => is_escaped = false,
            (Some(_), '\\') => is_escaped = true,
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"' | '`') => quote = Some(letter),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}' | ',' | ';') if depth == 0 => return Some(at),
            (None, ')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        None
    });
    let value = line[..end.unwrap_or(line.len())].trim_end().trim_end_matches(['{', '(', '[']).trim_end();
    if value.is_empty() { line.chars().next().map_or(0, char::len_utf8) } else { value.len() }
}

impl SourceText {
    fn new(text: &str) -> Self {
        let starts = text.match_indices('\n').map(|(end, _)| end + 1);
        Self { text: Arc::from(text), line_starts: std::iter::once(0).chain(starts).collect() }
    }

    fn offset(&self, position: Position) -> Option<usize> {
        let start = *self.line_starts.get(position.line.checked_sub(1)?)?;
        let offsets = self.text[start..].char_indices().map(|(index, _)| start + index);
        offsets.chain([self.text.len()]).nth(position.column.checked_sub(1)?)
    }

    fn position(&self, offset: usize) -> Position {
        let line = self.line_starts.partition_point(|&start| start <= offset);
        let start = self.line_starts[line.saturating_sub(1)];
        Position { line, column: self.text[start..offset].chars().count() + 1 }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("`News of ${city}.`, version: '1' }", "`News of ${city}.`")]
    #[case("'it\\'s, well' },", "'it\\'s, well'")]
    #[case("make({ a: 1 }, [2]), b", "make({ a: 1 }, [2])")]
    #[case("z.object({", "z.object")]
    #[case("export * from './b';", "export * from './b'")]
    #[case("{", "{")]
    #[case(")", ")")]
    #[case("", "")]
    fn finds_the_length_of_the_first_value(#[case] line: &str, #[case] value: &str) {
        assert_eq!(&line[..value_length(line)], value);
    }

    #[test]
    fn converts_between_offsets_and_positions() {
        let source = SourceText::new("é1\n\nab");
        for (offset, line, column) in [(0, 1, 1), (2, 1, 2), (4, 2, 1), (6, 3, 2), (7, 3, 3)] {
            assert_eq!(source.position(offset), Position { line, column });
            assert_eq!(source.offset(Position { line, column }), Some(offset));
        }
        assert_eq!(source.offset(Position { line: 9, column: 1 }), None);
    }
}
