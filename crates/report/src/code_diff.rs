//! Line diff of code.

use karat_core::line_diff::{LineDiff, LineStatus};

use crate::console::ConsoleSettings;
use crate::terminal_text::mask_control_chars;

/// Number of unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// Renders a diff with `-` and `+` before changed lines.
pub fn code_diff_text(before: &str, now: &str, settings: ConsoleSettings) -> String {
    let palette = settings.palette;
    let mut out = String::new();
    for hunk in LineDiff::between(before, now).hunks(CONTEXT_LINES) {
        if hunk.after_gap {
            out.push_str(&palette.dim(settings.symbols.ellipsis));
            out.push('\n');
        }
        for (status, line) in hunk.lines {
            let line = mask_control_chars(line);
            out.push_str(&match status {
                LineStatus::Unchanged => format!("  {line}").trim_end().to_owned(),
                LineStatus::Removed => palette.failure(format!("- {line}")),
                LineStatus::Added => palette.success(format!("+ {line}")),
            });
            out.push('\n');
        }
    }
    if out.is_empty() { "no changes\n".to_owned() } else { out }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::console::Verbosity;
    use crate::style::{Palette, Symbols};

    fn text(before: &str, now: &str) -> String {
        let palette = Palette { color: false };
        let settings = ConsoleSettings { columns: 80, symbols: Symbols::ASCII, palette, verbosity: Verbosity::Normal };
        code_diff_text(before, now, settings)
    }

    #[test]
    fn changes_are_marked() {
        let before = "import re\n\n\ndef helper():\n    pass\n\n\ndef eval_x(trace):\n    return True, 'a'\n";
        let now = "import re\n\n\ndef helper():\n    pass\n\n\ndef eval_x(trace):\n    said = 1\n    return False, '\u{1b}[31m'\n";
        assert_snapshot!(text(before, now), @"
        ...


          def eval_x(trace):
        -     return True, 'a'
        +     said = 1
        +     return False, '?[31m'
        ");
        assert_eq!(text(before, before), "no changes\n");
    }
}
