//! Writes rows of `eval_executions` as Arrow record batches.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, TimestampMillisecondBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use karat_core::judgement::ErrorKind;
use karat_evals::execution::Execution;

/// Maximum bytes of text in a record batch, which bounds memory and column size for any output of the functions.
const MAX_BATCH_TEXT_BYTES: usize = 64 << 20;

const TIME_ZONE: &str = "UTC";

/// Writes rows in record batches that the caller ends.
pub struct ArrowRows<W: Write> {
    out: StreamWriter<BufWriter<W>>,
    schema: SchemaRef,
    columns: Columns,
    rows: usize,
    bytes: usize,
    /// Whether a part of the current batch was written, because it was too large for one record batch.
    is_split: bool,
    max_batch_bytes: usize,
}

impl<W: Write> ArrowRows<W> {
    /// Writes the schema immediately, since the reader may wait for it.
    pub fn new(out: W) -> io::Result<Self> {
        let schema = Arc::new(schema());
        let mut out = StreamWriter::try_new(BufWriter::new(out), &schema).map_err(into_io)?;
        out.flush().map_err(into_io)?;
        let columns = Columns::default();
        Ok(Self { out, schema, columns, rows: 0, bytes: 0, is_split: false, max_batch_bytes: MAX_BATCH_TEXT_BYTES })
    }

    pub fn push(&mut self, row: &Execution) -> io::Result<()> {
        let bytes = text_bytes(row);
        if self.rows > 0 && self.bytes + bytes > self.max_batch_bytes {
            self.write()?;
            self.is_split = true;
        }
        self.columns.push(row);
        self.rows += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// Writes the rows since the last call as a record batch, even if there are none.
    pub fn end_batch(&mut self) -> io::Result<()> {
        if self.rows > 0 || !self.is_split {
            self.write()?;
        }
        self.is_split = false;
        self.out.flush().map_err(into_io)
    }

    /// Writes the end of the stream.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.finish().map_err(into_io)
    }

    fn write(&mut self) -> io::Result<()> {
        let columns = self.columns.finish();
        let batch = RecordBatch::try_new(SchemaRef::clone(&self.schema), columns).map_err(into_io)?;
        self.rows = 0;
        self.bytes = 0;
        self.out.write(&batch).map_err(into_io)
    }
}

/// Unwraps I/O errors, so that a closed pipe can be recognised.
fn into_io(error: arrow_schema::ArrowError) -> io::Error {
    match error {
        arrow_schema::ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}

/// Returns the number of bytes of text in a row.
fn text_bytes(row: &Execution) -> usize {
    let optional = [&row.trace_id, &row.reason, &row.error, &row.guest_hash];
    let texts = [&row.id, &row.eval_id, &row.stdout, &row.stderr, &row.code_hash];
    optional.into_iter().flatten().chain(texts).map(String::len).sum()
}

/// Returns the columns of `Execution`, in its order.
fn schema() -> Schema {
    Schema::new(vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("eval_id", DataType::Utf8, false),
        Field::new("eval_version", DataType::UInt64, true),
        Field::new("trace_id", DataType::Utf8, true),
        Field::new("result", DataType::Boolean, true),
        Field::new("reason", DataType::Utf8, true),
        Field::new("execution_time_ms", DataType::UInt64, false),
        Field::new("error", DataType::Utf8, true),
        Field::new("error_kind", DataType::Utf8, true),
        Field::new("stdout", DataType::Utf8, false),
        Field::new("stderr", DataType::Utf8, false),
        Field::new("code_hash", DataType::Utf8, false),
        Field::new("guest_hash", DataType::Utf8, true),
        Field::new("executed_at", DataType::Timestamp(TimeUnit::Millisecond, Some(TIME_ZONE.into())), true),
        Field::new("applicable", DataType::Boolean, false),
        Field::new("score", DataType::Float64, true),
    ])
}

#[derive(Default)]
struct Columns {
    id: StringBuilder,
    eval_id: StringBuilder,
    eval_version: UInt64Builder,
    trace_id: StringBuilder,
    result: BooleanBuilder,
    reason: StringBuilder,
    execution_time_ms: UInt64Builder,
    error: StringBuilder,
    error_kind: StringBuilder,
    stdout: StringBuilder,
    stderr: StringBuilder,
    code_hash: StringBuilder,
    guest_hash: StringBuilder,
    executed_at: TimestampMillisecondBuilder,
    applicable: BooleanBuilder,
    score: Float64Builder,
}

impl Columns {
    fn push(&mut self, row: &Execution) {
        self.id.append_value(&row.id);
        self.eval_id.append_value(&row.eval_id);
        self.eval_version.append_option(row.eval_version);
        self.trace_id.append_option(row.trace_id.as_deref());
        self.result.append_option(row.result);
        self.reason.append_option(row.reason.as_deref());
        self.execution_time_ms.append_value(row.execution_time_ms);
        self.error.append_option(row.error.as_deref());
        self.error_kind.append_option(row.error_kind.map(ErrorKind::name));
        self.stdout.append_value(&row.stdout);
        self.stderr.append_value(&row.stderr);
        self.code_hash.append_value(&row.code_hash);
        self.guest_hash.append_option(row.guest_hash.as_deref());
        let executed_at = row.executed_at.parse().map(jiff::Timestamp::as_millisecond);
        self.executed_at.append_option(executed_at.ok());
        self.applicable.append_value(row.applicable);
        self.score.append_option(row.score);
    }

