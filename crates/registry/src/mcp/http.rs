//! The wire to a server that speaks streamable HTTP.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;

use karat_http::{Client, ClientError, ClientOptions, client, header_map, parse_url};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};

/// How many requests may be under way at once; a run's own concurrency is the limit that people set.
const REQUESTS_AT_ONCE: usize = 1024;

/// Prepares the wire; headers that cannot be sent are an error.
pub(super) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let fails = |error: ClientError| match error {
        ClientError::Header { name, reason } => format!("cannot be sent the header '{name}': {reason}"),
        other => format!("cannot be asked: {other}"),
    };
    let map = header_map(headers).map_err(fails)?;
    let client = parse_url(url).and_then(|url| client(&url, ClientOptions::default())).map_err(fails)?;
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(map.into_iter().filter_map(|(name, value)| Some((name?, value))).collect())
        .max_concurrent_requests(REQUESTS_AT_ONCE);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Tells the whole chain of causes, without the URL, which may hold a key.
pub(super) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut cause = Some(error);
    while let Some(next) = cause {
        // It has its cause inside without calling it one.
        let client = match next.downcast_ref::<StreamableHttpError<karat_http::Error>>() {
            Some(StreamableHttpError::Client(client)) => Some(client),
            _ => next.downcast_ref::<karat_http::Error>(),
        };
        cause = match client {
            Some(client) => client.source(),
            None => next.source(),
        };
        let words = match client {
            Some(_) if cause.is_some() => "no answer".to_owned(),
            Some(_) => "the HTTP exchange failed".to_owned(),
            None => next.to_string(),
        };
        if text.is_empty() {
            text = words;
        } else if !text.contains(&words) {
            let _ = write!(text, ": {words}");
        }
    }
    text
}
