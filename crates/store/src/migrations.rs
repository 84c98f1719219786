//! The schema, and how a database comes to it.

use std::collections::BTreeMap;

use karat_core::port::StoreError;
use sqlx::migrate::{MigrateError, Migrator};

use crate::failure::{error, error_with, failed};

pub(crate) static SQLITE: Migrator = sqlx::migrate!("migrations/sqlite");
pub(crate) static POSTGRES: Migrator = sqlx::migrate!("migrations/postgres");

/// Tells whether a database has exactly the migrations that this program knows; `applied` is what it has.
pub(crate) fn is_current(migrator: &Migrator, applied: &BTreeMap<i64, Vec<u8>>) -> bool {
    applied.len() == migrator.iter().count()
        && migrator.iter().all(|known| applied.get(&known.version).is_some_and(|sum| **sum == *known.checksum))
}

/// Tells of migrations that did not go through.
pub(crate) fn not_migrated(cause: MigrateError, label: &str) -> StoreError {
    match cause {
        MigrateError::VersionMissing(_) => error_with(
            format!("the store {label} was written by a newer karat"),
            "update karat, or choose another store with --store",
        ),
        MigrateError::VersionMismatch(version) => error_with(
            format!("the store {label} has another schema than this karat: its migration {version} is different"),
            "it was made by a version of karat that was never released; begin with another store",
        ),
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => {
            let cause = failed(cause);
            StoreError { message: format!("the store {label} cannot be prepared: {}", cause.message), hint: cause.hint }
        }
        other => error(format!("the store {label} cannot be prepared: {other}")),
    }
}
