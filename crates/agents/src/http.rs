//! An agent behind an HTTP endpoint that runs its own tools.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use karat_http::header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use karat_http::{
    Client, ClientError, ClientOptions, CookieStore as _, Jar, RetryPolicy, Throttle, client, has_credentials,
    header_map, redact_url, send,
};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::exchange::{ExchangeObserver, ExchangeRecord, Observer, Purpose};
use crate::headers::MissingVariable;
use crate::http_config::{Decision, ExtraRequest, HttpConfig, Method};
use crate::http_reply::HttpReply;
use crate::json_template::Node;
use crate::placeholder::{Placeholder, Scope, TemplateError, Values};
use crate::request_template::{Endpoint, Parts, RequestError, RequestTemplate};
use crate::response_map::Format;
use crate::retry::AttemptError;
use crate::rule::Rule;
use crate::selector::Selector;
use crate::template::{Environment, Template};

/// The header of W3C Trace Context.
const TRACEPARENT: &str = "traceparent";

/// Sends each message to a URL and reads the reply.
pub struct HttpAgent {
    pub(crate) identity: String,
    client: Client,
    /// Headers that the client adds to every request.
    headers: HeaderMap,
    content_type: HeaderValue,
    /// The configured cookies, sent in addition to those of the conversation.
    cookie: Option<HeaderValue>,
    endpoint: Endpoint,
    pub(crate) config: HttpConfig,
    pub(crate) requests: Requests,
    /// Off by default: a retried request could repeat a side effect.
    pub(crate) retries: Option<(RetryPolicy, Arc<Throttle>)>,
    secrets: Vec<String>,
    pub(crate) observer: Observer,
}

/// The requests of a conversation.
pub(crate) struct Requests {
    pub(crate) session: Option<(RequestTemplate, Option<Selector>)>,
    pub(crate) message: RequestTemplate,
    /// The request for a message of a conversation with several turns.
    pub(crate) turn: RequestTemplate,
    pub(crate) poll: Option<Poll>,
    /// The request after an approval, with the value of the decision.
    pub(crate) resume: Option<(RequestTemplate, Value)>,
    /// The forms of the user's and the agent's messages, if a request has them.
    forms: Option<(Node, Node)>,
    /// Whether a request has them even in a conversation with a single turn.
    single_turn_has_history: bool,
}

/// The request, the condition that ends polling, and the delay before each request.
pub(crate) type Poll = (RequestTemplate, Rule, Duration);

/// Why an agent cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum HttpAgentError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("cannot send the header '{header}': {error}")]
    Header { header: String, error: MissingVariable },
    #[error("cannot create the agent's requests: {0}")]
    Variable(MissingVariable),
    #[error("{0}")]
    Invalid(String),
}

impl From<RequestError> for HttpAgentError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Client(error) => Self::Client(error),
            RequestError::Template(TemplateError::Variable(error)) => Self::Variable(error),
            other => Self::Invalid(other.to_string()),
        }
    }
}

impl HttpAgent {
    /// Creates the client and compiles the requests. `lookup` returns environment variables.
    pub fn new(url: &str, config: HttpConfig, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, HttpAgentError> {
        let mut environment = Environment::new(lookup);
        let endpoint = Endpoint::new(url, &mut environment)?;
        let mut fixed = BTreeMap::new();
        let mut templates = Vec::new();
        for (name, text) in &config.headers {
            let template = match Template::parse(text, Scope::Request, &mut environment) {
                Err(TemplateError::Variable(error)) => {
                    return Err(HttpAgentError::Header { header: name.clone(), error });
                }
                template => template.map_err(RequestError::from)?,
            };
            match template.as_constant() {
                Some(text) => {
                    fixed.insert(name.clone(), text.to_owned());
                }
                None => templates.push((name, text)),
            }
        }
        let headers = header_map(&fixed)?;
        let content_type = headers.get(CONTENT_TYPE).cloned();
        let content_type = content_type.unwrap_or_else(|| HeaderValue::from_static("application/json"));
        let cookie = headers.get(COOKIE).cloned();
        let client = client(&endpoint.base, ClientOptions { headers: headers.clone(), ..ClientOptions::default() })?;
        let requests = Requests::new(&config, &templates, &endpoint, &mut environment)?;
        // A URL with placeholders or variables is shown as configured.
        let identity =
            if url.contains("{{") || url.contains("${") { url.to_owned() } else { endpoint.base.to_string() };
        let secrets = environment.secrets;
        let (retries, observer) = (None, Observer::default());
        Ok(Self {
            identity,
            client,
            headers,
            content_type,
            cookie,
            endpoint,
            config,
            requests,
            retries,
            secrets,
            observer,
        })
    }

    /// Sets the observer of exchanges.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn ExchangeObserver>) -> Self {
        Self { observer: observer.into(), ..self }
    }

