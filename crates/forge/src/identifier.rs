//! Identifiers of code, as opposed to natural language.

/// Texts that only raw data has: the start of a JSON object or of a list of strings, and values that programs print.
pub(crate) const RAW_DATA: [&str; 6] = ["{\"", "{'", "{\n", "[\"", "undefined", "[object Object]"];

/// Whether a name is an identifier: `get_weather`, `getWeather`.
pub(crate) fn is_identifier(name: &str) -> bool {
    let is_camel_case =
        || name.chars().zip(name.chars().skip(1)).any(|(left, right)| left.is_lowercase() && right.is_uppercase());
    let is_plain = |letter: char| letter.is_alphanumeric() || letter == '_';
    name.chars().all(is_plain) && (name.trim_matches('_').contains('_') || is_camel_case())
}

/// Whether text is raw data that no answer should contain: `"tool":`, `fetchedAt`, `undefined`.
pub(crate) fn is_raw(text: &str) -> bool {
    matches!(text, "undefined" | "null" | "NaN") || text.contains(['"', '{', '}', '[']) || is_identifier(text)
}

/// Splits an identifier into its words, in lower case.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lowercase = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() && after_lowercase {
            words.push(String::new());
        }
        after_lowercase = letter.is_lowercase() || letter.is_numeric();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
