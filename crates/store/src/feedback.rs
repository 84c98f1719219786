//! Feedback and ratings.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use karat_core::port::{StoreError, StoreFuture};
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_evals::agreement::RatingPattern;
use karat_evals::feedback::{Feedback, consensus};
use karat_evals::port::FeedbackStore;
use karat_evals::review::ReviewCandidate;
use karat_json::hash::long_hash;

use crate::Store;
use crate::database::{Database, Transaction};
use crate::executions::{CURRENT_HASH, contradiction, existing_trace_ids};
use crate::failure::{error, error_with_hint};
use crate::filter::condition;
use crate::row::Row;
use crate::statement::{Statement, parts};
use crate::text::{check_name, replace_nul, time};

const ROWS_PER_STATEMENT: usize = 512;
const COLUMNS: &str = "f.trace_id, f.author, f.rating, f.note, f.source, f.created_at";
/// Condition for the newest feedback of an author on a trace, which may retract an earlier rating.
const IS_NEWEST: &str = "not exists (select 1 from feedback n where n.trace_id = f.trace_id and n.author = f.author \
                      and (n.created_at, n.id) > (f.created_at, f.id))";

impl FeedbackStore for Store {
    fn add_feedback<'s>(&'s self, feedback: &'s [Feedback]) -> StoreFuture<'s, Vec<bool>> {
        Box::pin(add(&self.database, feedback))
    }

    fn feedback_of<'s>(&'s self, trace_id: &'s str) -> StoreFuture<'s, Vec<Feedback>> {
        Box::pin(async move {
            let text = format!("select {COLUMNS} from feedback f where f.trace_id = ? order by f.created_at, f.id");
            self.database.rows(Statement::new(text).bind(trace_id)).await?.into_iter().map(read).collect()
        })
    }

    fn list_feedback<'s>(
        &'s self,
        author: Option<&'s str>,
        only_current: bool,
        limit: Option<u64>,
    ) -> StoreFuture<'s, Vec<Feedback>> {
        Box::pin(async move {
            let mut statement = Statement::new(format!("select {COLUMNS} from feedback f where 1 = 1"));
            if let Some(author) = author {
                statement.push(" and f.author = ?");
                statement.add(author);
            }
            if only_current {
                statement.push(&format!(" and f.rating is not null and {IS_NEWEST}"));
            }
            statement.push(" order by f.created_at desc, f.id desc");
            if let Some(limit) = limit {
                statement.push(" limit ?");
                statement.add(limit);
            }
            self.database.rows(statement).await?.into_iter().map(read).collect()
        })
    }

    fn rating_patterns(&self) -> StoreFuture<'_, Vec<RatingPattern>> {
        Box::pin(async move {
            let statement =
                Statement::new("select ratings, traces from rating_patterns where traces > 0 order by hash");
            let pattern = |mut row: Row| {
                let ratings = serde_json::from_str(&row.text()?)
                    .map_err(|cause| error(format!("cannot read the ratings of several authors: {cause}")))?;
                Ok(RatingPattern { ratings, traces: row.number()? })
            };
            self.database.rows(statement).await?.into_iter().map(pattern).collect()
        })
    }

    fn review_candidates<'s>(
        &'s self,
        author: &'s str,
        eval_id: Option<&'s str>,
        filter: &'s TraceFilter,
    ) -> StoreFuture<'s, Vec<ReviewCandidate>> {
        Box::pin(review_candidates(&self.database, author, eval_id, filter))
    }
}

