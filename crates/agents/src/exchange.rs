//! Observes requests to agents and their replies, for people who set up an agent.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use karat_http::header::{CONTENT_TYPE, HeaderMap};
use karat_http::{RequestBuilder, Response};

/// Receives the exchanges with an agent.
pub trait ExchangeObserver: Send + Sync {
    /// Called after each exchange, also if it failed or the caller stopped waiting.
    fn on_exchange(&self, exchange: Exchange);

    /// Called when the agent returns the id of the conversation.
    fn on_conversation_id(&self, id: &str);
}

/// A request to an agent, and the reply to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exchange {
    pub purpose: Purpose,
    /// Method and URL, if the agent is a server. The URL has no user or password.
    pub endpoint: Option<(String, String)>,
    /// As they were sent, including secrets.
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
    /// `None` if no reply was received.
    pub reply: Option<ExchangeReply>,
    /// Why the reply could not be received.
    pub error: Option<String>,
    pub elapsed: Duration,
}

/// A reply as it was received, up to an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExchangeReply {
    /// The HTTP status.
    pub status: Option<u16>,
    pub content_type: Option<String>,
    pub body: Vec<u8>,
    /// Standard error of a program.
    pub stderr: String,
}

/// Why a request is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Purpose {
    Session,
    #[default]
    Message,
    Poll,
    Decision,
}

impl Purpose {
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Message => "message",
            Self::Poll => "poll",
            Self::Decision => "decision",
        }
    }
}

/// The observer of an agent, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Observer(Option<Arc<dyn ExchangeObserver>>);

impl fmt::Debug for Observer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.is_some() { "Observer" } else { "None" })
    }
}

impl From<Arc<dyn ExchangeObserver>> for Observer {
    fn from(observer: Arc<dyn ExchangeObserver>) -> Self {
        Self(Some(observer))
    }
}

impl Observer {
    /// Starts the record of an exchange, if there is an observer.
    pub(crate) fn record(&self, purpose: Purpose) -> Option<ExchangeRecord<'_>> {
        let observer = self.0.as_deref()?;
        let exchange = Exchange { purpose, ..Exchange::default() };
        Some(ExchangeRecord { observer, exchange, start: Instant::now() })
    }

    pub(crate) fn on_conversation_id(&self, id: &str) {
        if let Some(observer) = &self.0 {
            observer.on_conversation_id(id);
        }
    }
}

/// An exchange in progress. It is reported on drop, because a caller may stop waiting at any time.
pub(crate) struct ExchangeRecord<'o> {
    observer: &'o dyn ExchangeObserver,
    pub(crate) exchange: Exchange,
    start: Instant,
}

impl ExchangeRecord<'_> {
    /// Records a request. `defaults` are headers that the client adds.
    pub(crate) fn set_request(&mut self, request: &RequestBuilder, defaults: &HeaderMap) {
        let Some(request) = request.try_clone().and_then(|request| request.build().ok()) else { return };
        let own = request.headers();
        let inherited = defaults.iter().filter(|(name, _)| !own.contains_key(*name));
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        self.exchange.headers =
            inherited.chain(own).map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect();
        self.exchange.headers.sort();
        self.exchange.endpoint = Some((request.method().to_string(), request.url().to_string()));
        self.exchange.body = request.body().and_then(|body| body.as_bytes()).map(<[u8]>::to_vec);
    }

    /// Records the status and type of a reply.
    pub(crate) fn set_response(&mut self, response: &Response) {
        let content_type = response.headers().get(CONTENT_TYPE);
        self.exchange.reply = Some(ExchangeReply {
            status: Some(response.status().as_u16()),
            content_type: content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
            ..ExchangeReply::default()
        });
    }

    /// Records a part of a reply.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.exchange.reply.get_or_insert_default().body.extend_from_slice(chunk);
    }

    /// Records the output of a program.
    pub(crate) fn set_output(&mut self, stdout: &[u8], stderr: &str) {
        let reply = ExchangeReply { body: stdout.to_vec(), stderr: stderr.to_owned(), ..ExchangeReply::default() };
        self.exchange.reply = Some(reply);
    }
}

impl Drop for ExchangeRecord<'_> {
    fn drop(&mut self) {
        self.exchange.elapsed = self.start.elapsed();
        self.observer.on_exchange(std::mem::take(&mut self.exchange));
    }
}
