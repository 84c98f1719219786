//! Opens SQLite files.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use karat_core::port::StoreError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use crate::data_dir::create_data_dir;
use crate::database::Database;
use crate::failure::{NOT_A_DATABASE, error, error_with_hint, is_busy, query_error, sqlite_code};
use crate::migrations;

/// How long to wait for another program that writes.
const BUSY_TIMEOUT: Duration = Duration::from_mins(1);
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// How much longer to wait for a connection, so that the error names the other program and not a missing connection.
const ACQUIRE_GRACE: Duration = Duration::from_secs(10);
const MAX_READERS: u32 = 4;

/// Opens a file. Creates it and its folder if missing. A file that cannot be written is opened for reading.
pub(crate) async fn open(path: &Path) -> Result<Database, StoreError> {
    let failed = match open_with_timeout(path, BUSY_TIMEOUT).await {
        Err(failed) if is_complete_file(path) && !is_writable(path) => failed,
        opened => return opened,
    };
    // A file that needs a migration cannot be read either.
    open_read_only(path).await?.ok_or(failed)
}

/// Opens a file without a journal for reading; returns `None` if it has to be migrated.
async fn open_read_only(path: &Path) -> Result<Option<Database>, StoreError> {
    let label = path.display().to_string();
    // Without `immutable`, SQLite would create files in the folder.
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .immutable(true)
        .pragma("temp_store", "memory")
        .disable_statement_logging();
    let pool = || SqlitePoolOptions::new().idle_timeout(None).max_lifetime(None);
    let writer = pool().max_connections(1).connect_lazy_with(options.clone());
    let readers = pool().max_connections(MAX_READERS).connect_lazy_with(options);
    let mut connection = writer.acquire().await.map_err(|cause| open_error(cause, &label))?;
    let is_current = is_current(&mut connection, &label).await?;
    drop(connection);
    Ok(is_current.then(|| Database::sqlite(writer, readers, &label)))
}

/// Whether a file exists and has all its data, none of it in a journal.
fn is_complete_file(path: &Path) -> bool {
    let length =
        |path: &Path| std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).map_or(0, |file| file.len());
    let mut journal = path.as_os_str().to_owned();
    journal.push("-wal");
    length(path) > 0 && length(Path::new(&journal)) == 0
}

/// Whether the file and its folder can be written.
fn is_writable(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let probe = folder.join(format!(".karat-{}.tmp", std::process::id()));
    let is_folder_writable = File::create_new(&probe).is_ok();
    if is_folder_writable {
        std::fs::remove_file(&probe).ok();
    }
    is_folder_writable && File::options().write(true).open(path).is_ok()
}

async fn open_with_timeout(path: &Path, busy_timeout: Duration) -> Result<Database, StoreError> {
    let label = path.display().to_string();
    if path.is_dir() {
        return Err(error_with_hint(
            format!("the store {label} is a folder"),
            format!("pass a file in it: {label}/karat.db"),
        ));
    }
    create_parent(path)?;
    let checked = check_owner(path, busy_timeout, &label).await?;
    let options = options(path, busy_timeout);
    let pool =
        || SqlitePoolOptions::new().acquire_timeout(busy_timeout + ACQUIRE_GRACE).idle_timeout(None).max_lifetime(None);
    let writer = pool().max_connections(1).connect_lazy_with(options.clone());
    let readers = pool().max_connections(MAX_READERS).connect_lazy_with(options.pragma("query_only", "on"));
    // This connection is used for writing later: closing the last one and opening another would cost disk access.
    let mut connection = retry_while_busy(busy_timeout, &label, || writer.acquire()).await?;
    if let Some(checked) = checked {
        checked.close().await.map_err(query_error)?;
    }
    if !is_current(&mut connection, &label).await? {
        migrate(&mut connection, &label).await?;
    }
    drop(connection);
    Ok(Database::sqlite(writer, readers, &label))
}

fn options(path: &Path, busy_timeout: Duration) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        // For new files. Rows contain much text: the default of 4096 writes a tenth fewer rows per second.
        .page_size(8192)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(busy_timeout)
        .pragma("cache_size", "-65536")
        .pragma("temp_store", "memory")
        .pragma("wal_autocheckpoint", "2000")
        .pragma("journal_size_limit", "67108864")
        .disable_statement_logging()
}

