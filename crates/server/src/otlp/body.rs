//! Reads request bodies.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use tokio::time::{Instant, timeout, timeout_at};

use super::limits::Limits;
use super::memory::{MemoryExceeded, MemoryReservation};

/// Limits for draining a refused body: a client whose connection is closed while it sends does not read the response.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_DRAIN_BYTES: usize = 1 << 30;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyError {
    TooLarge,
    MemoryExceeded,
    TimedOut,
    /// The connection was closed, so the response is not read.
    Closed,
}

impl From<MemoryExceeded> for BodyError {
    fn from(_: MemoryExceeded) -> Self {
        Self::MemoryExceeded
    }
}

/// Reads a body and reserves memory for it as it arrives. A refused body is drained within limits, unless the client
/// sent `Expect: 100-continue`.
pub(super) async fn read_body(
    mut body: Body,
    expects_continue: bool,
    limits: &Limits,
    memory: &mut MemoryReservation,
) -> Result<Vec<u8>, BodyError> {
    let result = read(&mut body, limits, memory).await;
    if matches!(result, Err(BodyError::TooLarge | BodyError::MemoryExceeded)) && !expects_continue {
        // The response is sent in any case.
        let _ = timeout(DRAIN_TIMEOUT, drain(&mut body)).await;
    }
    result
}

async fn read(body: &mut Body, limits: &Limits, memory: &mut MemoryReservation) -> Result<Vec<u8>, BodyError> {
    let content_length = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if content_length > limits.max_request_bytes {
        return Err(BodyError::TooLarge);
    }
    let request_deadline = Instant::now() + limits.request_timeout;
    let mut bytes = Vec::new();
    loop {
        let deadline = request_deadline.min(Instant::now() + limits.idle_timeout);
        let Some(chunk) = timeout_at(deadline, next_chunk(body)).await.map_err(|_| BodyError::TimedOut)?? else {
            return Ok(bytes);
        };
        if bytes.len() + chunk.len() > limits.max_request_bytes {
            return Err(BodyError::TooLarge);
        }
        memory.grow(chunk.len())?;
        bytes.extend_from_slice(&chunk);
    }
}

/// Returns the next chunk, or `None` at the end.
async fn next_chunk(body: &mut Body) -> Result<Option<Bytes>, BodyError> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            None => return Ok(None),
            Some(Err(_)) => return Err(BodyError::Closed),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

async fn drain(body: &mut Body) {
    let mut drained = 0;
    while let Ok(Some(chunk)) = next_chunk(body).await {
        drained += chunk.len();
        if drained > MAX_DRAIN_BYTES {
            return;
        }
    }
}
