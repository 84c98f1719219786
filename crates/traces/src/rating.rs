//! Converts scores and labels of other programs into ratings.

use karat_core::rating::Rating;

/// In lower case.
const POSITIVE_LABELS: [&str; 14] = [
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
/// In lower case.
const NEGATIVE_LABELS: [&str; 15] = [
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

/// Returns the rating of a label, if the label is known.
pub(crate) fn rating_from_label(label: &str) -> Option<Rating> {
    let label = label.trim().to_lowercase();
    let is_in = |labels: &[&str]| labels.contains(&label.as_str());
    match label.as_str() {
        _ if is_in(&POSITIVE_LABELS) => Some(Rating::Positive),
        _ if is_in(&NEGATIVE_LABELS) => Some(Rating::Negative),
        "neutral" => Some(Rating::Neutral),
        _ => None,
    }
}

/// Returns the rating of a score: 1 is positive, 0 or less is negative. Anything else is neutral: between 0 and 1 it is
/// ambiguous, and above 1 the scale is unknown.
pub(crate) fn rating_from_score(score: f64) -> Rating {
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
    fn converts_labels(#[case] label: &str, #[case] expected: Option<Rating>) {
        assert_eq!(rating_from_label(label), expected);
    }

    #[rstest]
    #[case(1.0, Rating::Positive)]
    #[case(0.0, Rating::Negative)]
    #[case(-1.0, Rating::Negative)]
    #[case(0.7, Rating::Neutral)]
    #[case(4.0, Rating::Neutral)]
    #[case(f64::NAN, Rating::Neutral)]
    fn converts_scores(#[case] score: f64, #[case] expected: Rating) {
        assert_eq!(rating_from_score(score), expected);
    }
}
