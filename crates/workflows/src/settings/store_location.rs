//! Where traces, evals, verdicts and runs are kept.

use karat_core::redact::Redactor;
use karat_store::Location;

use super::Resolver;
use crate::error::Error;

/// Where the database is if nobody says.
const DEFAULT: &str = ".karat/karat.db";

/// Reads where the store is: a URL of PostgreSQL, or else a file.
pub(super) fn store_location(
    flag: Option<&str>,
    key: Option<&str>,
    resolver: &Resolver<'_>,
    redactor: &Redactor,
) -> Result<Location, Error> {
    let text = flag.or(key).unwrap_or(DEFAULT);
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        redactor.learn_database(text);
        return Ok(Location::Postgres(text.to_owned()));
    }
    // What was meant for a server must not become a file, whose name would tell the password.
    let small = text.to_lowercase();
    if small.starts_with("postgres:") || small.starts_with("postgresql:") || small.contains("password=") {
        return Err(Error::invalid("'store' is no URL of PostgreSQL, and no name for a file")
            .hint("a URL has the form postgres://USER:PASSWORD@HOST:PORT/DATABASE"));
    }
    if let Some((scheme, _)) = text.split_once("://") {
        return Err(Error::invalid(format!("there is no store of the kind '{scheme}'"))
            .hint("a file for SQLite, or postgres://USER@HOST/DATABASE"));
    }
    if text.is_empty() {
        return Err(Error::invalid("'store' is empty"));
    }
    let path = resolver.path(flag, key, DEFAULT).path;
    Ok(Location::File(path))
}
