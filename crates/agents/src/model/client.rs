//! Calls a model with rate limits, retries and a budget.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::chat::ChatPrompt;
use karat_core::port::{AgentError, WaitGuard, WaitObserver};
use karat_core::trace::Usage;
use karat_http::header::{CONTENT_TYPE, HeaderMap};
use karat_http::{
    Client, ClientError, ClientOptions, RetryClass, RetryPolicy, Throttle, Url, client, has_credentials, header_map,
    parse_url, read_body, redact_url, send,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::provider::{Api, Provider};
use super::turn::Turn;
use super::{anthropic, openai};
use crate::budget::{Budget, MaxTokenUsage, Reservation, UsageEstimator};
use crate::exchange::{ExchangeObserver, ExchangeRecord, Observer, Purpose};
use crate::price::Price;
use crate::reply::parse_reply;
use crate::retry::{AttemptError, retry};

/// Sampling parameters of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parameters {
    pub temperature: Option<f64>,
    pub seed: Option<i64>,
    pub max_output_tokens: Option<u64>,
}

/// Settings of a client, except its provider.
#[derive(Debug)]
pub struct ModelSettings {
    pub parameters: Parameters,
    pub max_retries: u32,
    pub max_response_bytes: u64,
    pub price: Option<Price>,
    /// Shared by all models of a provider.
    pub throttle: Arc<Throttle>,
    /// Shared by all models of a run.
    pub budget: Arc<Budget>,
}

/// The client of one model.
#[derive(Debug)]
pub struct ModelClient {
    provider: Provider,
    model: String,
    url: Url,
    /// The base URL without credentials.
    display_url: String,
    client: Client,
    /// Headers that the client adds to every request.
    headers: HeaderMap,
    settings: ModelSettings,
    estimator: UsageEstimator<MaxTokenUsage>,
    observer: Observer,
}

/// A model's answer to one call.
#[derive(Debug)]
pub(super) struct Completion {
    pub(super) turn: Turn,
    /// Token usage, with the cost if the price is known.
    pub(super) usage: Option<Usage>,
    /// Latency of the attempt that succeeded.
    pub(super) latency: Duration,
}

impl ModelClient {
    pub fn new(provider: Provider, model: String, settings: ModelSettings) -> Result<Self, ClientError> {
        let (url, mut headers) = match provider.api {
            Api::Openai => (
                openai::endpoint_url(&provider.base_url),
                provider.key.as_deref().map(openai::headers).unwrap_or_default(),
            ),
            Api::Anthropic => {
                (anthropic::endpoint_url(&provider.base_url), anthropic::headers(provider.key.as_deref()))
            }
        };
        let url = parse_url(&url)?;
        if has_credentials(&url) && provider.key.is_some() {
            let reason = "the base URL contains credentials, which would replace it".to_owned();
            return Err(ClientError::Header { name: "authorization".to_owned(), reason });
        }
        // Configured headers override the defaults.
        headers.extend(provider.headers.iter().cloned());
        let headers = header_map(headers.iter().map(|(name, value)| (name, value)))?;
        let client = client(&url, ClientOptions { headers: headers.clone(), ..ClientOptions::default() })?;
        let display_url = redact_url(&provider.base_url);
        let (estimator, observer) = (UsageEstimator::default(), Observer::default());
        Ok(Self { provider, model, url, display_url, client, headers, settings, estimator, observer })
    }

