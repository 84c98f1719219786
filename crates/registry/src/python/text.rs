//! What Python's own functions make of a text, to the letter.

/// Returns a text without white space at both ends, as `str.strip()` does.
pub(super) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

pub(super) fn strip_start(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

pub(super) fn strip_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// Tells what `str.isspace()` tells: Python counts four separators of old terminals too.
fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

/// Takes away the indentation that all lines have in common, as `textwrap.dedent` does.
pub(super) fn dedent(text: &str) -> String {
    let is_blank = |line: &str| line.chars().all(|letter| matches!(letter, ' ' | '\t'));
    let indent = |line: &'_ str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let mut margin: Option<&str> = None;
    for line in text.split('\n').filter(|line| !is_blank(line)) {
        let indent = &line[..indent(line)];
        margin = Some(margin.map_or(indent, |margin| common_start(margin, indent)));
    }
    let margin = margin.map_or(0, str::len);
    let lines = text.split('\n').map(|line| if is_blank(line) { "" } else { &line[margin..] });
    lines.collect::<Vec<_>>().join("\n")
}

/// Both are spaces and tabs only, a byte each.
fn common_start<'t>(left: &'t str, right: &str) -> &'t str {
    let length = left.bytes().zip(right.bytes()).take_while(|(left, right)| left == right).count();
    &left[..length]
}

/// Cleans a docstring up, as `inspect.cleandoc` does.
pub(super) fn clean_doc(text: &str) -> String {
    let expanded = expand_tabs(text);
    let mut lines: Vec<&str> = expanded.split('\n').collect();
    let margin = lines.iter().skip(1).filter(|line| !strip_start(line).is_empty()).map(|line| indent(line)).min();
    if let Some(first) = lines.first_mut() {
        *first = strip_start(first);
    }
    if let Some(margin) = margin {
        lines.iter_mut().skip(1).for_each(|line| *line = after(line, margin));
    }
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let start = lines.iter().take_while(|line| line.is_empty()).count();
    lines[start..].join("\n")
}

/// Returns what Python keeps of a docstring from 3.13 on: the indentation is gone, blank lines at both ends stay.
pub(super) fn compiled_doc(text: &str) -> String {
    let expanded = expand_tabs(text);
    let spaces = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let margin =
        expanded.split('\n').skip(1).filter(|line| spaces(line) < line.len()).map(spaces).min().unwrap_or_default();
    let mut lines = expanded.split('\n');
    let first = lines.next().unwrap_or_default().trim_start_matches(' ');
    let rest = lines.map(|line| &line[margin.min(spaces(line))..]);
    std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n")
}

/// Counts the letters of white space that a line begins with.
fn indent(line: &str) -> usize {
    line.chars().take_while(|letter| is_space(*letter)).count()
}

/// Returns a line without its first letters.
fn after(line: &str, letters: usize) -> &str {
    line.char_indices().nth(letters).map_or("", |(at, _)| &line[at..])
}

/// Turns tabs into spaces, to the next multiple of eight, as `str.expandtabs()` does.
fn expand_tabs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for letter in text.chars() {
        match letter {
            '\t' => {
                let width = 8 - column % 8;
                out.extend(std::iter::repeat_n(' ', width));
                column += width;
            }
            '\n' | '\r' => {
                out.push(letter);
                column = 0;
            }
            _ => {
                out.push(letter);
                column += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", "", "", "")]
    #[case("one line", "one line", "one line", "one line")]
    #[case("  a\n    b\n  ", "a\n  b\n", "a\nb", "a\nb\n")]
    #[case("a\n\n    b\n      c\n    ", "a\n\n    b\n      c\n", "a\n\nb\n  c", "a\n\nb\n  c\n")]
    #[case("\n    a\n\tb\n    ", "\n    a\n\tb\n", "a\n    b", "\na\n    b\n")]
    #[case("\n\ta\n\t\tb\n", "\na\n\tb\n", "a\n        b", "\na\n        b\n")]
    #[case("a\n      \n    b", "a\n\n    b", "a\n  \nb", "a\n  \nb")]
    fn as_python_does(#[case] text: &str, #[case] dedented: &str, #[case] cleaned: &str, #[case] compiled: &str) {
        assert_eq!(dedent(text), dedented);
        assert_eq!(clean_doc(text), cleaned);
        assert_eq!(compiled_doc(text), compiled);
    }

    #[test]
    fn python_strips_more_than_unicode_calls_white() {
        assert_eq!(strip("\u{1c}\u{a0} x \u{85}\u{1f}"), "x");
        assert_eq!(strip("\u{200b}x"), "\u{200b}x");
    }

    proptest! {
        /// Not so with the separators of old terminals: the compiler does not take them for white space.
        #[test]
        fn what_is_clean_stays(text in "[a \t\né]{0,30}") {
            let clean = clean_doc(&text);
            prop_assert_eq!(&clean_doc(&compiled_doc(&text)), &clean);
            prop_assert_eq!(dedent(&dedent(&text)), dedent(&text));
        }
    }
}
