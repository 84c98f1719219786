//! An agent behind an HTTP endpoint that runs its own tools.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::{Agent, AgentError, Ask, Pending, Waiting};
use karat_core::trace::Trace;
use percent_encoding::percent_decode_str;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Client, StatusCode, Url};
use serde_json::{Map, Value};

use crate::http_config::{HttpConfig, Method};
use crate::retry::{Retries, Trouble, TryError};
use crate::throttle::Throttle;
use crate::wire::{ClientError, client, describe, header_map, read_body, shown};

/// Sends each message to one URL and reads the reply.
#[derive(Debug)]
pub struct HttpAgent {
    client: Client,
    url: Url,
    content_type: HeaderValue,
    config: HttpConfig,
    /// None where a second try could act twice.
    retries: Option<(Retries, Arc<Throttle>)>,
}

impl HttpAgent {
    /// Prepares the connection pool; `headers` have their variables filled in.
    pub fn new(url: &str, headers: &[(String, String)], config: HttpConfig) -> Result<Self, ClientError> {
        let parsed =
            Url::parse(url).map_err(|error| ClientError::Url { url: shown(url), reason: error.to_string() })?;
        let headers = header_map(headers)?;
        if has_user(&parsed) && headers.contains_key(AUTHORIZATION) {
            let reason = "the URL holds a user and password, which would replace it".to_owned();
            return Err(ClientError::Header { name: "authorization".to_owned(), reason });
        }
        let content_type = headers.get(CONTENT_TYPE).cloned();
        let content_type = content_type.unwrap_or_else(|| HeaderValue::from_static("application/json"));
        let client = client(&parsed, headers)?;
        Ok(Self { client, url: parsed, content_type, config, retries: None })
    }

    /// Tries again so often when the agent cannot be reached, breaks down or is asked too much.
    #[must_use]
    pub fn with_retries(self, most: u32, throttle: Arc<Throttle>) -> Self {
        Self { retries: (most > 0).then_some((Retries { most }, throttle)), ..self }
    }

    /// Returns the secrets that the URL holds, in every spelling in which they are sent.
    pub fn credentials(&self) -> Vec<String> {
        if !has_user(&self.url) {
            return Vec::new();
        }
        let (user, password) = (self.url.username(), self.url.password());
        let basic = BASE64.encode(format!("{}:{}", decoded(user), decoded(password.unwrap_or_default())));
        // A user without a password is a key by itself.
        let secret = password.unwrap_or(user);
        vec![secret.to_owned(), decoded(secret), basic]
    }

    fn request(&self, message: &str) -> reqwest::RequestBuilder {
        let method = match self.config.method {
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Get => reqwest::Method::GET,
            Method::Delete => reqwest::Method::DELETE,
        };
        let mut url = self.url.clone();
        if let Some(parameter) = &self.config.request.query {
            url.query_pairs_mut().append_pair(parameter, message);
        }
        let request = self.client.request(method, url);
        if self.config.method.has_body() {
            let body = self.config.request.body_with(message).unwrap_or_default();
            return request.header(CONTENT_TYPE, &self.content_type).body(body.to_string());
        }
        request
    }

