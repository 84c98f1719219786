//! Makes calls to a model: paced, tried again, paid for, timed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_core::chat::ChatPrompt;
use karat_core::port::{AgentError, Wait, Waiting};
use karat_core::trace::Usage;
use karat_http::header::CONTENT_TYPE;
use karat_http::{
    Client, ClientError, ClientOptions, RetryClass, RetryPolicy, Throttle, Url, client, error_chain, has_credentials,
    header_map, parse_url, read_body, redact_url, send,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::provider::{Api, Provider};
use super::turn::Turn;
use super::{anthropic, openai};
use crate::budget::{Budget, Experience, MostUsed, Reservation};
use crate::price::Price;
use crate::retry::{AttemptError, retry};

/// How a model is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Parameters {
    pub temperature: Option<f64>,
    pub seed: Option<i64>,
    pub max_output_tokens: Option<u64>,
}

/// What a client needs beside its provider.
#[derive(Debug)]
pub struct ModelSettings {
    pub parameters: Parameters,
    /// How often a call is tried again.
    pub max_retries: u32,
    pub max_response_bytes: u64,
    pub price: Option<Price>,
    /// Shared by all models of a provider.
    pub throttle: Arc<Throttle>,
    /// Shared by all models of a run.
    pub budget: Arc<Budget>,
}

/// A model that can be called.
#[derive(Debug)]
pub struct ModelClient {
    provider: Provider,
    model: String,
    url: Url,
    /// The address without what may be secret.
    shown: String,
    client: Client,
    settings: ModelSettings,
    experience: Experience<MostUsed>,
}

/// A call that was answered.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) turn: Turn,
    /// What the turn used and, where a price is known, cost.
    pub(super) usage: Option<Usage>,
    /// Of the try that was answered.
    pub(super) latency: Duration,
}

impl ModelClient {
    /// Prepares the connection pool.
    pub fn new(provider: Provider, model: String, settings: ModelSettings) -> Result<Self, ClientError> {
        let (url, mut headers) = match provider.api {
            Api::Openai => {
                (openai::url(&provider.base_url), provider.key.as_deref().map(openai::headers).unwrap_or_default())
            }
            Api::Anthropic => (anthropic::url(&provider.base_url), anthropic::headers(provider.key.as_deref())),
        };
        let url = parse_url(&url)?;
        if has_credentials(&url) && provider.key.is_some() {
            let reason = "the base URL holds a user and password, which would replace it".to_owned();
            return Err(ClientError::Header { name: "authorization".to_owned(), reason });
        }
        // What a person configured wins.
        headers.extend(provider.headers.iter().cloned());
        let headers = header_map(headers.iter().map(|(name, value)| (name, value)))?;
        let client = client(&url, ClientOptions { headers, ..ClientOptions::default() })?;
        let shown = redact_url(&provider.base_url);
        Ok(Self { provider, model, url, shown, client, settings, experience: Experience::default() })
    }

    /// Returns `KIND:MODEL`.
    pub fn identity(&self) -> String {
        format!("{}:{}", self.provider.name, self.model)
    }

    pub(super) fn api(&self) -> Api {
        self.provider.api
    }

    /// Returns how the model is asked, for whoever wants to repeat it.
    pub(super) fn parameters(&self) -> Map<String, Value> {
        let Parameters { temperature, seed, max_output_tokens } = self.settings.parameters;
        let mut named = Map::new();
        named.insert("model".to_owned(), self.model.as_str().into());
        if self.provider.has_configured_base {
            named.insert("baseUrl".to_owned(), self.provider.base_url.as_str().into());
        }
        named.extend(temperature.map(|value| ("temperature".to_owned(), value.into())));
        // Anthropic's models take none.
        let seed = seed.filter(|_| self.provider.api == Api::Openai);
        named.extend(seed.map(|value| ("seed".to_owned(), value.into())));
        named.extend(max_output_tokens.map(|value| ("maxOutputTokens".to_owned(), value.into())));
        named
    }

    /// Begins a conversation.
    pub(super) fn first_messages(&self, system: Option<&str>, user: &str) -> Vec<Value> {
        match self.provider.api {
            Api::Openai => openai::first_messages(system, user),
            Api::Anthropic => anthropic::first_messages(user),
        }
    }

