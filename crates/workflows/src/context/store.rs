//! Opens and closes the store.

use karat_store::{Location, Store};

use crate::error::Error;
use crate::hint::Hint;
use crate::settings::Settings;

/// Opens the store; creates the file if it does not exist.
pub async fn open_store(settings: &Settings) -> Result<Store, Error> {
    Ok(Store::open(&settings.store).await?)
}

/// Opens the store for a command that needs existing data. Does not create a file, so that a mistyped name is an error.
pub async fn open_existing_store(settings: &Settings) -> Result<Store, Error> {
    match &settings.store {
        Location::File(path) if !path.exists() => {
            Err(Error::nothing_selected(format!("the store {} does not exist", settings.display_path(path)))
                .hint(Hint::CreateStore))
        }
        _ => open_store(settings).await,
    }
}

/// Runs `work` with a store and closes it in any case: an unclosed file leaves a journal next to it, so that a copy of
/// the file alone is incomplete.
pub async fn with_store<T, E: From<O>, O>(
    opening: impl Future<Output = Result<Store, O>>,
    work: impl AsyncFnOnce(&Store) -> Result<T, E>,
) -> Result<T, E> {
    let (store, output) = with_open_store(opening, work).await?;
    store.close().await;
    Ok(output)
}

/// Runs `work` with a store and returns the open store; closes it if `work` fails.
pub async fn with_open_store<T, E: From<O>, O>(
    opening: impl Future<Output = Result<Store, O>>,
    work: impl AsyncFnOnce(&Store) -> Result<T, E>,
) -> Result<(Store, T), E> {
    let store = opening.await?;
    match work(&store).await {
        Ok(output) => Ok((store, output)),
        Err(error) => {
            store.close().await;
            Err(error)
        }
    }
}
