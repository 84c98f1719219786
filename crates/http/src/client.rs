//! The HTTP client: TLS by rustls and ring, proxies from the environment, no redirects.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use rustls::crypto::ring::default_provider;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// An error when creating a client or a request.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("'{url}' is not a URL: {reason}")]
    Url { url: String, reason: String },
    #[error("cannot send the header '{name}': {reason}")]
    Header { name: String, reason: String },
    #[error("cannot create the HTTP client: {0}")]
    Setup(String),
}

/// Options of a client.
#[derive(Debug, Default)]
pub struct ClientOptions {
    /// Sent with every request.
    pub headers: HeaderMap,
    /// Maximum time without data while reading a response; unlimited by default.
    pub read_timeout: Option<Duration>,
}

/// Creates a client for one server; only the URL's scheme and credentials are used.
///
/// Redirects are not followed: headers may contain secrets, which must not reach another server.
pub fn client(url: &Url, options: ClientOptions) -> Result<Client, ClientError> {
    let ClientOptions { headers, read_timeout } = options;
    if has_credentials(url) && headers.contains_key(AUTHORIZATION) {
        let reason = "the user and password in the URL would replace it".to_owned();
        return Err(ClientError::Header { name: AUTHORIZATION.to_string(), reason });
    }
    let mut builder = Client::builder()
        .user_agent(concat!("karat/", env!("CARGO_PKG_VERSION")))
        .default_headers(headers)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT);
    if let Some(timeout) = read_timeout {
        builder = builder.read_timeout(timeout);
    }
    let builder = match url.scheme() {
        "https" => {
            // An error means that a provider is already installed.
            default_provider().install_default().ok();
            builder
        }
        // Loading the system's certificates is slow, and plain HTTP needs none.
        "http" => builder.tls_backend_preconfigured(without_certificates()?),
        other => {
            let reason = format!("expected http or https, found '{other}'");
            return Err(ClientError::Url { url: redact_url(url.as_str()), reason });
        }
    };
    builder.build().map_err(|error| ClientError::Setup(error_chain(error)))
}

fn without_certificates() -> Result<rustls::ClientConfig, ClientError> {
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError::Setup(error.to_string()))?;
    Ok(config.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
}

/// Parses a URL. The error shows the URL without secrets.
pub fn parse_url(text: &str) -> Result<Url, ClientError> {
    Url::parse(text).map_err(|error| ClientError::Url { url: redact_url(text), reason: error.to_string() })
}

/// Whether a URL has a user or password, which are sent as the `Authorization` header.
pub fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Removes user, password, query and fragment from a URL, valid or not: any of them may be secret.
pub fn redact_url(url: &str) -> String {
    let colon = url.find("://").filter(|colon| url.bytes().take(*colon).all(|byte| byte.is_ascii_alphanumeric()));
    let (scheme, rest) = colon.map_or(("", url), |colon| url.split_at(colon + 3));
    let host = rest.rsplit('@').next().unwrap_or(rest);
    let user = &rest[..rest.len() - host.len()];
    // An '@' after a question mark may end a password or be part of the query.
    let host = if user.contains(['?', '#']) { "…" } else { host.split(['?', '#']).next().unwrap_or(host) };
    format!("{scheme}{host}")
}

/// Creates headers marked as sensitive, so that logs do not show their values.
pub fn header_map<'a>(headers: impl IntoIterator<Item = (&'a String, &'a String)>) -> Result<HeaderMap, ClientError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let fail = |reason: String| ClientError::Header { name: name.clone(), reason };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|error| fail(error.to_string()))?;
        let mut value =
            HeaderValue::from_str(value).map_err(|_| fail("its value contains forbidden characters".to_owned()))?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    Ok(map)
}

/// Formats an error with its causes, without the URL, which may contain a key. Of a failed connection, only the root
/// cause is useful.
pub fn error_chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    if error.is_connect() {
        let root = std::iter::successors(std::error::Error::source(&error), |cause| cause.source()).last();
        if let Some(root) = root {
            return plain_cause(&root.to_string());
        }
    }
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

/// Removes the number of an operating system's error, and the capital letter.
fn plain_cause(text: &str) -> String {
    let text = text.find(" (os error ").map_or(text, |end| &text[..end]);
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_lowercase());
    // Keep a word in capitals, such as a name.
    let is_word = characters.clone().next().is_some_and(char::is_lowercase);
    match first {
        Some(first) if is_word => first.to_string() + characters.as_str(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Connection refused (os error 111)", "connection refused")]
    #[case("invalid peer certificate: UnknownIssuer", "invalid peer certificate: UnknownIssuer")]
    #[case("DNS is down", "DNS is down")]
    #[case("", "")]
    fn a_cause_is_a_lower_case_fragment(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(plain_cause(text), expected);
    }

    #[tokio::test]
    async fn a_refused_connection_has_one_cause() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        drop(listener);
        let error = client(&parse_url(&url).expect("a URL"), ClientOptions::default())
            .expect("a client")
            .get(url)
            .send()
            .await
            .expect_err("nothing listens");
        assert_eq!(error_chain(error), "connection refused");
    }

    #[rstest]
    #[case("https://host/path?key=s3cret#x", "https://host/path")]
    #[case("https://me:s3cret@host/path", "https://host/path")]
    #[case("https://me:s3?cret@host", "https://…")]
    #[case("me:s3cret@host", "host")]
    #[case("nonsense", "nonsense")]
    fn redacts_the_secret_parts_of_urls(#[case] url: &str, #[case] redacted: &str) {
        assert_eq!(redact_url(url), redacted);
    }

    #[test]
    fn rejects_an_authorization_header_with_url_credentials() {
        let headers = header_map([(&"Authorization".to_owned(), &"Bearer x".to_owned())]).expect("valid");
        let options = ClientOptions { headers, ..ClientOptions::default() };
        let url = parse_url("http://me:secret@host/").expect("a URL");
        let error = client(&url, options).expect_err("two of one header").to_string();
        assert_eq!(error, "cannot send the header 'authorization': the user and password in the URL would replace it");
    }
}
