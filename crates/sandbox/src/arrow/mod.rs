//! Reads traces from Arrow record batches and writes executions to them.
//!
//! Only the stream format is written, since it can be read before it is complete. The file format (`ARROW1`) wraps a
//! stream and is read as one.

mod column;
mod guard;
mod rows;
mod traces;

pub use column::TextColumn;
pub use rows::ArrowRows;
pub use traces::{ArrowBatch, ArrowBatches, ArrowColumns, ArrowTraces, read_arrow};

/// First bytes of an Arrow stream.
pub const STREAM_MAGIC: [u8; 4] = [0xFF; 4];

/// First bytes of an Arrow file, with two bytes of padding.
pub const FILE_MAGIC: [u8; 8] = *b"ARROW1\0\0";

/// An error when reading traces from Arrow.
#[derive(Debug, thiserror::Error)]
pub enum ArrowError {
    /// The input has another format.
    #[error("the input is not an Arrow stream")]
    NotArrow,
    #[error("the input has no column '{name}'")]
    MissingColumn {
        name: String,
        /// The existing columns.
        columns: Vec<String>,
    },
    #[error("column '{name}' holds {found}, not text")]
    NotText { name: String, found: String },
    /// The input starts as an Arrow stream but is corrupt.
    #[error("invalid Arrow stream: {0}")]
    Invalid(String),
}
