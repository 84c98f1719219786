//! Where things are kept between commands.

use karat_core::port::StoreError;
use karat_core::redact::Redactor;
use karat_store::{Location, Store};
use percent_encoding::percent_decode_str;

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
        let passwords = passwords(text);
        if !passwords.is_empty() {
            redactor.add(text);
        }
        for password in &passwords {
            redactor.add(password);
        }
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

/// Returns the passwords of a URL, as they are written there and as they are meant: a server may tell of either.
fn passwords(url: &str) -> Vec<String> {
    let Some((_, rest)) = url.split_once("://") else {
        return Vec::new();
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let user = place.split('/').next().and_then(|place| place.rsplit_once('@'));
    let of_user = user.and_then(|(user, _)| user.split_once(':')).map(|(_, password)| password.to_owned());
    let pairs = query.split(['&', '#']).filter_map(|pair| pair.split_once('='));
    let of_query = pairs.filter(|(key, _)| matches!(*key, "password" | "sslpassword"));
    // A plus sign is a space in a query only.
    let of_query = of_query.flat_map(|(_, value)| [value.to_owned(), value.replace('+', " ")]);
    let written: Vec<String> = of_user.into_iter().chain(of_query).filter(|password| !password.is_empty()).collect();
    let mut all: Vec<String> = written.iter().map(|password| decoded(password)).collect();
    all.extend(written);
    all.sort();
    all.dedup();
    all
}

/// Puts the characters in the place of `%40` and the like.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("postgres://karat:hunter2@localhost/db", &["hunter2"])]
    #[case("postgres://karat@localhost/db", &[])]
    #[case("postgres://karat:@localhost/db", &[])]
    #[case("postgres://localhost/a:b@c", &[])]
    #[case("postgres://u:p%40q@h:5432/db", &["p%40q", "p@q"])]
    #[case("postgres://u:100%@h:5432/db", &["100%"])]
    #[case("postgres://u@h/db?sslmode=require&password=hunter2%21", &["hunter2!", "hunter2%21"])]
    #[case("postgres://u@h/db?password=a+b", &["a b", "a+b"])]
    fn passwords_are_found(#[case] url: &str, #[case] expected: &[&str]) {
        assert_eq!(passwords(url), expected);
    }
}
