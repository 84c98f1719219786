//! Requests to a Langfuse server, tried again where that may help.

use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;

use super::LangfuseKeys;
use crate::json::why_and_where_no_json;
use crate::values::LONGEST;

/// How often a request is made at most.
const TRIES: u32 = 6;

/// A server that asks to be left alone for longer is asked another day.
const LONGEST_PAUSE: Duration = Duration::from_mins(2);

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

/// A try that failed.
struct Failure {
    error: LangfuseError,
    /// Whether another try may help.
    passing: bool,
    /// How long the server wants to be left alone.
    pause: Option<Duration>,
}

impl Failure {
    fn lasting(error: LangfuseError) -> Self {
        Self { error, passing: false, pause: None }
    }

    fn passing(error: LangfuseError) -> Self {
        Self { error, passing: true, pause: None }
    }
}

impl Transport {
    pub(super) fn new(url: &str, keys: LangfuseKeys) -> Result<Self, LangfuseError> {
        let wrong = |why: String| {
            // An address may hold a password before its host.
            let shown = url.rsplit_once('@').map_or(url, |(_, host)| host);
            LangfuseError::Url { url: shown.to_owned(), why }
        };
        let base = Url::parse(url.trim()).map_err(|error| wrong(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(wrong("it begins with neither http:// nor https://".to_owned()));
        }
        // Only the first call in a process sets it; that it was set before is fine.
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = Client::builder()
            .user_agent(concat!("karat/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(30))
            .read_timeout(Duration::from_mins(2))
            .build()
            .map_err(|error| LangfuseError::Client(error.to_string()))?;
        Ok(Self { client, base, keys, pause: Duration::from_secs(1) })
    }

    /// Gets what is at a path. Haste, breakdowns and broken answers are waited out.
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
        let mut pause = self.pause;
        for tries in 1.. {
            let failure = match self.try_once(&url, &shown).await {
                Ok(Reply::Found(value)) if !is_whole(&value) => {
                    let why = "it has no list 'data'".to_owned();
                    Failure::passing(LangfuseError::Broken { path: shown.clone(), why })
                }
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            let wait = failure.pause.unwrap_or(pause);
            if !failure.passing || tries >= TRIES || wait > LONGEST_PAUSE {
                return Err(failure.error);
            }
            tokio::time::sleep(wait).await;
            pause = pause.saturating_mul(2);
        }
        Ok(Reply::Missing)
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
        let response = request.send().await.map_err(|error| Failure::passing(unreached(error)))?;
        let status = response.status();
        match status {
            StatusCode::NOT_FOUND => return Ok(Reply::Missing),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                return Err(Failure::lasting(LangfuseError::Keys(status.as_u16())));
            }
            _ => {}
        }
        let pause = asked_pause(&response);
        let body = body(response, path).await;
        if !status.is_success() {
            let said = body.map(|body| said(&body)).unwrap_or_default();
            let error = LangfuseError::Status { path: path.to_owned(), status: status.as_u16(), said };
            let passing = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
            return Err(Failure { error, passing, pause });
        }
        let body = body?;
        if is_web_page(&body) {
            // A page of a proxy or of another program stays one.
            return Err(Failure::lasting(LangfuseError::WebPage(path.to_owned())));
        }
        let broken = |why: String| Failure::passing(LangfuseError::Broken { path: path.to_owned(), why });
        let value: Value =
            serde_json::from_slice(&body).map_err(|error| broken(why_and_where_no_json(&body, &error)))?;
        if !value.is_object() {
            return Err(broken("it is not an object".to_owned()));
        }
        Ok(Reply::Found(value))
    }
}

async fn body(mut response: Response, path: &str) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| Failure::passing(unreached(error)))? {
        body.extend_from_slice(&chunk);
        if body.len() > LONGEST {
            let why = format!("longer than {} MB", LONGEST >> 20);
            return Err(Failure::lasting(LangfuseError::Broken { path: path.to_owned(), why }));
        }
    }
    Ok(body)
}

/// Returns how long the server asks to wait, in seconds.
fn asked_pause(response: &Response) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
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

/// Names the failure and its cause, without the address, which may hold a password.
fn unreached(error: reqwest::Error) -> LangfuseError {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        let words = inner.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = inner.source();
    }
    LangfuseError::Unreached(text)
}
