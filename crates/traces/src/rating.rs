//! What scores and labels of other programs mean.

use karat_core::rating::Rating;

/// Words that are good, and words that are bad, in lower case.
const GOOD: [&str; 14] = [
    "positive",
    "good",
    "great",
    "excellent",
    "correct",
    "pass",
    "passed",
    "yes",
    "true",
    "accepted",
    "thumbs_up",
    "thumbs-up",
    "up",
    "👍",
];
const BAD: [&str; 15] = [
    "negative",
    "bad",
    "poor",
    "incorrect",
    "wrong",
    "fail",
    "failed",
    "no",
    "false",
    "rejected",
    "thumbs_down",
    "thumbs-down",
    "down",
    "👎",
    "terrible",
];

/// Returns the rating that a word means, if it is known.
pub(crate) fn rating_of_label(label: &str) -> Option<Rating> {
    let label = label.trim().to_lowercase();
    let is = |words: &[&str]| words.contains(&label.as_str());
    match label.as_str() {
        _ if is(&GOOD) => Some(Rating::Positive),
        _ if is(&BAD) => Some(Rating::Negative),
        "neutral" => Some(Rating::Neutral),
        _ => None,
    }
}

/// Returns the rating that a number means: 1 is good, 0 and less is bad. What is between says neither, and neither does
/// more than 1, which is of a scale that nobody names.
pub(crate) fn rating_of_score(score: f64) -> Rating {
    if score <= 0.0 {
        Rating::Negative
    } else if (score - 1.0).abs() < 1e-9 {
        Rating::Positive
    } else {
        Rating::Neutral
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Good", Some(Rating::Positive))]
    #[case(" False ", Some(Rating::Negative))]
    #[case("neutral", Some(Rating::Neutral))]
    #[case("blue", None)]
    fn words_mean_something(#[case] label: &str, #[case] expected: Option<Rating>) {
        assert_eq!(rating_of_label(label), expected);
    }

    #[rstest]
    #[case(1.0, Rating::Positive)]
    #[case(0.0, Rating::Negative)]
    #[case(-1.0, Rating::Negative)]
    #[case(0.7, Rating::Neutral)]
    #[case(4.0, Rating::Neutral)]
    #[case(f64::NAN, Rating::Neutral)]
    fn numbers_mean_something(#[case] score: f64, #[case] expected: Rating) {
        assert_eq!(rating_of_score(score), expected);
    }
}
