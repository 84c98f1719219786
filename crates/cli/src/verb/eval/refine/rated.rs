//! The traces that people rated, in two parts.

use std::collections::BTreeSet;

use karat_core::agreement::PartSize;
use karat_core::feedback::{Rating, note_of};
use karat_core::port::{ComparisonStore, FeedbackStore, TraceStore};
use karat_core::stored::TraceFilter;
use karat_forge::refine::{group_of, is_held_out};
use karat_report::counted;
use karat_store::Store;
use serde_json::Value;

use crate::failure::Failure;
use crate::printer::Printer;

/// With fewer traces on a side, an agreement says nothing.
const LEAST: u64 = 10;

/// So many of the newest traces of each rating are taken.
const MOST: u64 = 1000;

/// A trace, what people say of it, and whether the model may know of it.
pub(super) struct RatedTrace {
    pub(super) id: String,
    pub(super) document: String,
    pub(super) rating: Rating,
    pub(super) held_out: bool,
}

/// All rated traces by id.
pub(super) struct Parted {
    pub(super) traces: Vec<RatedTrace>,
}

impl Parted {
    /// Reads the newest traces that people together find positive or negative, and whose rating nobody calls wrong.
    pub(super) async fn read(store: &Store, eval_id: &str, share: f64, printer: &Printer) -> Result<Self, Failure> {
        // Nothing is to be learnt from a rating that somebody finds wrong or of no matter to this eval.
        let doubted = store.doubted_labels(eval_id).await?;
        let doubted: BTreeSet<String> = doubted.into_iter().collect();
        let mut left_out = 0;
        let mut traces = Vec::new();
        for rating in [Rating::Positive, Rating::Negative] {
            let mut filter = TraceFilter { rating: Some(rating), ..TraceFilter::default() };
            let all = store.count_traces(&filter).await?;
            if all > MOST {
                printer.note(&format!("{all} traces are {rating}; the newest {MOST} of them are taken"));
            }
            filter.limit = Some(MOST);
            for listed in store.list_traces(&filter).await? {
                let id = listed.head.trace_id;
                if doubted.contains(&id) {
                    left_out += 1;
                    continue;
                }
                // One that went away in the meantime is not missed.
                if let Some(stored) = store.trace(&id).await? {
                    let document = serde_json::from_str::<Value>(&stored.document).unwrap_or_default();
                    let held_out = is_held_out(eval_id, &group_of(&id, &document), share);
                    traces.push(RatedTrace { id, document: stored.document, rating, held_out });
                }
            }
        }
        if left_out > 0 {
            let count = counted(left_out, "rated trace");
            printer.note(&format!("{count} left out: the contradiction is resolved as label-wrong or dismissed"));
        }
        traces.sort_by(|left, right| left.id.cmp(&right.id));
        Ok(Self { traces })
    }

    /// Returns how many traces are to train on, and how many are held out.
    pub(super) fn sizes(&self) -> (PartSize, PartSize) {
        let of = |held_out: bool| {
            PartSize::of(self.traces.iter().filter(|trace| trace.held_out == held_out).map(|trace| trace.rating))
        };
        (of(false), of(true))
    }

    /// Refuses parts that are too small to learn or to measure anything.
    pub(super) fn verify(&self, eval_id: &str) -> Result<(), Failure> {
        let (training, held_out) = self.sizes();
        let mut missing = Vec::new();
        for (name, part) in [("to train on", training), ("held out", held_out)] {
            if part.all() < LEAST {
                missing.push(format!("{} of at least {LEAST} rated traces are {name}", part.all()));
            } else if part.positive == 0 || part.negative == 0 {
                let lacking = if part.positive == 0 { Rating::Positive } else { Rating::Negative };
                missing.push(format!("none of the {} rated traces {name} is {lacking}", part.all()));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!("too few traces are rated to refine {eval_id}: {}", missing.join("; "));
        Err(Failure::nothing_selected(message)
            .hint("'karat review' and 'karat feedback add' take down what people find")
            .hint("--hold-out SHARE parts them otherwise"))
    }
}

/// Returns what the newest author of a rating noted, as long as they still say so.
pub(super) async fn note(store: &Store, trace_id: &str, rating: Rating) -> Result<Option<String>, Failure> {
    let all = store.feedback_of(trace_id).await?;
    Ok(note_of(&all, rating).map(str::to_owned))
}
