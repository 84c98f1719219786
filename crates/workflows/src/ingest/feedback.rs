//! Ratings that a source has of people, as feedback.
//!
//! The same import again must add nothing, though many sources do not say when something was said. So a statement
//! without a time gets the time at which the trace ended, or else began, or else came into the store; and it is not
//! added where its author's newest statement from the same source says the same already.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use karat_core::port::{StoreError, TraceStore};
use karat_core::stored::{TraceFilter, TraceHead};
use karat_evals::feedback::Feedback;
use karat_evals::port::FeedbackStore;
use karat_traces::SourceFeedback;

/// In characters.
const MAX_NAME_LENGTH: usize = 60;

/// What people say of one trace, according to its source.
#[derive(Debug)]
pub(super) struct SourceStatements {
    trace_id: String,
    source: String,
    /// When the trace ended, or else began.
    time: Option<Timestamp>,
    pub(super) feedback: Vec<SourceFeedback>,
}

impl SourceStatements {
    pub(super) fn new(head: &TraceHead, source: &str, feedback: Vec<SourceFeedback>) -> Self {
        let took = head.duration_ms.and_then(|took| i64::try_from(took).ok()).map(SignedDuration::from_millis);
        let ended = |began: Timestamp| began.checked_add(took.unwrap_or_default()).unwrap_or(began);
        Self { trace_id: head.trace_id.clone(), source: source.to_owned(), time: head.started_at.map(ended), feedback }
    }

    fn has_untimed(&self) -> bool {
        self.feedback.iter().any(|said| said.created_at.is_none())
    }

    fn statement(&self, said: &SourceFeedback, created_at: Timestamp) -> Feedback {
        Feedback {
            trace_id: self.trace_id.clone(),
            author: name(&said.author, &self.source),
            rating: Some(said.rating),
            note: said.note.clone(),
            source: self.source.clone(),
            created_at,
        }
    }

    /// Returns the statements that have no time and are not there yet. `time` is when they were made, as far as anybody
    /// knows; who has said something else before says this now.
    fn untimed(&self, there: &[Feedback], time: Timestamp, now: Timestamp) -> Vec<Feedback> {
        let mut by_author: BTreeMap<&str, Vec<&SourceFeedback>> = BTreeMap::new();
        for said in self.feedback.iter().filter(|said| said.created_at.is_none()) {
            by_author.entry(&said.author).or_default().push(said);
        }
        let mut new = Vec::new();
        for (author, statements) in by_author {
            let author = name(author, &self.source);
            let before: Vec<&Feedback> =
                there.iter().filter(|known| known.author == author && known.source == self.source).collect();
            let same =
                |known: &&Feedback, said: &SourceFeedback| known.rating == Some(said.rating) && known.note == said.note;
            let is_there = |said: &SourceFeedback| match (statements.len(), before.last()) {
                // Who changed their mind and changed it back says something new.
                (1, Some(newest)) => same(newest, said),
                _ => before.iter().any(|known| same(known, said)),
            };
            let newest = there.iter().rev().find(|known| known.author == author);
            let time = if before.is_empty() { time } else { Feedback::time_after(newest, now) };
            new.extend(statements.iter().filter(|said| !is_there(said)).map(|said| self.statement(said, time)));
        }
        new
    }
}

/// Shortens an author's name; without one it is the source's.
fn name(author: &str, source: &str) -> String {
    let name: String = author.trim().chars().take(MAX_NAME_LENGTH).collect();
    if name.is_empty() { source.to_owned() } else { name }
}

/// Adds what was said, and returns how much of it is new.
pub(super) async fn add(
    store: &(impl TraceStore + FeedbackStore),
    now: Timestamp,
    said: &[SourceStatements],
) -> Result<u64, StoreError> {
    let imported = imported_times(store, said).await?;
    let mut statements = Vec::new();
    for said in said {
        let timed = said.feedback.iter().filter_map(|one| Some(said.statement(one, one.created_at?)));
        statements.extend(timed);
        if said.has_untimed() {
            let there = store.feedback_of(&said.trace_id).await?;
            let time = said.time.or_else(|| imported.get(&said.trace_id).copied()).unwrap_or(now);
            statements.extend(said.untimed(&there, time, now));
        }
    }
    if statements.is_empty() {
        return Ok(0);
    }
    let new = store.add_feedback(&statements).await?;
    Ok(new.into_iter().filter(|is_new| *is_new).count() as u64)
}

/// Returns when the traces came into the store that have no time themselves: two imports at once read the same there.
async fn imported_times(
    store: &impl TraceStore,
    said: &[SourceStatements],
) -> Result<BTreeMap<String, Timestamp>, StoreError> {
    let without = said.iter().filter(|said| said.time.is_none() && said.has_untimed());
    let ids: Vec<String> = without.map(|said| said.trace_id.clone()).collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let filter = TraceFilter { ids, ..TraceFilter::default() };
    let listed = store.list_traces(&filter).await?;
    Ok(listed.into_iter().map(|listed| (listed.head.trace_id, listed.imported_at)).collect())
}

#[cfg(test)]
mod tests {
    use karat_core::rating::Rating;

    use super::*;

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn said(statements: &[(&str, Rating, Option<&str>)]) -> SourceStatements {
        let one = |(author, rating, note): &(&str, Rating, Option<&str>)| SourceFeedback {
            author: (*author).to_owned(),
            rating: *rating,
            note: note.map(str::to_owned),
            created_at: None,
        };
        let head = TraceHead { trace_id: "t".to_owned(), ..TraceHead::default() };
        SourceStatements::new(&head, "langfuse", statements.iter().map(one).collect())
    }

    #[test]
    fn the_same_again_adds_nothing() {
        use Rating::{Negative, Positive};
        let several = said(&[("ada", Positive, None), ("ada", Negative, Some("slow")), ("bob", Positive, None)]);
        let mut there = several.untimed(&[], time(5), time(9));
        assert_eq!(there.iter().map(|one| one.created_at).collect::<Vec<_>>(), [time(5); 3]);
        assert!(several.untimed(&there, time(6), time(10)).is_empty());
        // What people said elsewhere is not the source's.
        there[0].source = "cli".to_owned();
        assert_eq!(several.untimed(&there, time(6), time(10)).len(), 1);
    }

    #[test]
    fn who_changes_their_mind_does_so_now() {
        use Rating::{Negative, Positive};
        let mut there = said(&[("ada", Positive, None)]).untimed(&[], time(5), time(9));
        for (now, rating) in [(10, Negative), (11, Positive)] {
            let new = said(&[("ada", rating, None)]).untimed(&there, time(5), time(now));
            assert_eq!(new.len(), 1);
            assert_eq!((new[0].rating, new[0].created_at), (Some(rating), time(now)));
            there.extend(new);
        }
    }

    #[test]
    fn what_is_said_now_is_newer_than_what_is_dated_ahead() {
        use Rating::{Negative, Positive};
        let there = said(&[("ada", Positive, None)]).untimed(&[], time(500), time(9));
        let new = said(&[("ada", Negative, None)]).untimed(&there, time(5), time(10));
        assert!(new.len() == 1 && new[0].created_at > time(500), "{new:?}");
    }

    #[test]
    fn a_trace_is_rated_when_it_has_ended() {
        let head = TraceHead { started_at: Some(time(3)), duration_ms: Some(2000), ..TraceHead::default() };
        assert_eq!(SourceStatements::new(&head, "otlp", Vec::new()).time, Some(time(5)));
    }
}
