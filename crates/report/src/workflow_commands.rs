//! Keeps text from issuing GitHub workflow commands.

use std::borrow::Cow;

/// Breaks everything that a GitHub runner would run as a workflow command: `::` at the start of a line, after any
/// whitespace, and `##[` anywhere.
pub fn break_commands(text: &str) -> Cow<'_, str> {
    if !text.contains("::") && !text.contains("##[") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive(['\n', '\r']) {
        let start = line.len() - line.trim_start().len();
        let (indent, rest) = line.split_at(start);
        out.push_str(indent);
        let rest = match rest.strip_prefix("::") {
            Some(rest) => {
                out.push_str(": :");
                rest
            }
            None => rest,
        };
        out.push_str(&rest.replace("##[", "# #["));
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("std::fs and a::b\n", "std::fs and a::b\n")]
    #[case("::error::x", ": :error::x")]
    #[case("a\n  ::stop-commands::t\r\n::t::", "a\n  : :stop-commands::t\r\n: :t::")]
    #[case(":::x", ": ::x")]
    #[case("a ##[stop-commands]t ###[x", "a # #[stop-commands]t ## #[x")]
    fn breaks_commands(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(break_commands(text), expected);
    }

    proptest! {
        #[test]
        fn breaks_all_commands(parts in prop::collection::vec(prop::sample::select(vec![":", "::", "#", "##[", "[", " ", "\n", "\r", "\t", "x"]), 0..12)) {
            let output = break_commands(&parts.concat()).into_owned();
            prop_assert!(!output.contains("##["));
            prop_assert!(!output.split(['\n', '\r']).any(|line| line.trim_start().starts_with("::")));
        }
    }
}
