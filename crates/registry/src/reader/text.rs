//! Whitespace in strings.

/// Removes the indentation that all lines have in common, as `textwrap.dedent` does.
pub(crate) fn dedent(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let margin = text.split('\n').filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or_default();
    let lines = text.split('\n').map(|line| if line.trim().is_empty() { "" } else { &line[margin..] });
    lines.collect::<Vec<_>>().join("\n")
}

/// Cleans a docstring as `inspect.cleandoc` does: no common indentation, no blank lines at either end.
pub(crate) fn clean_doc(text: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let text = format!("{}\n{}", first.trim_start(), dedent(&rest.replace('\t', "        ")));
    let lines: Vec<&str> = text.split('\n').map(str::trim_end).collect();
    let start = lines.iter().take_while(|line| line.is_empty()).count();
    let end = lines.len() - lines.iter().rev().take_while(|line| line.is_empty()).count();
    lines.get(start..end).unwrap_or_default().join("\n")
}

/// Whether a word is in a space-separated list.
pub(crate) fn is_listed(word: &str, list: &str) -> bool {
    list.split(' ').any(|item| item == word)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", "")]
    #[case("one line", "one line")]
    #[case("  a\n    b\n  ", "a\nb")]
    #[case("a\n\n    b\n      c\n    ", "a\n\nb\n  c")]
    #[case("\n    a\n    b\n    ", "a\nb")]
    fn cleans_like_python(#[case] text: &str, #[case] cleaned: &str) {
        assert_eq!(clean_doc(text), cleaned);
    }
}
