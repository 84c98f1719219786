//! Keeps runs, traces, evals, executions and feedback: in SQLite by default, in PostgreSQL by its URL.
//!
//! Every statement is written once, in the SQL that both understand (`statement`), and runs on either (`database`).
//! There is one writer at a time in both, so that what is kept beside its sources (ratings, counts, contradictions)
//! changes together with them. One file for each kind of thing that is kept: `traces`, `evals`, `executions`,
//! `feedback`, `comparison`, `runs`.

mod comparison;
mod database;
mod evals;
mod executions;
mod failure;
mod feedback;
mod filter;
mod location;
mod migrations;
mod own_folder;
mod payload;
mod postgres;
mod row;
mod runs;
mod sqlite;
mod statement;
mod text;
mod trace_rows;
mod traces;

use std::fmt;

use karat_core::port::StoreError;

use crate::database::Database;
pub use crate::location::Location;
pub use crate::own_folder::make_folder;
pub use crate::traces::raw_hash;

/// An open database. Clones share its connections.
#[derive(Clone)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens a database and brings it to the newest schema.
    pub async fn open(location: &Location) -> Result<Self, StoreError> {
        let database = match location {
            Location::File(path) => sqlite::open(path).await?,
            Location::Postgres(url) => postgres::open(url).await?,
        };
        Ok(Self { database })
    }

    /// Waits until all connections are closed; SQLite then leaves one file and nothing beside it.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

/// Says where the database is, and never the password.
impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Store").field(&self.database.label()).finish()
    }
}
