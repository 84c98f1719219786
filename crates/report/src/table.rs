//! Tables with a line per row.

use crate::console::{ConsoleSettings, Verbosity};
use crate::terminal_text::{pad, width};

/// The layout of columns before text that ends each line.
pub(crate) struct Table<const N: usize> {
    titles: [&'static str; N],
    /// Columns of numbers are aligned to the right.
    numbers_from: usize,
    widths: [usize; N],
    /// The columns that are not empty or hidden.
    visible: Vec<usize>,
}

impl<const N: usize> Table<N> {
    pub(crate) fn new(titles: [&'static str; N], numbers_from: usize, rows: &[[String; N]]) -> Self {
        let widest = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
        let visible = (0..N).filter(|&column| widest(column) > 0).collect();
        let widths = std::array::from_fn(|column| widest(column).max(titles[column].len()));
        Self { titles, numbers_from, widths, visible }
    }

    /// Leaves out a column.
    pub(crate) fn hide(&mut self, column: usize) {
        self.visible.retain(|visible| *visible != column);
    }

    /// Returns the width of the columns, with a gap after each.
    pub(crate) fn width(&self) -> usize {
        self.visible.iter().map(|&column| self.widths[column] + 2).sum()
    }

    /// Renders the titles, unless the output is quiet.
    pub(crate) fn heading(&self, last: &str, settings: ConsoleSettings) -> String {
        match settings.verbosity {
            Verbosity::Quiet => String::new(),
            _ => settings.palette.dim(self.line(&self.titles, last)) + "\n",
        }
    }

    pub(crate) fn line(&self, cells: &[impl AsRef<str>; N], last: &str) -> String {
        let mut line = String::new();
        for &column in &self.visible {
            let cell = cells[column].as_ref();
            if column < self.numbers_from {
                line.push_str(&pad(cell, self.widths[column]));
            } else {
                line.push_str(&" ".repeat(self.widths[column].saturating_sub(width(cell))));
                line.push_str(cell);
            }
            line.push_str("  ");
        }
        line.push_str(last);
        line.trim_end().to_owned()
    }
}
