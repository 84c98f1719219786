//! Where things are kept between commands.

use karat_store::{Location, Store};

use crate::error::Error;
use crate::hint::Hint;
use crate::settings::Settings;

/// Opens the store, and makes it where it is a file that is not there yet.
pub async fn open_store(settings: &Settings) -> Result<Store, Error> {
    Ok(Store::open(&settings.store).await?)
}

/// Opens the store for a verb that has nothing to do where nothing was ever kept: no file is made, least of all under a
/// name that was mistyped.
pub async fn open_store_to_read(settings: &Settings) -> Result<Store, Error> {
    match &settings.store {
        Location::File(path) if !path.exists() => {
            Err(Error::nothing_selected(format!("there is no store at {}", settings.shown(path)))
                .hint(Hint::CreateStore))
        }
        _ => open_store(settings).await,
    }
}

/// Works with a store and closes it, whatever came of it: a file that is not closed leaves a journal beside it, and whoever
/// copies the file alone copies only a part.
pub async fn with_store<T, E: From<O>, O>(
    opening: impl Future<Output = Result<Store, O>>,
    work: impl AsyncFnOnce(&Store) -> Result<T, E>,
) -> Result<T, E> {
    let (store, done) = keep_store(opening, work).await?;
    store.close().await;
    Ok(done)
}

/// Works with a store and gives it back for more; where the work failed, it is closed.
pub async fn keep_store<T, E: From<O>, O>(
    opening: impl Future<Output = Result<Store, O>>,
    work: impl AsyncFnOnce(&Store) -> Result<T, E>,
) -> Result<(Store, T), E> {
    let store = opening.await?;
    match work(&store).await {
        Ok(done) => Ok((store, done)),
        Err(failure) => {
            store.close().await;
            Err(failure)
        }
    }
}
