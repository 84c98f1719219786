//! A single request.

use reqwest::header::LOCATION;
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde_json::Value;

use crate::body::{BodyError, read_body};
use crate::client::{ClientError, ClientOptions, client, error_chain, header_map, parse_url, redact_url};
use crate::send::send;

/// An error of a fetch.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("cannot reach {url}: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("the server returned HTTP {status}{}", redirect_note(.location.as_deref()))]
    Status { status: StatusCode, location: Option<String> },
    #[error(transparent)]
    Body(#[from] BodyError),
}

fn redirect_note(location: Option<&str>) -> String {
    location.map_or_else(String::new, |location| format!(", a redirect to {location}"))
}

/// Fetches the body of a successful response.
pub async fn fetch(url: &str, headers: &[(String, String)], max_bytes: u64) -> Result<Vec<u8>, FetchError> {
    exchange(url, headers, max_bytes, reqwest::Client::get).await
}

/// Posts JSON and returns the body of a successful response.
pub async fn post(
    url: &str,
    headers: &[(String, String)],
    body: &Value,
    max_bytes: u64,
) -> Result<Vec<u8>, FetchError> {
    exchange(url, headers, max_bytes, |client, url| client.post(url).json(body)).await
}

async fn exchange(
    url: &str,
    headers: &[(String, String)],
    max_bytes: u64,
    request: impl FnOnce(&Client, Url) -> RequestBuilder,
) -> Result<Vec<u8>, FetchError> {
    let url = parse_url(url)?;
    let headers = header_map(headers.iter().map(|(name, value)| (name, value)))?;
    let client = client(&url, ClientOptions { headers, ..ClientOptions::default() })?;
    let response = send(request(&client, url.clone()))
        .await
        .map_err(|error| FetchError::Unreachable { url: redact_url(url.as_str()), reason: error_chain(error) })?;
    let status = response.status();
    if status.is_success() {
        return Ok(read_body(response, max_bytes).await?);
    }
    // The body is not reported: an error page may be long and contain anything.
    let location = response.headers().get(LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Err(FetchError::Status { status, location })
}
