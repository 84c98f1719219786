//! Traces.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use karat_core::port::{StoreError, StoreFuture, TraceStore};
use karat_core::stored::{ExpectedState, NewTrace, PutOutcome, StoredTrace, TraceFilter, TraceHead, TraceListItem};
use karat_json::hash::short_hash;

use crate::Store;
use crate::database::Transaction;
use crate::executions::{existing_trace_ids, mark_stale};
use crate::filter::{condition, filter_condition};
use crate::payload::{PayloadCompressor, decompress};
use crate::row::Row;
use crate::statement::{Statement, Value, parts};
use crate::text::{check_key, index_prefix, like_suffix, replace_nul, time};
use crate::trace_rows::{HEAD, push_page, read_head, read_stored, stored};

/// Number of rows that one statement writes.
const ROWS_PER_STATEMENT: usize = 256;
/// Number of columns of a trace that are written.
const HEAD_COLUMNS: usize = 23;
/// Number of ids that one statement looks up.
const IDS_PER_STATEMENT: usize = 1000;

/// Maximum number of matching ids to read for an abbreviated id of a run's trace.
const MAX_MATCHES: u64 = 10_000;

/// Returns the hash of a raw payload for `ExpectedState::RawHash`.
pub fn raw_hash(raw: &[u8]) -> String {
    short_hash(raw)
}

impl Store {
    /// Returns ids with this prefix that match a pattern, sorted.
    async fn trace_ids_like(&self, prefix: &str, pattern: &str, limit: u64) -> Result<Vec<String>, StoreError> {
        let statement = "select trace_id from traces where trace_id >= ? and trace_id < ? \
                         and trace_id like ? escape '\\' order by trace_id limit ?";
        // The last code point sorts after all others.
        let end = format!("{prefix}\u{10ffff}");
        let statement = Statement::new(statement).bind(prefix).bind(end).bind(pattern).bind(limit);
        self.database.rows(statement).await?.into_iter().map(|mut row| row.text()).collect()
    }
}

impl TraceStore for Store {
    fn put_traces<'s>(&'s self, traces: &'s [NewTrace], now: Timestamp) -> StoreFuture<'s, Vec<PutOutcome>> {
        Box::pin(async move {
            if traces.is_empty() {
                return Ok(Vec::new());
            }
            let compressed = CompressedTrace::all(traces)?;
            let mut transaction = self.database.write().await?;
            let put = put(&mut transaction, &compressed, now).await?;
            transaction.commit().await?;
            Ok(put)
        })
    }

    fn trace<'s>(&'s self, id: &'s str) -> StoreFuture<'s, Option<StoredTrace>> {
        Box::pin(async move {
            let mut statement = stored();
            statement.push("t.trace_id = ?");
            let row = self.database.row(statement.bind(id)).await?;
            row.map(|mut row| read_stored(&mut row)).transpose()
        })
    }

    fn raw<'s>(&'s self, id: &'s str) -> StoreFuture<'s, Option<Vec<u8>>> {
        Box::pin(async move {
            let statement = Statement::new("select coalesce(raw, document) from trace_payloads where trace_id = ?");
            let row = self.database.row(statement.bind(id)).await?;
            row.map(|mut row| decompress(id, &row.bytes()?)).transpose()
        })
    }

    fn trace_ids<'s>(&'s self, abbreviated: &'s str, limit: u64) -> StoreFuture<'s, Vec<String>> {
        Box::pin(async move {
            let ids = self.trace_ids_like(abbreviated, "%", limit).await?;
            let Some((run, rest)) = abbreviated.split_once(':').filter(|_| ids.is_empty()) else {
                return Ok(ids);
            };
            let mut ids = self.trace_ids_like(run, &like_suffix(&format!(":{rest}")), MAX_MATCHES).await?;
            // The pattern ignores case in SQLite, and matches ids with a longer rest.
            ids.retain(|id| id.split_once(':').is_some_and(|(_, own)| own == rest));
            ids.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            Ok(ids)
        })
    }

