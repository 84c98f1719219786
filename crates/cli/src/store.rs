//! The store, for verbs that use it directly.

use karat_store::Store;
use karat_workflows::context::store;
use karat_workflows::settings::Settings;

use crate::failure::Failure;

pub(crate) async fn open_store(settings: &Settings) -> Result<Store, Failure> {
    Ok(store::open_store(settings).await?)
}

pub(crate) async fn open_store_to_read(settings: &Settings) -> Result<Store, Failure> {
    Ok(store::open_store_to_read(settings).await?)
}

pub(crate) async fn with_store<T>(
    opening: impl Future<Output = Result<Store, Failure>>,
    work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    Box::pin(store::with_store(opening, work)).await
}

pub(crate) async fn keep_store<T>(
    opening: impl Future<Output = Result<Store, Failure>>,
    work: impl AsyncFnOnce(&Store) -> Result<T, Failure>,
) -> Result<(Store, T), Failure> {
    Box::pin(store::keep_store(opening, work)).await
}
