//! Blocks of untrusted text: escaped, wrapped, indented and shortened.

use crate::console::ConsoleSettings;
use crate::terminal_text::{printable, wrap};

/// How much of long texts is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Only the start.
    Short,
    Full,
}

/// Rendered lines, and whether something was left out.
pub(crate) struct Canvas {
    pub(crate) settings: ConsoleSettings,
    pub(crate) length: Length,
    pub(crate) out: String,
    /// Something was left out that `--full` shows.
    pub(crate) is_shortened: bool,
}

impl Canvas {
    pub(crate) fn new(settings: ConsoleSettings, length: Length) -> Self {
        Self { settings, length, out: String::new(), is_shortened: false }
    }

    /// Adds a rendered line.
    pub(crate) fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// Adds text of up to `max_lines` lines. `first` precedes the first line and is as wide as the indentation of the
    /// others.
    pub(crate) fn text(&mut self, text: &str, first: &str, indent: usize, max_lines: usize) {
        self.painted_text(text, (first, indent), max_lines, &|line| line.to_owned());
    }

    /// Adds text whose lines are painted.
    pub(crate) fn painted_text(
        &mut self,
        text: &str,
        (first, indent): (&str, usize),
        max_lines: usize,
        paint: &dyn Fn(&str) -> String,
    ) {
        let columns = self.settings.columns.saturating_sub(indent).max(20);
        let is_short = self.length == Length::Short;
        // Do not wrap what cannot be shown: a text can be megabytes long.
        let available = if is_short { columns.saturating_mul(max_lines + 1) } else { usize::MAX };
        let text = text.trim_end();
        let start = match text.char_indices().nth(available) {
            Some((end, _)) => &text[..end],
            None => text,
        };
        let mut lines = Vec::new();
        for line in start.lines() {
            let line = line.replace('\t', "    ");
            lines.extend(wrap(&printable(&line), columns));
            if is_short && lines.len() > max_lines {
                break;
            }
        }
        let is_truncated = is_short && (lines.len() > max_lines || start.len() < text.len());
        if is_truncated {
            lines.truncate(max_lines);
            self.is_shortened = true;
        }
        for (number, line) in lines.iter().enumerate() {
            let before = if number == 0 { first.to_owned() } else { " ".repeat(indent) };
            self.line(&format!("{before}{}", paint(line)));
        }
        if is_truncated {
            let ellipsis = self.settings.symbols.ellipsis;
            let note = format!("{ellipsis} ({} characters in total)", text.chars().count());
            self.line(&format!("{}{}", " ".repeat(indent), self.settings.palette.dim(note)));
        }
    }

    /// Adds a rule with a title, as wide as the screen.
    pub(crate) fn rule(&mut self, title: &str) {
        let settings = self.settings;
        let rule = |count: usize| settings.symbols.rule.to_string().repeat(count);
        let title =
            crate::terminal_text::truncate(title, settings.columns.saturating_sub(8), settings.symbols.ellipsis);
        let rest = settings.columns.saturating_sub(crate::terminal_text::width(&title) + 4);
        let palette = settings.palette;
        self.line(&format!("{} {} {}", palette.dim(rule(2)), palette.bold(&title), palette.dim(rule(rest))));
    }
}
