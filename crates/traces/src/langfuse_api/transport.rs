//! Requests to a Langfuse server, with retries.

use std::time::Duration;

use karat_http::{
    BodyError, Client, ClientError, ClientOptions, Retry, RetryClass, RetryPolicy, StatusCode, Url, client,
    error_chain, parse_url, read_body, redact_url, send,
};
use serde_json::Value;

use super::LangfuseKeys;
use crate::values::MAX_VALUE_BYTES;
use karat_chat::lenient::json_error_with_position;

const MAX_RETRIES: u32 = 5;

/// The maximum pause while a response is read.
const READ_TIMEOUT: Duration = Duration::from_mins(2);

/// Why the traces of a server cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LangfuseError {
    #[error("'{url}' is not a valid Langfuse URL: {reason}")]
    Url { url: String, reason: String },
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
    #[error("the server rejected the API keys (status {0})")]
    Unauthorized(u16),
    #[error("'{0}' not found: is this a Langfuse server?")]
    NotFound(String),
    #[error("request for '{path}' failed with status {status}{detail}")]
    Status { path: String, status: u16, detail: String },
    #[error("invalid response to '{path}': {reason}")]
    InvalidResponse { path: String, reason: String },
    #[error("'{0}' returned a web page: is this the URL of a Langfuse server?")]
    WebPage(String),
    #[error("cannot reach the server: {0}")]
    Unreachable(String),
}

/// The response for a path.
#[derive(Debug)]
pub(super) enum Reply {
    Found(Value),
    NotFound,
}

impl Reply {
    /// Returns the value, or an error if the path was not found.
    pub(super) fn into_value(self, path: &str) -> Result<Value, LangfuseError> {
        match self {
            Self::Found(value) => Ok(value),
            Self::NotFound => Err(LangfuseError::NotFound(format!("api/public/{path}"))),
        }
    }
}

/// Sends requests.
#[derive(Debug)]
pub(super) struct Transport {
    client: Client,
    base: Url,
    keys: LangfuseKeys,
    pub(super) retry_delay: Duration,
}

/// An attempt that failed.
struct Failure {
    error: LangfuseError,
    class: RetryClass,
}

impl Failure {
    fn permanent(error: LangfuseError) -> Self {
        Self { error, class: RetryClass::Permanent }
    }

    fn transient(error: LangfuseError) -> Self {
        Self { error, class: RetryClass::UNREACHABLE }
    }
}

impl Transport {
    pub(super) fn new(url: &str, keys: LangfuseKeys) -> Result<Self, LangfuseError> {
        let invalid = |reason: String| LangfuseError::Url { url: redact_url(url), reason };
        let base = parse_url(url.trim()).map_err(|error| match error {
            ClientError::Url { reason, .. } => invalid(reason),
            other => LangfuseError::Client(other.to_string()),
        })?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(invalid("expected http:// or https://".to_owned()));
        }
        let options = ClientOptions { read_timeout: Some(READ_TIMEOUT), ..ClientOptions::default() };
        let client = client(&base, options).map_err(|error| LangfuseError::Client(error.to_string()))?;
        Ok(Self { client, base, keys, retry_delay: Duration::from_secs(1) })
    }

    /// Fetches a path. Retries on rate limits, server errors and invalid responses.
    pub(super) async fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Reply, LangfuseError> {
        self.get_checked(path, query, |_| true).await
    }

    /// Fetches a page of a list. A response without a list is invalid rather than the end of the list.
    pub(super) async fn get_page(&self, path: &[&str], query: &[(&str, String)]) -> Result<Reply, LangfuseError> {
        self.get_checked(path, query, |page| page.get("data").is_some_and(Value::is_array)).await
    }

    async fn get_checked(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        is_valid: fn(&Value) -> bool,
    ) -> Result<Reply, LangfuseError> {
        let url = self.url(path, query);
        let display_path = format!("api/public/{}", path.join("/"));
        let mut retry = Retry::new(RetryPolicy { max_retries: MAX_RETRIES, first_delay: self.retry_delay });
        loop {
            let failure = match self.try_once(&url, &display_path).await {
                Ok(Reply::Found(value)) if !is_valid(&value) => {
                    let reason = "missing list 'data'".to_owned();
                    Failure::transient(LangfuseError::InvalidResponse { path: display_path.clone(), reason })
                }
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let Ok(delay) = retry.next_delay(failure.class, true) else { return Err(failure.error) };
            tokio::time::sleep(delay).await;
        }
    }

    fn url(&self, path: &[&str], query: &[(&str, String)]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "public"]).extend(path);
        }
        url.set_query(None);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    async fn try_once(&self, url: &Url, path: &str) -> Result<Reply, Failure> {
        let request = self.client.get(url.clone()).basic_auth(&self.keys.public, Some(&self.keys.secret));
        let response = send(request).await.map_err(unreachable)?;
        let (status, class) = (response.status(), RetryClass::of(&response));
        match status {
            StatusCode::NOT_FOUND => return Ok(Reply::NotFound),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(Failure::permanent(LangfuseError::Unauthorized(status.as_u16())));
            }
            _ => {}
        }
        let body = read_body(response, MAX_VALUE_BYTES as u64).await.map_err(|error| match error {
            BodyError::TooLarge { .. } => {
                let reason = format!("longer than {} MB", MAX_VALUE_BYTES >> 20);
                Failure::permanent(LangfuseError::InvalidResponse { path: path.to_owned(), reason })
            }
            BodyError::Interrupted(reason) => Failure::transient(LangfuseError::Unreachable(reason)),
        });
        if !status.is_success() {
            let detail = body.map(|body| error_detail(&body)).unwrap_or_default();
            let error = LangfuseError::Status { path: path.to_owned(), status: status.as_u16(), detail };
            return Err(Failure { error, class });
        }
        let body = body?;
        if is_web_page(&body) {
            // A page of a proxy or another program: retrying does not help.
            return Err(Failure::permanent(LangfuseError::WebPage(path.to_owned())));
        }
        let invalid =
            |reason: String| Failure::transient(LangfuseError::InvalidResponse { path: path.to_owned(), reason });
        let value: Value =
            serde_json::from_slice(&body).map_err(|error| invalid(json_error_with_position(&body, &error)))?;
        if !value.is_object() {
            return Err(invalid("expected an object".to_owned()));
        }
        Ok(Reply::Found(value))
    }
}

fn is_web_page(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'<')
}

/// Returns the message of an error response, shortened.
fn error_detail(body: &[u8]) -> String {
    if is_web_page(body) {
        return " (web page)".to_owned();
    }
    let text = String::from_utf8_lossy(body);
    let value: Option<Value> = serde_json::from_str(&text).ok();
    let message = value.as_ref().and_then(|value| value.get("message").or_else(|| value.get("error"))?.as_str());
    let excerpt: String = message.unwrap_or(&text).chars().filter(|letter| !letter.is_control()).take(200).collect();
    if excerpt.trim().is_empty() { String::new() } else { format!(": {}", excerpt.trim()) }
}

fn unreachable(error: karat_http::Error) -> Failure {
    Failure::transient(LangfuseError::Unreachable(error_chain(error)))
}