    async fn exchange(&self, message: &str) -> Result<Exchanged, TryError> {
        let start = Instant::now();
        let timed = |error: TryError| TryError { elapsed: start.elapsed(), ..error };
        let sent = self.request(message).send().await;
        let response = sent.map_err(|error| {
            timed(TryError::unreached(format!("cannot reach {}: {}", shown(self.url.as_str()), describe(error))))
        })?;
        let (status, trouble) = (response.status(), Trouble::of(&response));
        let location =
            response.headers().get(LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let body = read_body(response, self.config.max_response_bytes).await.map_err(|error| timed(error.into()))?;
        Ok(Exchanged { status, trouble, location, body, elapsed: start.elapsed() })
    }

    async fn exchange_again(
        &self,
        message: &str,
        retries: Retries,
        throttle: &Arc<Throttle>,
        waiting: &dyn Waiting,
    ) -> Result<Exchanged, TryError> {
        let attempt = async || {
            let exchanged = self.exchange(message).await?;
            match exchanged.accepted() {
                Err(message) if exchanged.trouble != Trouble::Lasting => Err(TryError::new(message, exchanged.trouble)),
                _ => Ok(exchanged),
            }
        };
        retries.run(throttle, waiting, || Box::pin(attempt())).await
    }

    fn read(&self, exchanged: &Exchanged) -> Result<Trace, String> {
        let body = exchanged.accepted()?;
        if body.trim_ascii().is_empty() {
            return Err("the reply is empty".to_owned());
        }
        let reply: Value = serde_json::from_slice(body)
            .map_err(|error| format!("the reply is no JSON ({error}): {}", String::from_utf8_lossy(body)))?;
        self.config.response.trace(&reply)
    }
}

/// What came back over the wire.
struct Exchanged {
    status: StatusCode,
    trouble: Trouble,
    location: Option<String>,
    body: Vec<u8>,
    elapsed: Duration,
}

impl Exchanged {
    /// Returns the body of a good answer, and says of any other what it was.
    fn accepted(&self) -> Result<&[u8], String> {
        if self.status.is_success() {
            return Ok(&self.body);
        }
        let mut text = format!("the agent answered HTTP {}", self.status);
        if let Some(location) = self.location.as_ref().filter(|_| self.status.is_redirection()) {
            // Not followed: an evaluation should say what it evaluates, and headers must not go elsewhere.
            let _ = write!(text, ", which leads to {location}: set that as the endpoint");
        } else if !self.body.is_empty() {
            let _ = write!(text, ": {}", String::from_utf8_lossy(&self.body).trim());
        }
        Err(text)
    }
}

impl Agent for HttpAgent {
    fn identity(&self) -> String {
        self.url.to_string()
    }

    fn determinants(&self, case: &Case) -> Map<String, Value> {
        let mut parts = Map::new();
        parts.insert("agent".to_owned(), self.identity().into());
        parts.insert("request".to_owned(), serde_json::to_value(&self.config).unwrap_or_default());
        parts.insert("message".to_owned(), case.input.message.as_str().into());
        parts
    }

    fn mode(&self, _case: &Case) -> Mode {
        Mode::Endpoint
    }

    fn answer<'a>(&'a self, ask: Ask<'a>) -> Pending<'a, Result<Trace, AgentError>> {
        Box::pin(async move {
            let message = &ask.case.input.message;
            let exchanged = match &self.retries {
                None => self.exchange(message).await,
                Some((retries, throttle)) => self.exchange_again(message, *retries, throttle, ask.waiting).await,
            };
            let exchanged = exchanged.map_err(|error| AgentError::new(error.message, error.elapsed))?;
            match self.read(&exchanged) {
                Ok(trace) => Ok(Trace { latency_ms: exchanged.elapsed.as_secs_f64() * 1000.0, ..trace }),
                Err(message) => Err(AgentError::new(message, exchanged.elapsed)),
            }
        })
    }
}

fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Reads the `%40` of a URL.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Gets what an address answers, at most 64 MiB of it.
pub async fn fetch(url: &str, headers: &[(String, String)]) -> Result<Vec<u8>, String> {
    let config = HttpConfig { method: Method::Get, max_response_bytes: 64 * 1024 * 1024, ..HttpConfig::default() };
    let agent = HttpAgent::new(url, headers, config).map_err(|error| error.to_string())?;
    let exchanged = agent.exchange("").await.map_err(|error| error.message)?;
    let Exchanged { status, location, body, .. } = exchanged;
    if status.is_success() {
        return Ok(body);
    }
    // The page itself is left out: it may be long, and hold anything.
    let location = location.map_or_else(String::new, |location| format!(", which leads to {location}"));
    Err(format!("it answered HTTP {status}{location}"))
}
