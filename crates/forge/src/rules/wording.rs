//! How messages are compared: by their words, whatever the case, the spacing and the punctuation.

/// Returns the words of a text in lower case; apostrophes hold a word together.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let pieces = text.split(|letter: char| !letter.is_alphanumeric() && !is_apostrophe(letter));
    let word = |piece: &str| -> String {
        piece.chars().filter(|letter| !is_apostrophe(*letter)).flat_map(char::to_lowercase).collect()
    };
    pieces.map(word).filter(|word| !word.is_empty())
}

/// Returns a number for each word of a text, in order: the same for the same word. Numbers are compared faster than
/// words, and with all messages of a tool that counts.
pub(super) fn word_marks(text: &str) -> impl Iterator<Item = u64> {
    let mut letters = text.chars();
    std::iter::from_fn(move || {
        let mut mark = None;
        for letter in letters.by_ref() {
            if letter.is_alphanumeric() {
                mark = Some(marked(mark.unwrap_or(EMPTY_MARK), letter));
            } else if !is_apostrophe(letter) && mark.is_some() {
                break;
            }
        }
        mark
    })
}

/// The mark of no letters, and what it is multiplied with for each one: Fowler, Noll and Vo's numbers.
const EMPTY_MARK: u64 = 0xcbf2_9ce4_8422_2325;
const MARK_FACTOR: u64 = 0x0100_0000_01b3;

fn marked(mark: u64, letter: char) -> u64 {
    let add = |mark: u64, letter: char| (mark ^ u64::from(u32::from(letter))).wrapping_mul(MARK_FACTOR);
    if letter.is_ascii() {
        return add(mark, letter.to_ascii_lowercase());
    }
    letter.to_lowercase().fold(mark, add)
}

fn is_apostrophe(letter: char) -> bool {
    matches!(letter, '\'' | '’')
}

/// Tells whether a message holds a phrase, word by word. What stands in brackets in the phrase is a gap, which the
/// message fills.
pub(super) fn holds_phrase(message: &str, phrase: &str) -> bool {
    let message = spaced(message);
    let mut from = 0;
    without_gaps(phrase).into_iter().all(|part| {
        let part = spaced(part);
        if part.trim().is_empty() {
            return true;
        }
        let found = message[from..].find(&part);
        // The space behind a part is the one before the next.
        from += found.map_or(0, |at| at + part.len() - 1);
        found.is_some()
    })
}

/// Tells whether two texts say the same, word by word.
pub(super) fn same_words(left: &str, right: &str) -> bool {
    word_marks(left).eq(word_marks(right))
}

fn spaced(text: &str) -> String {
    let words: Vec<String> = words(text).collect();
    format!(" {} ", words.join(" "))
}

fn without_gaps(phrase: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = phrase;
    while let Some(open) = rest.find(['{', '<', '[']) {
        let Some(close) = rest[open..].find(['}', '>', ']']) else {
            break;
        };
        parts.push(&rest[..open]);
        rest = &rest[open + close + 1..];
    }
    parts.push(rest);
    parts
}

/// Tells whether nobody would say this name who does not know the tools: `get_weather`, `getWeather`.
pub(super) fn is_technical(name: &str) -> bool {
    let mut after_small = false;
    name.chars().any(|letter| {
        let is_seam = letter == '_' || letter.is_uppercase() && after_small;
        after_small = letter.is_lowercase();
        is_seam
    })
}

/// Tells whether a text is one of raw data, which no answer should show: `"tool":`, `fetchedAt`, `undefined`.
pub(super) fn is_raw(text: &str) -> bool {
    matches!(text, "undefined" | "null" | "NaN")
        || text.contains(['"', '{', '}', '['])
        || !text.contains(' ') && is_technical(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    proptest! {
        #[test]
        fn marks_are_those_of_words(left in "[aAbB' é,]{0,12}", right in "[aAbB' é,]{0,12}") {
            prop_assert_eq!(word_marks(&left).count(), words(&left).count());
            prop_assert_eq!(same_words(&left, &right), words(&left).eq(words(&right)));
        }
    }

    #[rstest]
    #[case("What's the weather like?", "what’s the weather like", true)]
    #[case("So: what is  the WEATHER, today?", "the weather", true)]
    #[case("The weathers", "weather", false)]
    #[case("Will it rain in Paris tomorrow?", "will it rain in {city} tomorrow", true)]
    #[case("Will it rain in Paris today?", "will it rain in {city} tomorrow", false)]
    #[case("rain tomorrow", "rain {when} tomorrow", true)]
    #[case("anything", "", true)]
    #[case("天気は？", "天気は", true)]
    fn phrases(#[case] message: &str, #[case] phrase: &str, #[case] expected: bool) {
        assert_eq!(holds_phrase(message, phrase), expected);
    }

    #[rstest]
    #[case("fetchedAt", true)]
    #[case("\"tool\":", true)]
    #[case("user_id", true)]
    #[case("undefined", true)]
    #[case("I don't know", false)]
    #[case("units", false)]
    fn raw_data(#[case] text: &str, #[case] expected: bool) {
        assert_eq!(is_raw(text), expected);
    }
}
