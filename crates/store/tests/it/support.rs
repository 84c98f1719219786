//! Test databases and data.

use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use karat_core::document::TraceDocument;
use karat_core::judgement::{ErrorKind, EvalOptions};
use karat_core::rating::Rating;
use karat_core::stored::{ExpectedState, NewTrace, TraceHead};
use karat_evals::feedback::Feedback;
use karat_evals::version::{NewVersion, StoredExecution};
use karat_store::{Location, Store};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

/// The kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

/// A temporary database for one test.
pub(crate) struct TestDatabase {
    pub(crate) location: Location,
    #[expect(dead_code, reason = "deleted when dropped")]
    folder: TempDir,
    schema: Option<(String, String)>,
}

impl TestDatabase {
    pub(crate) async fn new(kind: Kind) -> Self {
        let folder = tempfile::tempdir().expect("a temporary directory");
        match kind {
            Kind::Sqlite => {
                let location = Location::File(folder.path().join(".karat/karat.db"));
                Self { location, folder, schema: None }
            }
            Kind::Postgres => {
                let url = postgres_url();
                let schema = format!("karat_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
                execute(&url, &format!("create schema {schema}")).await;
                let separator = if url.contains('?') { '&' } else { '?' };
                let location = Location::Postgres(format!("{url}{separator}options=-csearch_path%3D{schema}"));
                Self { location, folder, schema: Some((url, schema)) }
            }
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        if self.schema.is_some() { Kind::Postgres } else { Kind::Sqlite }
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.location).await.expect("a store")
    }

    /// Closes the store and drops the schema; a file is deleted with its folder.
    pub(crate) async fn remove(self, store: Store) {
        store.close().await;
        self.drop_schema().await;
    }

    /// Drops the schema of a closed store.
    pub(crate) async fn drop_schema(self) {
        if let Some((url, schema)) = &self.schema {
            execute(url, &format!("drop schema {schema} cascade")).await;
        }
    }

    /// Runs statements with another connection, as another program would.
    pub(crate) async fn execute(&self, statements: &str) -> Result<(), sqlx::Error> {
        match &self.location {
            Location::File(path) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let mut connection = sqlx::SqliteConnection::connect_with(&options).await?;
                sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(&mut connection).await?;
                connection.close().await
            }
            Location::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await?;
                sqlx::raw_sql(sqlx::AssertSqlSafe(statements)).execute(&mut connection).await?;
                connection.close().await
            }
        }
    }

    /// Reads rows with another connection. All columns must be strings.
    pub(crate) async fn rows(&self, statement: &str) -> Vec<Vec<Option<String>>> {
        use sqlx::Row as _;
        let statement = sqlx::AssertSqlSafe(statement);
        match &self.location {
            Location::File(path) => {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let mut connection = sqlx::SqliteConnection::connect_with(&options).await.expect("a connection");
                let rows = sqlx::query(statement).fetch_all(&mut connection).await.expect("rows");
                rows.iter().map(|row| (0..row.len()).map(|column| row.get(column)).collect()).collect()
            }
            Location::Postgres(url) => {
                let mut connection = PgConnection::connect(url).await.expect("a connection");
                let rows = sqlx::query(statement).fetch_all(&mut connection).await.expect("rows");
                rows.iter().map(|row| (0..row.len()).map(|column| row.get(column)).collect()).collect()
            }
        }
    }
}

static NEXT: AtomicU64 = AtomicU64::new(0);

async fn execute(url: &str, statement: &str) {
    let mut connection = PgConnection::connect(url).await.expect("PostgreSQL");
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.expect("a schema");
}

/// Returns the URL of a PostgreSQL database in which schemas can be created.
pub(crate) fn postgres_url() -> String {
    std::env::var("KARAT_TEST_POSTGRES").expect("KARAT_TEST_POSTGRES is not set: scripts/test starts PostgreSQL")
}

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + seconds).expect("a time")
}

/// Creates a trace with a message.
pub(crate) fn trace(id: &str, message: &str) -> NewTrace {
    trace_of(id, &document(id, message, 0))
}

pub(crate) fn document(id: &str, message: &str, seconds: i64) -> Value {
    json!({
        "trace_id": id,
        "name": "Support",
        "session_id": format!("session of {id}"),
        "started_at": at(seconds).to_string(),
        "ended_at": at(seconds + 2).to_string(),
        "model": "m-1",
        "usage": { "input_tokens": 12, "output_tokens": 3, "cost_usd": 0.25 },
        "steps": [{
            "input": { "message": message },
            "output": { "response": format!("You said: {message}") },
            "tool_calls": [{ "name": "search", "arguments": {}, "result": null, "error": null }],
            "error": null
        }]
    })
}

pub(crate) fn trace_of(id: &str, document: &Value) -> NewTrace {
    let text = document.to_string();
    NewTrace {
        head: TraceHead::from_document(id, &TraceDocument::parse(text.as_str()).expect("a trace")),
        source: "karat".to_owned(),
        raw: Some(format!("raw: {text}").into_bytes()),
        document: text,
        expected: ExpectedState::Any,
    }
}

pub(crate) fn version(eval_id: &str, code: &str) -> NewVersion {
    NewVersion {
        eval_id: eval_id.to_owned(),
        code: code.to_owned(),
        options: EvalOptions::default(),
        code_hash: karat_json::hash::short_hash(code.as_bytes()),
        guest_hash: "guest".to_owned(),
        note: Some(format!("because of {code}")),
        created_at: at(0),
        after: None,
    }
}

/// The code of all executions.
pub(crate) const CODE_HASH: &str = "code";

pub(crate) fn execution(eval_id: &str, eval_version: u64, trace: &NewTrace, result: Option<bool>) -> StoredExecution {
    StoredExecution {
        id: format!("{eval_id}/{eval_version}/{}/{result:?}", trace.head.trace_id),
        eval_id: eval_id.to_owned(),
        eval_version,
        trace_id: trace.head.trace_id.clone(),
        trace_hash: trace.head.hash.clone(),
        result,
        reason: result.map(|passed| format!("because it is {passed}")),
        execution_time_ms: 3,
        error: result.is_none().then(|| "KeyError: 'x'".to_owned()),
        error_kind: result.is_none().then_some(ErrorKind::Exception),
        stdout: "out\n".to_owned(),
        stderr: String::new(),
        code_hash: CODE_HASH.to_owned(),
        guest_hash: Some("guest".to_owned()),
        executed_at: at(100),
        applicable: true,
        score: None,
    }
}

pub(crate) fn feedback_by(author: &str, trace_id: &str, rating: Rating, seconds: i64) -> Feedback {
    Feedback {
        trace_id: trace_id.to_owned(),
        author: author.to_owned(),
        rating: Some(rating),
        note: Some(format!("{author} rates it {rating}")),
        source: "cli".to_owned(),
        created_at: at(seconds),
    }
}
