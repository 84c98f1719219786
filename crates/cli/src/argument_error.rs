//! Wraps errors about arguments, which clap prints on lines of any length.

use console::measure_text_width;

use crate::environment::Environment;

/// Minimum width of a wrapped text.
const MIN_COLUMNS: usize = 40;

/// Returns the error wrapped to the terminal; `None` if it is to be printed as it is.
pub(crate) fn wrapped_error(error: &clap::Error, environment: &Environment) -> Option<String> {
    let columns = environment.stderr_columns.filter(|_| error.use_stderr())?;
    let is_colored = !environment.no_color && (environment.force_color || environment.stderr_is_terminal);
    let styled = error.render();
    let text = if is_colored { styled.ansi().to_string() } else { styled.to_string() };
    Some(wrap_lines(&text, columns.max(MIN_COLUMNS)))
}

/// Wraps each line at spaces. Continuation lines are indented by two more columns.
fn wrap_lines(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let indent = " ".repeat(line.len() - line.trim_start().len() + 2);
        let mut used = 0;
        for word in line.split_inclusive(' ') {
            if used > indent.len() && used + measure_text_width(word.trim_end()) > columns {
                out.truncate(out.trim_end().len());
                out.push('\n');
                out.push_str(&indent);
                used = indent.len();
            }
            out.push_str(word);
            used += measure_text_width(word);
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_long_lines_at_spaces() {
        let text =
            "error: invalid value '4/3' for '--shard <N/COUNT>': the number must be at most 3\n\n  tip: use 1/3\n";
        insta::assert_snapshot!(wrap_lines(text, 40), @"
        error: invalid value '4/3' for '--shard
          <N/COUNT>': the number must be at most
          3

          tip: use 1/3
        ");
        // Colours have no width.
        let painted = "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m unexpected argument '\u{1b}[33m--x\u{1b}[0m' found";
        assert_eq!(wrap_lines(painted, 40), format!("{painted}\n"));
    }
}
