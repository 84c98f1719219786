//! `karat eval run --stored` killed at any moment: the store stays whole, nothing is judged twice, and whoever runs it
//! again ends with what an undisturbed run ends with.

use std::time::{Duration, Instant};

use jiff::Timestamp;
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
use crate::support::prepared;

const KILLS: u32 = 20;
const TRACES: usize = 200;

/// Takes a while, prints, fails, and breaks now and then.
const SLOW: &str = "\
def eval_slow(trace):
    number = int(trace['trace_id'].split('-')[1])
    total = sum(n * n for n in range(20_000))
    print('judged', number)
    if number % 17 == 3:
        raise ValueError(f'no {number}')
    return number % 3 > 0, f'{number} of {total}'
";

/// A store that can be made new.
enum Place {
    Sqlite { file: std::path::PathBuf, filled: Vec<u8> },
    Postgres { url: String, schemas: Vec<String> },
}

impl Place {
    fn location(&self) -> Location {
        match self {
            Place::Sqlite { file, .. } => Location::File(file.clone()),
            Place::Postgres { url, schemas } => {
                let between = if url.contains('?') { '&' } else { '?' };
                let schema = schemas.last().expect("a schema");
                Location::Postgres(format!("{url}{between}options=-csearch_path%3D{schema}"))
            }
        }
    }

    fn argument(&self) -> String {
        match self.location() {
            Location::File(path) => path.display().to_string(),
            Location::Postgres(url) => url,
        }
    }

    /// Puts traces and an eval there that judged nothing.
    fn make_new(&mut self) {
        match self {
            Place::Sqlite { file, filled } if !filled.is_empty() => {
                for beside in ["-wal", "-shm"] {
                    let _ = std::fs::remove_file(format!("{}{beside}", file.display()));
                }
                std::fs::write(file, filled).unwrap();
                return;
            }
            Place::Sqlite { .. } => {}
            Place::Postgres { url, schemas } => {
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
        if let Place::Sqlite { file, filled } = self {
            *filled = std::fs::read(file).unwrap();
        }
    }

    /// Fails where the database is damaged, or where what is kept beside the rows does not fit them.
    fn is_whole(&self) {
        let counted = "select cast(coalesce(sum(executions), 0) as bigint) from eval_counts";
        let there = "select cast(count(*) as bigint) from eval_executions";
        match self.location() {
            Location::File(path) => block_on(async {
                let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
                let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
                let said: String =
                    sqlx::query_scalar("pragma integrity_check").fetch_one(&mut connection).await.unwrap();
                assert_eq!(said, "ok");
                let strays = sqlx::query("pragma foreign_key_check").fetch_all(&mut connection).await.unwrap();
                assert_eq!(strays.len(), 0);
                let counted: i64 = sqlx::query_scalar(counted).fetch_one(&mut connection).await.unwrap();
                let there: i64 = sqlx::query_scalar(there).fetch_one(&mut connection).await.unwrap();
                assert_eq!(counted, there);
                connection.close().await.unwrap();
            }),
            Location::Postgres(url) => block_on(async {
                let mut connection = PgConnection::connect(&url).await.unwrap();
                let counted: i64 = sqlx::query_scalar(counted).fetch_one(&mut connection).await.unwrap();
                let there: i64 = sqlx::query_scalar(there).fetch_one(&mut connection).await.unwrap();
                assert_eq!(counted, there);
            }),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Place::Postgres { url, schemas } = self {
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
        let mut connection = PgConnection::connect(url).await.expect("PostgreSQL");
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.expect("it is done");
    });
}

/// Returns rows without what differs from run to run.
fn lasting(rows: &[StoredExecution]) -> Vec<StoredExecution> {
    let lasting = |row: &StoredExecution| StoredExecution {
        execution_time_ms: 0,
        executed_at: Timestamp::UNIX_EPOCH,
        ..row.clone()
    };
    rows.iter().map(lasting).collect()
}

fn is_killed_often(project: &TempProject, mut place: Place) {
    place.make_new();
    let judge = |place: &Place| {
        let arguments = ["eval", "run", "slow", "--stored", "-j", "2", "--store", &place.argument()];
        project.command(arguments).within(Duration::from_mins(5))
    };
    let rows = |place: &Place| executions(&place.location(), "eval_slow", 1);
    let started = Instant::now();
    let output = judge(&place).run();
    assert_eq!(output.code, Some(3), "{}", output.both());
    let takes = started.elapsed();
    let expected = lasting(&rows(&place));
    assert_eq!(expected.len(), TRACES);
    place.make_new();
    let (mut killed, mut went_on) = (0, 0);
    let mut chance = 0x2545_f491_4f6c_dd1d_u64;
    let mut before: Vec<StoredExecution> = Vec::new();
    while killed < KILLS {
        let running = judge(&place).start();
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = u32::try_from(chance >> 48).unwrap_or_default();
        std::thread::sleep(takes * share / (1 << 16));
        running.signal("KILL");
        let output = running.wait().expect("it is gone");
        place.is_whole();
        let now = rows(&place);
        // What was kept before is there still, and was not judged again.
        let stayed: Vec<&StoredExecution> =
            now.iter().filter(|row| before.iter().any(|kept| kept.trace_id == row.trace_id)).collect();
        assert_eq!(stayed, before.iter().collect::<Vec<_>>());
        let kept = lasting(&now);
        assert!(kept.iter().all(|row| expected.contains(row)), "a row is another than undisturbed");
        killed += u32::from(output.code.is_none());
        went_on += u32::from(!before.is_empty() && now.len() > before.len());
        if now.len() == TRACES {
            assert_eq!(kept, expected);
            place.make_new();
            before.clear();
        } else {
            before = now;
        }
    }
    let output = judge(&place).run();
    assert!(matches!(output.code, Some(0 | 1 | 3)), "{}", output.both());
    place.is_whole();
    assert_eq!(lasting(&rows(&place)), expected);
    assert!(went_on > 0, "no run went on where another was killed");
    // Nothing is left to do.
    let output = judge(&place).run();
    assert_eq!(output.code, Some(0), "{}", output.both());
    assert!(output.stdout.contains("nothing was judged now"), "{}", output.stdout);
}

#[test]
fn sqlite_goes_on_where_it_was_killed() {
    let project = prepared();
    let file = project.path().join("karat.db");
    is_killed_often(&project, Place::Sqlite { file, filled: Vec::new() });
}

#[test]
#[ignore = "needs PostgreSQL"]
fn postgres_goes_on_where_it_was_killed() {
    is_killed_often(&prepared(), Place::Postgres { url: postgres_url(), schemas: Vec::new() });
}
