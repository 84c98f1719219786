//! Excerpts of an agent's answer, with marks below the strings that a failed assertion looked for.

use std::ops::Range;

use crate::terminal_text::{printable, width};

/// Larger texts are searched only for exact matches.
const MAX_FOLDED_BYTES: usize = 1 << 20;

/// Maximum number of rendered characters of a long text, and of those before the first mark.
const MAX_CHARS: usize = 4_000;
const CHARS_BEFORE_MARK: usize = 400;

/// A line of an excerpt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) text: String,
    /// Carets below the marked characters; empty if nothing is marked.
    pub(crate) carets: String,
}

/// The lines around the first mark of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) rows: Vec<Row>,
    /// Whether something before or after the rows is left out.
    pub(crate) cut_before: bool,
    pub(crate) cut_after: bool,
}

/// Wraps text to `columns` and returns up to `max_rows` lines around the first mark, or from the start.
pub(crate) fn excerpt(text: &str, marks: &[String], columns: usize, max_rows: usize) -> Excerpt {
    let text = text.trim_end();
    let ranges = mark_ranges(text, marks);
    let part = if max_rows == usize::MAX { 0..text.len() } else { rendered_part(text, ranges.first()) };
    let mut rows = Vec::new();
    let mut start = part.start;
    for line in text[part.clone()].split_inclusive('\n') {
        rows.extend(wrap_line(line.trim_end_matches(['\n', '\r']), start, &ranges, columns));
        start += line.len();
    }
    let first = rows.iter().position(|row| !row.carets.is_empty()).unwrap_or(0);
    // One line of context.
    let from = if first < max_rows { 0 } else { first - 1 };
    let end = from.saturating_add(max_rows).min(rows.len());
    Excerpt {
        cut_before: from > 0 || part.start > 0,
        cut_after: end < rows.len() || part.end < text.len(),
        rows: rows.drain(from..end).collect(),
    }
}

/// Returns the part of a long text that is rendered, since a text can be megabytes long.
fn rendered_part(text: &str, mark: Option<&Range<usize>>) -> Range<usize> {
    let mark = mark.map_or(0, |mark| mark.start);
    let start = text[..mark].char_indices().rev().nth(CHARS_BEFORE_MARK).map_or(0, |(offset, _)| offset);
    let end = text[start..].char_indices().nth(MAX_CHARS).map_or(text.len(), |(offset, _)| start + offset);
    start..end
}

/// Wraps one line at spaces; `offset` is its position in the text of the ranges.
fn wrap_line(line: &str, offset: usize, ranges: &[Range<usize>], columns: usize) -> Vec<Row> {
    let mut cells: Vec<(String, usize, bool)> = Vec::new();
    for (index, character) in line.char_indices() {
        let position = offset + index;
        let next = ranges.partition_point(|range| range.end <= position);
        let is_marked = ranges.get(next).is_some_and(|range| range.start <= position);
        let printed = if character == '\t' {
            "    ".to_owned()
        } else {
            printable(character.encode_utf8(&mut [0; 4])).into_owned()
        };
        let columns = width(&printed);
        cells.push((printed, columns, is_marked));
    }
    let mut rows = Vec::new();
    let (mut start, mut used, mut space) = (0, 0, None);
    let mut index = 0;
    while index < cells.len() {
        let (printed, columns_needed, _) = &cells[index];
        let is_space = printed == " ";
        if used + columns_needed > columns && index > start && !is_space {
            let end = space.map_or(index, |space| space + 1);
            rows.push(row(&cells[start..end]));
            (start, used, space, index) = (end, 0, None, end);
            continue;
        }
        used += columns_needed;
        if is_space {
            space = Some(index);
        }
        index += 1;
    }
    rows.push(row(&cells[start..]));
    rows
}

fn row(cells: &[(String, usize, bool)]) -> Row {
    let text: String = cells.iter().map(|(printed, ..)| printed.as_str()).collect();
    let carets: String =
        cells.iter().map(|(_, columns, marked)| if *marked { "^" } else { " " }.repeat(*columns)).collect();
    Row { text: text.trim_end().to_owned(), carets: carets.trim_end().to_owned() }
}