    fn missing_traces<'s>(&'s self, ids: &'s [String]) -> StoreFuture<'s, Vec<String>> {
        Box::pin(async move {
            let mut missing = Vec::new();
            let mut transaction = self.database.read().await?;
            for some in ids.chunks(IDS_PER_STATEMENT) {
                let existing = existing_trace_ids(&mut transaction, some.to_vec()).await?;
                missing.extend(some.iter().filter(|id| !existing.contains(&*replace_nul(id))).cloned());
            }
            Ok(missing)
        })
    }

    fn list_traces<'s>(&'s self, filter: &'s TraceFilter) -> StoreFuture<'s, Vec<TraceListItem>> {
        Box::pin(async move {
            let mut statement =
                Statement::new(format!("select {HEAD}, t.source, t.imported_at, t.rating from traces t where "));
            statement.append(filter_condition(filter));
            statement.push(" order by t.began_at desc, t.trace_id");
            if let Some(limit) = filter.limit {
                statement.push(" limit ?");
                statement.add(limit);
            }
            let read_item = |mut row: Row| {
                Ok(TraceListItem {
                    head: read_head(&mut row)?,
                    source: row.text()?,
                    imported_at: row.time()?,
                    rating: row.rating_or_null()?,
                })
            };
            self.database.rows(statement).await?.into_iter().map(read_item).collect()
        })
    }

    fn count_traces<'s>(&'s self, filter: &'s TraceFilter) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let mut statement = Statement::new("select count(*) from traces t where ");
            statement.append(filter_condition(filter));
            let count = self.database.number(statement).await?;
            Ok(filter.limit.map_or(count, |limit| count.min(limit)))
        })
    }

    fn read_traces<'s>(
        &'s self,
        filter: &'s TraceFilter,
        after: Option<&'s str>,
        limit: u64,
    ) -> StoreFuture<'s, Vec<StoredTrace>> {
        Box::pin(async move {
            let mut statement = stored();
            statement.append(condition(filter));
            push_page(&mut statement, after, limit);
            self.database.rows(statement).await?.into_iter().map(|mut row| read_stored(&mut row)).collect()
        })
    }
}

/// A trace ready to be written. The slow work is done before the write transaction starts.
pub(crate) struct CompressedTrace<'t> {
    trace: &'t NewTrace,
    id: Arc<str>,
    raw_hash: String,
    document: Vec<u8>,
    raw: Option<Vec<u8>>,
}

impl<'t> CompressedTrace<'t> {
    pub(crate) fn all(traces: &'t [NewTrace]) -> Result<Vec<Self>, StoreError> {
        let mut compressor = PayloadCompressor::new()?;
        let mut compress = |trace: &'t NewTrace| {
            check_key("trace id", &trace.head.trace_id)?;
            let raw = trace.raw.as_deref().filter(|raw| *raw != trace.document.as_bytes());
            Ok(Self {
                trace,
                id: replace_nul(&trace.head.trace_id).as_ref().into(),
                raw_hash: raw.map_or_else(|| trace.head.hash.clone(), raw_hash),
                document: compressor.compress(trace.document.as_bytes())?,
                raw: raw.map(|raw| compressor.compress(raw)).transpose()?,
            })
        };
        traces.iter().map(&mut compress).collect()
    }
}

/// The stored state of a trace.
struct ExistingTrace {
    hash: String,
    raw_hash: String,
    day: String,
    imported_at: Arc<str>,
}

/// A trace to write, with the time of its first import.
struct Write<'p, 't> {
    compressed: &'p CompressedTrace<'t>,
    imported_at: Arc<str>,
    /// The day that is stored with its executions, if the trace existed before.
    day_before: Option<String>,
}

impl Write<'_, '_> {
    fn began_at(&self) -> Arc<str> {
        self.compressed
            .trace
            .head
            .started_at
            .map_or_else(|| Arc::clone(&self.imported_at), |started_at| time(started_at).into())
    }

    fn day(&self) -> String {
        day(&self.began_at()).to_owned()
    }
}

/// Returns the date part of a formatted time.
fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}

