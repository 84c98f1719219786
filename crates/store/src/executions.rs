//! Executions of evals.

use std::collections::{BTreeMap, BTreeSet};

use karat_core::judgement::ErrorKind;
use karat_core::port::StoreError;
use karat_core::stored::{StoredTrace, TraceFilter};
use karat_evals::version::StoredExecution;

use crate::database::{Database, Transaction};
use crate::failure::error;
use crate::filter::condition;
use crate::row::Row;
use crate::statement::{Statement, parts};
use crate::trace_rows::{push_page, read_stored, stored};

const ROWS_PER_STATEMENT: usize = 256;
const COLUMNS: &str = "id, eval_id, eval_version, trace_id, trace_hash, result, reason, execution_time_ms, error, \
                       error_kind, stdout, stderr, code_hash, guest_hash, executed_at, applicable, score";

/// SQL for the current hash of an execution's trace, in an update of executions.
pub(crate) const CURRENT_HASH: &str = "(select t.hash from traces t where t.trace_id = eval_executions.trace_id)";

/// Returns SQL for whether an execution judged an older document of the trace: 1 or 0.
fn staleness(execution: &str, current_hash: &str) -> String {
    format!("case when {execution}.trace_hash = {current_hash} then 0 else 1 end")
}

/// Returns SQL for the id of the last resolution for an execution's document, verdict and rating.
pub(crate) fn last_resolution(execution: &str, rating: &str) -> String {
    format!(
        "(select max(l.id) from contradiction_resolutions l where l.eval_id = {execution}.eval_id \
         and l.trace_id = {execution}.trace_id and l.result = {execution}.result and l.rating = {rating} \
         and l.trace_hash = {execution}.trace_hash)"
    )
}

/// Returns SQL for whether a resolution applies to an execution: `eval-wrong` applies to one version only.
pub(crate) fn applies(resolution: &str, execution: &str) -> String {
    format!("({resolution}.resolution <> 'eval-wrong' or {resolution}.eval_version = {execution}.eval_version)")
}

/// Returns SQL for the state of an execution: 0 if it is stale or does not contradict the rating, 2 if the last
/// resolution applies, otherwise 1.
pub(crate) fn contradiction(execution: &str, rating: &str, current_hash: &str) -> String {
    let (last, applies) = (last_resolution(execution, rating), applies("r", execution));
    format!(
        "case when {execution}.trace_hash <> {current_hash} then 0 \
         when ({execution}.result = 0 and {rating} = 'positive') \
         or ({execution}.result = 1 and {rating} = 'negative') \
         then case when exists (select 1 from contradiction_resolutions r where r.id = {last} and {applies}) \
         then 2 else 1 end else 0 end"
    )
}

pub(crate) async fn put(database: &Database, executions: &[StoredExecution]) -> Result<(), StoreError> {
    // Of several executions with the same key, the last one counts.
    let mut last: BTreeMap<(&str, u64, &str), &StoredExecution> = BTreeMap::new();
    for execution in executions {
        last.insert((&execution.eval_id, execution.eval_version, &execution.trace_id), execution);
    }
    let executions: Vec<&StoredExecution> = last.into_values().collect();
    if executions.is_empty() {
        return Ok(());
    }
    let mut transaction = database.write().await?;
    for some in parts(&executions, ROWS_PER_STATEMENT) {
        // Fewer rows are written if a trace is missing, or if the existing execution is of a newer document.
        if transaction.execute(insert(some)).await? < some.len() as u64 {
            check_traces_exist(&mut transaction, some).await?;
        }
    }
    transaction.commit().await
}

/// Inserts executions. A late execution of an old document does not replace one of the current document.
fn insert(executions: &[&StoredExecution]) -> Statement {
    let mut statement = Statement::new(format!("with n ({COLUMNS}) as (values "));
    statement.push_rows(executions.len(), 17);
    let (contradicted, stale) = (contradiction("n", "t.rating", "t.hash"), staleness("n", "t.hash"));
    statement.push(&format!(
        ") insert into eval_executions ({COLUMNS}, day, rating, contradiction, is_stale) \
         select n.id, n.eval_id, n.eval_version, n.trace_id, n.trace_hash, n.result, n.reason, n.execution_time_ms, \
         n.error, n.error_kind, n.stdout, n.stderr, n.code_hash, n.guest_hash, n.executed_at, n.applicable, n.score, t.day, t.rating, \
         {contradicted}, {stale} from n join traces t on t.trace_id = n.trace_id where 1 = 1 \
         on conflict (eval_id, eval_version, trace_id) do update set id = excluded.id, \
         trace_hash = excluded.trace_hash, result = excluded.result, reason = excluded.reason, \
         execution_time_ms = excluded.execution_time_ms, error = excluded.error, error_kind = excluded.error_kind, \
         stdout = excluded.stdout, stderr = excluded.stderr, code_hash = excluded.code_hash, \
         guest_hash = excluded.guest_hash, executed_at = excluded.executed_at, applicable = excluded.applicable, score = excluded.score, day = excluded.day, \
         rating = excluded.rating, contradiction = excluded.contradiction, is_stale = excluded.is_stale \
         where excluded.is_stale <= eval_executions.is_stale"
    ));
    for execution in executions {
        statement.add(&execution.id);
        statement.add(&execution.eval_id);
        statement.add(execution.eval_version);
        statement.add(&execution.trace_id);
        statement.add(&execution.trace_hash);
        statement.add(execution.result);
        statement.add(execution.reason.as_deref());
        statement.add(execution.execution_time_ms);
        statement.add(execution.error.as_deref());
        statement.add(execution.error_kind.map(ErrorKind::name));
        statement.add(&execution.stdout);
        statement.add(&execution.stderr);
        statement.add(&execution.code_hash);
        statement.add(execution.guest_hash.as_deref());
        statement.add(execution.executed_at);
        statement.add(execution.applicable);
        statement.add(execution.score);
    }
    statement
}

