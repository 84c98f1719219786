//! What a database says when it does not do what it was asked, in words that help.

use karat_core::port::StoreError;
use sqlx::error::DatabaseError;

// SQLite's primary codes; the extended ones have them in their lowest byte.
const BUSY: i64 = 5;
const READ_ONLY: i64 = 8;
const INPUT_OUTPUT: i64 = 10;
const CORRUPT: i64 = 11;
const FULL: i64 = 13;
const CANNOT_OPEN: i64 = 14;
const NO_DATABASE: i64 = 26;

/// Makes an error without a hint.
pub(crate) fn error(message: impl Into<String>) -> StoreError {
    StoreError { message: message.into(), hint: None }
}

/// Makes an error with one.
pub(crate) fn error_with(message: impl Into<String>, hint: impl Into<String>) -> StoreError {
    StoreError { message: message.into(), hint: Some(hint.into()) }
}

/// Tells of something in the database that karat did not put there.
pub(crate) fn strange(what: &str) -> StoreError {
    error_with(
        format!("the store holds {what}"),
        "something else than karat has written to it: restore a copy, or begin with another store",
    )
}

/// Tells of a statement that failed.
pub(crate) fn failed(cause: sqlx::Error) -> StoreError {
    match cause {
        sqlx::Error::Database(cause) => from_database(&*cause),
        sqlx::Error::PoolTimedOut => error_with(
            "the store gave no connection in time",
            "another command may be writing to it; try again when it has ended",
        ),
        sqlx::Error::Io(cause) => error_with(
            format!("the connection to the store broke: {cause}"),
            "nothing of the last step was kept; run the command again",
        ),
        other => error(format!("the store failed: {other}")),
    }
}

fn from_database(cause: &dyn DatabaseError) -> StoreError {
    let message = cause.message();
    match sqlite_code(cause) {
        Some(BUSY) => error_with(
            "another program is writing to the store and does not end",
            "wait for it, or end it, and run the command again",
        ),
        Some(READ_ONLY) => error_with(
            "the store cannot be written to",
            "its file and folder must be writable, for reading too: SQLite keeps a journal beside the file",
        ),
        Some(FULL) => error_with(
            "the disk is full, or the store may not grow",
            "make room and run the command again: what was kept before is whole",
        ),
        Some(INPUT_OUTPUT) => error_with(
            format!("the store's disk does not work: {message}"),
            "make sure that the disk has room and is no network drive that lacks locks",
        ),
        Some(CORRUPT) => error_with(
            format!("the store is damaged: {message}"),
            "restore a copy, or save what can be read with `sqlite3 FILE .recover`",
        ),
        Some(NO_DATABASE) => error("the store's file is no database of SQLite"),
        Some(CANNOT_OPEN) => error_with("the store's file cannot be opened", "its folder must be there and writable"),
        _ => match cause.code().as_deref() {
            Some("42501") => error_with(
                format!("PostgreSQL does not allow this: {message}"),
                "karat needs to own its tables: give it a database or a schema of its own",
            ),
            Some("53100") => error_with("PostgreSQL's disk is full", "what was kept before is whole"),
            _ => error(format!("the store refused: {message}")),
        },
    }
}

/// Returns the primary code of an error of SQLite's.
pub(crate) fn sqlite_code(cause: &dyn DatabaseError) -> Option<i64> {
    cause.try_downcast_ref::<sqlx::sqlite::SqliteError>()?;
    cause.code()?.parse::<i64>().ok().map(|code| code & 0xff)
}

/// Tells whether somebody else holds what was needed, so that trying again helps.
pub(crate) fn is_busy(cause: &sqlx::Error) -> bool {
    cause.as_database_error().and_then(sqlite_code) == Some(BUSY)
}
