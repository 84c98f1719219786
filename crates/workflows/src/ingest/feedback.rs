//! Converts ratings of a source to feedback.
//!
//! Importing the same data again must add nothing, but many sources do not record when a rating was given. A rating
//! without a time gets the time at which the trace ended, started or was imported, whichever is known first. It is not
//! added if the newest feedback of its author from the same source is equal.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use karat_core::port::{StoreError, TraceStore};
use karat_core::stored::{TraceFilter, TraceHead};
use karat_evals::feedback::Feedback;
use karat_evals::port::FeedbackStore;
use karat_traces::SourceFeedback;

/// Maximum length of an author's name, in characters.
const MAX_NAME_LENGTH: usize = 60;

/// The ratings of one trace by its source.
#[derive(Debug)]
pub(super) struct TraceFeedback {
    trace_id: String,
    source: String,
    /// When the trace ended, or started if the end is unknown.
    time: Option<Timestamp>,
    pub(super) ratings: Vec<SourceFeedback>,
}

impl TraceFeedback {
    pub(super) fn new(head: &TraceHead, source: &str, ratings: Vec<SourceFeedback>) -> Self {
        let duration = head.duration_ms.and_then(|millis| i64::try_from(millis).ok()).map(SignedDuration::from_millis);
        let end = |start: Timestamp| start.checked_add(duration.unwrap_or_default()).unwrap_or(start);
        Self { trace_id: head.trace_id.clone(), source: source.to_owned(), time: head.started_at.map(end), ratings }
    }

    fn has_undated(&self) -> bool {
        self.ratings.iter().any(|rating| rating.created_at.is_none())
    }

    fn to_feedback(&self, rating: &SourceFeedback, created_at: Timestamp) -> Feedback {
        Feedback {
            trace_id: self.trace_id.clone(),
            author: author_name(&rating.author, &self.source),
            rating: Some(rating.rating),
            note: rating.note.clone(),
            source: self.source.clone(),
            created_at,
        }
    }

    /// Returns feedback for the undated ratings that are not stored yet. `time` is the best known time of the ratings;
    /// a rating that changes an earlier one is dated `now`.
    fn new_undated(&self, existing: &[Feedback], time: Timestamp, now: Timestamp) -> Vec<Feedback> {
        let mut by_author: BTreeMap<&str, Vec<&SourceFeedback>> = BTreeMap::new();
        for rating in self.ratings.iter().filter(|rating| rating.created_at.is_none()) {
            by_author.entry(&rating.author).or_default().push(rating);
        }
        let mut new = Vec::new();
        for (author, ratings) in by_author {
            let author = author_name(author, &self.source);
            let before: Vec<&Feedback> =
                existing.iter().filter(|known| known.author == author && known.source == self.source).collect();
            let is_same = |known: &&Feedback, rating: &SourceFeedback| {
                known.rating == Some(rating.rating) && known.note == rating.note
            };
            let is_stored = |rating: &SourceFeedback| match (ratings.len(), before.last()) {
                // Compare only with the newest: changing a rating back is new feedback.
                (1, Some(newest)) => is_same(newest, rating),
                _ => before.iter().any(|known| is_same(known, rating)),
            };
            let newest = existing.iter().rev().find(|known| known.author == author);
            let time = if before.is_empty() { time } else { Feedback::time_after(newest, now) };
            new.extend(ratings.iter().filter(|rating| !is_stored(rating)).map(|rating| self.to_feedback(rating, time)));
        }
        new
    }
}

/// Shortens an author's name; an empty name becomes that of the source.
fn author_name(author: &str, source: &str) -> String {
    let name: String = author.trim().chars().take(MAX_NAME_LENGTH).collect();
    if name.is_empty() { source.to_owned() } else { name }
}

