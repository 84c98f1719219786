//! Opening a file of SQLite's.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use karat_core::port::StoreError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use crate::database::Database;
use crate::failure::{error, error_with, failed, is_busy, sqlite_code};
use crate::migrations;

/// How long one waits for another program that writes.
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);
/// How many connections read at once.
const READERS: u32 = 4;
/// SQLite's code for a file that is no database.
const NO_DATABASE: i64 = 26;

/// Opens a file, and makes it and its folder when they are not there.
pub(crate) async fn open(path: &Path) -> Result<Database, StoreError> {
    let label = path.display().to_string();
    if path.is_dir() {
        return Err(error_with(
            format!("the store {label} is a folder"),
            format!("name a file in it: {label}/karat.db"),
        ));
    }
    make_folder(path)?;
    let options = options(path);
    let mut connection = connect(&options, &label).await?;
    if !is_current(&mut connection).await? {
        migrate(&mut connection, &label).await?;
    }
    connection.close().await.map_err(failed)?;
    let pool = || SqlitePoolOptions::new().acquire_timeout(PATIENCE).idle_timeout(None).max_lifetime(None);
    let writer = pool().max_connections(1).connect_lazy_with(options.clone());
    let readers = pool().max_connections(READERS).connect_lazy_with(options.pragma("query_only", "on"));
    Ok(Database::sqlite(writer, readers, &label))
}

fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(PATIENCE)
        .pragma("cache_size", "-65536")
        .pragma("temp_store", "memory")
        .pragma("journal_size_limit", "67108864")
        .disable_statement_logging()
}

/// Makes the folder; what karat's own folder holds belongs into no repository.
fn make_folder(path: &Path) -> Result<(), StoreError> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) else {
        return Ok(());
    };
    let ignore = folder.file_name() == Some(OsStr::new(".karat"));
    std::fs::create_dir_all(folder)
        .and_then(|()| if ignore { std::fs::write(folder.join(".gitignore"), "*\n") } else { Ok(()) })
        .map_err(|cause| error(format!("the store's folder {} cannot be made: {cause}", folder.display())))
}

/// Connects. Two programs that make the same file at once get in each other's way without waiting, since a change of the
/// journal is not waited for: so it is tried again.
async fn connect(options: &SqliteConnectOptions, label: &str) -> Result<SqliteConnection, StoreError> {
    let mut waited = Duration::ZERO;
    loop {
        match options.connect().await {
            Ok(connection) => return Ok(connection),
            Err(cause) if is_busy(&cause) && waited < PATIENCE => {
                tokio::time::sleep(PAUSE).await;
                waited += PAUSE;
            }
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

/// Tells whether there is nothing to migrate, without writing: a command that only reads need not wait for a writer.
async fn is_current(connection: &mut SqliteConnection) -> Result<bool, StoreError> {
    let there = "select count(*) from sqlite_master where type = 'table' and name = '_sqlx_migrations'";
    let there: i64 = sqlx::query_scalar(there).fetch_one(&mut *connection).await.map_err(failed)?;
    if there == 0 {
        return Ok(false);
    }
    let applied: Vec<(i64, Vec<u8>)> = sqlx::query_as("select version, checksum from _sqlx_migrations where success")
        .fetch_all(connection)
        .await
        .map_err(failed)?;
    Ok(migrations::is_current(&migrations::SQLITE, &BTreeMap::from_iter(applied)))
}

/// Migrates in one transaction that nobody else can write beside, so that whoever comes second finds it done.
async fn migrate(connection: &mut SqliteConnection, label: &str) -> Result<(), StoreError> {
    let mut transaction = connection.begin_with("begin immediate").await.map_err(failed)?;
    let done = migrations::SQLITE.run_direct(None, &mut *transaction, false).await;
    done.map_err(|cause| migrations::not_migrated(cause, label))?;
    transaction.commit().await.map_err(failed)
}
