//! Opens PostgreSQL databases.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::Duration;

use karat_core::port::StoreError;
use karat_core::redact::{Redactor, database_passwords};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};

use crate::database::Database;
use crate::failure::{error, error_with_hint, query_error};
use crate::location::has_unescaped_password;
use crate::migrations;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long to wait for a connection of the pool.
const ACQUIRE_TIMEOUT: Duration = Duration::from_mins(1);
const MAX_CONNECTIONS: u32 = 5;
/// Hint for URLs with an unescaped password.
const ESCAPE_HINT: &str =
    "in the user and password, write %2F for /, %3F for ?, %23 for # and %40 for @; the database name cannot contain @";

/// Connects to a server.
pub(crate) async fn open(url: &str) -> Result<Database, StoreError> {
    let invalid = |hint: &str| error_with_hint("invalid store URL", hint);
    if has_unescaped_password(url) {
        return Err(invalid(ESCAPE_HINT));
    }
    // The parser's message may contain parts of the URL, including the password.
    let options =
        PgConnectOptions::from_str(url).map_err(|_| invalid("expected postgres://USER:PASSWORD@HOST:PORT/DATABASE"))?;
    let options = options.application_name("karat").disable_statement_logging();
    let label = label(&options);
    // The label is shown. An `@` in it, escaped or not, may follow a part of the password.
    if label.contains('@') {
        return Err(invalid(ESCAPE_HINT));
    }
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, options.connect()).await;
    let connected = connecting.map_err(|_| unreachable_error(&label, "the server does not respond"))?;
    let mut connection = connected.map_err(|cause| connect_error(cause, &options, &label, &redactor(url)))?;
    if !is_current(&mut connection, &label).await? {
        check_schema(&mut connection, &label).await?;
        migrate(&mut connection, &label).await?;
    }
    connection.close().await.map_err(query_error)?;
    let pool = PgPoolOptions::new()
        .max_connections(MAX_CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_lazy_with(options);
    Ok(Database::postgres(pool, &label))
}

/// Returns a redactor of passwords for messages of the server and of libraries.
fn redactor(url: &str) -> Redactor {
    let secrets = Redactor::default();
    database_passwords(url).iter().chain(&std::env::var("PGPASSWORD")).for_each(|password| secrets.add(password));
    secrets
}

/// Returns the server and database for display, without user and password.
fn label(options: &PgConnectOptions) -> String {
    let server = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    format!("{server}/{}", database(options))
}

fn database(options: &PgConnectOptions) -> &str {
    options.get_database().unwrap_or_else(|| options.get_username())
}

fn unreachable_error(label: &str, reason: &str) -> StoreError {
    error_with_hint(
        format!("cannot connect to PostgreSQL at {label}: {reason}"),
        "check that the server is running and that the host and port in 'store' are right",
    )
}

/// Returns the error for a failed connection. Only the cause is redacted: a password may equal a word of our own text.
fn connect_error(cause: sqlx::Error, options: &PgConnectOptions, label: &str, secrets: &Redactor) -> StoreError {
    let user = options.get_username();
    let masked = |cause: &dyn std::fmt::Display| secrets.text(&cause.to_string()).into_owned();
    match cause {
        sqlx::Error::Io(cause) => unreachable_error(label, &masked(&cause)),
        sqlx::Error::Tls(cause) => error_with_hint(
            format!("cannot establish a secure connection to PostgreSQL at {label}: {}", masked(&cause)),
            "set 'sslmode' and 'sslrootcert' in the URL",
        ),
        sqlx::Error::Database(cause) => match cause.code().as_deref() {
            Some("28P01" | "28000") => error_with_hint(
                format!("PostgreSQL at {label} rejected the user '{user}'"),
                "check the user and password in KARAT_STORE, PGPASSWORD or a password file",
            ),
            Some("3D000") => {
                let name = database(options);
                error_with_hint(
                    format!("PostgreSQL at {label} has no database '{name}'"),
                    format!("create it with: createdb {name}"),
                )
            }
            Some("53300") => error_with_hint(
                format!("PostgreSQL at {label} has no free connections"),
                "close other connections, or raise max_connections",
            ),
            Some("57P03") => error_with_hint(
                format!("PostgreSQL at {label} is starting up or shutting down"),
                "try again in a moment",
            ),
            _ => error(format!("PostgreSQL at {label} returned an error: {}", masked(&cause.message()))),
        },
        other => error(format!("cannot use PostgreSQL at {label}: {}", masked(&other))),
    }
}

