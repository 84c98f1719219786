//! What people said of traces.

mod cells;
mod file;

use std::collections::BTreeMap;

pub use self::file::{FeedbackFile, FeedbackFormat, FeedbackReading, RowProblem, Statement};

use jiff::{SignedDuration, Timestamp};
use karat_core::rating::Rating;
use schemars::JsonSchema;
use serde::Serialize;

/// One statement of one person. Statements are kept for ever; the newest of each author counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "karat feedback")]
pub struct Feedback {
    pub trace_id: String,
    pub author: String,
    /// Null: the author takes back what they said before, and has said nothing.
    pub rating: Option<Rating>,
    pub note: Option<String>,
    /// Where it comes from: `cli`, `review`, `import`, or the name of a trace source.
    pub source: String,
    /// ISO 8601.
    #[schemars(with = "String")]
    pub created_at: Timestamp,
}

/// What tables say where an author takes a rating back.
pub const RETRACTED: &str = "retracted";

impl Feedback {
    /// Returns the rating's name, or the word for one that is taken back.
    pub fn word(&self) -> &'static str {
        self.rating.map_or(RETRACTED, Rating::name)
    }

    /// Returns when something is said now, so that it is newer than what the author said before: clocks are coarse, and
    /// are set back.
    pub fn time_after(before: Option<&Feedback>, now: Timestamp) -> Timestamp {
        let next = |before: &Feedback| before.created_at.saturating_add(SignedDuration::from_micros(1)).ok();
        before.and_then(next).map_or(now, |next| next.max(now))
    }

    /// Tells whether this says nothing new to somebody who knows the author's newest statement on the trace: the same
    /// rating, and the same note or none.
    pub fn repeats(&self, newest: Option<&Feedback>) -> bool {
        match newest {
            Some(newest) => self.rating == newest.rating && (self.note.is_none() || self.note == newest.note),
            None => self.rating.is_none(),
        }
    }
}

/// Returns what people say together, given the newest rating of each: what more of them say, neutral where as many say
/// the opposite, and nothing where nobody said anything.
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

/// Returns what counts of all statements on a trace, given the oldest first, in the same order: the newest of each
/// author, unless it takes back what they said.
pub fn current(statements: &[Feedback]) -> Vec<&Feedback> {
    let newest: BTreeMap<&str, usize> =
        statements.iter().enumerate().map(|(at, feedback)| (feedback.author.as_str(), at)).collect();
    let is_newest = |at: usize, feedback: &Feedback| newest.get(feedback.author.as_str()) == Some(&at);
    let counting = statements.iter().enumerate().filter(|(at, feedback)| is_newest(*at, feedback));
    counting.map(|(_, feedback)| feedback).filter(|feedback| feedback.rating.is_some()).collect()
}

/// Returns what people say together of a trace, and how many they are, given all statements on it, the oldest first.
pub fn consensus_of(statements: &[Feedback]) -> (Option<Rating>, u64) {
    let ratings: Vec<Rating> = current(statements).into_iter().filter_map(|feedback| feedback.rating).collect();
    let count = ratings.len() as u64;
    (consensus(ratings), count)
}

/// Returns what the newest author of a rating noted whose statement still counts, given all statements on a trace, the
/// oldest first. What its author took back or said otherwise since is no reason any more.
pub fn note_of(statements: &[Feedback], rating: Rating) -> Option<&str> {
    let notes = current(statements).into_iter().rev().filter(|feedback| feedback.rating == Some(rating));
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
    fn most_people_are_right(#[case] ratings: &[Rating], #[case] expected: Option<Rating>) {
        assert_eq!(consensus(ratings.iter().copied()), expected);
    }

    fn said(author: &str, rating: Option<Rating>, note: &str) -> Feedback {
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
    fn what_was_taken_back_counts_no_more() {
        let statements = [
            said("ada", Some(Rating::Negative), "rude"),
            said("bob", Some(Rating::Negative), "too short"),
            said("cyd", Some(Rating::Negative), "made up"),
            said("dee", Some(Rating::Negative), " "),
            said("cyd", None, "my mistake"),
            said("bob", Some(Rating::Positive), "short is fine"),
        ];
        let authors: Vec<&str> = current(&statements).into_iter().map(|feedback| feedback.author.as_str()).collect();
        assert_eq!(authors, ["ada", "dee", "bob"]);
        assert_eq!(consensus_of(&statements), (Some(Rating::Negative), 3));
        assert_eq!(note_of(&statements, Rating::Negative), Some("rude"));
        assert_eq!(note_of(&statements, Rating::Positive), Some("short is fine"));
        assert_eq!(note_of(&statements[2..5], Rating::Negative), None);
    }
}
