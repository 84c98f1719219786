//! Where the lines of a file begin, so that a place costs a search and not a walk over the file.

use karat_core::source::Position;

/// The lines of a text, which is kept for counting characters.
#[derive(Debug, Default)]
pub(crate) struct LineTable {
    text: String,
    /// The offset at which each line begins.
    starts: Vec<usize>,
}

impl LineTable {
    pub(crate) fn new(text: String) -> Self {
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// Tells whether the text is not kept, so that there are no positions in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns the line and column of a byte offset.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|&start| start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let passed = self.text.get(start..offset.min(self.text.len())).unwrap_or_default();
        Position { line, column: passed.chars().count() + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_the_one_that_a_walk_finds() {
        let text = "ä b\r\n\nlast é x";
        let table = LineTable::new(text.to_owned());
        for (offset, _) in text.char_indices().chain([(text.len(), ' ')]) {
            assert_eq!(table.position(offset), Position::of(text, offset), "{offset}");
        }
    }
}