    /// Sets the agent's name in results.
    #[must_use]
    pub fn with_identity(self, identity: String) -> Self {
        Self { identity, ..self }
    }

    /// Enables retries of connection errors, server errors and rate limits.
    #[must_use]
    pub fn with_retries(self, max_retries: u32, throttle: Arc<Throttle>) -> Self {
        Self { retries: (max_retries > 0).then(|| (RetryPolicy::new(max_retries), throttle)), ..self }
    }

    /// Returns the credentials in the URL, in every encoding in which they are sent.
    pub fn credentials(&self) -> Vec<String> {
        let url = &self.endpoint.base;
        if !has_credentials(url) {
            return Vec::new();
        }
        let (user, password) = (url.username(), url.password());
        let basic = BASE64.encode(format!("{}:{}", percent_decode(user), percent_decode(password.unwrap_or_default())));
        // A user without a password is usually an API key.
        let secret = password.unwrap_or(user);
        vec![secret.to_owned(), percent_decode(secret), basic]
    }

    /// Returns the values of the environment variables in the configuration and the URL.
    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// Returns the URL of the endpoint, with secrets.
    pub fn url(&self) -> &str {
        self.endpoint.base.as_str()
    }

    /// Sends a request, with the cookies of the conversation.
    pub(crate) async fn exchange(
        &self,
        purpose: Purpose,
        request: &RequestTemplate,
        values: &Values<'_>,
        cookies: &OnceLock<Jar>,
        format: Option<Format>,
    ) -> Result<HttpReply, AttemptError> {
        let mut record = self.observer.record(purpose);
        let result = self.send_request(request, values, cookies, format, record.as_mut()).await;
        if let (Some(record), Err(error)) = (&mut record, &result) {
            record.exchange.error = Some(error.message.clone());
        }
        result
    }

    async fn send_request(
        &self,
        request: &RequestTemplate,
        values: &Values<'_>,
        cookies: &OnceLock<Jar>,
        format: Option<Format>,
        mut record: Option<&mut ExchangeRecord<'_>>,
    ) -> Result<HttpReply, AttemptError> {
        let rendered = request.render(&self.endpoint, values).map_err(AttemptError::permanent)?;
        let mut builder = self.client.request(request.method.clone(), rendered.url.clone());
        let own_content_type = rendered.headers.iter().any(|(name, _)| name == CONTENT_TYPE);
        for (name, value) in rendered.headers {
            builder = builder.header(name, value);
        }
        if let Some(traceparent) = values.traceparent {
            builder = builder.header(TRACEPARENT, traceparent);
        }
        if let Some(cookies) = cookies.get().and_then(|jar| jar.cookies(&rendered.url)) {
            builder = builder.header(COOKIE, self.join_cookies(cookies));
        }
        if let Some(body) = rendered.body {
            if !own_content_type {
                builder = builder.header(CONTENT_TYPE, &self.content_type);
            }
            builder = builder.body(body);
        }
        if let Some(record) = &mut record {
            record.set_request(&builder, &self.headers);
        }
        let start = Instant::now();
        let with_elapsed = |error: AttemptError| AttemptError { elapsed: start.elapsed(), ..error };
        let response = send(builder)
            .await
            .map_err(|error| with_elapsed(AttemptError::not_sent(&redact_url(rendered.url.as_str()), error)))?;
        let mut set_cookies = response.headers().get_all(SET_COOKIE).iter().peekable();
        if set_cookies.peek().is_some() {
            cookies.get_or_init(Jar::default).set_cookies(&mut set_cookies, &rendered.url);
        }
        HttpReply::receive(response, format, self.config.max_response_bytes, start, record).await.map_err(with_elapsed)
    }

