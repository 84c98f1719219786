//! Kills `karat eval run --stored` at random moments: the store remains consistent, nothing is judged twice, and the
//! final rows are those of an undisturbed run.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use karat_core::judgement::EvalOptions;
use karat_core::port::TraceStore;
use karat_core::stored::NewTrace;
use karat_evals::port::EvalStore;
use karat_evals::version::{NewVersion, StoredExecution};
use karat_json::hash::short_hash;
use karat_store::Location;
use karat_testkit::project::TempProject;
use sqlx::{Connection as _, PgConnection, SqliteConnection};

use crate::eval_stored::{executions, new_trace, with_store};
use crate::store_project::postgres_url;
use crate::support::project_with_python;

const KILLS: u32 = 20;
const TRACES: usize = 200;

/// Takes a while and prints; sometimes fails or raises an exception.
const SLOW: &str = "\
def eval_slow(trace):
    number = int(trace['trace_id'].split('-')[1])
    total = sum(n * n for n in range(20_000))
    print('judged', number)
    if number % 17 == 3:
        raise ValueError(f'no {number}')
    return number % 3 > 0, f'{number} of {total}'
";

/// A store that can be reset.
enum TestStore {
    Sqlite { file: std::path::PathBuf, initial: Vec<u8> },
    Postgres { url: String, schemas: Vec<String> },
}

impl TestStore {
    fn location(&self) -> Location {
        match self {
            TestStore::Sqlite { file, .. } => Location::File(file.clone()),
            TestStore::Postgres { url, schemas } => {
                let separator = if url.contains('?') { '&' } else { '?' };
                let schema = schemas.last().expect("at least one schema");
                Location::Postgres(format!("{url}{separator}options=-csearch_path%3D{schema}"))
            }
        }
    }

    fn argument(&self) -> String {
        match self.location() {
            Location::File(path) => path.display().to_string(),
            Location::Postgres(url) => url,
        }
    }

    /// Resets the store to the traces and an eval without executions.
    fn reset(&mut self) {
        match self {
            TestStore::Sqlite { file, initial } if !initial.is_empty() => {
                for suffix in ["-wal", "-shm"] {
                    let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
                }
                std::fs::write(file, initial).unwrap();
                return;
            }
            TestStore::Sqlite { .. } => {}
            TestStore::Postgres { url, schemas } => {
                let schema = format!("karat_kill_{}_{}", std::process::id(), schemas.len());
                execute(url, &format!("create schema {schema}"));
                schemas.push(schema);
            }
        }
        let traces: Vec<NewTrace> =
            (0..TRACES).map(|number| new_trace(&format!("t-{number:04}"), &format!("answer {number}"))).collect();
        let version = NewVersion {
            eval_id: "eval_slow".to_owned(),
            code: SLOW.to_owned(),
            options: EvalOptions::default(),
            code_hash: short_hash(SLOW.as_bytes()),
            guest_hash: String::new(),
            note: None,
            created_at: Timestamp::UNIX_EPOCH,
            after: None,
        };
        with_store(&self.location(), async |store| {
            store.put_traces(&traces, Timestamp::UNIX_EPOCH).await.unwrap();
            store.add_version(&version).await.unwrap();
        });
        if let TestStore::Sqlite { file, initial } = self {
            *initial = std::fs::read(file).unwrap();
        }
    }

