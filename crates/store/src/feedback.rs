//! What people said.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use karat_core::port::{StoreError, Stored};
use karat_core::rating::Rating;
use karat_core::stored::TraceFilter;
use karat_evals::agreement::RatingPattern;
use karat_evals::feedback::{Feedback, consensus};
use karat_evals::port::FeedbackStore;
use karat_evals::review::ReviewCandidate;
use karat_json::hash::long_hash;

use crate::Store;
use crate::database::{Database, Transaction};
use crate::executions::{HASH_NOW, contradiction, there};
use crate::failure::{error, error_with};
use crate::filter::condition;
use crate::row::Row;
use crate::statement::{Statement, parts};
use crate::text::{check_name, kept, time};

/// How many rows one statement writes.
const ROWS: usize = 512;
const COLUMNS: &str = "f.trace_id, f.author, f.rating, f.note, f.source, f.created_at";
/// Holds for the newest statement of an author about a trace, which may take back what was said before.
const NEWEST: &str = "not exists (select 1 from feedback n where n.trace_id = f.trace_id and n.author = f.author \
                      and (n.created_at, n.id) > (f.created_at, f.id))";

impl FeedbackStore for Store {
    fn add_feedback<'s>(&'s self, feedback: &'s [Feedback]) -> Stored<'s, Vec<bool>> {
        Box::pin(add(&self.database, feedback))
    }

    fn feedback_of<'s>(&'s self, trace_id: &'s str) -> Stored<'s, Vec<Feedback>> {
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
    ) -> Stored<'s, Vec<Feedback>> {
        Box::pin(async move {
            let mut statement = Statement::new(format!("select {COLUMNS} from feedback f where 1 = 1"));
            if let Some(author) = author {
                statement.push(" and f.author = ?");
                statement.add(author);
            }
            if only_current {
                statement.push(&format!(" and f.rating is not null and {NEWEST}"));
            }
            statement.push(" order by f.created_at desc, f.id desc");
            if let Some(limit) = limit {
                statement.push(" limit ?");
                statement.add(limit);
            }
            self.database.rows(statement).await?.into_iter().map(read).collect()
        })
    }

    fn rating_patterns(&self) -> Stored<'_, Vec<RatingPattern>> {
        Box::pin(async move {
            let statement =
                Statement::new("select ratings, traces from rating_patterns where traces > 0 order by hash");
            let pattern = |mut row: Row| {
                let ratings = serde_json::from_str(&row.text()?)
                    .map_err(|unreadable| error(format!("what people said cannot be read: {unreadable}")))?;
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
    ) -> Stored<'s, Vec<ReviewCandidate>> {
        Box::pin(review_candidates(&self.database, author, eval_id, filter))
    }
}

async fn add(database: &Database, feedback: &[Feedback]) -> Result<Vec<bool>, StoreError> {
    for one in feedback {
        check_name("an author's name", &one.author)?;
    }
    if feedback.is_empty() {
        return Ok(Vec::new());
    }
    let hashes: Vec<String> = feedback.iter().map(hash).collect();
    let mut transaction = database.write().await?;
    let mut known: HashSet<String> = HashSet::new();
    for (some, some_hashes) in feedback.chunks(ROWS).zip(hashes.chunks(ROWS)) {
        check_traces(&mut transaction, some).await?;
        let statement = Statement::new("select hash from feedback where hash among ?").bind(some_hashes.to_vec());
        for mut row in transaction.rows(statement).await? {
            known.insert(row.text()?);
        }
    }
    let mut is_new = Vec::with_capacity(feedback.len());
    let mut new: Vec<(&Feedback, &str)> = Vec::new();
    for (one, hash) in feedback.iter().zip(&hashes) {
        let added = known.insert(hash.clone());
        is_new.push(added);
        if added {
            new.push((one, hash));
        }
    }
    for some in parts(&new, ROWS) {
        transaction.execute(insert(some)).await?;
    }
    let touched: BTreeSet<String> = new.iter().map(|(one, _)| kept(&one.trace_id).into_owned()).collect();
    let touched: Vec<String> = touched.into_iter().collect();
    let added: HashSet<&str> = new.iter().map(|(_, hash)| *hash).collect();
    for some in touched.chunks(ROWS) {
        rate(&mut transaction, some, &added).await?;
    }
    transaction.commit().await?;
    Ok(is_new)
}

/// Returns the hash of all that makes a statement the same.
fn hash(feedback: &Feedback) -> String {
    let note = feedback.note.as_deref().unwrap_or_default();
    let said = (&feedback.trace_id, &feedback.author, feedback.word(), note, time(feedback.created_at));
    long_hash(&serde_json::to_vec(&said).unwrap_or_default())
}

