//! Files to read, and what is read from them.

use std::fs::File;
use std::io::Cursor;
use std::path::PathBuf;

use karat_core::document::TraceContent;
use karat_traces::{Imported, Kind, Piece, ReadError, read};
use serde_json::Value;

pub(crate) fn path(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures", name].iter().collect()
}

/// Reads a file whose traces are all whole.
pub(crate) fn whole_traces(name: &str) -> Vec<Imported> {
    let file = File::open(path(name)).expect("the fixture is there");
    read(None, file).map(|one| whole(one.expect("readable"))).collect()
}

pub(crate) fn whole(piece: Piece) -> Imported {
    match piece {
        Piece::Whole(imported) => *imported,
        Piece::Parts(parts) => panic!("{} is only a part", parts.trace_id),
    }
}

/// Reads a text and shows what came of it.
pub(crate) fn read_text(kind: Option<Kind>, text: &str) -> Vec<Result<Piece, ReadError>> {
    read(kind, Cursor::new(text.as_bytes().to_vec())).collect()
}

pub(crate) fn document(imported: &Imported) -> TraceContent {
    serde_json::from_str(&imported.document).expect("a document")
}

/// Writes values as JSON lines.
pub(crate) fn lines(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
}
