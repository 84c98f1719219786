//! Selects and reads rows of traces.

use karat_core::port::StoreError;
use karat_core::stored::{StoredTrace, TraceHead};

use crate::payload::decompress_text;
use crate::row::Row;
use crate::statement::Statement;

/// The columns of a head, in the order of `read_head`.
pub(crate) const HEAD: &str = "t.trace_id, t.name, t.session_id, t.model, t.started_at, t.duration_ms, t.steps, t.tool_calls, \
                    t.errors, t.tools, t.input_tokens, t.output_tokens, t.cost_usd, t.input_preview, t.output_preview, \
                    t.hash";

/// Returns a query for whole traces, up to `where`.
pub(crate) fn stored() -> Statement {
    Statement::new(format!(
        "select {HEAD}, t.source, t.imported_at, p.document \
         from traces t join trace_payloads p on p.trace_id = t.trace_id where "
    ))
}

/// Appends the conditions for a page of traces.
pub(crate) fn push_page(statement: &mut Statement, after: Option<&str>, limit: u64) {
    if let Some(after) = after {
        statement.push(" and t.trace_id > ?");
        statement.add(after);
    }
    statement.push(" order by t.trace_id limit ?");
    statement.add(limit);
}

pub(crate) fn read_stored(row: &mut Row) -> Result<StoredTrace, StoreError> {
    let head = read_head(row)?;
    let (source, imported_at) = (row.text()?, row.time()?);
    let text = decompress_text(&head.trace_id, &row.bytes()?)?;
    Ok(StoredTrace { head, source, text, imported_at })
}

pub(crate) fn read_head(row: &mut Row) -> Result<TraceHead, StoreError> {
    Ok(TraceHead {
        trace_id: row.text()?,
        name: row.text_or_null()?,
        session_id: row.text_or_null()?,
        model: row.text_or_null()?,
        started_at: row.time_or_null()?,
        duration_ms: row.number_or_null()?,
        steps: row.number()?,
        tool_calls: row.number()?,
        errors: row.number()?,
        tools: row.named("a list of tools", |text| serde_json::from_str(text).ok())?.unwrap_or_default(),
        input_tokens: row.number_or_null()?,
        output_tokens: row.number_or_null()?,
        cost_usd: row.real_or_null()?,
        input_preview: row.text()?,
        output_preview: row.text()?,
        hash: row.text()?,
    })
}