async fn check_traces(transaction: &mut Transaction, feedback: &[Feedback]) -> Result<(), StoreError> {
    let ids: Vec<String> = feedback.iter().map(|one| one.trace_id.clone()).collect();
    let there = there(transaction, ids).await?;
    match feedback.iter().find(|one| !there.contains(&*kept(&one.trace_id))) {
        None => Ok(()),
        Some(one) => Err(error_with(
            format!("there is no trace '{}' in the store", one.trace_id),
            "`karat trace list` shows the traces that are there",
        )),
    }
}

fn insert(feedback: &[(&Feedback, &str)]) -> Statement {
    let mut statement =
        Statement::new("insert into feedback (trace_id, author, rating, note, source, created_at, hash) values ");
    statement.push_rows(feedback.len(), 7);
    for (one, hash) in feedback {
        statement.add(&one.trace_id);
        statement.add(&one.author);
        statement.add(one.rating.map(Rating::name));
        statement.add(one.note.as_deref().filter(|note| !note.is_empty()));
        statement.add(&one.source);
        statement.add(one.created_at);
        statement.add(*hash);
    }
    statement
}

/// What each author said last of a trace; nothing where they took it back.
type Opinions = BTreeMap<String, Option<Rating>>;

/// What people say of a trace.
#[derive(Default)]
struct Said {
    /// Without the statements that were just added.
    before: Opinions,
    now: Opinions,
    /// What the trace says that they say together.
    rating: Option<Rating>,
}

/// Brings what people say of these traces together to what they said last, and everything that depends on it. The hashes
/// are of the statements that were just added.
async fn rate(transaction: &mut Transaction, traces: &[String], added: &HashSet<&str>) -> Result<(), StoreError> {
    let statement = Statement::new(
        "select f.trace_id, f.author, f.rating, f.hash, t.rating from feedback f join traces t \
         on t.trace_id = f.trace_id where f.trace_id among ? order by f.trace_id, f.author, f.created_at, f.id",
    );
    let mut all: BTreeMap<String, Said> = BTreeMap::new();
    for mut row in transaction.rows(statement.bind(traces.to_vec())).await? {
        let said = all.entry(row.text()?).or_default();
        let (author, rating) = (row.text()?, row.rating_or_null()?);
        // The last statement of an author comes last.
        if !added.contains(row.text()?.as_str()) {
            said.before.insert(author.clone(), rating);
        }
        said.now.insert(author, rating);
        said.rating = row.rating_or_null()?;
    }
    count_patterns(transaction, all.values()).await?;
    let mut changed: BTreeMap<Option<Rating>, Vec<String>> = BTreeMap::new();
    for (trace, said) in all {
        let rating = consensus(said.now.into_values().flatten());
        if said.rating != rating {
            changed.entry(rating).or_default().push(trace);
        }
    }
    for (rating, traces) in changed {
        let name = rating.map(Rating::name);
        let statement = Statement::new("update traces set rating = ? where trace_id among ?");
        transaction.execute(statement.bind(name).bind(traces.clone())).await?;
        let rated = name.map_or("null".to_owned(), |name| format!("'{name}'"));
        let state = contradiction("eval_executions", &rated, HASH_NOW);
        let text = format!("update eval_executions set rating = ?, contradiction = {state} where trace_id among ?");
        transaction.execute(Statement::new(text).bind(name).bind(traces)).await?;
    }
    Ok(())
}

/// Brings the numbers of traces of which people say the same to what they say now.
async fn count_patterns(transaction: &mut Transaction, traces: impl Iterator<Item = &Said>) -> Result<(), StoreError> {
    let mut changes: BTreeMap<String, i64> = BTreeMap::new();
    for said in traces {
        for (opinions, change) in [(&said.before, -1), (&said.now, 1)] {
            if let Some(pattern) = pattern(opinions) {
                *changes.entry(pattern).or_default() += change;
            }
        }
    }
    changes.retain(|_, change| *change != 0);
    let changes: Vec<(String, i64)> = changes.into_iter().collect();
    for some in parts(&changes, ROWS) {
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

/// Writes down who says what, where it is several people.
fn pattern(opinions: &Opinions) -> Option<String> {
    let ratings: BTreeMap<&str, Rating> =
        opinions.iter().filter_map(|(author, rating)| Some((author.as_str(), (*rating)?))).collect();
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
         cast(coalesce(sum(case when v.eval_id is not null and e.result is null then 1 end), 0) as bigint), t.started_at \
         from traces t {join} eval_executions e on e.trace_id = t.trace_id and e.is_stale = 0 \
         {join} evals v on v.eval_id = e.eval_id and v.newest_version = e.eval_version{only} \
         where not exists (select 1 from feedback f where f.trace_id = t.trace_id and f.author = ? \
         and f.rating is not null and {NEWEST}) and "
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