    fn join_cookies(&self, cookies: HeaderValue) -> HeaderValue {
        let Some(own) = &self.cookie else { return cookies };
        let joined = [own.as_bytes(), b"; ", cookies.as_bytes()].concat();
        HeaderValue::from_bytes(&joined).unwrap_or(cookies)
    }
}

impl Requests {
    fn new(
        config: &HttpConfig,
        headers: &[(&String, &String)],
        endpoint: &Endpoint,
        environment: &mut Environment<'_>,
    ) -> Result<Self, HttpAgentError> {
        let HttpConfig { method, session, request, poll, approvals, resume, .. } = config;
        let mut extra = |request: &ExtraRequest, default: Method, scope: Scope| {
            let body = Value::Object(request.body.clone());
            let own = request.headers.keys();
            let inherited = headers.iter().filter(|(name, _)| own.clone().all(|own| !own.eq_ignore_ascii_case(name)));
            let method = request.method.unwrap_or(default);
            let parts = Parts {
                method,
                url: request.url.as_deref(),
                query: None,
                headers: inherited.copied().chain(&request.headers).collect(),
                body: Some(&body).filter(|_| method.has_body()),
                scope,
            };
            RequestTemplate::new(&parts, endpoint, environment)
        };
        let needs = |section, key| HttpAgentError::Invalid(format!("'agent.{section}' needs '{key}'"));
        let session = match session {
            Some(session) => {
                let request = session.request.as_ref().ok_or_else(|| needs("session", "request"))?;
                Some((extra(request, Method::Post, Scope::Request)?, session.id.clone()))
            }
            None => None,
        };
        let poll = match poll {
            Some(poll) => {
                let request = poll.request.as_ref().ok_or_else(|| needs("poll", "request"))?;
                let until = poll.until.clone().ok_or_else(|| needs("poll", "until"))?;
                Some((extra(request, Method::Get, Scope::Request)?, until, Duration::from_millis(poll.interval_ms)))
            }
            None => None,
        };
        let resume = match (approvals, resume) {
            (None, _) => None,
            (Some(_), None) => {
                return Err(HttpAgentError::Invalid("'agent.approvals' needs 'agent.resume'".to_owned()));
            }
            (Some(decision), Some(resume)) => {
                let decision = match decision {
                    Decision::Approve => resume.approve.clone(),
                    Decision::Deny => resume.deny.clone(),
                };
                Some((extra(&resume.request(), Method::Post, Scope::Resume)?, decision))
            }
        };
        let mut message = |adds_conversation| {
            let body = request.body_template(adds_conversation).map_err(HttpAgentError::Invalid)?;
            let parts = Parts {
                method: *method,
                url: request.url.as_deref(),
                query: request.query.as_deref(),
                headers: headers.to_vec(),
                body: Some(&body).filter(|_| method.has_body()),
                scope: Scope::Request,
            };
            Ok::<_, HttpAgentError>(RequestTemplate::new(&parts, endpoint, environment)?)
        };
        let adds_conversation = !request.maps_conversation() && session.is_none();
        let (message, turn) = (message(false)?, message(adds_conversation)?);
        let is_history =
            |placeholder: &Placeholder| matches!(placeholder, Placeholder::Messages | Placeholder::UserMessage);
        let single_turn_has_history =
            message.uses(&is_history) || resume.as_ref().is_some_and(|(resume, _)| resume.uses(&is_history));
        let forms = if single_turn_has_history || turn.uses(&is_history) {
            let form = request.message_form.clone().unwrap_or_default();
            let mut compile = |form| Node::compile(form, Scope::Item, environment);
            let forms = compile(&form.user).and_then(|user| Ok((user, compile(&form.assistant)?)));
            Some(forms.map_err(RequestError::from)?)
        } else {
            None
        };
        Ok(Self { session, message, turn, poll, resume, forms, single_turn_has_history })
    }

    /// Returns the forms of messages if a request of the conversation has them.
    pub(crate) fn forms(&self, has_turns: bool) -> Option<&(Node, Node)> {
        self.forms.as_ref().filter(|_| has_turns || self.single_turn_has_history)
    }
}

impl std::fmt::Debug for HttpAgent {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "HttpAgent({})", redact_url(self.endpoint.base.as_str()))
    }
}

fn percent_decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
