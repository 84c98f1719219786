//! Finds whole values in a text, not parts of other words or numbers.

/// Whether a text contains a value as a whole: `18` is not in `2018`, `1.18` or `18,000`.
pub(super) fn contains_whole(value: &str, text: &str) -> bool {
    !value.is_empty() && text.match_indices(value).any(|(at, _)| is_whole(value, text, at))
}

fn is_whole(value: &str, text: &str, at: usize) -> bool {
    let (mut before, mut after) = (text[..at].chars().rev(), text[at + value.len()..].chars());
    let is_open = |edge: Option<char>, next: Option<char>, beyond: Option<char>| match (edge, next) {
        (Some(edge), Some(next)) if edge.is_alphanumeric() && (next.is_alphanumeric() || next == '_') => false,
        // Between two digits, these belong to a number, a date or a time.
        (Some(edge), Some('.' | ',' | ':' | '/' | '-')) => {
            !(edge.is_ascii_digit() && beyond.is_some_and(|beyond| beyond.is_ascii_digit()))
        }
        _ => true,
    };
    is_open(value.chars().next(), before.next(), before.next())
        && is_open(value.chars().next_back(), after.next(), after.next())
}

/// Whether a text contains a value, ignoring case.
pub(super) fn contains_ignore_case(value: &str, text: &str) -> bool {
    text.to_lowercase().contains(&value.to_lowercase())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("18", "It is 18 degrees.", true)]
    #[case("18", "It is 18.", true)]
    #[case("18", "18°C, that is 64 °F", true)]
    #[case("18", "in 2018", false)]
    #[case("18", "1.18 or 18,000 or 18:30", false)]
    #[case("18", "18, 19", true)]
    #[case("18", "2024-05-18, 18/05", false)]
    #[case("-5", "it is -5 outside", true)]
    #[case("Paris", "Parisian cafés", false)]
    #[case("Paris", "In Paris.", true)]
    #[case("Paris", "paris", false)]
    #[case("user_1", "user_12 user_1", true)]
    #[case("id", "id_7", false)]
    #[case("é", "éé é", true)]
    #[case("", "anything", false)]
    #[case("(x)", "a(x)b", true)]
    fn matches_whole_values(#[case] value: &str, #[case] text: &str, #[case] expected: bool) {
        assert_eq!(contains_whole(value, text), expected);
    }
}