    /// Sets the observer of exchanges.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn ExchangeObserver>) -> Self {
        Self { observer: observer.into(), ..self }
    }

    /// Returns `PROVIDER:MODEL`.
    pub fn identity(&self) -> String {
        format!("{}:{}", self.provider.name, self.model)
    }

    pub(super) fn api(&self) -> Api {
        self.provider.api
    }

    /// Returns the parameters that results and recordings store.
    pub(super) fn parameters(&self) -> Map<String, Value> {
        let Parameters { temperature, seed, max_output_tokens } = self.settings.parameters;
        let mut parameters = Map::new();
        parameters.insert("model".to_owned(), self.model.as_str().into());
        if self.provider.is_base_url_configured {
            parameters.insert("baseUrl".to_owned(), self.provider.base_url.as_str().into());
        }
        parameters.extend(temperature.map(|value| ("temperature".to_owned(), value.into())));
        // Anthropic models have no seed.
        let seed = seed.filter(|_| self.provider.api == Api::Openai);
        parameters.extend(seed.map(|value| ("seed".to_owned(), value.into())));
        parameters.extend(max_output_tokens.map(|value| ("maxOutputTokens".to_owned(), value.into())));
        parameters
    }

    /// Returns the first messages of a conversation.
    pub(super) fn first_messages(&self, system: Option<&str>, user: &str) -> Vec<Value> {
        match self.provider.api {
            Api::Openai => openai::first_messages(system, user),
            Api::Anthropic => anthropic::first_messages(user),
        }
    }

    /// Adds the user's next message to those of a conversation.
    pub(super) fn push_user_message(&self, messages: &mut Vec<Value>, text: &str) {
        match self.provider.api {
            Api::Openai => messages.push(json!({"role": "user", "content": text})),
            Api::Anthropic => anthropic::push_user_message(messages, text),
        }
    }

    /// Requests the next turn of a conversation.
    pub(super) async fn next_turn(
        &self,
        system: Option<&str>,
        messages: &[Value],
        tools: Option<&RawValue>,
        prompt: Option<&ChatPrompt>,
        wait_observer: &dyn WaitObserver,
    ) -> Result<Completion, AgentError> {
        let parameters = self.settings.parameters;
        let body = match self.provider.api {
            Api::Openai => openai::request_body(&self.provider, &self.model, parameters, messages, tools, prompt),
            Api::Anthropic => anthropic::request_body(&self.model, parameters, system, messages, tools, prompt),
        };
        let body = body.map_err(|error| AgentError::new(error.to_string(), Duration::ZERO))?;
        self.call(body, wait_observer).await
    }

    async fn call(&self, body: Vec<u8>, wait_observer: &dyn WaitObserver) -> Result<Completion, AgentError> {
        let ModelSettings { budget, price, throttle, max_retries, .. } = &self.settings;
        let bytes = body.len();
        let wait = WaitGuard::begin(wait_observer);
        let reservation = budget.reserve_tokens(&self.estimator, price.as_ref(), bytes).await;
        drop(wait);
        let reservation = reservation.map_err(|exceeded| AgentError::budget(exceeded.message))?;
        let outcome =
            retry(RetryPolicy::new(*max_retries), throttle, wait_observer, || self.attempt(&body, &reservation)).await;
        let (turn, latency) = outcome?;
        let usage = turn.usage.clone().map(|usage| {
            let cost_usd = price.as_ref().and_then(|price| price.cost(&usage));
            Usage { cost_usd, ..usage }
        });
        match &usage {
            Some(usage @ Usage { cost_usd: Some(cost), .. }) => {
                self.estimator.record_usage(usage, bytes);
                reservation.settle(*cost);
            }
            _ if budget.is_limited() => {
                let message = "the reply does not report its token usage, so 'maxCostUsd' cannot be enforced";
                return Err(AgentError::budget(message));
            }
            _ => reservation.mark_unbilled(),
        }
        Ok(Completion { turn, usage, latency })
    }

    async fn attempt(&self, body: &[u8], reservation: &Reservation<'_>) -> Result<(Turn, Duration), AttemptError> {
        let mut record = self.observer.record(Purpose::Message);
        let result = self.send_request(body, reservation, record.as_mut()).await;
        if let (Some(record), Err(error)) = (&mut record, &result) {
            record.exchange.error = Some(error.message.clone());
        }
        result
    }

    async fn send_request(
        &self,
        body: &[u8],
        reservation: &Reservation<'_>,
        mut record: Option<&mut ExchangeRecord<'_>>,
    ) -> Result<(Turn, Duration), AttemptError> {
        let start = Instant::now();
        reservation.mark_sent();
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(body.to_vec());
        if let Some(record) = &mut record {
            record.set_request(&request, &self.headers);
        }
        let sent = send(request).await;
        let response = sent.map_err(|error| {
            reservation.mark_unbilled();
            AttemptError::not_sent(&format!("{} at {}", self.provider.name, self.display_url), error)
        })?;
        let status = response.status();
        let class = RetryClass::of(&response);
        if let Some(record) = &mut record {
            record.set_response(&response);
        }
        let read = read_body(response, self.settings.max_response_bytes).await;
        if let (Some(record), Ok(body)) = (record, &read) {
            record.push(body);
        }
        let latency = start.elapsed();
        if !status.is_success() {
            reservation.mark_unbilled();
            let ErrorBody { message, is_quota } = read.as_deref().map(ErrorBody::parse).unwrap_or_default();
            // An exhausted quota has the status of a rate limit, but a retry does not help.
            let class = if is_quota { RetryClass::Permanent } else { class };
            let colon = if message.is_empty() { "" } else { ": " };
            let message = format!("{} returned HTTP {status}{colon}{message}", self.provider.name);
            return Err(AttemptError::new(message, class));
        }
        let body = read?;
        let reply = parse_reply(&body).map_err(|error| {
            AttemptError::permanent(format!(
                "the reply is not valid JSON ({error}): {}",
                String::from_utf8_lossy(&body)
            ))
        })?;
        let turn = match self.provider.api {
            Api::Openai => openai::parse_reply(&reply),
            Api::Anthropic => anthropic::parse_reply(&reply),
        };
        Ok((turn.map_err(AttemptError::permanent)?, latency))
    }
}

/// The body of an error response.
#[derive(Default)]
struct ErrorBody {
    message: String,
    /// Whether the account's quota is exhausted.
    is_quota: bool,
}

impl ErrorBody {
    /// Extracts the error message; falls back to the whole body.
    fn parse(body: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = value.get("error").unwrap_or(&Value::Null);
        let field = |key: &str| error.get(key).and_then(Value::as_str);
        let message = field("message").or(error.as_str()).map(str::to_owned);
        Self {
            message: message.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned()),
            is_quota: ["code", "type"].into_iter().any(|key| field(key) == Some("insufficient_quota")),
        }
    }
}
