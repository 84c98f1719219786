//! Runs of eval files.

use jiff::Timestamp;
use karat_core::port::{RunStore, StoreError, StoreFuture};
use karat_core::result::Outcome;
use karat_core::stored::{NewTrace, StoredCase, StoredRun};

use crate::Store;
use crate::row::Row;
use crate::statement::{Statement, Value, parts};
use crate::traces::{CompressedTrace, put};

/// Number of rows that one statement writes.
const ROWS_PER_STATEMENT: usize = 256;
/// Number of columns of a case that are written.
const CASE_COLUMNS: usize = 13;

impl RunStore for Store {
    fn put_run<'s>(&'s self, run: &'s StoredRun) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            let statement = Statement::new(
                "insert into runs (run_id, started_at, ended_at, agents, suites, cases, passed, failed, errored, \
                 interrupted) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
                 on conflict (run_id) do update set started_at = excluded.started_at, ended_at = excluded.ended_at, \
                 agents = excluded.agents, suites = excluded.suites, cases = excluded.cases, \
                 passed = excluded.passed, failed = excluded.failed, errored = excluded.errored, \
                 interrupted = excluded.interrupted",
            );
            let agents = serde_json::to_string(&run.agents).unwrap_or_default();
            let statement = statement.bind(&run.run_id).bind(run.started_at).bind(run.ended_at).bind(agents);
            let statement = statement.bind(run.suites).bind(run.cases).bind(run.passed).bind(run.failed);
            let mut transaction = self.database.write().await?;
            transaction.execute(statement.bind(run.errored).bind(run.interrupted)).await?;
            transaction.commit().await
        })
    }

    fn put_cases<'s>(&'s self, cases: &'s [StoredCase], traces: &'s [NewTrace], now: Timestamp) -> StoreFuture<'s, ()> {
        Box::pin(async move {
            if cases.is_empty() && traces.is_empty() {
                return Ok(());
            }
            let compressed = CompressedTrace::all(traces)?;
            let mut transaction = self.database.write().await?;
            put(&mut transaction, &compressed, now).await?;
            for some in parts(cases, ROWS_PER_STATEMENT) {
                transaction.execute(insert(some)).await?;
            }
            transaction.commit().await
        })
    }

    fn runs(&self, limit: u64) -> StoreFuture<'_, Vec<StoredRun>> {
        Box::pin(async move {
            let statement = Statement::new(
                "select run_id, started_at, ended_at, agents, suites, cases, passed, failed, errored, interrupted \
                 from runs order by started_at desc, run_id desc limit ?",
            );
            self.database.rows(statement.bind(limit)).await?.into_iter().map(read_run).collect()
        })
    }

    fn cases_of_run<'s>(&'s self, run_id: &'s str) -> StoreFuture<'s, Vec<StoredCase>> {
        Box::pin(async move {
            let statement = Statement::new(
                "select run_id, suite, place, eval_file, tool_name, tier, agent, case_id, trial, outcome, error, \
                 duration_ms, trace_id from run_cases where run_id = ? order by id",
            );
            self.database.rows(statement.bind(run_id)).await?.into_iter().map(read_case).collect()
        })
    }
}

fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::Errored => "errored",
    }
}

fn insert(cases: &[StoredCase]) -> Statement {
    let mut statement = Statement::new(
        "insert into run_cases (run_id, suite, place, eval_file, tool_name, tier, agent, case_id, trial, outcome, error, \
         duration_ms, trace_id) values ",
    );
    let mut values = Vec::with_capacity(cases.len() * CASE_COLUMNS);
    for case in cases {
        let row: [Value; CASE_COLUMNS] = [
            (&case.run_id).into(),
            case.suite.into(),
            case.position.into(),
            (&case.eval_file).into(),
            (&case.tool_name).into(),
            (&case.tier).into(),
            (&case.agent).into(),
            (&case.case_id).into(),
            case.trial.into(),
            outcome_name(case.outcome).into(),
            case.error.as_deref().into(),
            case.duration_ms.into(),
            case.trace_id.as_deref().into(),
        ];
        values.extend(row);
    }
    statement.push_values(CASE_COLUMNS, values);
    statement.push(
        " on conflict (run_id, suite, place, trial) do update set eval_file = excluded.eval_file, \
         tool_name = excluded.tool_name, tier = excluded.tier, agent = excluded.agent, case_id = excluded.case_id, \
         outcome = excluded.outcome, error = excluded.error, \
         duration_ms = excluded.duration_ms, trace_id = excluded.trace_id",
    );
    statement
}

fn read_run(mut row: Row) -> Result<StoredRun, StoreError> {
    Ok(StoredRun {
        run_id: row.text()?,
        started_at: row.time()?,
        ended_at: row.time_or_null()?,
        agents: row.named("a list of agents", |text| serde_json::from_str(text).ok())?.unwrap_or_default(),
        suites: row.number()?,
        cases: row.number()?,
        passed: row.number()?,
        failed: row.number()?,
        errored: row.number()?,
        interrupted: row.boolean()?,
    })
}

fn read_case(mut row: Row) -> Result<StoredCase, StoreError> {
    let outcomes = [Outcome::Passed, Outcome::Failed, Outcome::Errored];
    let outcome = |name: &str| outcomes.into_iter().find(|outcome| outcome_name(*outcome) == name);
    Ok(StoredCase {
        run_id: row.text()?.into(),
        suite: row.number()?,
        position: row.number()?,
        eval_file: row.text()?.into(),
        tool_name: row.text()?.into(),
        tier: row.text()?.into(),
        agent: row.text()?.into(),
        case_id: row.text()?,
        trial: row.number()?,
        outcome: row.named("an outcome", outcome)?.unwrap_or(Outcome::Errored),
        error: row.text_or_null()?,
        duration_ms: row.number()?,
        trace_id: row.text_or_null()?,
    })
}
