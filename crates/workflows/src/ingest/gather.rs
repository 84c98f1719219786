//! The pieces of a batch, put together by trace.

use std::collections::HashMap;

use karat_traces::{Imported, Piece, TraceParts};

use super::RefusedTrace;

const MAX_ID_BYTES: usize = 1000;

/// All that a batch says of one trace.
#[derive(Debug)]
pub(super) enum Gathered {
    Whole(Box<Imported>),
    Parts(Box<TraceParts>),
}

/// A batch, each trace once, in the order in which they came. Spans and a whole trace of one id are apart: which of them
/// stays shows by what is stored.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) traces: Vec<Gathered>,
    pub(super) refused: Vec<RefusedTrace>,
    /// Whole traces that another one replaced.
    pub(super) superseded: u64,
}

/// Puts spans of the same trace together. Of two whole traces with one id the later counts, as it would in two batches;
/// what people said of either is kept.
pub(super) fn gather(pieces: Vec<Piece>) -> Batch {
    let mut batch = Batch::default();
    let mut places: HashMap<(bool, String), usize> = HashMap::with_capacity(pieces.len());
    for piece in pieces {
        let (id, gathered) = match piece {
            Piece::Whole(whole) => (whole.trace_id.clone(), Gathered::Whole(whole)),
            Piece::Parts(parts) => (parts.trace_id.clone(), Gathered::Parts(parts)),
        };
        if let Some(message) = wrong_id(&id) {
            batch.refused.push(RefusedTrace { trace_id: id, message });
            continue;
        }
        let key = (matches!(gathered, Gathered::Whole(_)), id);
        let Some(&place) = places.get(&key) else {
            places.insert(key, batch.traces.len());
            batch.traces.push(gathered);
            continue;
        };
        match (&mut batch.traces[place], gathered) {
            (Gathered::Parts(known), Gathered::Parts(more)) => known.merge(*more),
            (Gathered::Whole(known), Gathered::Whole(mut later)) => {
                batch.superseded += u64::from(known.document != later.document);
                let mut feedback = std::mem::take(&mut known.feedback);
                later.feedback.retain(|said| !feedback.contains(said));
                feedback.append(&mut later.feedback);
                later.feedback = feedback;
                *known = later;
            }
            // Their keys differ.
            (Gathered::Whole(_), Gathered::Parts(_)) | (Gathered::Parts(_), Gathered::Whole(_)) => {}
        }
    }
    batch
}

/// Returns what is wrong with an id.
fn wrong_id(id: &str) -> Option<String> {
    if id.trim().is_empty() {
        Some("the trace has no id".to_owned())
    } else if id.len() > MAX_ID_BYTES {
        Some(format!("the trace's id has {} bytes; {MAX_ID_BYTES} are the most", id.len()))
    } else if id.chars().any(char::is_control) {
        Some("the trace's id holds a control character".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use karat_core::rating::Rating;
    use karat_traces::{Kind, SourceFeedback, Span};

    use super::*;

    fn whole(id: &str, document: &str, authors: &[&str]) -> Piece {
        let said = |author: &&str| SourceFeedback {
            author: (*author).to_owned(),
            rating: Rating::Positive,
            note: None,
            created_at: None,
        };
        Piece::Whole(Box::new(Imported {
            kind: Kind::Karat,
            trace_id: id.to_owned(),
            document: document.to_owned(),
            raw: Vec::new(),
            feedback: authors.iter().map(said).collect(),
        }))
    }

    fn span(trace: &str, id: &str) -> Piece {
        let mut parts = TraceParts::new(Kind::Otlp, trace);
        parts.spans.insert(id.to_owned(), Span { id: id.to_owned(), ..Span::default() });
        Piece::Parts(Box::new(parts))
    }

    #[test]
    fn each_trace_is_there_once() {
        let pieces = vec![
            span("s", "1"),
            whole("w", "old", &["ada"]),
            span("s", "2"),
            whole("w", "new", &["ada", "bob"]),
            whole("same", "x", &[]),
            whole("same", "x", &[]),
        ];
        let batch = gather(pieces);
        assert_eq!(batch.superseded, 1);
        let [Gathered::Parts(parts), Gathered::Whole(later), Gathered::Whole(_)] = batch.traces.as_slice() else {
            panic!("{:?}", batch.traces);
        };
        assert_eq!(parts.spans.len(), 2);
        assert_eq!(later.document, "new");
        let authors: Vec<&str> = later.feedback.iter().map(|said| said.author.as_str()).collect();
        assert_eq!(authors, ["ada", "bob"]);
    }

    #[test]
    fn spans_and_a_whole_trace_stay_apart() {
        let batch = gather(vec![span("t", "1"), whole("t", "x", &[]), span("t", "2")]);
        let [Gathered::Parts(parts), Gathered::Whole(_)] = batch.traces.as_slice() else {
            panic!("{:?}", batch.traces);
        };
        assert_eq!((parts.spans.len(), batch.superseded), (2, 0));
    }

    #[test]
    fn what_is_no_id_is_refused() {
        let long = "x".repeat(MAX_ID_BYTES + 1);
        let batch =
            gather(vec![whole("", "", &[]), whole(&long, "", &[]), whole("a\0b", "", &[]), whole("a b", "", &[])]);
        assert_eq!((batch.refused.len(), batch.traces.len()), (3, 1));
    }
}
