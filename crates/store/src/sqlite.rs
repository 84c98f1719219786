//! Opening a file of SQLite's.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use karat_core::port::StoreError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use crate::database::Database;
use crate::failure::{error, error_with, failed, is_busy, sqlite_code};
use crate::migrations;
use crate::own_folder::make_folder;

/// How long one waits for another program that writes.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);
/// How much longer one waits for a connection, so that whoever waited for another program in vain says so, and not that
/// there was no connection.
const GRACE: Duration = Duration::from_secs(10);
/// How many connections read at once.
const READERS: u32 = 4;
/// SQLite's code for a file that is no database.
const NO_DATABASE: i64 = 26;

/// Opens a file, and makes it and its folder when they are not there.
pub(crate) async fn open(path: &Path) -> Result<Database, StoreError> {
    open_within(path, PATIENCE).await
}

async fn open_within(path: &Path, patience: Duration) -> Result<Database, StoreError> {
    let label = path.display().to_string();
    if path.is_dir() {
        return Err(error_with(
            format!("the store {label} is a folder"),
            format!("name a file in it: {label}/karat.db"),
        ));
    }
    make_folder_of(path)?;
    let looked = look(path, patience, &label).await?;
    let options = options(path, patience);
    let pool = || SqlitePoolOptions::new().acquire_timeout(patience + GRACE).idle_timeout(None).max_lifetime(None);
    let writer = pool().max_connections(1).connect_lazy_with(options.clone());
    let readers = pool().max_connections(READERS).connect_lazy_with(options.pragma("query_only", "on"));
    // The connection that writes later: closing the last one and opening another costs the disk's time.
    let mut connection = patiently(patience, &label, || writer.acquire()).await?;
    if let Some(looked) = looked {
        looked.close().await.map_err(failed)?;
    }
    if !is_current(&mut connection, &label).await? {
        migrate(&mut connection, &label).await?;
    }
    drop(connection);
    Ok(Database::sqlite(writer, readers, &label))
}

fn options(path: &Path, patience: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        // Of a new file. Rows have many texts: with the usual 4096, a tenth fewer of them are written in a second.
        .page_size(8192)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(patience)
        .pragma("cache_size", "-65536")
        .pragma("temp_store", "memory")
        .pragma("wal_autocheckpoint", "2000")
        .pragma("journal_size_limit", "67108864")
        .disable_statement_logging()
}

/// Makes the folder of a file.
fn make_folder_of(path: &Path) -> Result<(), StoreError> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    make_folder(folder)
        .map_err(|cause| error(format!("the store's folder {} cannot be made: {cause}", folder.display())))
}

/// Looks whose file it is with a connection that changes nothing: how a journal is kept is written into the file, and
/// another program's stays as it is. Returns the connection, to be closed when there is another: closing the last one costs
/// the disk's time.
async fn look(path: &Path, patience: Duration, label: &str) -> Result<Option<SqliteConnection>, StoreError> {
    if !std::fs::metadata(path).is_ok_and(|file| file.len() > 0) {
        return Ok(None);
    }
    let plain = SqliteConnectOptions::new().filename(path).busy_timeout(patience).disable_statement_logging();
    let (connection, found) = patiently(patience, label, || connect_and_find(&plain)).await?;
    if let Err(refused) = found.is_current(label) {
        connection.close().await.map_err(failed)?;
        return Err(refused);
    }
    Ok(Some(connection))
}

async fn connect_and_find(options: &SqliteConnectOptions) -> Result<(SqliteConnection, Found), sqlx::Error> {
    let mut connection = options.connect().await?;
    let found = find(&mut connection).await?;
    Ok((connection, found))
}

/// Does what needs the file. Two programs that make the same file at once get in each other's way without waiting, since a
/// change of the journal is not waited for: so it is tried again.
async fn patiently<T, F>(patience: Duration, label: &str, work: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let started = Instant::now();
    loop {
        match work().await {
            Ok(done) => return Ok(done),
            // An attempt may have waited by itself.
            Err(cause) if is_busy(&cause) && started.elapsed() < patience => tokio::time::sleep(PAUSE).await,
            Err(cause) => return Err(not_opened(cause, label)),
        }
    }
}

fn not_opened(cause: sqlx::Error, label: &str) -> StoreError {
    if cause.as_database_error().and_then(sqlite_code) == Some(NO_DATABASE) {
        return error_with(
            format!("the store {label} is no database of SQLite"),
            "name another file with --store, or move this one away",
        );
    }
    let cause = failed(cause);
    StoreError { message: format!("the store {label} cannot be opened: {}", cause.message), hint: cause.hint }
}

