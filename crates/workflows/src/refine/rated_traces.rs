//! The rated traces, split into a training set and a held-out set.

use std::collections::BTreeSet;

use karat_core::document::TraceDocument;
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_evals::agreement::RatingCounts;
use karat_evals::port::ComparisonStore;
use karat_forge::refine::{is_held_out, trace_group};
use karat_json::text::counted;
use karat_store::Store;

use crate::error::Error;
use crate::hint::Hint;
use crate::notice::Notices;
use crate::trace_filter::TraceOrigin;

/// Minimum number of traces in a set; with fewer, agreement is not meaningful.
const MIN_SET_TRACES: u64 = 10;

/// Maximum number of traces per rating; the newest are read.
const MAX_RATING_TRACES: u64 = 1000;

/// A trace with its combined rating. Held-out traces are not shown to the model.
pub(super) struct RatedTrace {
    pub(super) id: String,
    pub(super) document: TraceDocument,
    pub(super) rating: Rating,
    pub(super) held_out: bool,
}

/// All rated traces, sorted by id.
pub(super) struct RatedTraces(pub(super) Vec<RatedTrace>);

impl RatedTraces {
    /// Reads the newest traces with a positive or negative combined rating that is not disputed.
    pub(super) async fn read(
        store: &Store,
        eval_id: &str,
        held_out_share: f64,
        origin: TraceOrigin,
        notices: &dyn Notices,
    ) -> Result<Self, Error> {
        // Ratings that were resolved as wrong or irrelevant for this eval.
        let disputed: BTreeSet<String> = store.disputed_ratings(eval_id).await?.into_iter().collect();
        let (source, excluded_source) = origin.sources();
        let (mut left_out, mut from_runs) = (0, 0);
        let mut traces = Vec::new();
        for rating in [Rating::Positive, Rating::Negative] {
            let rated = TraceFilter { rating: Some(rating), ..TraceFilter::default() };
            if origin == TraceOrigin::Production {
                let sources = TraceOrigin::Runs.sources().0.into_iter().collect();
                from_runs += store.count_traces(&TraceFilter { sources, ..rated.clone() }).await?;
            }
            let sources = source.iter().cloned().collect();
            let mut filter = TraceFilter { sources, excluded_source: excluded_source.clone(), ..rated };
            let all = store.count_traces(&filter).await?;
            if all > MAX_RATING_TRACES {
                notices.note(&format!("{all} traces are {rating}; using the newest {MAX_RATING_TRACES}"));
            }
            filter.limit = Some(MAX_RATING_TRACES);
            for item in store.list_traces(&filter).await? {
                let id = item.head.trace_id;
                if disputed.contains(&id) {
                    left_out += 1;
                    continue;
                }
                // The trace may have been removed in the meantime.
                if let Some(stored) = store.trace(&id).await? {
                    let document = stored.document()?;
                    let held_out = is_held_out(eval_id, &trace_group(&id, &document), held_out_share);
                    traces.push(RatedTrace { id, document, rating, held_out });
                }
            }
        }
        if from_runs > 0 {
            let count = counted(usize::try_from(from_runs).unwrap_or(usize::MAX), "rated trace");
            notices.note(&format!("{count} of test runs left out; pass --source all to include them"));
        }
        if left_out > 0 {
            let count = counted(left_out, "rated trace");
            notices.note(&format!("{count} left out: the contradiction is resolved as label-wrong or dismissed"));
        }
        traces.sort_by(|left, right| left.id.cmp(&right.id));
        Ok(Self(traces))
    }

    /// Returns the sizes of the training set and the held-out set.
    pub(super) fn sizes(&self) -> (RatingCounts, RatingCounts) {
        let of = |held_out: bool| {
            RatingCounts::of(self.0.iter().filter(|trace| trace.held_out == held_out).map(|trace| trace.rating))
        };
        (of(false), of(true))
    }

    /// Fails if a set is too small.
    pub(super) fn check_sizes(&self, eval_id: &str) -> Result<(), Error> {
        let (training, held_out) = self.sizes();
        let mut missing = Vec::new();
        for (name, set) in [("training", training), ("held-out", held_out)] {
            if set.all() < MIN_SET_TRACES {
                let count = set.all();
                missing.push(format!("the {name} set has {count} of at least {MIN_SET_TRACES} traces"));
            } else if set.positive == 0 || set.negative == 0 {
                let missing_rating = if set.positive == 0 { Rating::Positive } else { Rating::Negative };
                missing.push(format!("none of the {} traces in the {name} set is {missing_rating}", set.all()));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!("too few rated traces to refine {eval_id}: {}", missing.join("; "));
        Err(Error::nothing_selected(message).hint(Hint::RateTraces).hint("pass --hold-out SHARE to change the split"))
    }
}
