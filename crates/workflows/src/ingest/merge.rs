//! Merges the pieces of a batch by trace.

use std::collections::HashMap;

use karat_traces::{ImportedTrace, Piece, TraceParts};

use super::RefusedTrace;

const MAX_ID_BYTES: usize = 1000;

/// A trace, merged from all its pieces in a batch.
#[derive(Debug)]
pub(super) enum MergedTrace {
    Whole(Box<ImportedTrace>),
    Parts(Box<TraceParts>),
}

/// A batch with each trace once, in order of arrival. Spans and a whole trace with the same id are kept separate: the
/// stored trace decides which of them is refused.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) traces: Vec<MergedTrace>,
    pub(super) refused: Vec<RefusedTrace>,
    /// Whole traces that were replaced by a later one.
    pub(super) superseded: u64,
}

/// Merges spans of the same trace. A later whole trace replaces an earlier one with the same id, as it would in another
/// batch; the feedback of both is preserved.
pub(super) fn merge_pieces(pieces: Vec<Piece>) -> Batch {
    let mut batch = Batch::default();
    let mut indices: HashMap<(bool, String), usize> = HashMap::with_capacity(pieces.len());
    for piece in pieces {
        let (id, trace) = match piece {
            Piece::Whole(whole) => (whole.trace_id.clone(), MergedTrace::Whole(whole)),
            Piece::Parts(parts) => (parts.trace_id.clone(), MergedTrace::Parts(parts)),
        };
        if let Some(message) = id_problem(&id) {
            batch.refused.push(RefusedTrace { trace_id: id, message });
            continue;
        }
        let key = (matches!(trace, MergedTrace::Whole(_)), id);
        let Some(&index) = indices.get(&key) else {
            indices.insert(key, batch.traces.len());
            batch.traces.push(trace);
            continue;
        };
        match (&mut batch.traces[index], trace) {
            (MergedTrace::Parts(known), MergedTrace::Parts(more)) => known.merge(*more),
            (MergedTrace::Whole(known), MergedTrace::Whole(mut later)) => {
                batch.superseded += u64::from(known.document != later.document);
                let mut feedback = std::mem::take(&mut known.feedback);
                later.feedback.retain(|rating| !feedback.contains(rating));
                feedback.append(&mut later.feedback);
                later.feedback = feedback;
                *known = later;
            }
            // Unreachable: the keys differ.
            (MergedTrace::Whole(_), MergedTrace::Parts(_)) | (MergedTrace::Parts(_), MergedTrace::Whole(_)) => {}
        }
    }
    batch
}

/// Returns the problem of an invalid id.
fn id_problem(id: &str) -> Option<String> {
    if id.trim().is_empty() {
        Some("the trace id is empty".to_owned())
    } else if id.len() > MAX_ID_BYTES {
        Some(format!("the trace id is longer than {MAX_ID_BYTES} bytes"))
    } else if id.chars().any(char::is_control) {
        Some("the trace id contains control characters".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use karat_core::rating::Rating;
    use karat_traces::{SourceFeedback, Span, TraceFormat};

    use super::*;

    fn whole(id: &str, document: &str, authors: &[&str]) -> Piece {
        let rating = |author: &&str| SourceFeedback {
            author: (*author).to_owned(),
            rating: Rating::Positive,
            note: None,
            created_at: None,
        };
        Piece::Whole(Box::new(ImportedTrace {
            format: TraceFormat::Karat,
            trace_id: id.to_owned(),
            document: document.to_owned(),
            raw: Vec::new(),
            feedback: authors.iter().map(rating).collect(),
        }))
    }

    fn span(trace: &str, id: &str) -> Piece {
        let mut parts = TraceParts::new(TraceFormat::Otlp, trace);
        parts.spans.insert(id.to_owned(), Span { id: id.to_owned(), ..Span::default() });
        Piece::Parts(Box::new(parts))
    }

    #[test]
    fn merges_pieces_of_the_same_trace() {
        let pieces = vec![
            span("s", "1"),
            whole("w", "old", &["ada"]),
            span("s", "2"),
            whole("w", "new", &["ada", "bob"]),
            whole("same", "x", &[]),
            whole("same", "x", &[]),
        ];
        let batch = merge_pieces(pieces);
        assert_eq!(batch.superseded, 1);
        let [MergedTrace::Parts(parts), MergedTrace::Whole(later), MergedTrace::Whole(_)] = batch.traces.as_slice()
        else {
            panic!("{:?}", batch.traces);
        };
        assert_eq!(parts.spans.len(), 2);
        assert_eq!(later.document, "new");
        let authors: Vec<&str> = later.feedback.iter().map(|rating| rating.author.as_str()).collect();
        assert_eq!(authors, ["ada", "bob"]);
    }

    #[test]
    fn does_not_merge_spans_with_a_whole_trace() {
        let batch = merge_pieces(vec![span("t", "1"), whole("t", "x", &[]), span("t", "2")]);
        let [MergedTrace::Parts(parts), MergedTrace::Whole(_)] = batch.traces.as_slice() else {
            panic!("{:?}", batch.traces);
        };
        assert_eq!((parts.spans.len(), batch.superseded), (2, 0));
    }

    #[test]
    fn refuses_invalid_ids() {
        let long = "x".repeat(MAX_ID_BYTES + 1);
        let batch = merge_pieces(vec![
            whole("", "", &[]),
            whole(&long, "", &[]),
            whole("a\0b", "", &[]),
            whole("a b", "", &[]),
        ]);
        assert_eq!((batch.refused.len(), batch.traces.len()), (3, 1));
    }
}