    /// Asks for the next turn.
    pub(super) async fn ask(
        &self,
        system: Option<&str>,
        messages: &[Value],
        tools: Option<&RawValue>,
        prompt: Option<&ChatPrompt>,
        waiting: &dyn Waiting,
    ) -> Result<Answered, AgentError> {
        let parameters = self.settings.parameters;
        let body = match self.provider.api {
            Api::Openai => openai::body(&self.provider, &self.model, parameters, messages, tools, prompt),
            Api::Anthropic => anthropic::body(&self.model, parameters, system, messages, tools, prompt),
        };
        let body = body.map_err(|error| AgentError::new(error.to_string(), Duration::ZERO))?;
        self.call(body, waiting).await
    }

    async fn call(&self, body: Vec<u8>, waiting: &dyn Waiting) -> Result<Answered, AgentError> {
        let ModelSettings { budget, price, throttle, max_retries, .. } = &self.settings;
        let bytes = body.len();
        let wait = Wait::begin(waiting);
        let reservation = budget.reserve_tokens(&self.experience, price.as_ref(), bytes).await;
        drop(wait);
        let reservation = reservation.map_err(|used_up| AgentError::budget(used_up.message))?;
        let called =
            retry(RetryPolicy::new(*max_retries), throttle, waiting, || self.attempt(&body, &reservation)).await;
        let (turn, latency) = called.map_err(|error| AgentError::new(error.message, error.elapsed))?;
        let usage = turn.usage.clone().map(|usage| {
            let cost_usd = price.as_ref().and_then(|price| price.of(&usage));
            Usage { cost_usd, ..usage }
        });
        match &usage {
            Some(used @ Usage { cost_usd: Some(cost), .. }) => {
                self.experience.learn_tokens(used, bytes);
                reservation.settle(*cost);
            }
            _ if budget.is_limited() => {
                let message = "the reply does not say how many tokens it used, so 'maxCostUsd' cannot be kept";
                return Err(AgentError::budget(message));
            }
            _ => reservation.refused(),
        }
        Ok(Answered { turn, usage, latency })
    }

    /// Makes one try.
    async fn attempt(&self, body: &[u8], reservation: &Reservation<'_>) -> Result<(Turn, Duration), AttemptError> {
        let start = Instant::now();
        reservation.sent();
        let request = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        let sent = send(request.body(body.to_vec())).await;
        let response = sent.map_err(|error| {
            reservation.refused();
            AttemptError::unreachable(format!(
                "cannot reach {} at {}: {}",
                self.provider.name,
                self.shown,
                error_chain(error)
            ))
        })?;
        let status = response.status();
        let class = RetryClass::of(&response);
        let read = read_body(response, self.settings.max_response_bytes).await;
        let latency = start.elapsed();
        if !status.is_success() {
            reservation.refused();
            let Refusal { text: said, is_quota } = read.as_deref().map(Refusal::of).unwrap_or_default();
            // A quota that is used up says "too many requests", but no wait brings it back.
            let class = if is_quota { RetryClass::Permanent } else { class };
            let colon = if said.is_empty() { "" } else { ": " };
            let message = format!("{} answered HTTP {status}{colon}{said}", self.provider.name);
            return Err(AttemptError::new(message, class));
        }
        let body = read?;
        let reply: Value = serde_json::from_slice(&body).map_err(|error| {
            AttemptError::permanent(format!("the reply is no JSON ({error}): {}", String::from_utf8_lossy(&body)))
        })?;
        let turn = match self.provider.api {
            Api::Openai => openai::read(&reply),
            Api::Anthropic => anthropic::read(&reply),
        };
        Ok((turn.map_err(AttemptError::permanent)?, latency))
    }
}

/// What a provider says that gives no answer.
#[derive(Default)]
struct Refusal {
    text: String,
    /// There is no credit left.
    is_quota: bool,
}

impl Refusal {
    /// Reads an error's message, or takes all of the body for it.
    fn of(body: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = value.get("error").unwrap_or(&Value::Null);
        let word = |key: &str| error.get(key).and_then(Value::as_str);
        let text = word("message").or(error.as_str()).map(str::to_owned);
        Self {
            text: text.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned()),
            is_quota: ["code", "type"].into_iter().any(|key| word(key) == Some("insufficient_quota")),
        }
    }
}
