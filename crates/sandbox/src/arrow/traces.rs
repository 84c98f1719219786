//! Reads traces from Arrow record batches.

use std::io::{self, BufReader, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;

use super::column::{TextColumn, find};
use super::guard::catch_panics;
use super::{ArrowError, FILE_MAGIC, STREAM_MAGIC};
use crate::lines::{Input, InputError, MAX_BATCH_BYTES, MAX_BATCH_TRACES, MAX_TRACE_BYTES, Position, Unit};

/// Maximum number of rows in a record batch. A column of nulls takes no space, so a stream could claim any number.
const MAX_BATCH_ROWS: usize = 1 << 31;

/// Maximum number of empty record batches that are read ahead of the consumer.
const MAX_EMPTY_BATCHES: usize = 64;

/// Maximum number of bytes between a file's magic and its stream.
const MAX_PADDING_BYTES: usize = 64;

/// Names of the columns to read.
#[derive(Debug, Clone)]
pub struct ArrowColumns {
    /// Column of the traces' JSON text.
    pub trace: String,
    /// Column of the traces' ids; by default `trace_id`, if it exists.
    pub trace_id: Option<String>,
}

const DEFAULT_TRACE_ID: &str = "trace_id";

/// A record batch whose traces follow.
#[derive(Debug)]
pub struct ArrowBatch {
    pub rows: usize,
    /// The column of trace ids, if there is one.
    pub trace_ids: Option<TextColumn>,
}

/// Receives each record batch before its first trace is returned.
pub type ArrowBatches = Receiver<ArrowBatch>;

/// An iterator over the traces of record batches, in batches small enough to spread over threads.
pub struct ArrowTraces<R: Read> {
    reader: StreamReader<BufReader<io::Chain<io::Cursor<Vec<u8>>, R>>>,
    trace: usize,
    trace_id: Option<usize>,
    batches: SyncSender<ArrowBatch>,
    /// The current record batch's traces, number of rows and next row.
    current: Option<(TextColumn, usize, usize)>,
    /// Number of rows and record batches read so far.
    rows: u64,
    record_batches: u64,
    ended: bool,
}

/// Reads the schema and returns an iterator over the traces.
pub fn read_arrow<R: Read>(
    mut reader: R,
    columns: &ArrowColumns,
) -> Result<(ArrowTraces<R>, ArrowBatches), ArrowError> {
    let start = read_magic(&mut reader)?;
    let reader = BufReader::with_capacity(256 << 10, io::Cursor::new(start).chain(reader));
    let reader = catch_panics(|| StreamReader::try_new(reader, None)).map_err(ArrowError::Invalid)?;
    let schema = reader.schema();
    let trace = find(&schema, &columns.trace)?;
    let trace_id = match find(&schema, columns.trace_id.as_deref().unwrap_or(DEFAULT_TRACE_ID)) {
        Ok(index) => Some(index),
        Err(ArrowError::MissingColumn { .. }) if columns.trace_id.is_none() => None,
        Err(error) => return Err(error),
    };
    let (batches, receiver) = sync_channel(MAX_EMPTY_BATCHES);
    let traces =
        ArrowTraces { reader, trace, trace_id, batches, current: None, rows: 0, record_batches: 0, ended: false };
    Ok((traces, receiver))
}

/// Reads the magic of a stream or file and returns the bytes that belong to the stream.
fn read_magic(reader: &mut impl Read) -> Result<Vec<u8>, ArrowError> {
    let mut block = [0; 8];
    let (first, rest) = block.split_at_mut(STREAM_MAGIC.len());
    read_exact(reader, first)?;
    if first == STREAM_MAGIC {
        return Ok(first.to_vec());
    }
    if first != &FILE_MAGIC[..first.len()] {
        return Err(ArrowError::NotArrow);
    }
    read_exact(reader, rest)?;
    if block != FILE_MAGIC {
        return Err(ArrowError::NotArrow);
    }
    // Some writers add more padding than required.
    for _ in 0..MAX_PADDING_BYTES / block.len() {
        read_exact(reader, &mut block)?;
        if block != [0; 8] {
            return Ok(block.to_vec());
        }
    }
    Err(ArrowError::NotArrow)
}

fn read_exact(reader: &mut impl Read, buffer: &mut [u8]) -> Result<(), ArrowError> {
    reader.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => ArrowError::NotArrow,
        _ => ArrowError::Invalid(error.to_string()),
    })
}

impl<R: Read> Iterator for ArrowTraces<R> {
    type Item = io::Result<Vec<Input<Position>>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(inputs) = self.next_rows() {
                return Some(Ok(inputs));
            }
            if self.ended {
                return None;
            }
            match catch_panics(|| self.reader.next().transpose()) {
                Ok(Some(batch)) if batch.num_rows() > MAX_BATCH_ROWS => {
                    self.ended = true;
                    let message =
                        format!("record batch {}: too many rows ({})", self.record_batches + 1, batch.num_rows());
                    return Some(Err(io::Error::other(message)));
                }
                Ok(Some(batch)) => {
                    // The receiver may have been dropped.
                    if self.start_batch(&batch).is_err() {
                        self.ended = true;
                    }
                }
                Ok(None) => self.ended = true,
                Err(reason) => {
                    self.ended = true;
                    let message = format!("record batch {}: {reason}", self.record_batches + 1);
                    return Some(Err(io::Error::other(message)));
                }
            }
        }
    }
}

