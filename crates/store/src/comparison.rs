//! Comparison of verdicts with ratings.

use std::collections::BTreeMap;

use jiff::civil::Date;
use karat_core::port::{StoreError, StoreFuture};
use karat_evals::agreement::{AgreementCounts, AgreementDay, VerdictPair};
use karat_evals::contradiction::{Contradiction, ContradictionFilter, Resolution, ResolutionKind};
use karat_evals::port::ComparisonStore;

use crate::Store;
use crate::database::{Database, Transaction};
use crate::executions::{CURRENT_HASH, applies, contradiction, last_resolution};
use crate::failure::invalid_data;
use crate::row::Row;
use crate::statement::Statement;
use crate::text::check_name;

/// Number of evals in one statement: SQLite allows 500 terms in a compound query.
const EVALS_PER_STATEMENT: usize = 100;

impl ComparisonStore for Store {
    fn agreement<'s>(&'s self, eval_id: &'s str, version: u64) -> StoreFuture<'s, AgreementCounts> {
        Box::pin(async move {
            let mut all = AgreementCounts::default();
            for counts in counts_by_day(&self.database, all_counts(eval_id, version)).await?.values() {
                all.add(counts);
            }
            Ok(all)
        })
    }

    fn agreement_by_day<'s>(&'s self, eval_id: &'s str, version: u64) -> StoreFuture<'s, Vec<AgreementDay>> {
        Box::pin(async move { Ok(agreement_days(counts_by_day(&self.database, all_counts(eval_id, version)).await?)) })
    }

    fn agreement_of_runs_by_day<'s>(&'s self, eval_id: &'s str, version: u64) -> StoreFuture<'s, Vec<AgreementDay>> {
        Box::pin(
            async move { Ok(agreement_days(counts_by_day(&self.database, counts_of_runs(eval_id, version)).await?)) },
        )
    }

    fn contradictions<'s>(&'s self, filter: &'s ContradictionFilter) -> StoreFuture<'s, Vec<Contradiction>> {
        Box::pin(contradictions(&self.database, filter))
    }

    fn count_contradictions<'s>(&'s self, filter: &'s ContradictionFilter) -> StoreFuture<'s, u64> {
        Box::pin(count_contradictions(&self.database, filter))
    }

    fn resolve<'s>(&'s self, eval_id: &'s str, trace_id: &'s str, resolution: &'s Resolution) -> StoreFuture<'s, bool> {
        Box::pin(resolve(&self.database, eval_id, trace_id, resolution))
    }

    fn disputed_ratings<'s>(&'s self, eval_id: &'s str) -> StoreFuture<'s, Vec<String>> {
        Box::pin(disputed_ratings(&self.database, eval_id))
    }

    fn verdict_pairs<'s>(&'s self, eval_id: &'s str, before: u64, now: u64) -> StoreFuture<'s, Vec<VerdictPair>> {
        Box::pin(verdict_pairs(&self.database, eval_id, before, now))
    }
}

fn all_counts(eval_id: &str, version: u64) -> Statement {
    let statement = Statement::new(
        "select day, verdict, rating, executions from eval_counts \
         where eval_id = ? and eval_version = ? and executions > 0",
    );
    statement.bind(eval_id).bind(version)
}

/// Counts the executions on traces of test runs, which are few compared with production traces.
fn counts_of_runs(eval_id: &str, version: u64) -> Statement {
    let statement = Statement::new(
        "select e.day, case when e.is_stale = 1 then 'stale' when e.result = 1 then 'passed' \
         when e.result = 0 then 'failed' when e.applicable = 0 then 'not_applicable' else 'errored' end, coalesce(e.rating, 'none'), count(*) \
         from eval_executions e where e.eval_id = ? and e.eval_version = ? \
         and e.trace_id in (select c.trace_id from run_cases c where c.trace_id is not null) group by 1, 2, 3",
    );
    statement.bind(eval_id).bind(version)
}

fn agreement_days(counts: BTreeMap<String, AgreementCounts>) -> Vec<AgreementDay> {
    // Skip days that cannot be parsed.
    let day =
        |(text, counts): (String, AgreementCounts)| text.parse::<Date>().ok().map(|day| AgreementDay { day, counts });
    counts.into_iter().filter_map(day).collect()
}

/// Returns the counts of each day from rows of day, verdict, rating and number.
async fn counts_by_day(
    database: &Database,
    statement: Statement,
) -> Result<BTreeMap<String, AgreementCounts>, StoreError> {
    let mut days: BTreeMap<String, AgreementCounts> = BTreeMap::new();
    for mut row in database.rows(statement).await? {
        let day = row.text()?;
        let (verdict, rating, executions) = (row.text()?, row.text()?, row.number()?);
        // Stale executions are not compared.
        if verdict == "stale" {
            continue;
        }
        let counts = days.entry(day).or_default();
        let count = match (verdict.as_str(), rating.as_str()) {
            ("not_applicable", _) => &mut counts.not_applicable,
            ("errored", _) => &mut counts.errored,
            (_, "none") => &mut counts.unrated,
            (_, "neutral") => &mut counts.neutral,
            ("passed", "positive") => &mut counts.passed_positive,
            ("passed", "negative") => &mut counts.passed_negative,
            ("failed", "positive") => &mut counts.failed_positive,
            ("failed", "negative") => &mut counts.failed_negative,
            _ => return Err(invalid_data(&format!("unknown verdict '{verdict}' or rating '{rating}'"))),
        };
        *count += executions;
    }
    Ok(days)
}