/// Whether there is nothing to migrate. Does not take the migration lock. Only the schema in which tables would be
/// created counts; other schemas on the search path do not matter.
async fn is_current(connection: &mut PgConnection, label: &str) -> Result<bool, StoreError> {
    let tables = "select c.relname::text from pg_catalog.pg_class c \
                  join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
                  where n.nspname = current_schema() and c.relkind in ('r', 'p', 'v', 'm', 'f')";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut *connection).await.map_err(query_error)?;
    let tables = BTreeSet::from_iter(tables);
    let mut applied: Vec<migrations::AppliedMigration> = Vec::new();
    if tables.contains(migrations::MIGRATIONS_TABLE) {
        applied = sqlx::query_as(migrations::SELECT_APPLIED).fetch_all(connection).await.map_err(query_error)?;
    }
    let foreign_tables_error = || {
        error_with_hint(
            format!("the store {label} contains tables of another program"),
            "give karat its own database or schema: postgres://…?options=-csearch_path%3Dkarat",
        )
    };
    migrations::is_current(&migrations::POSTGRES, &tables, &applied, foreign_tables_error)
}

/// Checks that there is a schema for the tables: PostgreSQL's own error does not name the search path.
async fn check_schema(connection: &mut PgConnection, label: &str) -> Result<(), StoreError> {
    let query = "select current_schema()::text, current_setting('search_path')";
    let location: (Option<String>, String) = sqlx::query_as(query).fetch_one(connection).await.map_err(query_error)?;
    match location {
        (Some(_), _) => Ok(()),
        (None, path) => Err(missing_schema_error(label, &path)),
    }
}

fn missing_schema_error(label: &str, path: &str) -> StoreError {
    let mut names = path.split(',').map(str::trim);
    let name = names.find(|name| !matches!(*name, "" | "\"\"" | "\"$user\""));
    let hint = match name {
        Some(name) => format!("create it with: create schema {name}; if it exists, grant karat's user access to it"),
        None => "name an existing schema: postgres://…?options=-csearch_path%3Dkarat".to_owned(),
    };
    error_with_hint(format!("PostgreSQL at {label} has no schema for karat: its search_path is {path}"), hint)
}

/// Migrates in one transaction, so that a lost connection leaves no partial schema. Concurrent migrations wait and find
/// nothing left to do.
async fn migrate(connection: &mut PgConnection, label: &str) -> Result<(), StoreError> {
    let started = connection.begin_with("begin isolation level read committed").await;
    let mut transaction = started.map_err(query_error)?;
    let lock = "select pg_advisory_xact_lock(711033::int8 << 32)";
    sqlx::query(lock).execute(&mut *transaction).await.map_err(query_error)?;
    let migrated = migrations::POSTGRES.run_direct(None, &mut *transaction, false).await;
    migrated.map_err(|cause| migrations::migration_error(cause, label))?;
    transaction.commit().await.map_err(query_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacts_only_the_cause() {
        let options = PgConnectOptions::from_str("postgres://karat:karat@host/karat").expect("a URL");
        let secrets = redactor("postgres://karat:karat@host/karat");
        let cause = sqlx::Error::Protocol("no karat for you".to_owned());
        let error = connect_error(cause, &options, &label(&options), &secrets);
        assert!(error.message.starts_with("cannot use PostgreSQL at host:5432/karat: "), "{}", error.message);
        assert!(error.message.ends_with("no *** for you"), "{}", error.message);
    }
}