impl<R: Read> ArrowTraces<R> {
    fn start_batch(&mut self, batch: &RecordBatch) -> Result<(), ()> {
        self.record_batches += 1;
        let trace_ids = self.trace_id.map(|index| TextColumn::new(batch.column(index)));
        let rows = batch.num_rows();
        self.current = Some((TextColumn::new(batch.column(self.trace)), rows, 0));
        self.batches.send(ArrowBatch { rows, trace_ids }).map_err(drop)
    }

    /// Returns the next rows of the current record batch.
    fn next_rows(&mut self) -> Option<Vec<Input<Position>>> {
        let (texts, rows, next) = self.current.as_mut()?;
        let mut inputs = Vec::new();
        let mut size = 0;
        while next < rows && inputs.len() < MAX_BATCH_TRACES && size < MAX_BATCH_BYTES {
            self.rows += 1;
            let text = match texts.bytes(*next) {
                Some(text) if text.len() > MAX_TRACE_BYTES => Err(InputError::TooLong),
                Some(text) => {
                    size += text.len();
                    Ok(text.to_vec())
                }
                None => Err(InputError::Missing),
            };
            inputs.push(Input { key: Position { unit: Unit::Row, number: self.rows }, text });
            *next += 1;
        }
        if inputs.is_empty() {
            self.current = None;
            return None;
        }
        Some(inputs)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BinaryArray, BinaryViewArray, Int64Array, LargeBinaryArray, LargeStringArray, StringArray,
        StringViewArray,
    };
    use arrow_ipc::writer::{FileWriter, StreamWriter};
    use arrow_schema::Schema;
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
            .expect("columns of one length")
    }

    fn traces(texts: &[Option<&str>]) -> RecordBatch {
        batch(vec![("trace", Arc::new(StringArray::from(texts.to_vec())))])
    }

    fn stream(schema: &Schema, batches: &[RecordBatch]) -> Vec<u8> {
        let mut out = StreamWriter::try_new(Vec::new(), schema).expect("a valid schema");
        for batch in batches {
            out.write(batch).expect("written");
        }
        out.into_inner().expect("written")
    }

    type Opened = (ArrowTraces<io::Cursor<Vec<u8>>>, ArrowBatches);

    fn read(bytes: &[u8]) -> Result<Opened, ArrowError> {
        read_named(bytes, None)
    }

    fn read_named(bytes: &[u8], trace_id: Option<&str>) -> Result<Opened, ArrowError> {
        let columns = ArrowColumns { trace: "trace".to_owned(), trace_id: trace_id.map(str::to_owned) };
        read_arrow(io::Cursor::new(bytes.to_vec()), &columns)
    }

    fn texts(inputs: Vec<Input<Position>>) -> Vec<Result<String, InputError>> {
        inputs.into_iter().map(|input| input.text.map(|text| String::from_utf8_lossy(&text).into_owned())).collect()
    }

    #[rstest]
    #[case(Arc::new(StringArray::from(vec![Some("{}"), None, Some("é")])))]
    #[case(Arc::new(LargeStringArray::from(vec![Some("{}"), None, Some("é")])))]
    #[case(Arc::new(StringViewArray::from(vec![Some("{}"), None, Some("é")])))]
    #[case(Arc::new(BinaryArray::from(vec![Some(&b"{}"[..]), None, Some("é".as_bytes())])))]
    #[case(Arc::new(LargeBinaryArray::from(vec![Some(&b"{}"[..]), None, Some("é".as_bytes())])))]
    #[case(Arc::new(BinaryViewArray::from(vec![Some(&b"{}"[..]), None, Some("é".as_bytes())])))]
    fn reads_every_string_type(#[case] column: ArrayRef) {
        let other: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let batch = batch(vec![("other", other), ("trace", ArrayRef::clone(&column)), ("trace_id", column)]);
        let (mut traces, batches) = read(&stream(&batch.schema(), &[batch])).expect("a stream");
        let inputs = traces.next().expect("rows").expect("readable");
        let none = Err(InputError::Missing);
        assert_eq!(
            inputs.iter().map(|input| (input.key.unit, input.key.number)).collect::<Vec<_>>(),
            [1, 2, 3].map(|n| (Unit::Row, n))
        );
        assert_eq!(texts(inputs), [Ok("{}".to_owned()), none, Ok("é".to_owned())]);
        assert!(traces.next().is_none());
        let batch = batches.recv().expect("one record batch");
        let ids = batch.trace_ids.expect("a column of ids");
        assert_eq!(
            (batch.rows, ids.text(0), ids.text(1), ids.text(2), ids.text(3)),
            (3, Some("{}"), None, Some("é"), None)
        );
    }

    #[test]
    fn reads_a_file_as_a_stream() {
        let batch = traces(&[Some("1"), Some("2")]);
        let mut out = FileWriter::try_new(Vec::new(), &batch.schema()).expect("a valid schema");
        out.write(&batch).expect("written");
        let bytes = out.into_inner().expect("written");
        let (mut traces, _batches) = read(&bytes).expect("a file");
        assert_eq!(traces.next().expect("rows").expect("readable").len(), 2);
        assert!(traces.next().is_none(), "the file's footer is not read as a trace");
    }

    #[test]
    fn announces_record_batches_and_splits_their_rows() {
        let (empty, large) = (traces(&[]), traces(&[Some("{}"); 20]));
        let bytes = stream(&large.schema(), &[empty.clone(), large, empty]);
        let (traces, batches) = read(&bytes).expect("a stream");
        let sizes: Vec<usize> = traces.map(|rows| rows.expect("readable").len()).collect();
        assert_eq!(sizes, [8, 8, 4]);
        assert_eq!(batches.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [0, 20, 0]);
    }

    #[test]
    fn stops_reading_when_the_receiver_is_dropped() {
        let batch = traces(&[Some("{}")]);
        let (mut traces, batches) = read(&stream(&batch.schema(), &[batch.clone(), batch])).expect("a stream");
        drop(batches);
        assert!(traces.by_ref().count() <= 1);
    }

    #[test]
    fn returns_complete_batches_of_a_truncated_stream() {
        let batch = traces(&[Some("{}")]);
        let bytes = stream(&batch.schema(), &[batch.clone(), batch]);
        // Cut off the end marker and a part of the last record batch.
        let (mut traces, _batches) = read(&bytes[..bytes.len() - 20]).expect("a stream");
        assert!(traces.next().expect("rows").is_ok());
        let error = traces.next().expect("an error").expect_err("truncated");
        assert!(error.to_string().starts_with("record batch 2: "), "{error}");
        assert!(traces.next().is_none());
    }

    #[rstest]
    #[case(b"", "the input is not an Arrow stream")]
    #[case(b"{\"a\":1}\n", "the input is not an Arrow stream")]
    #[case(b"ARROW2\0\0", "the input is not an Arrow stream")]
    #[case(b"\xFF\xFF\xFF\xFF\0\0\0\0", "invalid Arrow stream: ")]
    #[case(b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", "invalid Arrow stream: ")]
    fn rejects_other_input(#[case] bytes: &[u8], #[case] message: &str) {
        let error = read(bytes).err().expect("invalid input").to_string();
        assert!(error.starts_with(message), "{error}");
    }

    #[test]
    fn columns_must_exist_and_contain_strings() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let without = batch(vec![("a", ArrayRef::clone(&numbers)), ("b", ArrayRef::clone(&numbers))]);
        let error = read(&stream(&without.schema(), &[])).err().expect("a missing column");
        assert!(
            matches!(error, ArrowError::MissingColumn { name, columns } if name == "trace" && columns == ["a", "b"])
        );
        let wrong = batch(vec![("trace", ArrayRef::clone(&numbers))]);
        let error = read(&stream(&wrong.schema(), &[])).err().expect("a wrong column");
        assert_eq!(error.to_string(), "column 'trace' holds Int64, not text");
        let text: ArrayRef = Arc::new(StringArray::from(vec!["{}"]));
        let wrong = batch(vec![("trace", text), ("trace_id", numbers)]);
        let error = read(&stream(&wrong.schema(), &[])).err().expect("a wrong column");
        assert_eq!(error.to_string(), "column 'trace_id' holds Int64, not text");
        let only = traces(&[]);
        let error = read_named(&stream(&only.schema(), &[]), Some("key")).err().expect("a missing column");
        assert_eq!(error.to_string(), "the input has no column 'key'");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Any input gives an error, never a panic, and takes no more memory than was sent.
        #[test]
        fn a_corrupt_stream_does_not_panic(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
            let text: ArrayRef = Arc::new(StringArray::from(vec![Some("{}"), None, Some("{\"a\": 1}")]));
            let view: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a longer text than twelve"), None, Some("b")]));
            let batch = batch(vec![("trace", text), ("trace_id", view)]);
            let mut bytes = stream(&batch.schema(), &[batch.clone(), batch]);
            for (position, byte) in damage {
                let position = position.index(bytes.len());
                bytes[position] = byte;
            }
            if let Ok((traces, batches)) = read(&bytes) {
                let count: usize = traces.map_while(Result::ok).map(|rows| rows.len()).sum();
                for batch in batches {
                    let ids = batch.trace_ids.into_iter();
                    ids.for_each(|ids| (0..batch.rows.min(10)).for_each(|row| { ids.text(row); }));
                }
                prop_assert!(count <= bytes.len());
            }
        }
    }
}