/// What a file has: the names of its tables and views, and the migrations.
struct Found {
    tables: BTreeSet<String>,
    applied: Vec<migrations::Applied>,
}

async fn find(connection: &mut SqliteConnection) -> Result<Found, sqlx::Error> {
    let tables = "select name from sqlite_master where type in ('table', 'view')";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut *connection).await?;
    let tables = BTreeSet::from_iter(tables);
    let mut applied: Vec<migrations::Applied> = Vec::new();
    if tables.contains(migrations::NOTES) {
        applied = sqlx::query_as(migrations::APPLIED).fetch_all(connection).await?;
    }
    Ok(Found { tables, applied })
}

impl Found {
    /// Tells whether there is nothing to migrate. A file has no schemas, so that any table in it that was there before
    /// karat's makes it another program's.
    fn is_current(&self, label: &str) -> Result<bool, StoreError> {
        // SQLite has tables of its own.
        let is_theirs = |name: &String| name != migrations::NOTES && !name.starts_with("sqlite_");
        if self.applied.is_empty() && self.tables.iter().any(is_theirs) {
            return Err(foreign(label));
        }
        migrations::is_current(&migrations::SQLITE, &self.tables, &self.applied, || foreign(label))
    }
}

/// Tells whether there is nothing to migrate, without writing: a command that only reads need not wait for a writer.
async fn is_current(connection: &mut SqliteConnection, label: &str) -> Result<bool, StoreError> {
    find(connection).await.map_err(failed)?.is_current(label)
}

fn foreign(label: &str) -> StoreError {
    error_with(format!("the store {label} holds another program's tables"), "name another file with --store")
}

