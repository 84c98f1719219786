//! Bodies with a size limit.

use reqwest::Response;

use crate::client::error_chain;

/// An error when receiving a body.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    #[error("the reply is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("{0}")]
    Interrupted(String),
}

/// Receives a body, and stops as soon as it exceeds the limit.
pub async fn read_body(mut response: Response, limit: u64) -> Result<Vec<u8>, BodyError> {
    let max_bytes = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| BodyError::Interrupted(error_chain(error)))? {
        if body.len() + chunk.len() > max_bytes {
            return Err(BodyError::TooLarge { limit });
        }
        body.extend_from_slice(&chunk);
    }
    tracing::trace!(bytes = body.len(), "body received");
    Ok(body)
}
