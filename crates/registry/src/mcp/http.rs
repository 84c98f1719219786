//! The wire to a server that speaks streamable HTTP.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};

/// How many requests may be under way at once; a run's own concurrency is the limit that people set.
const REQUESTS_AT_ONCE: usize = 1024;

/// Prepares the wire; headers that cannot be sent are an error.
pub(super) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let mut map = HashMap::new();
    for (name, value) in headers {
        let fail = |reason: &str| format!("cannot be sent the header '{name}': {reason}");
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|error| fail(&error.to_string()))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| fail("its value has forbidden characters"))?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    // Only the first call in a process sets it; that it was set before is fine.
    rustls::crypto::ring::default_provider().install_default().ok();
    let client = Client::builder()
        .user_agent(concat!("karat/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(30))
        .build()
        .map_err(|error| format!("cannot be asked: {}", causes(&error)))?;
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(map)
        .max_concurrent_requests(REQUESTS_AT_ONCE);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Tells the whole chain of causes, without the URL, which may hold a key.
pub(super) fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut cause = Some(error);
    while let Some(next) = cause {
        // It has its cause inside without calling it one.
        let client = match next.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            Some(StreamableHttpError::Client(client)) => Some(client),
            _ => next.downcast_ref::<reqwest::Error>(),
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
