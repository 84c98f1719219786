//! Requests to a Langfuse server, tried again where that may help.

use std::time::Duration;

use karat_http::{
    BodyError, Client, ClientError, ClientOptions, Retry, RetryClass, RetryPolicy, StatusCode, Url, client,
    error_chain, parse_url, read_body, redact_url, send,
};
use serde_json::Value;

use super::LangfuseKeys;
use crate::json::why_and_where_no_json;
use crate::values::LONGEST;

const MAX_RETRIES: u32 = 5;

/// How long the server may send nothing while a reply is being read.
const READ_TIMEOUT: Duration = Duration::from_mins(2);

/// Why a server's traces cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LangfuseError {
    #[error("'{url}' is no address of a Langfuse server: {why}")]
    Url { url: String, why: String },
    #[error("cannot make requests: {0}")]
    Client(String),
    #[error("the server does not accept the keys (status {0})")]
    Keys(u16),
    #[error("the server has no '{0}': is it a Langfuse server?")]
    Missing(String),
    #[error("the server answers '{path}' with status {status}{said}")]
    Status { path: String, status: u16, said: String },
    #[error("the server's answer to '{path}' cannot be read: {why}")]
    Broken { path: String, why: String },
    #[error("the server answers '{0}' with a web page: is it the address of a Langfuse server?")]
    WebPage(String),
    #[error("the server cannot be reached: {0}")]
    Unreached(String),
}

/// What a server has at a path.
#[derive(Debug)]
pub(super) enum Reply {
    Found(Value),
    Missing,
}

impl Reply {
    /// Returns what is there, where something has to be.
    pub(super) fn found(self, path: &str) -> Result<Value, LangfuseError> {
        match self {
            Self::Found(value) => Ok(value),
            Self::Missing => Err(LangfuseError::Missing(format!("api/public/{path}"))),
        }
    }
}

/// Makes requests.
#[derive(Debug)]
pub(super) struct Transport {
    client: Client,
    base: Url,
    keys: LangfuseKeys,
    pub(super) pause: Duration,
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
        let wrong = |why: String| LangfuseError::Url { url: redact_url(url), why };
        let base = parse_url(url.trim()).map_err(|error| match error {
            ClientError::Url { reason, .. } => wrong(reason),
            other => LangfuseError::Client(other.to_string()),
        })?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(wrong("it begins with neither http:// nor https://".to_owned()));
        }
        let options = ClientOptions { read_timeout: Some(READ_TIMEOUT), ..ClientOptions::default() };
        let client = client(&base, options).map_err(|error| LangfuseError::Client(error.to_string()))?;
        Ok(Self { client, base, keys, pause: Duration::from_secs(1) })
    }

    /// Gets what is at a path; retries on rate limits, failures of the server and broken answers.
    pub(super) async fn get(&self, path: &[&str], query: &[(&str, String)]) -> Result<Reply, LangfuseError> {
        self.get_checked(path, query, |_| true).await
    }

    /// Gets a page of a list, in which there is a list: an answer without one is broken, and not the list's end.
    pub(super) async fn get_page(&self, path: &[&str], query: &[(&str, String)]) -> Result<Reply, LangfuseError> {
        self.get_checked(path, query, |page| page.get("data").is_some_and(Value::is_array)).await
    }

    async fn get_checked(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        is_whole: fn(&Value) -> bool,
    ) -> Result<Reply, LangfuseError> {
        let url = self.url(path, query);
        let shown = format!("api/public/{}", path.join("/"));
        let mut retry = Retry::new(RetryPolicy { max_retries: MAX_RETRIES, first_delay: self.pause });
        loop {
            let failure = match self.try_once(&url, &shown).await {
                Ok(Reply::Found(value)) if !is_whole(&value) => {
                    let why = "it has no list 'data'".to_owned();
                    Failure::transient(LangfuseError::Broken { path: shown.clone(), why })
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
            StatusCode::NOT_FOUND => return Ok(Reply::Missing),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(Failure::permanent(LangfuseError::Keys(status.as_u16())));
            }
            _ => {}
        }
        let body = read_body(response, LONGEST as u64).await.map_err(|error| match error {
            BodyError::TooLarge { .. } => {
                let why = format!("longer than {} MB", LONGEST >> 20);
                Failure::permanent(LangfuseError::Broken { path: path.to_owned(), why })
            }
            BodyError::Interrupted(why) => Failure::transient(LangfuseError::Unreached(why)),
        });
        if !status.is_success() {
            let said = body.map(|body| said(&body)).unwrap_or_default();
            let error = LangfuseError::Status { path: path.to_owned(), status: status.as_u16(), said };
            return Err(Failure { error, class });
        }
        let body = body?;
        if is_web_page(&body) {
            // A page of a proxy or of another program stays one.
            return Err(Failure::permanent(LangfuseError::WebPage(path.to_owned())));
        }
        let broken = |why: String| Failure::transient(LangfuseError::Broken { path: path.to_owned(), why });
        let value: Value =
            serde_json::from_slice(&body).map_err(|error| broken(why_and_where_no_json(&body, &error)))?;
        if !value.is_object() {
            return Err(broken("it is not an object".to_owned()));
        }
        Ok(Reply::Found(value))
    }
}

fn is_web_page(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'<')
}

/// Returns what a server says of an error, in a few words.
fn said(body: &[u8]) -> String {
    if is_web_page(body) {
        return " and a web page".to_owned();
    }
    let text = String::from_utf8_lossy(body);
    let value: Option<Value> = serde_json::from_str(&text).ok();
    let message = value.as_ref().and_then(|value| value.get("message").or_else(|| value.get("error"))?.as_str());
    let words: String = message.unwrap_or(&text).chars().filter(|letter| !letter.is_control()).take(200).collect();
    if words.trim().is_empty() { String::new() } else { format!(": {}", words.trim()) }
}

fn unreachable(error: karat_http::Error) -> Failure {
    Failure::transient(LangfuseError::Unreached(error_chain(error)))
}