async fn add(database: &Database, feedback: &[Feedback]) -> Result<Vec<bool>, StoreError> {
    for entry in feedback {
        check_name("author name", &entry.author)?;
    }
    if feedback.is_empty() {
        return Ok(Vec::new());
    }
    let hashes: Vec<String> = feedback.iter().map(hash).collect();
    let mut transaction = database.write().await?;
    let mut known: HashSet<String> = HashSet::new();
    for (some, some_hashes) in feedback.chunks(ROWS_PER_STATEMENT).zip(hashes.chunks(ROWS_PER_STATEMENT)) {
        check_traces(&mut transaction, some).await?;
        let statement = Statement::new("select hash from feedback where hash among ?").bind(some_hashes.to_vec());
        for mut row in transaction.rows(statement).await? {
            known.insert(row.text()?);
        }
    }
    let mut is_new = Vec::with_capacity(feedback.len());
    let mut new: Vec<(&Feedback, &str)> = Vec::new();
    for (entry, hash) in feedback.iter().zip(&hashes) {
        let added = known.insert(hash.clone());
        is_new.push(added);
        if added {
            new.push((entry, hash));
        }
    }
    for some in parts(&new, ROWS_PER_STATEMENT) {
        transaction.execute(insert(some)).await?;
    }
    let touched: BTreeSet<String> =
        new.iter().map(|(feedback, _)| replace_nul(&feedback.trace_id).into_owned()).collect();
    let touched: Vec<String> = touched.into_iter().collect();
    let added: HashSet<&str> = new.iter().map(|(_, hash)| *hash).collect();
    for some in touched.chunks(ROWS_PER_STATEMENT) {
        update_ratings(&mut transaction, some, &added).await?;
    }
    transaction.commit().await?;
    Ok(is_new)
}

/// Returns the hash of the fields that identify feedback.
fn hash(feedback: &Feedback) -> String {
    let note = feedback.note.as_deref().unwrap_or_default();
    let fields = (&feedback.trace_id, &feedback.author, feedback.rating_name(), note, time(feedback.created_at));
    long_hash(&serde_json::to_vec(&fields).unwrap_or_default())
}

async fn check_traces(transaction: &mut Transaction, feedback: &[Feedback]) -> Result<(), StoreError> {
    let ids: Vec<String> = feedback.iter().map(|entry| entry.trace_id.clone()).collect();
    let existing = existing_trace_ids(transaction, ids).await?;
    match feedback.iter().find(|entry| !existing.contains(&*replace_nul(&entry.trace_id))) {
        None => Ok(()),
        Some(entry) => Err(error_with_hint(
            format!("trace '{}' not found in the store", entry.trace_id),
            "run 'karat trace list' to list traces",
        )),
    }
}

fn insert(feedback: &[(&Feedback, &str)]) -> Statement {
    let mut statement =
        Statement::new("insert into feedback (trace_id, author, rating, note, source, created_at, hash) values ");
    statement.push_rows(feedback.len(), 7);
    for (entry, hash) in feedback {
        statement.add(&entry.trace_id);
        statement.add(&entry.author);
        statement.add(entry.rating.map(Rating::name));
        statement.add(entry.note.as_deref().filter(|note| !note.is_empty()));
        statement.add(&entry.source);
        statement.add(entry.created_at);
        statement.add(*hash);
    }
    statement
}

/// The last rating of each author of a trace; `None` if it was retracted.
type AuthorRatings = BTreeMap<String, Option<Rating>>;

/// The ratings of a trace.
#[derive(Default)]
struct TraceRatings {
    /// Without the feedback that was just added.
    before: AuthorRatings,
    now: AuthorRatings,
    /// The stored consensus.
    consensus: Option<Rating>,
}

/// Updates the consensus of these traces and everything that depends on it. `added` has the hashes of the feedback that
/// was just added.
async fn update_ratings(
    transaction: &mut Transaction,
    traces: &[String],
    added: &HashSet<&str>,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "select f.trace_id, f.author, f.rating, f.hash, t.rating from feedback f join traces t \
         on t.trace_id = f.trace_id where f.trace_id among ? order by f.trace_id, f.author, f.created_at, f.id",
    );
    let mut all: BTreeMap<String, TraceRatings> = BTreeMap::new();
    for mut row in transaction.rows(statement.bind(traces.to_vec())).await? {
        let ratings = all.entry(row.text()?).or_default();
        let (author, rating) = (row.text()?, row.rating_or_null()?);
        // The rows of an author are in order of time, so the last one remains.
        if !added.contains(row.text()?.as_str()) {
            ratings.before.insert(author.clone(), rating);
        }
        ratings.now.insert(author, rating);
        ratings.consensus = row.rating_or_null()?;
    }
    count_patterns(transaction, all.values()).await?;
    let mut changed: BTreeMap<Option<Rating>, Vec<String>> = BTreeMap::new();
    for (trace, ratings) in all {
        let rating = consensus(ratings.now.into_values().flatten());
        if ratings.consensus != rating {
            changed.entry(rating).or_default().push(trace);
        }
    }
    for (rating, traces) in changed {
        let name = rating.map(Rating::name);
        let statement = Statement::new("update traces set rating = ? where trace_id among ?");
        transaction.execute(statement.bind(name).bind(traces.clone())).await?;
        let rated = name.map_or("null".to_owned(), |name| format!("'{name}'"));
        let state = contradiction("eval_executions", &rated, CURRENT_HASH);
        let text = format!("update eval_executions set rating = ?, contradiction = {state} where trace_id among ?");
        transaction.execute(Statement::new(text).bind(name).bind(traces)).await?;
    }
    Ok(())
}

