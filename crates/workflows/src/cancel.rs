//! Cancellable futures.

use tokio_util::sync::CancellationToken;

use crate::error::Error;

pub(crate) async fn run_until_cancelled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    cancel.run_until_cancelled(work).await.unwrap_or_else(|| Err(Error::cancelled()))
}
