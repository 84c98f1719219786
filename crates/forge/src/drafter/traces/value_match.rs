//! Finds whole values in text, not parts of other words or numbers.

/// Whether text contains a value as a whole: `18` is not in `2018`, `1.18` or `18,000`.
pub(super) fn contains_whole(value: &str, text: &str) -> bool {
    !value.is_empty() && text.match_indices(value).any(|(start, _)| is_whole(text, start, start + value.len()))
}

/// Minimum length of a value that is found in other capitals: `US` is not in "let us see".
const MIN_LENGTH_IN_OTHER_CAPITALS: usize = 4;

/// Finds a value as a whole, in any capitals and with spaces or hyphens for underscores: `in_transit` is in
/// "In transit." Returns the part of the text.
pub(super) fn find_written<'t>(value: &str, text: &'t str) -> Option<&'t str> {
    if value.chars().count() < MIN_LENGTH_IN_OTHER_CAPITALS {
        return None;
    }
    text.char_indices().find_map(|(start, _)| {
        let end = start + matched_length(value, &text[start..])?;
        is_whole(text, start, end).then(|| &text[start..end])
    })
}

/// Returns the length of the start of text that is a value in other capitals.
fn matched_length(value: &str, text: &str) -> Option<usize> {
    let mut rest = text.chars();
    for expected in value.chars() {
        let actual = rest.next()?;
        let is_same = actual == expected
            || expected == '_' && matches!(actual, ' ' | '-')
            || actual.to_lowercase().eq(expected.to_lowercase());
        if !is_same {
            return None;
        }
    }
    Some(text.len() - rest.as_str().len())
}

/// Returns the forms in which answers write a number: with two decimals, grouped thousands or a decimal comma.
pub(super) fn number_forms(number: &str) -> Vec<String> {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let cents = if fraction.len() < 2 { format!("{fraction:0<2}") } else { fraction.to_owned() };
    let mut forms = Vec::new();
    for (separator, point) in [("", '.'), (",", '.'), ("", ','), (".", ','), (" ", '.'), (" ", ','), ("\u{a0}", ',')] {
        let whole = grouped(whole, separator);
        for fraction in [fraction, &cents] {
            let fraction = if fraction.is_empty() { String::new() } else { format!("{point}{fraction}") };
            forms.push(format!("{sign}{whole}{fraction}"));
        }
    }
    forms
}

fn grouped(digits: &str, separator: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push_str(separator);
        }
        grouped.push(digit);
    }
    grouped
}

/// Whether a part of text is not within a longer word or number.
fn is_whole(text: &str, start: usize, end: usize) -> bool {
    let value = &text[start..end];
    let (mut before, mut after) = (text[..start].chars().rev(), text[end..].chars());
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

/// Whether text contains a value, ignoring case.
pub(super) fn contains_ignore_case(value: &str, text: &str) -> bool {
    text.to_lowercase().contains(&value.to_lowercase())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("processing", "Processing your order", Some("Processing"))]
    #[case("in_transit", "It is In transit.", Some("In transit"))]
    #[case("in_transit", "in-transit", Some("in-transit"))]
    #[case("Ghent", "ghentian, GHENT", Some("GHENT"))]
    #[case("US", "let us see", None)]
    #[case("Straße", "STRASSE", None)]
    #[case("é_è", "ÉTÉ", None)]
    #[case("", "anything", None)]
    fn finds_values_in_other_capitals(#[case] value: &str, #[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(find_written(value, text), expected);
    }

    #[rstest]
    #[case("39.9", "39.90", true)]
    #[case("39.9", "39,90", true)]
    #[case("59", "59.00", true)]
    #[case("-1234567.5", "-1,234,567.50", true)]
    #[case("1234", "1.234", true)]
    #[case("0.125", "0,125", true)]
    #[case("1e21", "1", false)]
    #[case("39.99", "40", false)]
    fn writes_numbers_as_answers_do(#[case] number: &str, #[case] form: &str, #[case] expected: bool) {
        assert_eq!(number_forms(number).iter().any(|other| other == form), expected);
    }

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