/// Updates the number of traces for each combination of authors and ratings.
async fn count_patterns(
    transaction: &mut Transaction,
    traces: impl Iterator<Item = &TraceRatings>,
) -> Result<(), StoreError> {
    let mut changes: BTreeMap<String, i64> = BTreeMap::new();
    for trace in traces {
        for (ratings, change) in [(&trace.before, -1), (&trace.now, 1)] {
            if let Some(pattern) = pattern(ratings) {
                *changes.entry(pattern).or_default() += change;
            }
        }
    }
    changes.retain(|_, change| *change != 0);
    let changes: Vec<(String, i64)> = changes.into_iter().collect();
    for some in parts(&changes, ROWS_PER_STATEMENT) {
        let mut statement = Statement::new("insert into rating_patterns (hash, ratings, traces) values ");
        statement.push_rows(some.len(), 3);
        statement.push(" on conflict (hash) do update set traces = rating_patterns.traces + excluded.traces");
        for (pattern, change) in some {
            statement.add(long_hash(pattern.as_bytes()));
            statement.add(pattern);
            statement.add(*change);
        }
        transaction.execute(statement).await?;
    }
    Ok(())
}

/// Returns the ratings by author as JSON, if there are several.
fn pattern(ratings: &AuthorRatings) -> Option<String> {
    let ratings: BTreeMap<&str, Rating> =
        ratings.iter().filter_map(|(author, rating)| Some((author.as_str(), (*rating)?))).collect();
    if ratings.len() < 2 {
        return None;
    }
    serde_json::to_string(&ratings).ok()
}

fn read(mut row: Row) -> Result<Feedback, StoreError> {
    Ok(Feedback {
        trace_id: row.text()?,
        author: row.text()?,
        rating: row.rating_or_null()?,
        note: row.text_or_null()?,
        source: row.text()?,
        created_at: row.time()?,
    })
}

async fn review_candidates(
    database: &Database,
    author: &str,
    eval_id: Option<&str>,
    filter: &TraceFilter,
) -> Result<Vec<ReviewCandidate>, StoreError> {
    let (join, only) = if eval_id.is_some() { ("join", " and v.eval_id = ?") } else { ("left join", "") };
    let mut statement = Statement::new(format!(
        "select t.trace_id, cast(coalesce(sum(case when v.eval_id is not null and e.result = 1 then 1 end), 0) as bigint), \
         cast(coalesce(sum(case when v.eval_id is not null and e.result = 0 then 1 end), 0) as bigint), \
         cast(coalesce(sum(case when v.eval_id is not null and e.result is null and e.applicable = 1 then 1 end), 0) \
         as bigint), t.started_at \
         from traces t {join} eval_executions e on e.trace_id = t.trace_id and e.is_stale = 0 \
         {join} evals v on v.eval_id = e.eval_id and v.newest_version = e.eval_version{only} \
         where not exists (select 1 from feedback f where f.trace_id = t.trace_id and f.author = ? \
         and f.rating is not null and {IS_NEWEST}) and "
    ));
    if let Some(eval_id) = eval_id {
        statement.add(eval_id);
    }
    statement.add(author);
    statement.append(condition(filter));
    statement.push(" group by t.trace_id order by t.trace_id");
    let candidate = |mut row: Row| {
        Ok(ReviewCandidate {
            trace_id: row.text()?,
            passed: row.number()?,
            failed: row.number()?,
            errored: row.number()?,
            started_at: row.time_or_null()?,
        })
    };
    database.rows(statement).await?.into_iter().map(candidate).collect()
}