/// Writes traces in a write transaction.
pub(crate) async fn put(
    transaction: &mut Transaction,
    compressed: &[CompressedTrace<'_>],
    now: Timestamp,
) -> Result<Vec<PutOutcome>, StoreError> {
    let now: Arc<str> = time(now).into();
    let mut existing = find_existing(transaction, compressed).await?;
    // Of several traces with the same id, only the last is written.
    let mut writes: BTreeMap<&str, Write<'_, '_>> = BTreeMap::new();
    let mut puts = Vec::with_capacity(compressed.len());
    for trace in compressed {
        let before = existing.get(&*trace.id);
        let put = decide(trace, before);
        puts.push(put);
        if matches!(put, PutOutcome::Added | PutOutcome::Changed) {
            let imported_at = Arc::clone(before.map_or(&now, |before| &before.imported_at));
            let day_before = before.map(|before| before.day.clone());
            let write = Write { compressed: trace, imported_at: Arc::clone(&imported_at), day_before };
            let written = ExistingTrace {
                hash: trace.trace.head.hash.clone(),
                raw_hash: trace.raw_hash.clone(),
                // The day that executions have until they are updated.
                day: write.day_before.clone().unwrap_or_else(|| write.day()),
                imported_at,
            };
            existing.insert(Arc::clone(&trace.id), written);
            writes.insert(&trace.id, write);
        }
    }
    let writes: Vec<Write<'_, '_>> = writes.into_values().collect();
    for some in parts(&writes, ROWS_PER_STATEMENT) {
        write(transaction, some, &now).await?;
    }
    Ok(puts)
}

/// Returns the stored traces with these ids.
async fn find_existing(
    transaction: &mut Transaction,
    compressed: &[CompressedTrace<'_>],
) -> Result<HashMap<Arc<str>, ExistingTrace>, StoreError> {
    let ids: Vec<String> = compressed.iter().map(|trace| trace.id.to_string()).collect();
    let statement = "select trace_id, hash, raw_hash, day, imported_at from traces where trace_id among ?";
    let mut existing = HashMap::with_capacity(compressed.len());
    for mut row in transaction.rows(Statement::new(statement).bind(ids)).await? {
        let id = row.text()?;
        let (hash, raw_hash, day) = (row.text()?, row.text()?, row.text()?);
        existing.insert(id.into(), ExistingTrace { hash, raw_hash, day, imported_at: row.text()?.into() });
    }
    Ok(existing)
}

fn decide(new: &CompressedTrace<'_>, before: Option<&ExistingTrace>) -> PutOutcome {
    match (before, &new.trace.expected) {
        (None, ExpectedState::Any | ExpectedState::Absent) => PutOutcome::Added,
        (Some(before), _) if before.hash == new.trace.head.hash && before.raw_hash == new.raw_hash => {
            PutOutcome::Unchanged
        }
        (None, ExpectedState::RawHash(_)) | (Some(_), ExpectedState::Absent) => PutOutcome::Conflict,
        (Some(before), ExpectedState::RawHash(seen)) if *seen != before.raw_hash => PutOutcome::Conflict,
        (Some(_), ExpectedState::Any | ExpectedState::RawHash(_)) => PutOutcome::Changed,
    }
}

async fn write(transaction: &mut Transaction, writes: &[Write<'_, '_>], now: &Arc<str>) -> Result<(), StoreError> {
    write_heads(transaction, writes, now).await?;
    let mut payloads = Statement::new("insert into trace_payloads (trace_id, document, raw) values ");
    let rows = writes.iter().flat_map(|Write { compressed, .. }| -> [Value; 3] {
        [(&compressed.id).into(), compressed.document.clone().into(), compressed.raw.clone().into()]
    });
    payloads.push_values(3, rows.collect());
    payloads.push(" on conflict (trace_id) do update set document = excluded.document, raw = excluded.raw");
    transaction.execute(payloads).await?;

    let again = writes.iter().filter(|write| write.day_before.is_some());
    let again: Vec<String> = again.map(|write| write.compressed.id.to_string()).collect();
    if !again.is_empty() {
        let statement = Statement::new("delete from trace_tools where trace_id among ?").bind(again.clone());
        transaction.execute(statement).await?;
        mark_stale(transaction, again).await?;
    }
    let mut tools: Vec<(&str, &Arc<str>)> = Vec::new();
    for write in writes {
        let names = write.compressed.trace.head.tools.iter().map(|tool| index_prefix(tool));
        tools.extend(names.map(|name| (name, &write.compressed.id)));
    }
    tools.sort_unstable();
    tools.dedup();
    for some in parts(&tools, ROWS_PER_STATEMENT) {
        let mut statement = Statement::new("insert into trace_tools (tool, trace_id) values ");
        statement.push_rows(some.len(), 2);
        statement.push(" on conflict do nothing");
        for (tool, id) in some {
            statement.add(*tool);
            statement.add(*id);
        }
        transaction.execute(statement).await?;
    }
    for write in writes {
        let day_changed = |before: &String| Some(write.day()).filter(|day| day != before);
        if let Some(day) = write.day_before.as_ref().and_then(day_changed) {
            let statement = Statement::new("update eval_executions set day = ? where trace_id = ?");
            transaction.execute(statement.bind(day).bind(&write.compressed.id)).await?;
        }
    }
    Ok(())
}

async fn write_heads(
    transaction: &mut Transaction,
    writes: &[Write<'_, '_>],
    now: &Arc<str>,
) -> Result<(), StoreError> {
    let mut heads = Statement::new(
        "insert into traces (trace_id, source, name, session_id, model, started_at, began_at, day, duration_ms, steps, \
         tool_calls, errors, tools, input_tokens, output_tokens, cost_usd, input_preview, output_preview, search_text, \
         hash, raw_hash, imported_at, changed_at) values ",
    );
    heads.push_values(HEAD_COLUMNS, head_values(writes, now));
    heads.push(
        " on conflict (trace_id) do update set source = excluded.source, name = excluded.name, \
         session_id = excluded.session_id, model = excluded.model, started_at = excluded.started_at, \
         began_at = excluded.began_at, day = excluded.day, duration_ms = excluded.duration_ms, steps = excluded.steps, \
         tool_calls = excluded.tool_calls, errors = excluded.errors, tools = excluded.tools, \
         input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, cost_usd = excluded.cost_usd, \
         input_preview = excluded.input_preview, output_preview = excluded.output_preview, \
         search_text = excluded.search_text, hash = excluded.hash, raw_hash = excluded.raw_hash, \
         changed_at = excluded.changed_at",
    );
    transaction.execute(heads).await?;
    Ok(())
}

/// Returns the values of the columns, row by row.
fn head_values(writes: &[Write<'_, '_>], now: &Arc<str>) -> Vec<Value> {
    let mut values = Vec::with_capacity(writes.len() * HEAD_COLUMNS);
    for write in writes {
        let head = &write.compressed.trace.head;
        let began_at = write.began_at();
        let row: [Value; HEAD_COLUMNS] = [
            (&write.compressed.id).into(),
            (&write.compressed.trace.source).into(),
            head.name.as_deref().into(),
            head.session_id.as_deref().into(),
            head.model.as_deref().into(),
            head.started_at.into(),
            (&began_at).into(),
            day(&began_at).into(),
            head.duration_ms.into(),
            head.steps.into(),
            head.tool_calls.into(),
            head.errors.into(),
            serde_json::to_string(&head.tools).unwrap_or_default().into(),
            head.input_tokens.into(),
            head.output_tokens.into(),
            head.cost_usd.into(),
            (&head.input_preview).into(),
            (&head.output_preview).into(),
            search_text(head).into(),
            (&head.hash).into(),
            (&write.compressed.raw_hash).into(),
            (&write.imported_at).into(),
            now.into(),
        ];
        values.extend(row);
    }
    values
}

/// Returns the text for searching, in lower case, since the databases lower-case only some letters.
fn search_text(head: &TraceHead) -> String {
    let name = head.name.as_deref().unwrap_or_default();
    format!("{name}\n{}\n{}", head.input_preview, head.output_preview).to_lowercase()
}