/// Updates which executions of these traces are stale, after their documents changed.
pub(crate) async fn mark_stale(transaction: &mut Transaction, traces: Vec<String>) -> Result<(), StoreError> {
    let stale = staleness("eval_executions", CURRENT_HASH);
    let contradicted = contradiction("eval_executions", "eval_executions.rating", CURRENT_HASH);
    let text = format!(
        "update eval_executions set is_stale = {stale}, contradiction = {contradicted} \
         where trace_id among ? and is_stale <> {stale}"
    );
    transaction.execute(Statement::new(text).bind(traces)).await?;
    Ok(())
}

/// Returns an error that names the first missing trace.
async fn check_traces_exist(transaction: &mut Transaction, executions: &[&StoredExecution]) -> Result<(), StoreError> {
    let ids: Vec<String> = executions.iter().map(|execution| execution.trace_id.clone()).collect();
    let existing = existing_trace_ids(transaction, ids).await?;
    let missing =
        executions.iter().find(|execution| !existing.contains(&*crate::text::replace_nul(&execution.trace_id)));
    missing.map_or(Ok(()), |execution| {
        let id = &execution.trace_id;
        Err(error(format!("trace '{id}' not found in the store")))
    })
}

/// Returns the ids that exist in the store.
pub(crate) async fn existing_trace_ids(
    transaction: &mut Transaction,
    ids: Vec<String>,
) -> Result<BTreeSet<String>, StoreError> {
    let statement = Statement::new("select trace_id from traces where trace_id among ?").bind(ids);
    transaction.rows(statement).await?.into_iter().map(|mut row| row.text()).collect()
}

pub(crate) async fn of_version(
    database: &Database,
    eval_id: &str,
    version: u64,
    after: Option<&str>,
    limit: u64,
) -> Result<Vec<StoredExecution>, StoreError> {
    let text = format!("select {COLUMNS} from eval_executions where eval_id = ? and eval_version = ?");
    let mut statement = Statement::new(text).bind(eval_id).bind(version);
    if let Some(after) = after {
        statement.push(" and trace_id > ?");
        statement.add(after);
    }
    statement.push(" order by trace_id limit ?");
    database.rows(statement.bind(limit)).await?.into_iter().map(read).collect()
}

pub(crate) async fn of_trace(database: &Database, trace_id: &str) -> Result<Vec<StoredExecution>, StoreError> {
    let text = format!("select {COLUMNS} from eval_executions where trace_id = ? order by eval_id, eval_version");
    database.rows(Statement::new(text).bind(trace_id)).await?.into_iter().map(read).collect()
}

fn read(mut row: Row) -> Result<StoredExecution, StoreError> {
    let kind = |name: &str| ErrorKind::ALL.into_iter().find(|kind| kind.name() == name);
    Ok(StoredExecution {
        id: row.text()?,
        eval_id: row.text()?,
        eval_version: row.number()?,
        trace_id: row.text()?,
        trace_hash: row.text()?,
        result: row.boolean_or_null()?,
        reason: row.text_or_null()?,
        execution_time_ms: row.number()?,
        error: row.text_or_null()?,
        error_kind: row.named("an error kind", kind)?,
        stdout: row.text()?,
        stderr: row.text()?,
        code_hash: row.text()?,
        guest_hash: row.text_or_null()?,
        executed_at: row.time()?,
        applicable: row.boolean()?,
        score: row.real_or_null()?,
    })
}

/// Appends the condition that a version has not judged the current document of a trace.
fn push_unjudged(statement: &mut Statement, eval_id: &str, version: u64, code_hash: &str) {
    statement.push(
        " and not exists (select 1 from eval_executions x where x.eval_id = ? and x.eval_version = ? \
         and x.trace_id = t.trace_id and x.trace_hash = t.hash and x.code_hash = ?)",
    );
    statement.add(eval_id);
    statement.add(version);
    statement.add(code_hash);
}

pub(crate) async fn unjudged(
    database: &Database,
    eval_id: &str,
    version: u64,
    code_hash: &str,
    filter: &TraceFilter,
    after: Option<&str>,
    limit: u64,
) -> Result<Vec<StoredTrace>, StoreError> {
    let mut statement = stored();
    statement.append(condition(filter));
    push_unjudged(&mut statement, eval_id, version, code_hash);
    push_page(&mut statement, after, limit);
    database.rows(statement).await?.into_iter().map(|mut row| read_stored(&mut row)).collect()
}

pub(crate) async fn count_unjudged(
    database: &Database,
    eval_id: &str,
    version: u64,
    code_hash: &str,
    filter: &TraceFilter,
) -> Result<u64, StoreError> {
    let mut statement = Statement::new("select count(*) from traces t where ");
    statement.append(condition(filter));
    push_unjudged(&mut statement, eval_id, version, code_hash);
    database.number(statement).await
}
