//! The texts that tools were read from, to show findings in them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use karat_core::registry::ToolPlace;
use karat_json::{Place, Position, without_bom};

use crate::settings::Settings;

/// How far behind a description's beginning its words are looked for, beyond its length: quotes and escapes take room.
const SLACK: usize = 200;

/// Reads each text once, and only if something is to be shown in it.
pub(super) struct Sources {
    here: PathBuf,
    /// What tools without a place were read from.
    pub(super) registry: String,
    texts: BTreeMap<String, Option<Arc<SourceText>>>,
}

/// A text and where its lines begin.
struct SourceText {
    text: Arc<str>,
    lines: Vec<usize>,
}

impl Sources {
    pub(super) fn new(settings: &Settings) -> Self {
        Self::below(settings.layout.here.clone(), settings.shown(&settings.tool_registry.path))
    }

    /// Makes sources whose names are relative to a folder.
    pub(super) fn below(here: PathBuf, registry: String) -> Self {
        Self { here, registry, texts: BTreeMap::new() }
    }

    /// Finds a tool's place in its file: the words behind it, or else the value that begins there, as far as it is on its line.
    pub(super) fn locate(&mut self, place: &ToolPlace, words: Option<Words<'_>>) -> Option<(Arc<str>, Place)> {
        let position = place.position?;
        let source = self.text(&place.source)?;
        let start = source.offset(position)?;
        let rest = &source.text[start..];
        let range = words.and_then(|words| words.find(rest)).unwrap_or_else(|| {
            let line = rest.lines().next().unwrap_or_default();
            0..value_length(line)
        });
        let range = start + range.start..start + range.end;
        let position = source.position(range.start);
        Some((Arc::clone(&source.text), Place { range, position }))
    }

    fn text(&mut self, source: &str) -> Option<Arc<SourceText>> {
        if let Some(known) = self.texts.get(source) {
            return known.clone();
        }
        let bytes = std::fs::read(self.here.join(source)).ok();
        let text = bytes.map(|bytes| Arc::new(SourceText::new(&String::from_utf8_lossy(without_bom(&bytes)))));
        self.texts.insert(source.to_owned(), text.clone());
        text
    }
}

/// Words of a description, which may stand literally in the source.
#[derive(Clone, Copy)]
pub(super) struct Words<'w> {
    pub(super) words: &'w str,
    /// How long the description is.
    pub(super) length: usize,
}

impl Words<'_> {
    fn find(self, rest: &str) -> Option<std::ops::Range<usize>> {
        let end = (self.length + SLACK).min(rest.len());
        let end = (end..=rest.len()).find(|&at| rest.is_char_boundary(at))?;
        let at = rest[..end].find(self.words)?;
        Some(at..at + self.words.len())
    }
}

/// Returns how long the value is that a line begins with: up to what ends it outside of quotes and brackets.
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
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text: Arc::from(text), lines: std::iter::once(0).chain(ends).collect() }
    }

    fn offset(&self, position: Position) -> Option<usize> {
        let start = *self.lines.get(position.line.checked_sub(1)?)?;
        let letters = self.text[start..].char_indices().map(|(at, _)| start + at);
        letters.chain([self.text.len()]).nth(position.column.checked_sub(1)?)
    }

    fn position(&self, offset: usize) -> Position {
        let line = self.lines.partition_point(|&start| start <= offset);
        let start = self.lines[line.saturating_sub(1)];
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
    fn offsets_and_positions_convert_both_ways() {
        let source = SourceText::new("é1\n\nab");
        for (offset, line, column) in [(0, 1, 1), (2, 1, 2), (4, 2, 1), (6, 3, 2), (7, 3, 3)] {
            assert_eq!(source.position(offset), Position { line, column });
            assert_eq!(source.offset(Position { line, column }), Some(offset));
        }
        assert_eq!(source.offset(Position { line: 9, column: 1 }), None);
    }
}
