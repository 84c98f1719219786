//! Blocks of untrusted text: harmless, broken into lines, indented, and no longer than they are worth.

use crate::console::ConsoleSettings;
use crate::terminal_text::{printable, wrap};

/// How much of a text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// The beginning of what is long.
    Short,
    Full,
}

/// Lines that are being laid out, and whether something was left out.
pub(super) struct Canvas {
    pub(super) settings: ConsoleSettings,
    pub(super) length: Length,
    pub(super) out: String,
    /// Something is not shown that `--full` would show.
    pub(super) shortened: bool,
}

impl Canvas {
    pub(super) fn new(settings: ConsoleSettings, length: Length) -> Self {
        Self { settings, length, out: String::new(), shortened: false }
    }

    /// Adds a line that is laid out already.
    pub(super) fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// Adds a text, of which at most so many lines are shown. `first` stands before the first line, with as many columns
    /// as the others are indented.
    pub(super) fn text(&mut self, text: &str, first: &str, indent: usize, most_lines: usize) {
        self.painted_text(text, (first, indent), most_lines, &|line| line.to_owned());
    }

    /// Adds a text whose lines are painted.
    pub(super) fn painted_text(
        &mut self,
        text: &str,
        (first, indent): (&str, usize),
        most_lines: usize,
        paint: &dyn Fn(&str) -> String,
    ) {
        let columns = self.settings.columns.saturating_sub(indent).max(20);
        let is_short = self.length == Length::Short;
        // What cannot be shown is not laid out: texts of megabytes are met.
        let room = if is_short { columns.saturating_mul(most_lines + 1) } else { usize::MAX };
        let text = text.trim_end();
        let beginning = match text.char_indices().nth(room) {
            Some((end, _)) => &text[..end],
            None => text,
        };
        let mut lines = Vec::new();
        for line in beginning.lines() {
            let line = line.replace('\t', "    ");
            lines.extend(wrap(&printable(&line), columns));
            if is_short && lines.len() > most_lines {
                break;
            }
        }
        let is_cut = is_short && (lines.len() > most_lines || beginning.len() < text.len());
        if is_cut {
            lines.truncate(most_lines);
            self.shortened = true;
        }
        for (number, line) in lines.iter().enumerate() {
            let before = if number == 0 { first.to_owned() } else { " ".repeat(indent) };
            self.line(&format!("{before}{}", paint(line)));
        }
        if is_cut {
            let ellipsis = self.settings.symbols.ellipsis;
            let note = format!("{ellipsis} of {} characters", text.chars().count());
            self.line(&format!("{}{}", " ".repeat(indent), self.settings.palette.dim(note)));
        }
    }

    /// Adds a line with a title, as wide as the screen.
    pub(super) fn rule(&mut self, title: &str) {
        let settings = self.settings;
        let rule = |count: usize| settings.symbols.rule.to_string().repeat(count);
        let title = crate::terminal_text::cut(title, settings.columns.saturating_sub(8), settings.symbols.ellipsis);
        let rest = settings.columns.saturating_sub(crate::terminal_text::width(&title) + 4);
        let palette = settings.palette;
        self.line(&format!("{} {} {}", palette.dim(rule(2)), palette.bold(&title), palette.dim(rule(rest))));
    }
}
