//! What changed between two texts of code, line by line.

use karat_core::line_diff::{Fate, LineDiff};

use crate::console::ConsoleSettings;
use crate::terminal_text::harmless;

/// How many unchanged lines are shown around a change.
const AROUND: usize = 3;

/// Shows what changed, with `-` and `+` before the lines, and a few unchanged lines around them.
pub fn code_diff_text(before: &str, now: &str, settings: ConsoleSettings) -> String {
    let palette = settings.palette;
    let mut out = String::new();
    for hunk in LineDiff::between(before, now).hunks(AROUND) {
        if hunk.after_gap {
            out.push_str(&palette.dim(settings.symbols.ellipsis));
            out.push('\n');
        }
        for (fate, line) in hunk.lines {
            let line = harmless(line);
            out.push_str(&match fate {
                Fate::Same => format!("  {line}").trim_end().to_owned(),
                Fate::Gone => palette.bad(format!("- {line}")),
                Fate::New => palette.good(format!("+ {line}")),
            });
            out.push('\n');
        }
    }
    if out.is_empty() { "nothing changed\n".to_owned() } else { out }
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
        assert_eq!(text(before, before), "nothing changed\n");
    }
}
