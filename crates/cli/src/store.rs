//! Where things are kept between commands.

use karat_core::port::StoreError;
use karat_core::redact::Redactor;
use karat_store::{Location, Store};

use crate::failure::Failure;
use crate::settings::{Resolver, Settings};

/// Where the database is if nobody says.
const DEFAULT: &str = ".karat/karat.db";

/// Reads where the store is: a URL of PostgreSQL, or else a file.
pub(crate) fn store_location(
    flag: Option<&str>,
    key: Option<&str>,
    resolver: &Resolver<'_>,
    redactor: &mut Redactor,
) -> Result<Location, Failure> {
    let text = flag.or(key).unwrap_or(DEFAULT);
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        redactor.learn_database(text);
        return Ok(Location::Postgres(text.to_owned()));
    }
    // What was meant for a server must not become a file, whose name would tell the password.
    let small = text.to_lowercase();
    if small.starts_with("postgres:") || small.starts_with("postgresql:") || small.contains("password=") {
        return Err(Failure::invalid("'store' is no URL of PostgreSQL, and no name for a file")
            .hint("a URL has the form postgres://USER:PASSWORD@HOST:PORT/DATABASE"));
    }
    if let Some((scheme, _)) = text.split_once("://") {
        return Err(Failure::invalid(format!("there is no store of the kind '{scheme}'"))
            .hint("a file for SQLite, or postgres://USER@HOST/DATABASE"));
    }
    if text.is_empty() {
        return Err(Failure::invalid("'store' is empty"));
    }
    let path = resolver.path(flag.map(std::path::Path::new), key, DEFAULT).path;
    Ok(Location::File(path))
}

/// Opens the store, and makes it where it is a file that is not there yet.
pub(crate) async fn open_store(settings: &Settings) -> Result<Store, Failure> {
    Store::open(&settings.store).await.map_err(store_failure)
}

/// Opens the store for a verb that has nothing to do where nothing was ever kept: no file is made, least of all under a
/// name that was mistyped.
pub(crate) async fn open_store_to_read(settings: &Settings) -> Result<Store, Failure> {
    match &settings.store {
        Location::File(path) if !path.exists() => {
            Err(Failure::nothing_selected(format!("there is no store at {}", settings.shown(path))).hint(
                "'karat trace import FILE', 'karat eval add FILE' and 'karat run' make one; --store names another",
            ))
        }
        _ => open_store(settings).await,
    }
}

/// Works with a store and closes it, whatever came of it: a file that is not closed leaves a journal beside it, and whoever
/// copies the file alone copies only a part.
pub(crate) async fn with_store<T>(
    opening: impl Future<Output = Result<Store, Failure>>,
    work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (store, done) = keep_store(opening, work).await?;
    store.close().await;
    Ok(done)
}

/// Works with a store and gives it back for more; where the work failed, it is closed.
pub(crate) async fn keep_store<T>(
    opening: impl Future<Output = Result<Store, Failure>>,
    work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
) -> Result<(Store, T), Failure> {
    let store = opening.await?;
    match work(&store).await {
        Ok(done) => Ok((store, done)),
        Err(failure) => {
            store.close().await;
            Err(failure)
        }
    }
}

/// Tells of a store that did not do what it was asked.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    let failure = Failure::errored(error.message);
    match error.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
