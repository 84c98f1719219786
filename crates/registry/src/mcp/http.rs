//! The streamable HTTP transport.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;

use karat_http::{ClientError, ClientOptions, client, header_map, parse_url};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};

use super::http_client::LimitedClient;

/// High enough that the run's own concurrency is the effective limit.
const MAX_CONCURRENT_REQUESTS: usize = 1024;

/// Creates the transport. Fails if a header is invalid.
pub(super) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<LimitedClient>, String> {
    let fails = |error: ClientError| match error {
        ClientError::Header { name, reason } => format!("has an invalid header '{name}': {reason}"),
        other => format!("cannot be reached: {other}"),
    };
    let map = header_map(headers).map_err(fails)?;
    let client = parse_url(url).and_then(|url| client(&url, ClientOptions::default())).map_err(fails)?;
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(map.into_iter().filter_map(|(name, value)| Some((name?, value))).collect())
        .max_concurrent_requests(MAX_CONCURRENT_REQUESTS);
    Ok(StreamableHttpClientTransport::with_client(LimitedClient(client), config))
}

/// Formats an error with its causes, without the URL, which may contain a key.
pub(super) fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut cause = Some(error);
    while let Some(next) = cause {
        // The client error is wrapped but not returned by `source`.
        let client = match next.downcast_ref::<StreamableHttpError<karat_http::Error>>() {
            Some(StreamableHttpError::Client(client)) => Some(client),
            _ => next.downcast_ref::<karat_http::Error>(),
        };
        cause = match client {
            Some(client) => client.source(),
            None => next.source(),
        };
        let message = match client {
            Some(_) if cause.is_some() => "no response".to_owned(),
            Some(_) => "the HTTP request failed".to_owned(),
            None => next.to_string(),
        };
        if text.is_empty() {
            text = message;
        } else if !text.contains(&message) {
            let _ = write!(text, ": {message}");
        }
    }
    text
}
