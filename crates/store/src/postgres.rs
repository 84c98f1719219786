//! Opening a database of PostgreSQL.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::time::Duration;

use karat_core::port::StoreError;
use karat_core::redact::{Redactor, database_passwords};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};

use crate::database::Database;
use crate::failure::{error, error_with, failed};
use crate::location::is_torn;
use crate::migrations;

/// How long one waits for a server that does not answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long one waits for a connection while others are at work.
const QUEUE: Duration = Duration::from_mins(1);
const CONNECTIONS: u32 = 5;
/// What helps where a password has torn a URL apart.
const ESCAPES: &str =
    "in a user or a password, write %2F for /, %3F for ?, %23 for # and %40 for @; a database's name may have no @";

/// Connects to a server.
pub(crate) async fn open(url: &str) -> Result<Database, StoreError> {
    let invalid = |hint: &str| error_with("the store's URL is not valid", hint);
    if is_torn(url) {
        return Err(invalid(ESCAPES));
    }
    // What is wrong with a URL may be told with parts of it, and one of its parts is the password.
    let options = PgConnectOptions::from_str(url)
        .map_err(|_| invalid("it has the form postgres://USER:PASSWORD@HOST:PORT/DATABASE"))?;
    let options = options.application_name("karat").disable_statement_logging();
    let label = label(&options);
    // The label is told. An `@` in it, however it was written, may have stood after a password.
    if label.contains('@') {
        return Err(invalid(ESCAPES));
    }
    let connecting = tokio::time::timeout(PATIENCE, options.connect()).await;
    let connected = connecting.map_err(|_| unreachable(&label, "it does not answer"))?;
    let mut connection = connected.map_err(|cause| not_connected(cause, &options, &label, &secrets(url)))?;
    if !is_current(&mut connection, &label).await? {
        needs_schema(&mut connection, &label).await?;
        migrate(&mut connection, &label).await?;
    }
    connection.close().await.map_err(failed)?;
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(QUEUE).connect_lazy_with(options);
    Ok(Database::postgres(pool, &label))
}

/// Returns what must not be told of what others say of a connection.
fn secrets(url: &str) -> Redactor {
    let secrets = Redactor::default();
    database_passwords(url).iter().chain(&std::env::var("PGPASSWORD")).for_each(|password| secrets.add(password));
    secrets
}

/// Says where the server is, and which database is meant; no user, no password.
fn label(options: &PgConnectOptions) -> String {
    let place = match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    };
    format!("{place}/{}", database(options))
}

fn database(options: &PgConnectOptions) -> &str {
    options.get_database().unwrap_or_else(|| options.get_username())
}

fn unreachable(label: &str, why: &str) -> StoreError {
    error_with(
        format!("PostgreSQL at {label} cannot be reached: {why}"),
        "make sure that the server runs and that host and port in `store` are right",
    )
}

/// Tells why there is no connection. Only what others say is masked: in our own words a password is a word by chance.
fn not_connected(cause: sqlx::Error, options: &PgConnectOptions, label: &str, secrets: &Redactor) -> StoreError {
    let user = options.get_username();
    let masked = |said: &dyn std::fmt::Display| secrets.text(&said.to_string()).into_owned();
    match cause {
        sqlx::Error::Io(cause) => unreachable(label, &masked(&cause)),
        sqlx::Error::Tls(cause) => error_with(
            format!("PostgreSQL at {label} cannot be spoken to securely: {}", masked(&cause)),
            "set `sslmode` and `sslrootcert` in the URL",
        ),
        sqlx::Error::Database(cause) => match cause.code().as_deref() {
            Some("28P01" | "28000") => error_with(
                format!("PostgreSQL at {label} does not let the user '{user}' in"),
                "set the right user and password in KARAT_STORE, or PGPASSWORD, or a password file",
            ),
            Some("3D000") => {
                let name = database(options);
                error_with(
                    format!("PostgreSQL at {label} has no database '{name}'"),
                    format!("make it with: createdb {name}"),
                )
            }
            Some("53300") => error_with(
                format!("PostgreSQL at {label} has no connection left"),
                "end other programs that are connected, or raise max_connections",
            ),
            Some("57P03") => {
                error_with(format!("PostgreSQL at {label} is starting or stopping"), "try again in a moment")
            }
            _ => error(format!("PostgreSQL at {label} refused: {}", masked(&cause.message()))),
        },
        other => error(format!("PostgreSQL at {label} cannot be used: {}", masked(&other))),
    }
}