/// Returns the evals of the filter with their newest versions.
async fn newest_versions(
    transaction: &mut Transaction,
    filter: &ContradictionFilter,
) -> Result<Vec<(String, u64)>, StoreError> {
    let mut statement = Statement::new("select eval_id, newest_version from evals");
    if let Some(eval_id) = &filter.eval_id {
        statement.push(" where eval_id = ?");
        statement.add(eval_id);
    }
    statement.push(" order by eval_id");
    let eval = |mut row: Row| Ok((row.text()?, row.number()?));
    transaction.rows(statement).await?.into_iter().map(eval).collect()
}

/// Lists the newest contradictions. Each eval is queried separately, so that contradictions of older versions are not
/// read.
async fn contradictions(database: &Database, filter: &ContradictionFilter) -> Result<Vec<Contradiction>, StoreError> {
    let mut contradictions = Vec::new();
    let mut transaction = database.read().await?;
    for evals in newest_versions(&mut transaction, filter).await?.chunks(EVALS_PER_STATEMENT) {
        for row in transaction.rows(list_statement(evals, filter)).await? {
            contradictions.push(read(row)?);
        }
    }
    contradictions.sort_by(|left, right| {
        let by_time = right.executed_at.cmp(&left.executed_at);
        by_time.then_with(|| left.eval_id.cmp(&right.eval_id)).then_with(|| left.trace_id.cmp(&right.trace_id))
    });
    if let Some(limit) = filter.limit.and_then(|limit| usize::try_from(limit).ok()) {
        contradictions.truncate(limit);
    }
    Ok(contradictions)
}

fn list_statement(evals: &[(String, u64)], filter: &ContradictionFilter) -> Statement {
    let states: &[&str] = if filter.resolved { &["1", "2"] } else { &["1"] };
    let mut each = Statement::default();
    for (index, ((eval_id, version), state)) in
        evals.iter().flat_map(|eval| states.iter().map(move |state| (eval, state))).enumerate()
    {
        if index > 0 {
            each.push(" union all ");
        }
        // The state is a literal, since there is a partial index for each.
        each.push(&format!(
            "select * from (select eval_id, eval_version, trace_id, executed_at from eval_executions \
             where eval_id = ? and eval_version = ? and contradiction = {state}"
        ));
        each.add(eval_id);
        each.add(*version);
        if let Some(trace_id) = &filter.trace_id {
            each.push(" and trace_id = ?");
            each.add(trace_id);
        }
        push_source_condition(&mut each, "eval_executions", filter);
        if let Some(limit) = filter.limit {
            each.push(" order by executed_at desc, trace_id limit ?");
            each.add(limit);
        }
        each.push(&format!(") c{index}"));
    }
    let mut statement = Statement::new(
        "select e.eval_id, e.eval_version, e.trace_id, e.result, e.reason, e.rating, f.note, f.author, e.executed_at, \
         t.input_preview, r.resolution, r.note, r.author, r.resolved_at from (select * from (",
    );
    statement.append(each);
    statement.push(") every order by executed_at desc, eval_id, trace_id");
    if let Some(limit) = filter.limit {
        statement.push(" limit ?");
        statement.add(limit);
    }
    statement.push(
        ") k join eval_executions e \
         on e.eval_id = k.eval_id and e.eval_version = k.eval_version and e.trace_id = k.trace_id \
         join traces t on t.trace_id = k.trace_id \
         left join feedback f on f.id = (select o.id from feedback o where o.trace_id = e.trace_id \
         and o.rating = e.rating and not exists (select 1 from feedback n where n.trace_id = o.trace_id \
         and n.author = o.author and (n.created_at, n.id) > (o.created_at, o.id)) \
         order by o.created_at desc, o.id desc limit 1) ",
    );
    let (last, applies) = (last_resolution("e", "e.rating"), applies("r", "e"));
    statement.push(&format!("left join contradiction_resolutions r on r.id = {last} and {applies}"));
    statement
}

/// Restricts executions to traces of the filter's sources.
fn push_source_condition(statement: &mut Statement, executions: &str, filter: &ContradictionFilter) {
    for (condition, source) in [("exists", &filter.source), ("not exists", &filter.excluded_source)] {
        if let Some(source) = source {
            statement.push(&format!(
                " and {condition} (select 1 from traces s where s.trace_id = {executions}.trace_id and s.source = ?)"
            ));
            statement.add(source);
        }
    }
}

