//! The location of the store.

use karat_core::redact::Redactor;
use karat_store::Location;

use super::Resolver;
use crate::error::Error;

const DEFAULT_STORE: &str = ".karat/karat.db";

/// Parses the location of the store: a PostgreSQL URL or a file.
pub(super) fn store_location(
    flag: Option<&str>,
    key: Option<&str>,
    resolver: &Resolver<'_>,
    redactor: &Redactor,
) -> Result<Location, Error> {
    let text = flag.or(key).unwrap_or(DEFAULT_STORE);
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        redactor.add_database_url(text);
        return Ok(Location::Postgres(text.to_owned()));
    }
    // A malformed URL must not become a file name, which would reveal the password.
    let lower = text.to_lowercase();
    if lower.starts_with("postgres:") || lower.starts_with("postgresql:") || lower.contains("password=") {
        return Err(Error::invalid("'store' is neither a valid PostgreSQL URL nor a file name")
            .hint("a URL has the form postgres://USER:PASSWORD@HOST:PORT/DATABASE"));
    }
    if let Some((scheme, _)) = text.split_once("://") {
        return Err(Error::invalid(format!("unsupported store '{scheme}://'"))
            .hint("use a file for SQLite, or postgres://USER@HOST/DATABASE"));
    }
    if text.is_empty() {
        return Err(Error::invalid("'store' is empty"));
    }
    let path = resolver.path(flag, key, DEFAULT_STORE).path;
    Ok(Location::File(path))
}
