//! Schema migrations.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use karat_core::port::StoreError;
use sqlx::SqlStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use crate::failure::{error, error_with_hint, query_error};

pub(crate) static SQLITE: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[
        (1, "store", include_str!("../migrations/sqlite/0001_store.sql")),
        (2, "eval_options", include_str!("../migrations/sqlite/0002_eval_options.sql")),
    ])
});
pub(crate) static POSTGRES: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&[
        (1, "store", include_str!("../migrations/postgres/0001_store.sql")),
        (2, "eval_options", include_str!("../migrations/postgres/0002_eval_options.sql")),
    ])
});

/// Creates a migrator. sqlx's macro does the same, but builds sqlx and SQLite twice.
fn migrator(migrations: &[(i64, &'static str, &'static str)]) -> Migrator {
    let migrations = migrations.iter().map(|(version, name, sql)| {
        Migration::new(*version, Cow::Borrowed(name), MigrationType::Simple, SqlStr::from_static(sql), false)
    });
    Migrator::with_migrations(migrations.collect())
}

/// sqlx's table of applied migrations; databases of other programs may have it too.
pub(crate) const MIGRATIONS_TABLE: &str = "_sqlx_migrations";
/// Selects the applied migrations as `AppliedMigration`.
pub(crate) const SELECT_APPLIED: &str = "select version, description, checksum from _sqlx_migrations where success";
/// Tables and views that the migrations create. If one exists before the migrations, it belongs to another program.
const TABLES: [&str; 13] = [
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

/// An applied migration: version, description and checksum.
pub(crate) type AppliedMigration = (i64, String, Vec<u8>);

/// Whether a database has exactly the migrations that this program knows. `tables` are the names of its tables and
/// views. Returns `foreign_tables_error` for a database of another program.
pub(crate) fn is_current(
    migrator: &Migrator,
    tables: &BTreeSet<String>,
    applied: &[AppliedMigration],
    foreign_tables_error: impl Fn() -> StoreError,
) -> Result<bool, StoreError> {
    if applied.is_empty() {
        return if TABLES.iter().any(|name| tables.contains(*name)) { Err(foreign_tables_error()) } else { Ok(false) };
    }
    let is_first = |known: &Migration| {
        applied.iter().any(|(version, name, _)| *version == known.version && *name == known.description)
    };
    if !migrator.iter().next().is_some_and(is_first) {
        return Err(foreign_tables_error());
    }
    let is_applied = |known: &Migration| {
        applied.iter().any(|(version, _, sum)| *version == known.version && **sum == *known.checksum)
    };
    Ok(applied.len() == migrator.iter().count() && migrator.iter().all(is_applied))
}

pub(crate) fn migration_error(cause: MigrateError, label: &str) -> StoreError {
    match cause {
        MigrateError::VersionMissing(_) => error_with_hint(
            format!("the store {label} was created by a newer version of karat"),
            "update karat, or pass --store to use another store",
        ),
        MigrateError::VersionMismatch(version) => error_with_hint(
            format!("the store {label} has a different schema: migration {version} does not match"),
            "it was created by an unreleased version of karat; use another store",
        ),
        MigrateError::Execute(cause) | MigrateError::ExecuteMigration(cause, _) => {
            let cause = query_error(cause);
            StoreError { message: format!("cannot migrate the store {label}: {}", cause.message), hint: cause.hint }
        }
        other => error(format!("cannot migrate the store {label}: {other}")),
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
            let names: Vec<String> = migrator
                .iter()
                .map(|migration| format!("{:04}_{}.sql", migration.version, migration.description))
                .collect();
            assert_eq!(files, names);
        }
    }

    #[test]
    fn every_table_is_listed() {
        for migrator in [&*SQLITE, &*POSTGRES] {
            let created = migrator.iter().flat_map(|migration| migration.sql.as_str().lines());
            let created = created.filter_map(|line| {
                let rest = line.strip_prefix("create table ").or_else(|| line.strip_prefix("create view "))?;
                rest.split([' ', '(']).next()
            });
            let mut created: Vec<&str> = created.collect();
            created.sort_unstable();
            assert_eq!(created, TABLES);
        }
    }

    fn known() -> Vec<AppliedMigration> {
        SQLITE
            .iter()
            .map(|migration| (migration.version, migration.description.to_string(), migration.checksum.to_vec()))
            .collect()
    }

    fn applied(version: i64, name: &str) -> Vec<AppliedMigration> {
        vec![(version, name.to_owned(), vec![1])]
    }

    #[test]
    fn detects_databases_of_other_programs() {
        let cases: [(&[&str], Vec<AppliedMigration>, Option<bool>); 8] = [
            (&[], Vec::new(), Some(false)),
            (&["orders"], Vec::new(), Some(false)),
            (&["orders", "feedback"], Vec::new(), None),
            (&[MIGRATIONS_TABLE], Vec::new(), Some(false)),
            (&[MIGRATIONS_TABLE, "orders"], applied(1, "orders"), None),
            (&[MIGRATIONS_TABLE, "orders"], applied(20_260_101, "store"), None),
            (&[MIGRATIONS_TABLE, "traces"], known(), Some(true)),
            (&[MIGRATIONS_TABLE, "traces"], applied(1, "store"), Some(false)),
        ];
        for (names, applied, expected) in cases {
            let tables: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let current = is_current(&SQLITE, &tables, &applied, || error("foreign"));
            assert_eq!(current.ok(), expected, "{names:?} {applied:?}");
        }
    }
}
