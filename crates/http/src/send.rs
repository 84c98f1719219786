//! Sends a request with logging.

use std::time::Instant;

use reqwest::{Error, RequestBuilder, Response};
use tracing::{Instrument as _, debug, debug_span, trace};

use crate::client::redact_url;

/// Sends a request and waits for the response headers. Logs neither headers nor bodies.
pub async fn send(request: RequestBuilder) -> Result<Response, Error> {
    let (client, request) = request.build_split();
    let request = request?;
    let span = debug_span!("call", method = %request.method(), url = %redact_url(request.url().as_str()));
    let call = async move {
        trace!(bytes = request.body().and_then(reqwest::Body::as_bytes).map(<[u8]>::len), "sending");
        let start = Instant::now();
        let sent = client.execute(request).await;
        let elapsed_ms = start.elapsed().as_millis();
        match &sent {
            Ok(response) => debug!(status = response.status().as_u16(), elapsed_ms, "response received"),
            Err(error) => debug!(reason = reason(error), elapsed_ms, "no response"),
        }
        sent
    };
    call.instrument(span).await
}

/// Describes an error by its kind, since its text contains the whole URL.
fn reason(error: &Error) -> &'static str {
    if error.is_timeout() {
        "timeout"
    } else if error.is_connect() {
        "no connection"
    } else {
        "connection interrupted"
    }
}
