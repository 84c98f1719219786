//! The traces that people rated, in a training part and a held-out part.

use std::collections::BTreeSet;

use karat_core::document::TraceDocument;
use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_evals::agreement::PartSize;
use karat_evals::port::ComparisonStore;
use karat_forge::refine::{group_of, is_held_out};
use karat_json::text::counted;
use karat_store::Store;

use crate::error::Error;
use crate::hint::Hint;
use crate::notice::Notices;

/// With fewer traces in a part, its agreement says nothing.
const MIN_PART_TRACES: u64 = 10;

/// How many of the newest traces of each rating are read.
const MAX_RATING_TRACES: u64 = 1000;

/// A trace, what people say of it, and whether it is kept from the model.
pub(super) struct RatedTrace {
    pub(super) id: String,
    pub(super) document: TraceDocument,
    pub(super) rating: Rating,
    pub(super) held_out: bool,
}

/// All rated traces by id.
pub(super) struct RatedTraces(pub(super) Vec<RatedTrace>);

impl RatedTraces {
    /// Reads the newest traces that people together find positive or negative, and whose rating nobody calls wrong.
    pub(super) async fn read(
        store: &Store,
        eval_id: &str,
        held_out_share: f64,
        notices: &dyn Notices,
    ) -> Result<Self, Error> {
        // A rating that somebody finds wrong, or of no matter to this eval, teaches nothing.
        let doubted: BTreeSet<String> = store.doubted_labels(eval_id).await?.into_iter().collect();
        let mut left_out = 0;
        let mut traces = Vec::new();
        for rating in [Rating::Positive, Rating::Negative] {
            let mut filter = TraceFilter { rating: Some(rating), ..TraceFilter::default() };
            let all = store.count_traces(&filter).await?;
            if all > MAX_RATING_TRACES {
                notices.note(&format!("{all} traces are {rating}; the newest {MAX_RATING_TRACES} of them are taken"));
            }
            filter.limit = Some(MAX_RATING_TRACES);
            for listed in store.list_traces(&filter).await? {
                let id = listed.head.trace_id;
                if doubted.contains(&id) {
                    left_out += 1;
                    continue;
                }
                // A trace that was removed in the meantime is not missed.
                if let Some(stored) = store.trace(&id).await? {
                    let document = stored.document()?;
                    let held_out = is_held_out(eval_id, &group_of(&id, &document), held_out_share);
                    traces.push(RatedTrace { id, document, rating, held_out });
                }
            }
        }
        if left_out > 0 {
            let count = counted(left_out, "rated trace");
            notices.note(&format!("{count} left out: the contradiction is resolved as label-wrong or dismissed"));
        }
        traces.sort_by(|left, right| left.id.cmp(&right.id));
        Ok(Self(traces))
    }

    /// Returns the sizes of the training part and the held-out part.
    pub(super) fn sizes(&self) -> (PartSize, PartSize) {
        let of = |held_out: bool| {
            PartSize::of(self.0.iter().filter(|trace| trace.held_out == held_out).map(|trace| trace.rating))
        };
        (of(false), of(true))
    }

    /// Fails where a part is too small to learn from or to measure by.
    pub(super) fn check_sizes(&self, eval_id: &str) -> Result<(), Error> {
        let (training, held_out) = self.sizes();
        let mut missing = Vec::new();
        for (name, part) in [("to train on", training), ("held out", held_out)] {
            if part.all() < MIN_PART_TRACES {
                missing.push(format!("{} of at least {MIN_PART_TRACES} rated traces are {name}", part.all()));
            } else if part.positive == 0 || part.negative == 0 {
                let lacking = if part.positive == 0 { Rating::Positive } else { Rating::Negative };
                missing.push(format!("none of the {} rated traces {name} is {lacking}", part.all()));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!("too few traces are rated to refine {eval_id}: {}", missing.join("; "));
        Err(Error::nothing_selected(message).hint(Hint::RateTraces).hint("--hold-out SHARE parts them otherwise"))
    }
}