/// Adds feedback to the store. Returns the number of new entries.
pub(super) async fn add(
    store: &(impl TraceStore + FeedbackStore),
    now: Timestamp,
    traces: &[TraceFeedback],
) -> Result<u64, StoreError> {
    let imported = imported_times(store, traces).await?;
    let mut feedback = Vec::new();
    for trace in traces {
        let dated = trace.ratings.iter().filter_map(|rating| Some(trace.to_feedback(rating, rating.created_at?)));
        feedback.extend(dated);
        if trace.has_undated() {
            let existing = store.feedback_of(&trace.trace_id).await?;
            let time = trace.time.or_else(|| imported.get(&trace.trace_id).copied()).unwrap_or(now);
            feedback.extend(trace.new_undated(&existing, time, now));
        }
    }
    if feedback.is_empty() {
        return Ok(0);
    }
    let new = store.add_feedback(&feedback).await?;
    Ok(new.into_iter().filter(|is_new| *is_new).count() as u64)
}

/// Returns the import times of traces without a time. They are read from the store, so that concurrent imports get the
/// same time.
async fn imported_times(
    store: &impl TraceStore,
    traces: &[TraceFeedback],
) -> Result<BTreeMap<String, Timestamp>, StoreError> {
    let undated = traces.iter().filter(|trace| trace.time.is_none() && trace.has_undated());
    let ids: Vec<String> = undated.map(|trace| trace.trace_id.clone()).collect();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let filter = TraceFilter { ids, ..TraceFilter::default() };
    let traces = store.list_traces(&filter).await?;
    Ok(traces.into_iter().map(|trace| (trace.head.trace_id, trace.imported_at)).collect())
}

#[cfg(test)]
mod tests {
    use karat_core::rating::Rating;

    use super::*;

    fn time(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("valid time")
    }

    fn trace_feedback(ratings: &[(&str, Rating, Option<&str>)]) -> TraceFeedback {
        let rating = |(author, rating, note): &(&str, Rating, Option<&str>)| SourceFeedback {
            author: (*author).to_owned(),
            rating: *rating,
            note: note.map(str::to_owned),
            created_at: None,
        };
        let head = TraceHead { trace_id: "t".to_owned(), ..TraceHead::default() };
        TraceFeedback::new(&head, "langfuse", ratings.iter().map(rating).collect())
    }

    #[test]
    fn importing_again_adds_nothing() {
        use Rating::{Negative, Positive};
        let ratings = [("ada", Positive, None), ("ada", Negative, Some("slow")), ("bob", Positive, None)];
        let several = trace_feedback(&ratings);
        let mut existing = several.new_undated(&[], time(5), time(9));
        assert_eq!(existing.iter().map(|feedback| feedback.created_at).collect::<Vec<_>>(), [time(5); 3]);
        assert!(several.new_undated(&existing, time(6), time(10)).is_empty());
        // Feedback from another source does not count.
        existing[0].source = "cli".to_owned();
        assert_eq!(several.new_undated(&existing, time(6), time(10)).len(), 1);
    }

    #[test]
    fn dates_a_changed_rating_now() {
        use Rating::{Negative, Positive};
        let mut existing = trace_feedback(&[("ada", Positive, None)]).new_undated(&[], time(5), time(9));
        for (now, rating) in [(10, Negative), (11, Positive)] {
            let new = trace_feedback(&[("ada", rating, None)]).new_undated(&existing, time(5), time(now));
            assert_eq!(new.len(), 1);
            assert_eq!((new[0].rating, new[0].created_at), (Some(rating), time(now)));
            existing.extend(new);
        }
    }

    #[test]
    fn dates_a_changed_rating_after_one_in_the_future() {
        use Rating::{Negative, Positive};
        let existing = trace_feedback(&[("ada", Positive, None)]).new_undated(&[], time(500), time(9));
        let new = trace_feedback(&[("ada", Negative, None)]).new_undated(&existing, time(5), time(10));
        assert!(new.len() == 1 && new[0].created_at > time(500), "{new:?}");
    }

    #[test]
    fn dates_ratings_at_the_end_of_the_trace() {
        let head = TraceHead { started_at: Some(time(3)), duration_ms: Some(2000), ..TraceHead::default() };
        assert_eq!(TraceFeedback::new(&head, "otlp", Vec::new()).time, Some(time(5)));
    }
}
