//! Evals and their versions.

use karat_core::judgement::EvalOptions;
use karat_core::port::{StoreError, StoreFuture};
use karat_core::stored::{StoredTrace, TraceFilter};
use karat_evals::port::EvalStore;
use karat_evals::version::{AddedVersion, EvalSummary, EvalVersion, NewVersion, StoredExecution, VersionCounts};

use crate::Store;
use crate::database::Database;
use crate::executions;
use crate::failure::invalid_data;
use crate::row::Row;
use crate::statement::Statement;
use crate::text::check_name;

impl EvalStore for Store {
    fn add_version<'s>(&'s self, version: &'s NewVersion) -> StoreFuture<'s, AddedVersion> {
        Box::pin(add_version(&self.database, version))
    }

    fn evals(&self) -> StoreFuture<'_, Vec<EvalSummary>> {
        Box::pin(evals(&self.database))
    }

    fn versions<'s>(&'s self, eval_id: &'s str) -> StoreFuture<'s, Vec<EvalVersion>> {
        Box::pin(async move {
            let statement = Statement::new(
                "select eval_id, version, code, code_hash, guest_hash, note, created_at, options from eval_versions \
                 where eval_id = ? order by version",
            );
            self.database.rows(statement.bind(eval_id)).await?.into_iter().map(read_version).collect()
        })
    }

    fn version_counts<'s>(&'s self, eval_id: &'s str) -> StoreFuture<'s, Vec<VersionCounts>> {
        Box::pin(async move {
            let statement = Statement::new(
                "select eval_version, \
                 cast(coalesce(sum(case when verdict = 'passed' then executions end), 0) as bigint), \
                 cast(coalesce(sum(case when verdict = 'failed' then executions end), 0) as bigint), \
                 cast(coalesce(sum(case when verdict = 'not_applicable' then executions end), 0) as bigint), \
                 cast(coalesce(sum(case when verdict = 'errored' then executions end), 0) as bigint) \
                 from eval_counts where eval_id = ? and verdict <> 'stale' \
                 group by eval_version having sum(executions) > 0 order by eval_version",
            );
            let counts = |mut row: Row| {
                Ok(VersionCounts {
                    version: row.number()?,
                    passed: row.number()?,
                    failed: row.number()?,
                    not_applicable: row.number()?,
                    errored: row.number()?,
                })
            };
            self.database.rows(statement.bind(eval_id)).await?.into_iter().map(counts).collect()
        })
    }

    fn unjudged<'s>(
        &'s self,
        eval_id: &'s str,
        version: u64,
        code_hash: &'s str,
        filter: &'s TraceFilter,
        after: Option<&'s str>,
        limit: u64,
    ) -> StoreFuture<'s, Vec<StoredTrace>> {
        Box::pin(executions::unjudged(&self.database, eval_id, version, code_hash, filter, after, limit))
    }

    fn count_unjudged<'s>(
        &'s self,
        eval_id: &'s str,
        version: u64,
        code_hash: &'s str,
        filter: &'s TraceFilter,
    ) -> StoreFuture<'s, u64> {
        Box::pin(executions::count_unjudged(&self.database, eval_id, version, code_hash, filter))
    }

    fn put_executions<'s>(&'s self, executions: &'s [StoredExecution]) -> StoreFuture<'s, ()> {
        Box::pin(executions::put(&self.database, executions))
    }

    fn executions<'s>(
        &'s self,
        eval_id: &'s str,
        version: u64,
        after: Option<&'s str>,
        limit: u64,
    ) -> StoreFuture<'s, Vec<StoredExecution>> {
        Box::pin(executions::of_version(&self.database, eval_id, version, after, limit))
    }

    fn executions_of_trace<'s>(&'s self, trace_id: &'s str) -> StoreFuture<'s, Vec<StoredExecution>> {
        Box::pin(executions::of_trace(&self.database, trace_id))
    }
}

async fn add_version(database: &Database, new: &NewVersion) -> Result<AddedVersion, StoreError> {
    check_name("eval name", &new.eval_id)?;
    let mut transaction = database.write().await?;
    let newest = Statement::new(
        "select v.version, v.code_hash from evals e \
         join eval_versions v on v.eval_id = e.eval_id and v.version = e.newest_version where e.eval_id = ?",
    );
    let newest = match transaction.row(newest.bind(&new.eval_id)).await? {
        Some(mut row) => Some((row.number()?, row.text()?)),
        None => None,
    };
    let number = newest.as_ref().map(|(number, _)| *number);
    if new.after.is_some() && new.after != number {
        return Ok(AddedVersion::Conflict(number));
    }
    let version = match newest {
        Some((number, code_hash)) if code_hash == new.code_hash => return Ok(AddedVersion::Unchanged(number)),
        Some((number, _)) => number + 1,
        None => 1,
    };
    let eval = Statement::new(
        "insert into evals (eval_id, newest_version, created_at) values (?, ?, ?) \
         on conflict (eval_id) do update set newest_version = excluded.newest_version",
    );
    transaction.execute(eval.bind(&new.eval_id).bind(version).bind(new.created_at)).await?;
    let added = Statement::new(
        "insert into eval_versions (eval_id, version, code, code_hash, guest_hash, note, created_at, options) \
         values (?, ?, ?, ?, ?, ?, ?, ?)",
    );
    let added = added.bind(&new.eval_id).bind(version).bind(&new.code).bind(&new.code_hash).bind(&new.guest_hash);
    let options = serde_json::to_string(&new.options).ok().filter(|_| !new.options.is_default());
    transaction.execute(added.bind(new.note.as_deref()).bind(new.created_at).bind(options.as_deref())).await?;
    transaction.commit().await?;
    Ok(AddedVersion::Added(version))
}

async fn evals(database: &Database) -> Result<Vec<EvalSummary>, StoreError> {
    let statement = Statement::new(
        "select e.eval_id, e.newest_version, e.created_at, v.created_at, \
         cast(coalesce(sum(case when c.verdict = 'passed' then c.executions end), 0) as bigint), \
         cast(coalesce(sum(case when c.verdict = 'failed' then c.executions end), 0) as bigint), \
         cast(coalesce(sum(case when c.verdict = 'not_applicable' then c.executions end), 0) as bigint), \
         cast(coalesce(sum(case when c.verdict = 'errored' then c.executions end), 0) as bigint) \
         from evals e join eval_versions v on v.eval_id = e.eval_id and v.version = e.newest_version \
         left join eval_counts c on c.eval_id = e.eval_id and c.eval_version = e.newest_version \
         group by e.eval_id, e.newest_version, e.created_at, v.created_at order by e.eval_id",
    );
    let summary = |mut row: Row| {
        Ok(EvalSummary {
            eval_id: row.text()?,
            newest_version: row.number()?,
            created_at: row.time()?,
            updated_at: row.time()?,
            passed: row.number()?,
            failed: row.number()?,
            not_applicable: row.number()?,
            errored: row.number()?,
        })
    };
    database.rows(statement).await?.into_iter().map(summary).collect()
}

fn read_version(mut row: Row) -> Result<EvalVersion, StoreError> {
    Ok(EvalVersion {
        eval_id: row.text()?,
        version: row.number()?,
        code: row.text()?,
        code_hash: row.text()?,
        guest_hash: row.text()?,
        note: row.text_or_null()?,
        created_at: row.time()?,
        options: match row.text_or_null()? {
            Some(options) => serde_json::from_str(&options)
                .map_err(|error| invalid_data(&format!("the options of a version are invalid: {error}")))?,
            None => EvalOptions::default(),
        },
    })
}
