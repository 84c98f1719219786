//! The HTTP client that all agents share, and what it says when something goes wrong.

use std::fmt::Write as _;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};

/// Why no request can be made at all.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("'{url}' is not a URL: {reason}")]
    Url { url: String, reason: String },
    #[error("the header '{name}' cannot be sent: {reason}")]
    Header { name: String, reason: String },
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}

/// Returns what of an address can be shown: not its user, password, query and fragment, which may be secret.
pub(crate) fn shown(url: &str) -> String {
    let colon = url.find("://").filter(|colon| url.bytes().take(*colon).all(|byte| byte.is_ascii_alphanumeric()));
    let (scheme, rest) = colon.map_or(("", url), |colon| url.split_at(colon + 3));
    let host = rest.rsplit('@').next().unwrap_or(rest);
    let user = &rest[..rest.len() - host.len()];
    // An '@' behind a question mark may end a password or stand in the query: who knows.
    let host = if user.contains(['?', '#']) { "…" } else { host.split(['?', '#']).next().unwrap_or(host) };
    format!("{scheme}{host}")
}

pub(crate) fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, ClientError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let fail = |reason: String| ClientError::Header { name: name.clone(), reason };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|error| fail(error.to_string()))?;
        let mut value =
            HeaderValue::from_str(value).map_err(|_| fail("its value has forbidden characters".to_owned()))?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    Ok(map)
}

pub(crate) fn client(url: &Url, headers: HeaderMap) -> Result<Client, ClientError> {
    let builder = Client::builder()
        .user_agent(concat!("karat/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(30));
    let builder = match url.scheme() {
        "https" => {
            // Only the first call in a process sets it; that it was set before is fine.
            rustls::crypto::ring::default_provider().install_default().ok();
            builder
        }
        // The machine's certificates take a while to load, and plain HTTP needs none.
        "http" => builder.tls_backend_preconfigured(without_certificates()?),
        other => {
            let reason = format!("'{other}' is neither http nor https");
            return Err(ClientError::Url { url: shown(url.as_str()), reason });
        }
    };
    builder.build().map_err(|error| ClientError::Client(describe(error)))
}

fn without_certificates() -> Result<rustls::ClientConfig, ClientError> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError::Client(error.to_string()))?;
    Ok(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

/// Tells the whole chain of causes, without the URL, which may hold a key.
pub(crate) fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.contains(&next_text) {
            let _ = write!(text, ": {next_text}");
        }
        cause = next.source();
    }
    text
}

/// Why a body was not received.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the reply is larger than {0} bytes ('maxResponseBytes')")]
    TooLarge(u64),
    #[error("{0}")]
    Broken(String),
}

/// Receives a body, but no more of it than is allowed.
pub(crate) async fn read_body(mut response: Response, most: u64) -> Result<Vec<u8>, BodyError> {
    let limit = usize::try_from(most).unwrap_or(usize::MAX);
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| BodyError::Broken(describe(error)))? {
        if body.len() + chunk.len() > limit {
            return Err(BodyError::TooLarge(most));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