fn read(mut row: Row) -> Result<Contradiction, StoreError> {
    Ok(Contradiction {
        eval_id: row.text()?,
        eval_version: row.number()?,
        trace_id: row.text()?,
        result: row.boolean()?,
        reason: row.text_or_null()?,
        rating: row.rating()?,
        note: row.text_or_null()?,
        author: row.text_or_null()?,
        executed_at: row.time()?,
        input_preview: row.text()?,
        resolution: match row.named("a resolution", ResolutionKind::from_name)? {
            None => None,
            Some(kind) => {
                Some(Resolution { kind, note: row.text_or_null()?, author: row.text()?, resolved_at: row.time()? })
            }
        },
    })
}

async fn count_contradictions(database: &Database, filter: &ContradictionFilter) -> Result<u64, StoreError> {
    let states = if filter.resolved { "1, 2" } else { "1" };
    // Counters are kept for all traces together.
    let is_counted = filter.trace_id.is_none() && filter.source.is_none() && filter.excluded_source.is_none();
    let (number, table) = if is_counted {
        ("cast(coalesce(sum(c.executions), 0) as bigint)", "eval_counts")
    } else {
        ("count(*)", "eval_executions")
    };
    let mut statement = Statement::new(format!(
        "select {number} from {table} c join evals v on v.eval_id = c.eval_id and v.newest_version = c.eval_version \
         where c.contradiction in ({states})"
    ));
    if let Some(trace_id) = &filter.trace_id {
        statement.push(" and c.trace_id = ?");
        statement.add(trace_id);
    }
    push_source_condition(&mut statement, "c", filter);
    if let Some(eval_id) = &filter.eval_id {
        statement.push(" and c.eval_id = ?");
        statement.add(eval_id);
    }
    let count = database.number(statement).await?;
    Ok(filter.limit.map_or(count, |limit| count.min(limit)))
}

async fn resolve(
    database: &Database,
    eval_id: &str,
    trace_id: &str,
    resolution: &Resolution,
) -> Result<bool, StoreError> {
    check_name("author name", &resolution.author)?;
    let mut transaction = database.write().await?;
    let statement = Statement::new(
        "select e.eval_version, e.trace_hash, e.result, e.rating from eval_executions e \
         join evals v on v.eval_id = e.eval_id and v.newest_version = e.eval_version \
         where e.eval_id = ? and e.trace_id = ? and e.contradiction > 0",
    );
    let Some(mut row) = transaction.row(statement.bind(eval_id).bind(trace_id)).await? else {
        return Ok(false);
    };
    let (version, hash, result, rating) = (row.number()?, row.text()?, row.boolean()?, row.rating()?);
    let statement = Statement::new(
        "insert into contradiction_resolutions \
         (eval_id, eval_version, trace_id, trace_hash, result, rating, resolution, note, author, resolved_at) \
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    );
    let statement = statement.bind(eval_id).bind(version).bind(trace_id).bind(hash).bind(result).bind(rating.name());
    let statement = statement.bind(resolution.kind.name()).bind(resolution.note.as_deref());
    transaction.execute(statement.bind(&resolution.author).bind(resolution.resolved_at)).await?;
    // The resolution may apply to the same verdict of other versions.
    let state = contradiction("eval_executions", "eval_executions.rating", CURRENT_HASH);
    let text = format!("update eval_executions set contradiction = {state} where eval_id = ? and trace_id = ?");
    transaction.execute(Statement::new(text).bind(eval_id).bind(trace_id)).await?;
    transaction.commit().await?;
    Ok(true)
}

async fn disputed_ratings(database: &Database, eval_id: &str) -> Result<Vec<String>, StoreError> {
    let statement = Statement::new(
        "select r.trace_id from contradiction_resolutions r \
         join traces t on t.trace_id = r.trace_id and t.hash = r.trace_hash and t.rating = r.rating \
         where r.eval_id = ? and r.resolution in ('label-wrong', 'dismissed') \
         and not exists (select 1 from contradiction_resolutions l where l.eval_id = r.eval_id \
         and l.trace_id = r.trace_id and l.trace_hash = r.trace_hash and l.rating = r.rating and l.id > r.id) \
         order by r.trace_id",
    );
    let id = |mut row: Row| row.text();
    database.rows(statement.bind(eval_id)).await?.into_iter().map(id).collect()
}

async fn verdict_pairs(
    database: &Database,
    eval_id: &str,
    before: u64,
    now: u64,
) -> Result<Vec<VerdictPair>, StoreError> {
    let statement = Statement::new(
        "select b.trace_id, b.result, n.result, coalesce(b.reason, b.error), coalesce(n.reason, n.error), n.rating \
         from eval_executions b \
         join eval_executions n on n.eval_id = b.eval_id and n.eval_version = ? and n.trace_id = b.trace_id \
         and n.is_stale = 0 and n.applicable = 1 \
         where b.eval_id = ? and b.eval_version = ? and b.is_stale = 0 and b.applicable = 1 order by b.trace_id",
    );
    let pair = |mut row: Row| {
        Ok(VerdictPair {
            trace_id: row.text()?,
            before: row.boolean_or_null()?,
            now: row.boolean_or_null()?,
            before_reason: row.text_or_null()?,
            now_reason: row.text_or_null()?,
            rating: row.rating_or_null()?,
        })
    };
    database.rows(statement.bind(now).bind(eval_id).bind(before)).await?.into_iter().map(pair).collect()
}
