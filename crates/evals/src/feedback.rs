//! People's ratings of traces.

mod file;

use std::collections::BTreeMap;

pub use self::file::{FeedbackEntry, FeedbackFile, FeedbackFormat, FeedbackOptions, RowProblem};

use jiff::{SignedDuration, Timestamp};
use karat_core::rating::Rating;
use schemars::JsonSchema;
use serde::Serialize;

/// One rating by one author. Feedback is never deleted; only the newest of each author counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat feedback")]
pub struct Feedback {
    pub trace_id: String,
    pub author: String,
    /// Null if the author retracts their rating.
    pub rating: Option<Rating>,
    pub note: Option<String>,
    /// Origin: `cli`, `review`, `import`, or the name of a trace source.
    pub source: String,
    /// ISO 8601.
    #[schemars(with = "String")]
    pub created_at: Timestamp,
}

/// Name of a retracted rating in tables.
pub const RETRACTED: &str = "retracted";

impl Feedback {
    /// Returns the rating's name in the store and in files, or [`RETRACTED`].
    pub fn rating_name(&self) -> &'static str {
        self.rating.map_or(RETRACTED, Rating::name)
    }

    /// Returns the rating's label in the user interface, or [`RETRACTED`].
    pub fn rating_label(&self) -> &'static str {
        self.rating.map_or(RETRACTED, Rating::label)
    }

    /// Returns a timestamp for new feedback that is later than the author's previous one: clocks are coarse and can go
    /// backwards.
    pub fn time_after(before: Option<&Feedback>, now: Timestamp) -> Timestamp {
        let next = |before: &Feedback| before.created_at.saturating_add(SignedDuration::from_micros(1)).ok();
        before.and_then(next).map_or(now, |next| next.max(now))
    }

    /// Whether this adds nothing to the author's newest feedback on the trace: same rating, and the same note or none.
    pub fn repeats(&self, newest: Option<&Feedback>) -> bool {
        match newest {
            Some(newest) => self.rating == newest.rating && (self.note.is_none() || self.note == newest.note),
            None => self.rating.is_none(),
        }
    }
}

/// Returns the majority of the newest ratings: neutral on a tie, `None` without ratings.
pub fn consensus(newest: impl IntoIterator<Item = Rating>) -> Option<Rating> {
    let (mut positive, mut negative, mut any) = (0_u64, 0_u64, false);
    for rating in newest {
        any = true;
        match rating {
            Rating::Positive => positive += 1,
            Rating::Negative => negative += 1,
            Rating::Neutral => {}
        }
    }
    any.then(|| match positive.cmp(&negative) {
        std::cmp::Ordering::Greater => Rating::Positive,
        std::cmp::Ordering::Less => Rating::Negative,
        std::cmp::Ordering::Equal => Rating::Neutral,
    })
}

/// Returns the feedback that counts, given all feedback on a trace, oldest first: the newest of each author, without
/// retracted ratings. Keeps the order.
pub fn current(history: &[Feedback]) -> Vec<&Feedback> {
    let newest: BTreeMap<&str, usize> =
        history.iter().enumerate().map(|(at, feedback)| (feedback.author.as_str(), at)).collect();
    let is_newest = |at: usize, feedback: &Feedback| newest.get(feedback.author.as_str()) == Some(&at);
    let counting = history.iter().enumerate().filter(|(at, feedback)| is_newest(*at, feedback));
    counting.map(|(_, feedback)| feedback).filter(|feedback| feedback.rating.is_some()).collect()
}

/// Returns the majority rating of a trace and the number of authors, given all feedback on it, oldest first.
pub fn consensus_of(history: &[Feedback]) -> (Option<Rating>, u64) {
    let ratings: Vec<Rating> = current(history).into_iter().filter_map(|feedback| feedback.rating).collect();
    let count = ratings.len() as u64;
    (consensus(ratings), count)
}

/// Returns the newest note for a rating that still counts, given all feedback on a trace, oldest first. Notes of
/// retracted or changed ratings are ignored.
pub fn note_of(history: &[Feedback], rating: Rating) -> Option<&str> {
    let notes = current(history).into_iter().rev().filter(|feedback| feedback.rating == Some(rating));
    notes.filter_map(|feedback| feedback.note.as_deref()).find(|note| !note.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[], None)]
    #[case(&[Rating::Neutral], Some(Rating::Neutral))]
    #[case(&[Rating::Positive, Rating::Neutral], Some(Rating::Positive))]
    #[case(&[Rating::Positive, Rating::Negative], Some(Rating::Neutral))]
    #[case(&[Rating::Negative, Rating::Positive, Rating::Negative], Some(Rating::Negative))]
    fn consensus_is_the_majority(#[case] ratings: &[Rating], #[case] expected: Option<Rating>) {
        assert_eq!(consensus(ratings.iter().copied()), expected);
    }

    fn feedback(author: &str, rating: Option<Rating>, note: &str) -> Feedback {
        Feedback {
            trace_id: "t".to_owned(),
            author: author.to_owned(),
            rating,
            note: Some(note.to_owned()),
            source: "cli".to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn ignores_retracted_ratings() {
        let history = [
            feedback("ada", Some(Rating::Negative), "rude"),
            feedback("bob", Some(Rating::Negative), "too short"),
            feedback("cyd", Some(Rating::Negative), "made up"),
            feedback("dee", Some(Rating::Negative), " "),
            feedback("cyd", None, "my mistake"),
            feedback("bob", Some(Rating::Positive), "short is fine"),
        ];
        let authors: Vec<&str> = current(&history).into_iter().map(|feedback| feedback.author.as_str()).collect();
        assert_eq!(authors, ["ada", "dee", "bob"]);
        assert_eq!(consensus_of(&history), (Some(Rating::Negative), 3));
        assert_eq!(note_of(&history, Rating::Negative), Some("rude"));
        assert_eq!(note_of(&history, Rating::Positive), Some("short is fine"));
        assert_eq!(note_of(&history[2..5], Rating::Negative), None);
    }
}