/// Returns where the marks occur: exactly or, if a mark does not, in other case. Sorted, without overlaps.
fn mark_ranges(text: &str, marks: &[String]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut folded: Option<LowercaseText> = None;
    for mark in marks.iter().filter(|mark| !mark.is_empty()) {
        let before = ranges.len();
        ranges.extend(text.match_indices(mark.as_str()).map(|(start, matched)| start..start + matched.len()));
        if ranges.len() == before && text.len() <= MAX_FOLDED_BYTES {
            ranges.extend(folded.get_or_insert_with(|| LowercaseText::new(text)).find(mark));
        }
    }
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => merged.push(range),
        }
    }
    merged
}

/// Text in lower case, with the offset of each of its bytes in the original.
struct LowercaseText {
    text: String,
    offsets: Vec<usize>,
}

impl LowercaseText {
    fn new(original: &str) -> Self {
        let (mut text, mut offsets) = (String::with_capacity(original.len()), Vec::with_capacity(original.len() + 1));
        for (offset, character) in original.char_indices() {
            text.extend(character.to_lowercase());
            offsets.resize(text.len(), offset);
        }
        offsets.push(original.len());
        Self { text, offsets }
    }

    fn find(&self, mark: &str) -> Vec<Range<usize>> {
        let mark: String = mark.chars().flat_map(char::to_lowercase).collect();
        let ranges = self
            .text
            .match_indices(&mark)
            .map(|(start, matched)| self.offsets[start]..self.offsets[start + matched.len()]);
        ranges.filter(|range| !range.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn excerpt_lines(text: &str, marks: &[&str], columns: usize, max_rows: usize) -> Vec<String> {
        let marks: Vec<String> = marks.iter().map(|mark| (*mark).to_owned()).collect();
        let excerpt = excerpt(text, &marks, columns, max_rows);
        let mut lines = Vec::new();
        lines.extend(excerpt.cut_before.then(|| "…".to_owned()));
        for row in excerpt.rows {
            lines.push(row.text);
            lines.extend(Some(row.carets).filter(|carets| !carets.is_empty()));
        }
        lines.extend(excerpt.cut_after.then(|| "…".to_owned()));
        lines
    }

    #[test]
    fn marks_exact_and_near_matches() {
        assert_eq!(
            excerpt_lines("Order A1 is shipped.", &["order", "A1"], 40, 4),
            ["Order A1 is shipped.", "^^^^^ ^^"]
        );
        assert_eq!(
            excerpt_lines("order Order", &["order"], 40, 4),
            ["order Order", "^^^^^"],
            "an exact match is enough"
        );
        assert_eq!(excerpt_lines("日本 ÉTÉ", &["été"], 40, 4), ["日本 ÉTÉ", "     ^^^"]);
        assert_eq!(excerpt_lines("a\u{1b}b", &["\u{1b}"], 40, 4), ["a\\u{1b}b", " ^^^^^^"]);
        assert_eq!(excerpt_lines("abcabc", &["abca", "cab"], 40, 4), ["abcabc", "^^^^^"]);
    }

    #[test]
    fn wraps_and_cuts_around_the_first_mark() {
        assert_eq!(excerpt_lines("one two three", &[], 8, 4), ["one two", "three"]);
        assert_eq!(excerpt_lines("1\n2\n3\n4\n5", &[], 8, 2), ["1", "2", "…"]);
        assert_eq!(excerpt_lines("1\n2\n3\n4\n5", &["4"], 8, 2), ["…", "3", "4", "^", "…"]);
        assert_eq!(excerpt_lines("abcdefgh", &["de"], 4, 4), ["abcd", "   ^", "efgh", "^"]);
        assert!(excerpt_lines("", &["x"], 4, 4).is_empty());
        let long = format!("{}needle", "hay ".repeat(50_000));
        assert_eq!(excerpt_lines(&long, &["NEEDLE"], 20, 2).last().map(String::as_str), Some("^^^^^^"));
    }

    proptest! {
        #[test]
        fn limits_the_rows_of_any_text(text in ".{0,60}", marks in prop::collection::vec(".{0,3}", 0..3), columns in 1..20_usize, rows in 1..5_usize) {
            let excerpt = excerpt(&text, &marks, columns, rows);
            prop_assert!(excerpt.rows.len() <= rows);
            prop_assert!(!excerpt.rows.iter().any(|row| row.text.contains('\n')));
        }
    }
}
