//! Converts database errors to store errors with hints.

use karat_core::port::{DISK_FULL, StoreError};
use sqlx::error::DatabaseError;

// SQLite's primary result codes; extended codes have them in their lowest byte.
const BUSY: i64 = 5;
const READ_ONLY: i64 = 8;
const IO_ERROR: i64 = 10;
const CORRUPT: i64 = 11;
const FULL: i64 = 13;
const CANNOT_OPEN: i64 = 14;
pub(crate) const NOT_A_DATABASE: i64 = 26;

pub(crate) fn error(message: impl Into<String>) -> StoreError {
    StoreError { message: message.into(), hint: None }
}

pub(crate) fn error_with_hint(message: impl Into<String>, hint: impl Into<String>) -> StoreError {
    StoreError { message: message.into(), hint: Some(hint.into()) }
}

/// Returns the error for a value that karat did not write.
pub(crate) fn invalid_data(problem: &str) -> StoreError {
    error_with_hint(
        format!("invalid data in the store: {problem}"),
        "the store was changed by another program: restore a backup, or use another store",
    )
}

/// Returns the error for a failed statement.
pub(crate) fn query_error(cause: sqlx::Error) -> StoreError {
    match cause {
        sqlx::Error::Database(cause) => from_database(&*cause),
        sqlx::Error::PoolTimedOut => error_with_hint(
            "timed out waiting for a connection to the store",
            "another command may be writing to the store; try again when it has finished",
        ),
        sqlx::Error::Io(cause) => error_with_hint(
            format!("lost the connection to the store: {cause}"),
            "the last step was not saved; run the command again",
        ),
        other => error(format!("store error: {other}")),
    }
}

fn from_database(cause: &dyn DatabaseError) -> StoreError {
    let message = cause.message();
    match sqlite_code(cause) {
        Some(BUSY) => error_with_hint(
            "the store is locked by another program",
            "wait until it has finished, or stop it, and run the command again",
        ),
        Some(READ_ONLY) => error_with_hint(
            "the store is read-only",
            "make its file and folder writable; to read it, another command must not be writing to it",
        ),
        Some(FULL) => error_with_hint(
            format!("cannot write to the store: {DISK_FULL}"),
            "free some space and run the command again; data saved before is intact",
        ),
        Some(IO_ERROR) => error_with_hint(
            format!("I/O error in the store: {message}"),
            "check that the disk has free space and is not a network drive without file locks",
        ),
        Some(CORRUPT) => error_with_hint(
            format!("the store is corrupt: {message}"),
            "restore a backup, or recover the data with 'sqlite3 FILE .recover'",
        ),
        Some(NOT_A_DATABASE) => error("the store's file is not an SQLite database"),
        Some(CANNOT_OPEN) => error_with_hint("cannot open the store's file", "its folder must exist and be writable"),
        _ => match cause.code().as_deref() {
            Some("42501") => error_with_hint(
                format!("PostgreSQL denied permission: {message}"),
                "karat must own its tables: give it its own database or schema",
            ),
            Some("53100") => error_with_hint("PostgreSQL's disk is full", "data saved before is intact"),
            _ => error(format!("store error: {message}")),
        },
    }
}

/// Returns the primary code of an SQLite error.
pub(crate) fn sqlite_code(cause: &dyn DatabaseError) -> Option<i64> {
    cause.try_downcast_ref::<sqlx::sqlite::SqliteError>()?;
    cause.code()?.parse::<i64>().ok().map(|code| code & 0xff)
}

/// Whether the database is locked, so that a retry may succeed.
pub(crate) fn is_busy(cause: &sqlx::Error) -> bool {
    cause.as_database_error().and_then(sqlite_code) == Some(BUSY)
}