fn create_parent(path: &Path) -> Result<(), StoreError> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    create_data_dir(folder)
        .map_err(|cause| error(format!("cannot create the store's folder {}: {cause}", folder.display())))
}

/// Checks that the file does not belong to another program, with a connection that changes nothing: setting the journal
/// mode would write to the file. Returns the connection, to be closed after the next one is open: closing the last one
/// costs disk access.
async fn check_owner(path: &Path, busy_timeout: Duration, label: &str) -> Result<Option<SqliteConnection>, StoreError> {
    if !std::fs::metadata(path).is_ok_and(|file| file.len() > 0) {
        return Ok(None);
    }
    let plain = SqliteConnectOptions::new().filename(path).busy_timeout(busy_timeout).disable_statement_logging();
    let (connection, contents) = retry_while_busy(busy_timeout, label, || connect_and_read(&plain)).await?;
    if let Err(error) = contents.is_current(label) {
        connection.close().await.map_err(query_error)?;
        return Err(error);
    }
    Ok(Some(connection))
}

async fn connect_and_read(options: &SqliteConnectOptions) -> Result<(SqliteConnection, Contents), sqlx::Error> {
    let mut connection = options.connect().await?;
    let contents = read_contents(&mut connection).await?;
    Ok((connection, contents))
}

