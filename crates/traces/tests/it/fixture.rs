//! Helpers that read fixtures and texts.

use std::fs::File;
use std::io::Cursor;
use std::path::PathBuf;

use karat_core::document::TraceContent;
use karat_traces::{ImportedTrace, Piece, ReadError, TraceFormat, read};
use serde_json::Value;

pub(crate) fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures", name].iter().collect()
}

/// Reads a file of whole traces.
pub(crate) fn whole_traces(name: &str) -> Vec<ImportedTrace> {
    let file = File::open(path(name)).expect("fixture exists");
    read(None, file).map(|piece| whole(piece.expect("readable"))).collect()
}

pub(crate) fn whole(piece: Piece) -> ImportedTrace {
    match piece {
        Piece::Whole(imported) => *imported,
        Piece::Parts(parts) => panic!("expected a whole trace, found spans of {}", parts.trace_id),
    }
}

/// Reads text in this or the detected format.
pub(crate) fn read_text(format: Option<TraceFormat>, text: &str) -> Vec<Result<Piece, ReadError>> {
    read(format, Cursor::new(text.as_bytes().to_vec())).collect()
}

pub(crate) fn document(imported: &ImportedTrace) -> TraceContent {
    serde_json::from_str(&imported.document).expect("valid document")
}

/// Writes values as JSON Lines.
pub(crate) fn lines(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}