/// Migrates in one transaction that nobody else can write beside, so that whoever comes second finds it done.
async fn migrate(connection: &mut SqliteConnection, label: &str) -> Result<(), StoreError> {
    let mut transaction = connection.begin_with("begin immediate").await.map_err(failed)?;
    let done = migrations::SQLITE.run_direct(None, &mut *transaction, false).await;
    done.map_err(|cause| migrations::not_migrated(cause, label))?;
    transaction.commit().await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use karat_core::port::{StoreError, TraceStore};
    use karat_core::stored::{Expected, NewTrace, TraceHead};
    use rstest::rstest;
    use sqlx::SqlitePool;

    use super::*;
    use crate::{Location, Store};

    async fn open(path: &Path) -> Result<Store, StoreError> {
        Store::open(&Location::File(path.to_owned())).await
    }

    fn writer(store: &Store) -> &SqlitePool {
        store.database.sqlite_writer().expect("SQLite")
    }

    async fn pragma(pool: &SqlitePool, name: &str) -> String {
        let statement = sqlx::AssertSqlSafe(format!("select cast({name} as text) from pragma_{name}"));
        sqlx::query_scalar(statement).fetch_one(pool).await.expect("a pragma")
    }

    fn trace(id: &str) -> NewTrace {
        // Nothing of this can be made shorter, so that it takes room.
        let document: String =
            (0..400).map(|place| karat_json::hash::long_hash(format!("{id}{place}").as_bytes())).collect();
        let head = TraceHead { trace_id: id.to_owned(), hash: id.to_owned(), ..TraceHead::default() };
        NewTrace { head, source: "karat".to_owned(), raw: None, document, expected: Expected::Anything }
    }

    #[tokio::test]
    async fn what_is_written_is_on_disk_and_readers_do_not_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(&folder.path().join("karat.db")).await.expect("a store");
        let pool = writer(&store);
        assert_eq!(pragma(pool, "journal_mode").await, "wal");
        assert_eq!(pragma(pool, "synchronous").await, "2");
        assert_eq!(pragma(pool, "foreign_keys").await, "1");
        assert_eq!(pragma(pool, "integrity_check").await, "ok");
    }

    #[tokio::test]
    async fn the_library_is_one_that_keeps_its_journal_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = open(&folder.path().join("karat.db")).await.expect("a store");
        let version: String =
            sqlx::query_scalar("select sqlite_version()").fetch_one(writer(&store)).await.expect("it");
        let numbers: Vec<u64> = version.split('.').map(|part| part.parse().expect("a number")).collect();
        assert!(numbers >= vec![3, 51, 3], "{version}: before 3.51.3 a checkpoint can damage the file");
    }

    #[tokio::test]
    async fn a_full_disk_loses_nothing_that_was_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("karat.db");
        let store = open(&path).await.expect("a store");
        let now = jiff::Timestamp::UNIX_EPOCH;
        store.put_traces(&[trace("before")], now).await.expect("there is room");
        let pages: i64 = sqlx::query_scalar("pragma page_count").fetch_one(writer(&store)).await.expect("a number");
        let limit = sqlx::AssertSqlSafe(format!("pragma max_page_count = {}", pages + 20));
        sqlx::query(limit).execute(writer(&store)).await.expect("a limit");
        let many: Vec<NewTrace> = (0..50).map(|number| trace(&format!("t-{number}"))).collect();
        let refused = store.put_traces(&many, now).await.expect_err("there is no room");
        assert_eq!(refused.message, "the disk is full, or the store may not grow");
        assert!(refused.hint.is_some());
        assert_eq!(store.count_traces(&karat_core::stored::TraceFilter::default()).await.expect("a number"), 1);
        assert_eq!(pragma(writer(&store), "integrity_check").await, "ok");
        // As soon as there is room it goes on, with the same connection.
        sqlx::query("pragma max_page_count = 1000000").execute(writer(&store)).await.expect("no limit");
        store.put_traces(&many, now).await.expect("there is room");
        store.close().await;
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "one file and nothing beside it");
    }

    #[tokio::test]
    async fn karats_folder_is_kept_out_of_git_and_others_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        open(&folder.path().join("a/.karat/karat.db")).await.expect("a store");
        let ignore = folder.path().join("a/.karat/.gitignore");
        assert_eq!(std::fs::read_to_string(ignore).expect("a file"), "*\n");
        open(&folder.path().join("b/evals.db")).await.expect("a store");
        assert!(!folder.path().join("b/.gitignore").exists());
    }

    #[tokio::test]
    async fn what_is_no_store_is_said_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = folder.path().join("notes.txt");
        std::fs::write(&text, "these are notes and no database at all, however long they are".repeat(100))
            .expect("a file");
        let refused = open(&text).await.expect_err("refused");
        assert!(refused.message.ends_with("notes.txt is no database of SQLite"), "{refused}");
        assert!(refused.hint.is_some());
        let refused = open(folder.path()).await.expect_err("refused");
        assert!(refused.message.ends_with("is a folder"), "{refused}");
        let refused = open(&text.join("karat.db")).await.expect_err("refused");
        assert!(refused.message.contains("cannot be"), "{refused}");
    }

    #[rstest]
    #[case::the_same_name("traces")]
    #[case::another_name("orders")]
    #[tokio::test]
    async fn another_programs_database_is_left_alone(#[case] name: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("other.db");
        let other = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut connection = other.connect().await.expect("a database");
        let table = sqlx::AssertSqlSafe(format!("create table {name} (mine integer)"));
        sqlx::query(table).execute(&mut connection).await.expect("a table");
        connection.close().await.expect("closed");
        let before = std::fs::read(&path).expect("a file");
        let refused = open(&path).await.expect_err("refused");
        assert!(refused.message.contains("another program's tables"), "{refused}");
        assert!(std::fs::read(&path).expect("a file") == before, "not a byte was changed");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "and nothing stands beside it");
    }

    #[tokio::test]
    async fn a_database_without_tables_becomes_a_store() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("empty.db");
        let other = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut connection = other.connect().await.expect("a database");
        for statement in ["create table gone (id integer primary key autoincrement)", "drop table gone"] {
            sqlx::query(statement).execute(&mut connection).await.expect("it");
        }
        connection.close().await.expect("closed");
        open(&path).await.expect("a store").close().await;
        open(&path).await.expect("the same store").close().await;
    }

    #[tokio::test]
    async fn a_file_that_stays_locked_is_said_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("karat.db");
        open(&path).await.expect("a store").close().await;
        let other = SqliteConnectOptions::new().filename(&path).pragma("locking_mode", "exclusive");
        let mut connection = other.connect().await.expect("a connection");
        sqlx::query("begin exclusive").execute(&mut connection).await.expect("a lock");
        let refused = open_within(&path, Duration::from_millis(200)).await.err().expect("refused");
        assert!(refused.message.ends_with("another program is writing to the store and does not end"), "{refused}");
        connection.close().await.expect("closed");
        open(&path).await.expect("a store").close().await;
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_written_to_is_said_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("karat.db");
        open(&path).await.expect("a store").close().await;
        let readers = options(&path, PATIENCE).pragma("query_only", "on");
        let pool = SqlitePoolOptions::new().connect_lazy_with(readers);
        let store = Store { database: Database::sqlite(pool.clone(), pool, "it") };
        let refused = store.put_traces(&[trace("a")], jiff::Timestamp::UNIX_EPOCH).await.expect_err("refused");
        assert_eq!(refused.message, "the store cannot be written to");
    }
}
