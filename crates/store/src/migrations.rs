//! The schema, and how a database comes to it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use karat_core::port::StoreError;
use sqlx::SqlStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use crate::failure::{error, error_with, failed};

pub(crate) static SQLITE: LazyLock<Migrator> =
    LazyLock::new(|| migrator(&[(1, "store", include_str!("../migrations/sqlite/0001_store.sql"))]));
pub(crate) static POSTGRES: LazyLock<Migrator> =
    LazyLock::new(|| migrator(&[(1, "store", include_str!("../migrations/postgres/0001_store.sql"))]));

/// Makes a migrator of numbered, named texts. sqlx's macro does the same, at the price of building sqlx and SQLite
/// twice.
fn migrator(migrations: &[(i64, &'static str, &'static str)]) -> Migrator {
    let migrations = migrations.iter().map(|(version, name, sql)| {
        Migration::new(*version, Cow::Borrowed(name), MigrationType::Simple, SqlStr::from_static(sql), false)
    });
    Migrator::with_migrations(migrations.collect())
}

/// Where sqlx notes which migrations a database has; other programs' databases may have such a table too.
pub(crate) const NOTES: &str = "_sqlx_migrations";
/// Asks a database for the migrations that it has, as `Applied`.
pub(crate) const APPLIED: &str = "select version, description, checksum from _sqlx_migrations where success";
/// What the migrations make: where one of these is there before them, it is somebody else's.
const OURS: [&str; 13] = [
    "contradiction_resolutions",
    "eval_comparison",
    "eval_counts",
    "eval_executions",
    "eval_versions",
    "evals",
    "feedback",
    "rating_patterns",
    "run_cases",
    "runs",
    "trace_payloads",
    "trace_tools",
    "traces",
];

/// A migration that a database has: its number, its name, and the hash of its text.
pub(crate) type Applied = (i64, String, Vec<u8>);

/// Tells whether a database has exactly the migrations that this program knows. `tables` are the names of what is there,
/// views too. A database that is another program's is refused, whichever way that shows, before anything is written.
pub(crate) fn is_current(
    migrator: &Migrator,
    tables: &BTreeSet<String>,
    applied: &[Applied],
    foreign: impl Fn() -> StoreError,
) -> Result<bool, StoreError> {
    if applied.is_empty() {
        return if OURS.iter().any(|name| tables.contains(*name)) { Err(foreign()) } else { Ok(false) };
    }
    let is_first = |known: &Migration| {
        applied.iter().any(|(version, name, _)| *version == known.version && *name == known.description)
    };
    if !migrator.iter().next().is_some_and(is_first) {
        return Err(foreign());
    }
    let is_applied = |known: &Migration| {
        applied.iter().any(|(version, _, sum)| *version == known.version && **sum == *known.checksum)
    };
    Ok(applied.len() == migrator.iter().count() && migrator.iter().all(is_applied))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migration_file_is_listed() {
        for (folder, migrator) in [("sqlite", &*SQLITE), ("postgres", &*POSTGRES)] {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(folder);
            let mut files: Vec<String> = std::fs::read_dir(folder)
                .expect("a folder")
                .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
                .collect();
            files.sort();
            let listed: Vec<String> =
                migrator.iter().map(|one| format!("{:04}_{}.sql", one.version, one.description)).collect();
            assert_eq!(files, listed);
        }
    }

    #[test]
    fn every_table_is_known_as_ours() {
        for migrator in [&*SQLITE, &*POSTGRES] {
            let made = migrator.iter().flat_map(|migration| migration.sql.as_str().lines());
            let made = made.filter_map(|line| {
                let rest = line.strip_prefix("create table ").or_else(|| line.strip_prefix("create view "))?;
                rest.split([' ', '(']).next()
            });
            let mut made: Vec<&str> = made.collect();
            made.sort_unstable();
            assert_eq!(made, OURS);
        }
    }

    fn ours() -> Vec<Applied> {
        SQLITE.iter().map(|one| (one.version, one.description.to_string(), one.checksum.to_vec())).collect()
    }

    fn one(version: i64, name: &str) -> Vec<Applied> {
        vec![(version, name.to_owned(), vec![1])]
    }

    #[test]
    fn another_programs_database_is_known() {
        let cases: [(&[&str], Vec<Applied>, Option<bool>); 8] = [
            (&[], Vec::new(), Some(false)),
            (&["orders"], Vec::new(), Some(false)),
            (&["orders", "feedback"], Vec::new(), None),
            (&[NOTES], Vec::new(), Some(false)),
            (&[NOTES, "orders"], one(1, "orders"), None),
            (&[NOTES, "orders"], one(20_260_101, "store"), None),
            (&[NOTES, "traces"], ours(), Some(true)),
            (&[NOTES, "traces"], one(1, "store"), Some(false)),
        ];
        for (names, applied, expected) in cases {
            let tables: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let current = is_current(&SQLITE, &tables, &applied, || error("foreign"));
            assert_eq!(current.ok(), expected, "{names:?} {applied:?}");
        }
    }
}
