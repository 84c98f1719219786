//! Keeps runs, traces, evals, executions and feedback: in SQLite by default, in PostgreSQL by its URL.

use std::path::PathBuf;

use karat_core::port::StoreError;

/// Where the database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A file of SQLite's; it and its folder are made when they are not there.
    File(PathBuf),
    /// A URL with the user, and perhaps the password.
    Postgres(String),
}

/// An open database.
#[derive(Debug, Clone)]
pub struct Store {}

impl Store {
    /// Opens a database and brings it to the newest schema.
    #[expect(clippy::unused_async, reason = "will connect")]
    pub async fn open(_location: &Location) -> Result<Self, StoreError> {
        Ok(Self {})
    }
}
