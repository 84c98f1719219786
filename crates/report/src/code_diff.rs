//! What changed between two texts of code, line by line.

use crate::console::ConsoleSettings;
use crate::terminal_text::harmless;

/// How many unchanged lines are shown around a change.
const CONTEXT: usize = 3;

/// Beyond this many pairs of lines the shortest difference is not looked for: all that differs is shown as changed.
const MOST_PAIRS: usize = 4_000_000;

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'t> {
    Same(&'t str),
    Gone(&'t str),
    New(&'t str),
}

/// Shows what changed, with `-` and `+` before the lines, and a few unchanged lines around them.
pub fn code_diff_text(before: &str, now: &str, settings: ConsoleSettings) -> String {
    let lines = compare(&before.lines().collect::<Vec<_>>(), &now.lines().collect::<Vec<_>>());
    let is_changed = |line: &Line<'_>| !matches!(line, Line::Same(_));
    let mut out = String::new();
    let mut left_out = false;
    for (at, line) in lines.iter().enumerate() {
        let around = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(lines.len());
        if !lines[around].iter().any(is_changed) {
            left_out = true;
            continue;
        }
        if std::mem::take(&mut left_out) {
            out.push_str(&settings.palette.dim(settings.symbols.ellipsis));
            out.push('\n');
        }
        out.push_str(&match line {
            Line::Same(text) => format!("  {}", harmless(text)).trim_end().to_owned(),
            Line::Gone(text) => settings.palette.bad(format!("- {}", harmless(text))),
            Line::New(text) => settings.palette.good(format!("+ {}", harmless(text))),
        });
        out.push('\n');
    }
    if out.is_empty() { "nothing changed\n".to_owned() } else { out }
}

fn compare<'t>(before: &[&'t str], now: &[&'t str]) -> Vec<Line<'t>> {
    let begin = before.iter().zip(now).take_while(|(left, right)| left == right).count();
    let (left, right) = (&before[begin..], &now[begin..]);
    let end = left.iter().rev().zip(right.iter().rev()).take_while(|(left, right)| left == right).count();
    let (left, right) = (&left[..left.len() - end], &right[..right.len() - end]);
    let mut lines: Vec<Line<'t>> = before[..begin].iter().map(|line| Line::Same(line)).collect();
    if left.len().saturating_mul(right.len()) > MOST_PAIRS {
        lines.extend(left.iter().map(|line| Line::Gone(line)));
        lines.extend(right.iter().map(|line| Line::New(line)));
    } else {
        lines.extend(shortest(left, right));
    }
    lines.extend(before[before.len() - end..].iter().map(|line| Line::Same(line)));
    lines
}

/// Finds the longest common part of two lists of lines, and what is gone and new beside it.
fn shortest<'t>(left: &[&'t str], right: &[&'t str]) -> Vec<Line<'t>> {
    let width = right.len() + 1;
    // How many lines are common from here to both ends.
    let mut common = vec![0_u32; (left.len() + 1) * width];
    for at in (0..left.len()).rev() {
        for other in (0..right.len()).rev() {
            common[at * width + other] = if left[at] == right[other] {
                common[(at + 1) * width + other + 1] + 1
            } else {
                common[(at + 1) * width + other].max(common[at * width + other + 1])
            };
        }
    }
    let (mut at, mut other, mut lines) = (0, 0, Vec::new());
    while at < left.len() || other < right.len() {
        if at < left.len() && other < right.len() && left[at] == right[other] {
            lines.push(Line::Same(left[at]));
            (at, other) = (at + 1, other + 1);
        } else if other == right.len()
            || at < left.len() && common[(at + 1) * width + other] >= common[at * width + other + 1]
        {
            lines.push(Line::Gone(left[at]));
            at += 1;
        } else {
            lines.push(Line::New(right[other]));
            other += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn both_texts_are_in_a_difference(
            before in prop::collection::vec("[a-d]", 0..12),
            now in prop::collection::vec("[a-d]", 0..12),
        ) {
            let (before, now): (Vec<&str>, Vec<&str>) =
                (before.iter().map(String::as_str).collect(), now.iter().map(String::as_str).collect());
            let lines = compare(&before, &now);
            let side = |is_before: bool| -> Vec<&str> {
                let own = |line: &Line<'_>| match line {
                    Line::Same(_) => true,
                    Line::Gone(_) => is_before,
                    Line::New(_) => !is_before,
                };
                lines.iter().filter(|line| own(line)).map(|line| match *line {
                    Line::Same(text) | Line::Gone(text) | Line::New(text) => text,
                }).collect()
            };
            prop_assert_eq!(side(true), before);
            prop_assert_eq!(side(false), now);
        }
    }
}
