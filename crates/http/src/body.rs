//! Bodies with a size limit.

use std::ops::ControlFlow;

use reqwest::Response;

use crate::client::error_chain;

/// Why a body could not be received.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("the reply is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("{0}")]
    Interrupted(String),
}

/// Receives a body, and stops as soon as it exceeds the limit.
pub async fn read_body(response: Response, limit: u64) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    read_chunks(response, limit, |chunk| {
        body.extend_from_slice(chunk);
        ControlFlow::Continue(())
    })
    .await?;
    Ok(body)
}

/// Receives a body in chunks, until it ends, exceeds the limit, or the receiver stops.
pub async fn read_chunks(
    mut response: Response,
    limit: u64,
    mut on_chunk: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), BodyError> {
    let max_bytes = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut bytes = 0;
    while let Some(chunk) = response.chunk().await.map_err(|error| BodyError::Interrupted(error_chain(error)))? {
        bytes += chunk.len();
        if bytes > max_bytes {
            return Err(BodyError::TooLarge { limit });
        }
        if on_chunk(&chunk).is_break() {
            break;
        }
    }
    tracing::trace!(bytes, "body received");
    Ok(())
}