    /// Asserts that the database is intact and that the stored counts match the rows.
    fn assert_consistent(&self) {
        let count_query = "select cast(coalesce(sum(executions), 0) as bigint) from eval_counts";
        let row_query = "select cast(count(*) as bigint) from eval_executions";
        match self.location() {
            Location::File(path) => block_on(async {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
                let integrity: String =
                    sqlx::query_scalar("pragma integrity_check").fetch_one(&mut connection).await.unwrap();
                assert_eq!(integrity, "ok");
                let orphans = sqlx::query("pragma foreign_key_check").fetch_all(&mut connection).await.unwrap();
                assert_eq!(orphans.len(), 0);
                let counted: i64 = sqlx::query_scalar(count_query).fetch_one(&mut connection).await.unwrap();
                let rows: i64 = sqlx::query_scalar(row_query).fetch_one(&mut connection).await.unwrap();
                assert_eq!(counted, rows);
                connection.close().await.unwrap();
            }),
            Location::Postgres(url) => block_on(async {
                let mut connection = PgConnection::connect(&url).await.unwrap();
                let counted: i64 = sqlx::query_scalar(count_query).fetch_one(&mut connection).await.unwrap();
                let rows: i64 = sqlx::query_scalar(row_query).fetch_one(&mut connection).await.unwrap();
                assert_eq!(counted, rows);
            }),
        }
    }
}

impl Drop for TestStore {
    fn drop(&mut self) {
        if let TestStore::Postgres { url, schemas } = self {
            for schema in schemas.iter() {
                execute(url, &format!("drop schema {schema} cascade"));
            }
        }
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn execute(url: &str, statement: &str) {
    block_on(async {
        let mut connection = PgConnection::connect(url).await.expect("PostgreSQL is reachable");
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.expect("statement succeeds");
    });
}

/// Returns rows without the times, which differ between runs.
fn without_times(rows: &[StoredExecution]) -> Vec<StoredExecution> {
    let without_times = |row: &StoredExecution| StoredExecution {
        execution_time_ms: 0,
        executed_at: Timestamp::UNIX_EPOCH,
        ..row.clone()
    };
    rows.iter().map(without_times).collect()
}

fn check_kills(project: &TempProject, mut store: TestStore) {
    store.reset();
    let judge = |store: &TestStore| {
        let arguments = ["eval", "run", "slow", "--stored", "-j", "2", "--store", &store.argument()];
        project.command(arguments).timeout(Duration::from_mins(5))
    };
    let rows = |store: &TestStore| executions(&store.location(), "eval_slow", 1);
    let started = Instant::now();
    let output = judge(&store).run();
    assert_eq!(output.code, Some(3), "{}", output.both());
    let duration = started.elapsed();
    let expected = without_times(&rows(&store));
    assert_eq!(expected.len(), TRACES);
    store.reset();
    let (mut killed, mut resumed) = (0, 0);
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut before: Vec<StoredExecution> = Vec::new();
    while killed < KILLS {
        let running = judge(&store).start();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = u32::try_from(random >> 48).unwrap_or_default();
        std::thread::sleep(duration * share / (1 << 16));
        running.signal("KILL");
        let output = running.wait().expect("the process exited");
        store.assert_consistent();
        let now = rows(&store);
        // Stored rows remain and were not judged again.
        let unchanged: Vec<&StoredExecution> =
            now.iter().filter(|row| before.iter().any(|stored| stored.trace_id == row.trace_id)).collect();
        assert_eq!(unchanged, before.iter().collect::<Vec<_>>());
        let stored = without_times(&now);
        assert!(stored.iter().all(|row| expected.contains(row)), "a row differs from the undisturbed run");
        killed += u32::from(output.code.is_none());
        resumed += u32::from(!before.is_empty() && now.len() > before.len());
        if now.len() == TRACES {
            assert_eq!(stored, expected);
            store.reset();
            before.clear();
        } else {
            before = now;
        }
    }
    let output = judge(&store).run();
    assert!(matches!(output.code, Some(0 | 1 | 3)), "{}", output.both());
    store.assert_consistent();
    assert_eq!(without_times(&rows(&store)), expected);
    assert!(resumed > 0, "no run resumed after a kill");
    let output = judge(&store).run();
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("nothing new to judge"), "{}", output.stdout);
}

#[test]
fn sqlite_resumes_after_kills() {
    let project = project_with_python();
    let file = project.path().join("karat.db");
    check_kills(&project, TestStore::Sqlite { file, initial: Vec::new() });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn postgres_resumes_after_kills() {
    check_kills(&project_with_python(), TestStore::Postgres { url: postgres_url(), schemas: Vec::new() });
}
