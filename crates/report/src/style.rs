//! Colours and symbols. Meaning never depends on colour alone.

use std::fmt::Display;

use anstyle::{AnsiColor, Style};

/// Adds colours, if enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Palette {
    pub color: bool,
}

impl Palette {
    fn paint(self, style: Style, text: impl Display) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    pub fn success(self, text: impl Display) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    pub fn failure(self, text: impl Display) -> String {
        self.paint(AnsiColor::Red.on_default(), text)
    }

    /// Styles a missing verdict, which must not look like a failure.
    pub fn error(self, text: impl Display) -> String {
        self.paint(AnsiColor::Magenta.on_default(), text)
    }

    pub fn warning(self, text: impl Display) -> String {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    pub fn bold(self, text: impl Display) -> String {
        self.paint(Style::new().bold(), text)
    }

    pub fn alert(self, text: impl Display) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    pub fn dim(self, text: impl Display) -> String {
        self.paint(Style::new().dimmed(), text)
    }
}

/// Symbols in Unicode or ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbols {
    pub passed: &'static str,
    pub failed: &'static str,
    pub errored: &'static str,
    pub warning: &'static str,
    pub arrow: &'static str,
    pub double_rule: char,
    pub rule: char,
    pub dash: &'static str,
    pub ellipsis: &'static str,
    pub ascii: bool,
}

impl Symbols {
    pub const UNICODE: Symbols = Symbols {
        passed: "✓",
        failed: "✗",
        errored: "!",
        warning: "⚠",
        arrow: "→",
        double_rule: '═',
        rule: '─',
        dash: "—",
        ellipsis: "…",
        ascii: false,
    };

    pub const ASCII: Symbols = Symbols {
        passed: "ok  ",
        failed: "FAIL",
        errored: "ERR ",
        warning: "warn",
        arrow: "->",
        double_rule: '=',
        rule: '-',
        dash: "-",
        ellipsis: "...",
        ascii: true,
    };
}