    /// Returns the pushed values in the schema's order.
    fn finish(&mut self) -> Vec<ArrayRef> {
        let executed_at = self.executed_at.finish().with_timezone(TIME_ZONE);
        vec![
            Arc::new(self.id.finish()),
            Arc::new(self.eval_id.finish()),
            Arc::new(self.eval_version.finish()),
            Arc::new(self.trace_id.finish()),
            Arc::new(self.result.finish()),
            Arc::new(self.reason.finish()),
            Arc::new(self.execution_time_ms.finish()),
            Arc::new(self.error.finish()),
            Arc::new(self.error_kind.finish()),
            Arc::new(self.stdout.finish()),
            Arc::new(self.stderr.finish()),
            Arc::new(self.code_hash.finish()),
            Arc::new(self.guest_hash.finish()),
            Arc::new(executed_at),
            Arc::new(self.applicable.finish()),
            Arc::new(self.score.finish()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array as _;
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Float64Type, TimestampMillisecondType, UInt64Type};
    use arrow_ipc::reader::StreamReader;

    use super::*;

    fn row(trace_id: Option<&str>, error: Option<&str>) -> Execution {
        Execution {
            id: "0123".to_owned(),
            eval_id: "eval_x".to_owned(),
            eval_version: None,
            trace_id: trace_id.map(str::to_owned),
            result: error.is_none().then_some(true),
            reason: error.is_none().then(|| "fine".to_owned()),
            execution_time_ms: 7,
            error: error.map(str::to_owned),
            error_kind: error.map(|_| ErrorKind::Timeout),
            stdout: "o".repeat(10),
            stderr: String::new(),
            code_hash: "beef".to_owned(),
            guest_hash: Some("cafe".to_owned()),
            executed_at: "2026-01-02T03:04:05.678Z".to_owned(),
            applicable: true,
            score: error.is_none().then_some(0.75),
        }
    }

    fn read(bytes: &[u8]) -> Vec<RecordBatch> {
        let reader = StreamReader::try_new(bytes, None).expect("a stream");
        reader.map(|batch| batch.expect("a complete batch")).collect()
    }

    #[test]
    fn columns_match_the_json_keys() {
        let json = serde_json::to_value(row(None, None)).expect("a row");
        let names: Vec<&String> = json.as_object().expect("an object").keys().collect();
        let schema = schema();
        assert_eq!(schema.fields().iter().map(|field| field.name()).collect::<Vec<_>>(), names);
    }

    #[test]
    fn reads_back_written_rows() {
        let mut bytes = Vec::new();
        let mut rows = ArrowRows::new(&mut bytes).expect("written");
        rows.push(&row(Some("t1"), None)).expect("written");
        rows.push(&row(None, Some("too slow"))).expect("written");
        rows.end_batch().expect("written");
        rows.end_batch().expect("written");
        rows.finish().expect("written");

        let batches = read(&bytes);
        assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 0]);
        let column = |name: &str| batches[0].column_by_name(name).expect("a column");
        let texts =
            |name: &str| column(name).as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>();
        assert_eq!(texts("trace_id"), [Some("t1".to_owned()), None]);
        assert_eq!(texts("reason"), [Some("fine".to_owned()), None]);
        assert_eq!(texts("error_kind"), [None, Some("timeout".to_owned())]);
        assert_eq!(column("result").as_boolean().iter().collect::<Vec<_>>(), [Some(true), None]);
        assert_eq!(column("execution_time_ms").as_primitive::<UInt64Type>().value(0), 7);
        assert_eq!(column("eval_version").null_count(), 2);
        assert_eq!(column("score").as_primitive::<Float64Type>().iter().collect::<Vec<_>>(), [Some(0.75), None]);
        let time = column("executed_at").as_primitive::<TimestampMillisecondType>();
        assert_eq!((time.value(0), time.timezone()), (1_767_323_045_678, Some("UTC")));
    }

    #[test]
    fn writes_the_schema_before_the_first_row() {
        let mut bytes = Vec::new();
        let rows = ArrowRows::new(&mut bytes).expect("written");
        assert!(!rows.out.get_ref().get_ref().is_empty());
        drop(rows);
        assert_eq!(read(&bytes).len(), 0);
    }

    #[test]
    fn splits_large_batches() {
        let mut bytes = Vec::new();
        let mut rows = ArrowRows::new(&mut bytes).expect("written");
        rows.max_batch_bytes = 2 * text_bytes(&row(None, None));
        for count in [4, 5, 0, 1] {
            (0..count).for_each(|_| rows.push(&row(None, None)).expect("written"));
            rows.end_batch().expect("written");
        }
        drop(rows);
        assert_eq!(read(&bytes).iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 2, 2, 2, 1, 0, 1]);
    }
}
