//! The reading of a request's body.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use tokio::time::{Instant, timeout, timeout_at};

use super::limits::Limits;
use super::room::{NoRoom, Place};

/// How long somebody who sends too much is listened to, and for how many bytes: who is cut off while he sends does not
/// read the answer.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_BYTES: usize = 1 << 30;

/// Why there is no body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyProblem {
    TooLong,
    NoRoom,
    TooSlow,
    /// The connection broke, so that nobody reads the answer.
    Broken,
}

impl From<NoRoom> for BodyProblem {
    fn from(_: NoRoom) -> Self {
        Self::NoRoom
    }
}

/// Reads a body, and takes room for it while it comes. One that cannot be taken is read to its end all the same, as far
/// as that is bearable, unless its sender waits for a word before sending.
pub(super) async fn read_body(
    mut body: Body,
    waits: bool,
    limits: &Limits,
    place: &mut Place,
) -> Result<Vec<u8>, BodyProblem> {
    let read = read(&mut body, limits, place).await;
    if matches!(read, Err(BodyProblem::TooLong | BodyProblem::NoRoom)) && !waits {
        // An answer is sent whatever comes of this.
        let _ = timeout(PATIENCE, pass_over(&mut body)).await;
    }
    read
}

async fn read(body: &mut Body, limits: &Limits, place: &mut Place) -> Result<Vec<u8>, BodyProblem> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > limits.request_bytes {
        return Err(BodyProblem::TooLong);
    }
    let end = Instant::now() + limits.arrival;
    let mut bytes = Vec::new();
    loop {
        let until = end.min(Instant::now() + limits.pause);
        let Some(chunk) = timeout_at(until, next(body)).await.map_err(|_| BodyProblem::TooSlow)?? else {
            return Ok(bytes);
        };
        if bytes.len() + chunk.len() > limits.request_bytes {
            return Err(BodyProblem::TooLong);
        }
        place.grow(chunk.len())?;
        bytes.extend_from_slice(&chunk);
    }
}

/// Returns the next bytes; none at the end.
async fn next(body: &mut Body) -> Result<Option<Bytes>, BodyProblem> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await {
            None => return Ok(None),
            Some(Err(_)) => return Err(BodyProblem::Broken),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

async fn pass_over(body: &mut Body) {
    let mut passed = 0;
    while let Ok(Some(chunk)) = next(body).await {
        passed += chunk.len();
        if passed > PATIENCE_BYTES {
            return;
        }
    }
}
