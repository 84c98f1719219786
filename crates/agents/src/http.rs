//! An agent behind an HTTP endpoint that runs its own tools.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use karat_core::assertion::Mode;
use karat_core::case::Case;
use karat_core::port::{Agent, AgentError, BoxFuture, Conversation, TrialContext, WaitObserver};
use karat_core::trace::Trace;
use karat_http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use karat_http::{
    Client, ClientError, ClientOptions, RetryClass, RetryPolicy, StatusCode, Throttle, Url, client, has_credentials,
    header_map, parse_url, read_body, redact_url, send,
};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::http_config::{HttpConfig, Method};
use crate::reply::parse_reply;
use crate::retry::{AttemptError, retry};

/// Sends each message to one URL and parses the reply.
#[derive(Debug)]
pub struct HttpAgent {
    client: Client,
    url: Url,
    content_type: HeaderValue,
    config: HttpConfig,
    /// Off by default: a retried request could repeat a side effect.
    retries: Option<(RetryPolicy, Arc<Throttle>)>,
}

impl HttpAgent {
    /// Creates the HTTP client; variables in `headers` are already expanded.
    pub fn new(url: &str, headers: &[(String, String)], config: HttpConfig) -> Result<Self, ClientError> {
        let url = parse_url(url)?;
        let headers = header_map(headers.iter().map(|(name, value)| (name, value)))?;
        let content_type = headers.get(CONTENT_TYPE).cloned();
        let content_type = content_type.unwrap_or_else(|| HeaderValue::from_static("application/json"));
        let client = client(&url, ClientOptions { headers, ..ClientOptions::default() })?;
        Ok(Self { client, url, content_type, config, retries: None })
    }

    /// Enables retries of connection errors, server errors and rate limits.
    #[must_use]
    pub fn with_retries(self, max_retries: u32, throttle: Arc<Throttle>) -> Self {
        Self { retries: (max_retries > 0).then(|| (RetryPolicy::new(max_retries), throttle)), ..self }
    }

    /// Returns the credentials in the URL, in every encoding in which they are sent.
    pub fn credentials(&self) -> Vec<String> {
        if !has_credentials(&self.url) {
            return Vec::new();
        }
        let (user, password) = (self.url.username(), self.url.password());
        let basic = BASE64.encode(format!("{}:{}", percent_decode(user), percent_decode(password.unwrap_or_default())));
        // A user without a password is usually an API key.
        let secret = password.unwrap_or(user);
        vec![secret.to_owned(), percent_decode(secret), basic]
    }

    fn request(&self, message: &str) -> karat_http::RequestBuilder {
        let method = match self.config.method {
            Method::Post => karat_http::Method::POST,
            Method::Put => karat_http::Method::PUT,
            Method::Patch => karat_http::Method::PATCH,
            Method::Get => karat_http::Method::GET,
            Method::Delete => karat_http::Method::DELETE,
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

    async fn exchange(&self, message: &str) -> Result<HttpReply, AttemptError> {
        let start = Instant::now();
        let with_elapsed = |error: AttemptError| AttemptError { elapsed: start.elapsed(), ..error };
        let sent = send(self.request(message)).await;
        let response =
            sent.map_err(|error| with_elapsed(AttemptError::not_sent(&redact_url(self.url.as_str()), error)))?;
        let (status, class) = (response.status(), RetryClass::of(&response));
        let location =
            response.headers().get(LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let body =
            read_body(response, self.config.max_response_bytes).await.map_err(|error| with_elapsed(error.into()))?;
        Ok(HttpReply { status, class, location, body, elapsed: start.elapsed() })
    }

    async fn exchange_with_retries(
        &self,
        message: &str,
        policy: RetryPolicy,
        throttle: &Arc<Throttle>,
        wait_observer: &dyn WaitObserver,
    ) -> Result<HttpReply, AttemptError> {
        let attempt = async || {
            let reply = self.exchange(message).await?;
            match reply.success_body() {
                Err(message) if reply.class != RetryClass::Permanent => Err(AttemptError::new(message, reply.class)),
                _ => Ok(reply),
            }
        };
        retry(policy, throttle, wait_observer, || Box::pin(attempt())).await
    }

    fn parse_trace(&self, reply: &HttpReply) -> Result<Trace, String> {
        let body = reply.success_body()?;
        if body.trim_ascii().is_empty() {
            return Err("the reply is empty".to_owned());
        }
        let reply = parse_reply(body)
            .map_err(|error| format!("the reply is not valid JSON ({error}): {}", String::from_utf8_lossy(body)))?;
        self.config.response.parse_trace(&reply)
    }
}

struct HttpReply {
    status: StatusCode,
    class: RetryClass,
    location: Option<String>,
    body: Vec<u8>,
    elapsed: Duration,
}

impl HttpReply {
    /// Returns the body if the status is 2xx, and an error message otherwise.
    fn success_body(&self) -> Result<&[u8], String> {
        if self.status.is_success() {
            return Ok(&self.body);
        }
        let mut text = format!("the agent returned HTTP {}", self.status);
        if let Some(location) = self.location.as_ref().filter(|_| self.status.is_redirection()) {
            // Redirects are not followed, so that headers are not sent to other hosts.
            let _ = write!(text, " (redirect to {location}): set that URL as the endpoint");
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

    fn start<'a>(&'a self, trial: TrialContext<'a>) -> Box<dyn Conversation + 'a> {
        Box::new(HttpConversation { agent: self, trial })
    }
}

struct HttpConversation<'a> {
    agent: &'a HttpAgent,
    trial: TrialContext<'a>,
}

impl Conversation for HttpConversation<'_> {
    fn send<'s>(&'s mut self, message: &'s str) -> BoxFuture<'s, Result<Trace, AgentError>> {
        Box::pin(async move {
            let exchanged = match &self.agent.retries {
                None => self.agent.exchange(message).await,
                Some((policy, throttle)) => {
                    self.agent.exchange_with_retries(message, *policy, throttle, self.trial.wait_observer).await
                }
            };
            let reply = exchanged?;
            match self.agent.parse_trace(&reply) {
                Ok(trace) => Ok(Trace { latency_ms: reply.elapsed.as_secs_f64() * 1000.0, ..trace }),
                Err(message) => Err(AgentError::new(message, reply.elapsed)),
            }
        })
    }
}

fn percent_decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
