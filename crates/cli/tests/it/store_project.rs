//! Projects with their own store, and direct access to its tables.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use karat_core::port::TraceStore;
use karat_core::stored::TraceFilter;
use karat_evals::port::FeedbackStore;
use karat_store::{Location, Store};
use karat_testkit::project::TempProject;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, Row as _};

use crate::support::project;

/// The database of a test store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Database {
    Sqlite,
    Postgres,
}

/// Returns the URL of a PostgreSQL database in which tests may create schemas.
pub(crate) fn postgres_url() -> String {
    std::env::var("KARAT_TEST_POSTGRES").expect("KARAT_TEST_POSTGRES is not set: scripts/test starts PostgreSQL")
}

/// Runs a future to completion.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// A project with its own store.
pub(crate) struct StoreProject {
    pub(crate) project: TempProject,
    location: Location,
    /// The PostgreSQL URL and the schema, which is dropped at the end.
    schema: Option<(String, String)>,
}

impl StoreProject {
    pub(crate) fn new(database: Database) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let project = project();
        if database == Database::Sqlite {
            let location = Location::File(project.path().join(".karat/karat.db"));
            return Self { project, location, schema: None };
        }
        let url = postgres_url();
        let schema = format!("karat_cli_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        block_on(execute(&url, &format!("create schema {schema}")));
        let separator = if url.contains('?') { '&' } else { '?' };
        let store_url = format!("{url}{separator}options=-csearch_path%3D{schema}");
        let project = project.env("KARAT_STORE", &store_url);
        Self { project, location: Location::Postgres(store_url), schema: Some((url, schema)) }
    }

    /// Returns the PostgreSQL URL without the schema.
    pub(crate) fn server_url(&self) -> Option<&str> {
        self.schema.as_ref().map(|(url, _)| url.as_str())
    }

    /// Returns all traces and their feedback by id, without import times.
    pub(crate) fn dump(&self) -> Vec<Value> {
        block_on(async {
            let store = Store::open(&self.location).await.unwrap();
            let mut rows = Vec::new();
            let all = store.read_traces(&TraceFilter::default(), None, 1_000_000).await.unwrap();
            for trace in all {
                let raw = store.raw(&trace.head.trace_id).await.unwrap().unwrap();
                let feedback = store.feedback_of(&trace.head.trace_id).await.unwrap();
                rows.push(json!({
                    "head": trace.head,
                    "source": trace.source,
                    "document": trace.text,
                    "raw": String::from_utf8_lossy(&raw),
                    "feedback": feedback,
                }));
            }
            store.close().await;
            rows
        })
    }

    /// Returns the trace rows without import times, or none if the database does not exist yet. The full join includes
    /// traces without payload and payloads without trace, which make a comparison fail.
    pub(crate) fn rows(&self) -> Vec<TraceRow> {
        const TRACES: &str = "select coalesce(t.trace_id, p.trace_id), t.hash, t.raw_hash, t.tools, p.document, \
                              p.raw, (select count(*) from trace_tools o where o.trace_id = t.trace_id) \
                              from traces t full join trace_payloads p on p.trace_id = t.trace_id order by 1";
        macro_rules! read {
            ($connection:expr) => {{
                let rows = sqlx::query(TRACES).fetch_all(&mut $connection).await.unwrap();
                let row = |row: &_| TraceRow {
                    id: get(row, 0),
                    hashes: (get(row, 1), get(row, 2)),
                    tools: get(row, 3),
                    payloads: (get(row, 4), get(row, 5)),
                    tool_rows: get(row, 6),
                };
                rows.iter().map(row).collect()
            }};
        }
        block_on(async {
            match &self.location {
                Location::File(path) if !path.exists() => Vec::new(),
                Location::File(path) => {
                    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                    let mut connection = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
                    if !has_tables(
                        sqlx::query("select 1 from sqlite_master where name = 'trace_payloads'")
                            .fetch_optional(&mut connection)
                            .await,
                    ) {
                        return Vec::new();
                    }
                    read!(connection)
                }
                Location::Postgres(url) => {
                    let mut connection = PgConnection::connect(url).await.unwrap();
                    if !has_tables(
                        sqlx::query("select 1 where to_regclass('trace_payloads') is not null")
                            .fetch_optional(&mut connection)
                            .await,
                    ) {
                        return Vec::new();
                    }
                    read!(connection)
                }
            }
        })
    }

    /// Runs SQLite's integrity check.
    pub(crate) fn assert_integrity(&self) {
        let Location::File(path) = &self.location else { return };
        if !path.exists() {
            return;
        }
        let answer: String = block_on(async {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
            let mut connection = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
            let row = sqlx::query("pragma integrity_check").fetch_one(&mut connection).await.unwrap();
            row.get(0)
        });
        assert_eq!(answer, "ok");
    }
}

/// The rows of a trace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TraceRow {
    id: String,
    hashes: (Option<String>, Option<String>),
    tools: Option<String>,
    payloads: (Option<Vec<u8>>, Option<Vec<u8>>),
    tool_rows: i64,
}

fn get<'r, R: sqlx::Row, T>(row: &'r R, column: usize) -> T
where
    usize: sqlx::ColumnIndex<R>,
    T: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
{
    row.get(column)
}

/// Whether the tables were created before the process was killed.
fn has_tables<R>(result: Result<Option<R>, sqlx::Error>) -> bool {
    result.unwrap().is_some()
}

impl Drop for StoreProject {
    fn drop(&mut self) {
        if let Some((url, schema)) = &self.schema {
            block_on(execute(url, &format!("drop schema {schema} cascade")));
        }
    }
}

async fn execute(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.expect("PostgreSQL is reachable");
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.expect("the statement succeeds");
}
