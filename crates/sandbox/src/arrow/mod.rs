//! Traces from other engines, and rows for them, as Arrow record batches.
//!
//! Only the stream format is written: it needs no end to be read. A file (`ARROW1`) is a stream with something around
//! it, and is read as one.

mod column;
mod guard;
mod rows;
mod traces;

pub use column::Texts;
pub use rows::ArrowRows;
pub use traces::{ArrowBatch, ArrowBatches, ArrowColumns, ArrowTraces, read_arrow};

/// What an Arrow stream begins with.
pub const STREAM_BEGINNING: [u8; 4] = [0xFF; 4];

/// What an Arrow file begins with; the last two fill up.
pub const FILE_BEGINNING: [u8; 8] = *b"ARROW1\0\0";

/// Why traces cannot be read from Arrow.
#[derive(Debug, thiserror::Error)]
pub enum ArrowError {
    /// It is something else.
    #[error("the input is no Arrow stream")]
    NotArrow,
    #[error("the input has no column '{name}'")]
    NoColumn {
        name: String,
        /// Those that it has.
        columns: Vec<String>,
    },
    #[error("column '{name}' holds {found}, not text")]
    NotText { name: String, found: String },
    /// It begins as a stream, and then does not go on as one.
    #[error("the Arrow stream is broken: {0}")]
    Broken(String),
}