/// Retries while the file is locked. SQLite's busy timeout does not cover a change of the journal mode, so two programs
/// that create the same file at the same time would otherwise fail.
async fn retry_while_busy<T, F>(busy_timeout: Duration, label: &str, work: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, sqlx::Error>>,
{
    let started = Instant::now();
    loop {
        match work().await {
            Ok(output) => return Ok(output),
            // The attempt itself may have waited.
            Err(cause) if is_busy(&cause) && started.elapsed() < busy_timeout => {
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
            Err(cause) => return Err(open_error(cause, label)),
        }
    }
}

fn open_error(cause: sqlx::Error, label: &str) -> StoreError {
    if cause.as_database_error().and_then(sqlite_code) == Some(NOT_A_DATABASE) {
        return error_with_hint(
            format!("the store {label} is not an SQLite database"),
            "pass --store to use another file, or move this one away",
        );
    }
    let cause = query_error(cause);
    StoreError { message: format!("cannot open the store {label}: {}", cause.message), hint: cause.hint }
}

/// The contents of a file.
struct Contents {
    /// Names of tables and views.
    tables: BTreeSet<String>,
    applied: Vec<migrations::AppliedMigration>,
}

async fn read_contents(connection: &mut SqliteConnection) -> Result<Contents, sqlx::Error> {
    let tables = "select name from sqlite_master where type in ('table', 'view')";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut *connection).await?;
    let tables = BTreeSet::from_iter(tables);
    let mut applied: Vec<migrations::AppliedMigration> = Vec::new();
    if tables.contains(migrations::MIGRATIONS_TABLE) {
        applied = sqlx::query_as(migrations::SELECT_APPLIED).fetch_all(connection).await?;
    }
    Ok(Contents { tables, applied })
}

impl Contents {
    /// Whether there is nothing to migrate. A file has no schemas, so a file with tables but without karat's belongs to
    /// another program.
    fn is_current(&self, label: &str) -> Result<bool, StoreError> {
        // SQLite has internal tables.
        let is_foreign = |name: &String| name != migrations::MIGRATIONS_TABLE && !name.starts_with("sqlite_");
        if self.applied.is_empty() && self.tables.iter().any(is_foreign) {
            return Err(foreign_tables_error(label));
        }
        migrations::is_current(&migrations::SQLITE, &self.tables, &self.applied, || foreign_tables_error(label))
    }
}

/// Whether there is nothing to migrate. Does not write, so that commands that only read do not wait for a writer.
async fn is_current(connection: &mut SqliteConnection, label: &str) -> Result<bool, StoreError> {
    read_contents(connection).await.map_err(query_error)?.is_current(label)
}

fn foreign_tables_error(label: &str) -> StoreError {
    error_with_hint(format!("the store {label} contains tables of another program"), "pass --store to use another file")
}

/// Migrates in one write transaction; concurrent migrations wait and find nothing left to do.
async fn migrate(connection: &mut SqliteConnection, label: &str) -> Result<(), StoreError> {
    let mut transaction = connection.begin_with("begin immediate").await.map_err(query_error)?;
    let migrated = migrations::SQLITE.run_direct(None, &mut *transaction, false).await;
    migrated.map_err(|cause| migrations::migration_error(cause, label))?;
    transaction.commit().await.map_err(query_error)
}

#[cfg(test)]
mod tests {
    use karat_core::port::{StoreError, TraceStore};
    use karat_core::stored::{ExpectedState, NewTrace, TraceHead};
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
        // Hashes cannot be compressed, so the document takes space.
        let document: String =
            (0..400).map(|index| karat_json::hash::long_hash(format!("{id}{index}").as_bytes())).collect();
        let head = TraceHead { trace_id: id.to_owned(), hash: id.to_owned(), ..TraceHead::default() };
        NewTrace { head, source: "karat".to_owned(), raw: None, document, expected: ExpectedState::Any }
    }

    #[tokio::test]
    async fn uses_wal_with_full_synchronisation() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let store = open(&folder.path().join("karat.db")).await.expect("a store");
        let pool = writer(&store);
        assert_eq!(pragma(pool, "journal_mode").await, "wal");
        assert_eq!(pragma(pool, "synchronous").await, "2");
        assert_eq!(pragma(pool, "foreign_keys").await, "1");
        assert_eq!(pragma(pool, "integrity_check").await, "ok");
    }

    #[tokio::test]
    async fn sqlite_has_the_checkpoint_fix() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let store = open(&folder.path().join("karat.db")).await.expect("a store");
        let version: String =
            sqlx::query_scalar("select sqlite_version()").fetch_one(writer(&store)).await.expect("a version");
        let numbers: Vec<u64> = version.split('.').map(|part| part.parse().expect("a number")).collect();
        assert!(numbers >= vec![3, 51, 3], "{version}: before 3.51.3 a checkpoint can damage the file");
    }

    /// As on a read-only medium.
    #[tokio::test]
    async fn reads_without_writing_to_the_folder() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("karat.db");
        let store = open(&path).await.expect("a store");
        store.put_traces(&[trace("a")], jiff::Timestamp::UNIX_EPOCH).await.expect("stored");
        // While the journal has data, the file is incomplete.
        assert!(!is_complete_file(&path));
        store.close().await;
        assert!(is_complete_file(&path) && is_writable(&path));
        assert!(!is_writable(&folder.path().join("missing/karat.db")));
        let database = open_read_only(&path).await.expect("readable").expect("a current file");
        let pool = database.sqlite_writer().expect("SQLite");
        let count: i64 = sqlx::query_scalar("select count(*) from traces").fetch_one(pool).await.expect("a number");
        assert_eq!(count, 1);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "a single file");
        let written = sqlx::query("delete from traces").execute(pool).await.expect_err("read-only");
        assert_eq!(query_error(written).message, "the store is read-only");
    }

    #[tokio::test]
    async fn a_full_disk_keeps_saved_data() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("karat.db");
        let store = open(&path).await.expect("a store");
        let now = jiff::Timestamp::UNIX_EPOCH;
        store.put_traces(&[trace("before")], now).await.expect("enough space");
        let pages: i64 = sqlx::query_scalar("pragma page_count").fetch_one(writer(&store)).await.expect("a number");
        let limit = sqlx::AssertSqlSafe(format!("pragma max_page_count = {}", pages + 20));
        sqlx::query(limit).execute(writer(&store)).await.expect("a limit");
        let many: Vec<NewTrace> = (0..50).map(|number| trace(&format!("t-{number}"))).collect();
        let error = store.put_traces(&many, now).await.expect_err("no space");
        assert_eq!(error.message, "cannot write to the store: no space left on device");
        assert!(error.is_disk_full());
        assert!(error.hint.is_some());
        assert_eq!(store.count_traces(&karat_core::stored::TraceFilter::default()).await.expect("a number"), 1);
        assert_eq!(pragma(writer(&store), "integrity_check").await, "ok");
        // With more space, the same connection works again.
        sqlx::query("pragma max_page_count = 1000000").execute(writer(&store)).await.expect("no limit");
        store.put_traces(&many, now).await.expect("enough space");
        store.close().await;
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "a single file");
    }

    /// SQLite does this if there is no space for a commit, which a limit on pages cannot show.
    #[tokio::test]
    async fn writes_after_sqlite_rolled_back_a_transaction() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let store = open(&folder.path().join("karat.db")).await.expect("a store");
        let mut transaction = writer(&store).begin_with("begin immediate").await.expect("a transaction");
        sqlx::query("rollback").execute(&mut *transaction).await.expect("no transaction");
        drop(transaction);
        store.put_traces(&[trace("a")], jiff::Timestamp::UNIX_EPOCH).await.expect("a new connection");
        store.put_traces(&[trace("b")], jiff::Timestamp::UNIX_EPOCH).await.expect("the same connection");
        assert_eq!(store.count_traces(&karat_core::stored::TraceFilter::default()).await.expect("a number"), 2);
    }

    #[tokio::test]
    async fn only_the_data_folder_is_ignored_by_git() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        open(&folder.path().join("a/.karat/karat.db")).await.expect("a store");
        let ignore = folder.path().join("a/.karat/.gitignore");
        assert_eq!(std::fs::read_to_string(ignore).expect("a file"), "*\n");
        open(&folder.path().join("b/evals.db")).await.expect("a store");
        assert!(!folder.path().join("b/.gitignore").exists());
    }

    #[tokio::test]
    async fn rejects_files_that_are_not_databases() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let text = folder.path().join("notes.txt");
        std::fs::write(&text, "these are notes, not a database, however long they are".repeat(100)).expect("a file");
        let error = open(&text).await.expect_err("an error");
        assert!(error.message.ends_with("notes.txt is not an SQLite database"), "{error}");
        assert!(error.hint.is_some());
        let error = open(folder.path()).await.expect_err("an error");
        assert!(error.message.ends_with("is a folder"), "{error}");
        let error = open(&text.join("karat.db")).await.expect_err("an error");
        assert!(error.message.contains("cannot "), "{error}");
    }

    #[rstest]
    #[case::the_same_name("traces")]
    #[case::another_name("orders")]
    #[tokio::test]
    async fn does_not_change_databases_of_other_programs(#[case] name: &str) {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("other.db");
        let other = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut connection = other.connect().await.expect("a database");
        let table = sqlx::AssertSqlSafe(format!("create table {name} (mine integer)"));
        sqlx::query(table).execute(&mut connection).await.expect("a table");
        connection.close().await.expect("closed");
        let before = std::fs::read(&path).expect("a file");
        let error = open(&path).await.expect_err("an error");
        assert!(error.message.contains("tables of another program"), "{error}");
        assert!(std::fs::read(&path).expect("a file") == before, "the file is unchanged");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "no other files");
    }

    #[tokio::test]
    async fn accepts_a_database_without_tables() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("empty.db");
        let other = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let mut connection = other.connect().await.expect("a database");
        for statement in ["create table gone (id integer primary key autoincrement)", "drop table gone"] {
            sqlx::query(statement).execute(&mut connection).await.expect("executed");
        }
        connection.close().await.expect("closed");
        open(&path).await.expect("a store").close().await;
        open(&path).await.expect("the same store").close().await;
    }

    #[tokio::test]
    async fn reports_a_locked_file() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("karat.db");
        open(&path).await.expect("a store").close().await;
        let other = SqliteConnectOptions::new().filename(&path).pragma("locking_mode", "exclusive");
        let mut connection = other.connect().await.expect("a connection");
        sqlx::query("begin exclusive").execute(&mut connection).await.expect("a lock");
        let error = open_with_timeout(&path, Duration::from_millis(200)).await.err().expect("an error");
        assert!(error.message.ends_with("the store is locked by another program"), "{error}");
        connection.close().await.expect("closed");
        open(&path).await.expect("a store").close().await;
    }

    #[tokio::test]
    async fn reports_a_read_only_file() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("karat.db");
        open(&path).await.expect("a store").close().await;
        let readers = options(&path, BUSY_TIMEOUT).pragma("query_only", "on");
        let pool = SqlitePoolOptions::new().connect_lazy_with(readers);
        let store = Store { database: Database::sqlite(pool.clone(), pool, "it") };
        let error = store.put_traces(&[trace("a")], jiff::Timestamp::UNIX_EPOCH).await.expect_err("an error");
        assert_eq!(error.message, "the store is read-only");
    }
}
