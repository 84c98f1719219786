//! Messages: wrapped for a terminal, with commands that can be copied.

use textwrap::core::Word;
use textwrap::{Options, WordSeparator, WordSplitter};

use crate::terminal_text::printable;

/// Maximum number of lines to quote from each end of another program's output.
const MAX_QUOTED_LINES: usize = 5;

/// Returns the non-empty lines of text, without the middle if there are many.
pub fn quoted_lines(text: &str, ellipsis: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| printable(line).into_owned()).collect();
    if lines.len() > 2 * MAX_QUOTED_LINES {
        lines.splice(MAX_QUOTED_LINES..lines.len() - MAX_QUOTED_LINES, [ellipsis.to_owned()]);
    }
    lines
}

/// Wraps a message behind a label, and indents the lines after the first. A command stays on one line.
pub fn wrap_message(label: &str, text: &str, columns: usize) -> Vec<String> {
    let indent = " ".repeat(label.len() - label.trim_start().len() + 2);
    let options = options(label, &indent, columns).word_separator(WordSeparator::Custom(split_words));
    textwrap::wrap(text, options).into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Writes wrapped text after a label; later lines have this indentation.
pub(crate) fn write_wrapped(label: &str, indent: &str, text: &str, columns: usize, out: &mut String) {
    for line in textwrap::wrap(text, options(label, indent, columns)) {
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// Returns options that break lines at spaces only, so that paths stay whole.
fn options<'o>(label: &'o str, indent: &'o str, columns: usize) -> Options<'o> {
    let options = Options::new(columns).initial_indent(label).subsequent_indent(indent).break_words(false);
    options.word_splitter(WordSplitter::NoHyphenation).word_separator(WordSeparator::AsciiSpace)
}

/// Start of a command that users may copy.
const COMMAND_PREFIX: &str = "karat ";

/// Splits a line into words with their trailing spaces. A command is one word, so that it can be copied: up to its
/// closing quote, or the rest of the line after a colon.
fn split_words(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let (mut rest, mut is_after_colon) = (line, false);
    Box::new(std::iter::from_fn(move || {
        let space_from = |start: usize| rest[start..].find(' ').map_or(rest.len(), |space| start + space);
        let mut end = space_from(0);
        if is_after_colon && rest.starts_with(COMMAND_PREFIX) {
            end = rest.len();
        } else if let Some(before) = rest.get(..=end).and_then(|word| word.strip_suffix(COMMAND_PREFIX))
            && before.ends_with('\'')
            && let Some(quote) = rest[end..].find('\'')
        {
            end = space_from(end + quote);
        }
        let spaces = rest[end..].len() - rest[end..].trim_start_matches(' ').len();
        is_after_colon = rest[..end].ends_with(':');
        let (word, after) = rest.split_at(end + spaces);
        rest = after;
        (!word.is_empty()).then(|| Word::from(word))
    }))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use rstest::rstest;

    use super::*;

    #[rstest]
    fn wraps_at_spaces_only(#[values(40, 60, 80)] columns: usize) {
        let text = "evals/one-of-many/a-file-with-a-name-that-is-longer-than-a-line-of-a-terminal-has-columns.json is \
                    out-of-date: see --format=json for the well-known rest of what there is";
        let lines = wrap_message("warning: ", text, columns);
        let words = |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&lines.join(" ")), words(&format!("warning: {text}")));
        assert!(lines.iter().all(|line| line.len() <= columns || line.trim().split(' ').count() <= 2), "{lines:#?}");
    }

    #[test]
    fn does_not_break_commands() {
        let text = "no trace was judged by versions 1 and 2; 'karat eval run eval_tone --stored' judges with the \
                    newest, and that's what counts: 'karat eval add a file.py' or 'other words' follow";
        assert_snapshot!(wrap_message("hint: ", text, 50).join("\n"), @r"
        hint: no trace was judged by versions 1 and 2;
          'karat eval run eval_tone --stored' judges
          with the newest, and that's what counts:
          'karat eval add a file.py' or 'other words'
          follow
        ");
        let text = "the rating still counts; to correct it: karat feedback add conversation-1 negative";
        assert_snapshot!(wrap_message("", text, 50).join("\n"), @r"
        the rating still counts; to correct it:
          karat feedback add conversation-1 negative
        ");
    }

    #[test]
    fn indents_below_an_indented_line() {
        let text = "get_order (tools.json:3:36): the description is too vague for reliable evals";
        assert_snapshot!(wrap_message("  ", text, 40).join("\n"), @r"
          get_order (tools.json:3:36): the
            description is too vague for
            reliable evals
        ");
    }

    #[test]
    fn keeps_short_text_on_one_line() {
        assert_eq!(wrap_message("", "nothing changed", 40), ["nothing changed"]);
        assert_eq!(wrap_message("", "'karat review", 40), ["'karat review"], "an unclosed quote is plain text");
    }
}