/// Tells whether there is nothing to migrate, without taking the lock that migrations take. Only the schema counts that
/// tables would be made in: what others have elsewhere on the search path is in nobody's way.
async fn is_current(connection: &mut PgConnection, label: &str) -> Result<bool, StoreError> {
    let tables = "select c.relname::text from pg_catalog.pg_class c \
                  join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
                  where n.nspname = current_schema() and c.relkind in ('r', 'p', 'v', 'm', 'f')";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut *connection).await.map_err(failed)?;
    let tables = BTreeSet::from_iter(tables);
    let mut applied: Vec<migrations::Applied> = Vec::new();
    if tables.contains(migrations::NOTES) {
        applied = sqlx::query_as(migrations::APPLIED).fetch_all(connection).await.map_err(failed)?;
    }
    let foreign = || {
        error_with(
            format!("the store {label} holds another program's tables"),
            "give karat a database of its own, or a schema: postgres://…?options=-csearch_path%3Dkarat",
        )
    };
    migrations::is_current(&migrations::POSTGRES, &tables, &applied, foreign)
}

/// Refuses where there is no schema to make tables in: PostgreSQL would say so too, but not what was looked for.
async fn needs_schema(connection: &mut PgConnection, label: &str) -> Result<(), StoreError> {
    let asked = "select current_schema()::text, current_setting('search_path')";
    let found: (Option<String>, String) = sqlx::query_as(asked).fetch_one(connection).await.map_err(failed)?;
    match found {
        (Some(_), _) => Ok(()),
        (None, path) => Err(no_schema(label, &path)),
    }
}

fn no_schema(label: &str, path: &str) -> StoreError {
    let mut names = path.split(',').map(str::trim);
    let name = names.find(|name| !matches!(*name, "" | "\"\"" | "\"$user\""));
    let hint = match name {
        Some(name) => format!("make it with: create schema {name}; if it is there, let karat's user use it"),
        None => "name a schema that is there: postgres://…?options=-csearch_path%3Dkarat".to_owned(),
    };
    error_with(format!("PostgreSQL at {label} has no schema for karat: its search_path is {path}"), hint)
}

/// Migrates in one transaction, so that a connection that breaks leaves nothing half made. Whoever comes second waits and
/// finds it done.
async fn migrate(connection: &mut PgConnection, label: &str) -> Result<(), StoreError> {
    let begun = connection.begin_with("begin isolation level read committed").await;
    let mut transaction = begun.map_err(failed)?;
    let lock = "select pg_advisory_xact_lock(711033::int8 << 32)";
    sqlx::query(lock).execute(&mut *transaction).await.map_err(failed)?;
    let done = migrations::POSTGRES.run_direct(None, &mut *transaction, false).await;
    done.map_err(|cause| migrations::not_migrated(cause, label))?;
    transaction.commit().await.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_others_say_is_masked() {
        let options = PgConnectOptions::from_str("postgres://karat:karat@host/karat").expect("a URL");
        let secrets = secrets("postgres://karat:karat@host/karat");
        let cause = sqlx::Error::Protocol("no karat for you".to_owned());
        let told = not_connected(cause, &options, &label(&options), &secrets);
        assert!(told.message.starts_with("PostgreSQL at host:5432/karat cannot be used: "), "{}", told.message);
        assert!(told.message.ends_with("no *** for you"), "{}", told.message);
    }
}
