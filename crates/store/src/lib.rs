//! Stores runs, traces, evals, executions and feedback in SQLite (the default) or PostgreSQL (by URL).
//!
//! Statements are written once, in SQL that both databases understand (`statement`), and run on either (`database`).
//! Both allow one writer at a time, so that derived data (ratings, counts, contradictions) changes together with its
//! sources. Triggers count executions by day, verdict and rating: agreement and contradictions are looked up, not
//! computed.

mod comparison;
mod data_dir;
mod database;
mod evals;
mod executions;
mod failure;
mod feedback;
mod filter;
mod location;
mod migrations;
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

pub use crate::data_dir::create_data_dir;
use crate::database::Database;
pub use crate::location::Location;
pub use crate::traces::raw_hash;

/// An open database. Clones share its connections.
#[derive(Clone)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens a database and migrates it to the newest schema.
    pub async fn open(location: &Location) -> Result<Self, StoreError> {
        let database = match location {
            Location::File(path) => sqlite::open(path).await?,
            Location::Postgres(url) => postgres::open(url).await?,
        };
        Ok(Self { database })
    }

    /// Waits until all connections are closed; SQLite then leaves a single file.
    pub async fn close(&self) {
        self.database.close().await;
    }
}

/// Shows the database's location without the password.
impl fmt::Debug for Store {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Store").field(&self.database.label()).finish()
    }
}
