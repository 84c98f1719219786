//! Sends messages to the agent, and shows the requests, the replies and the answers that were read from them.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karat_agents::{Exchange, ExchangeObserver, Preset, Reported, recognise};
use karat_cases::Case;
use karat_core::port::{Conversation, IgnoreWaits, Telemetry, TrialContext};
use karat_core::redact::{MASK, Redactor, is_secret_name};
use karat_core::trace::{ToolCall, Trace, Usage};
use karat_json::parse;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::context::Context;
use crate::context::agents::make_agents;
use crate::context::models::Models;
use crate::context::tools::read_tools;
use crate::error::Error;

pub struct Request {
    /// The messages of one conversation.
    pub messages: Vec<String>,
    /// The receiver of the agent's spans, if they are read.
    pub telemetry: Option<Arc<dyn Telemetry>>,
}

/// A conversation with the agent: the requests, the replies and the answers that were read from them.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentTrial {
    pub agent: String,
    /// Whether an answer to every message was read.
    pub answered: bool,
    /// The messages up to the first without an answer.
    pub turns: Vec<TrialTurn>,
    /// The agent's id for the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
}

/// A message and the answer to it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialTurn {
    pub message: String,
    /// The requests for the answer; none for agents that are scripts.
    pub exchanges: Vec<TrialExchange>,
    /// The answer, if it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<TrialAnswer>,
    /// Why no answer was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Warnings about what the reply does not report or what could not be read, with fixes.
    pub notes: Vec<String>,
}

/// A request and its reply, with secrets masked.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialExchange {
    /// `session`, `message`, `poll` or `decision`.
    pub purpose: String,
    pub request: TrialRequest,
    /// Absent if no reply was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply: Option<TrialReply>,
    /// Why the reply was not received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub elapsed_ms: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialRequest {
    /// The HTTP method; absent for programs and functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub headers: Vec<(String, String)>,
    /// JSON, or a string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialReply {
    /// The HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    pub bytes: usize,
    /// JSON, or a string.
    pub body: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// The answer that was read from the replies to a message.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrialAnswer {
    pub response: String,
    pub tool_calls: Vec<ToolCall>,
    /// Whether the reply does not report its tool calls.
    pub calls_unreported: bool,
    /// Whether the agent waits for approval; the response is its question.
    pub waits_for_approval: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    pub latency_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<f64>,
}

/// Collects the exchanges of a turn.
#[derive(Default)]
struct Collector {
    exchanges: Mutex<Vec<Exchange>>,
    conversation_id: Mutex<Option<String>>,
}

impl ExchangeObserver for Collector {
    fn on_exchange(&self, exchange: Exchange) {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
    }

    fn on_conversation_id(&self, id: &str) {
        *self.conversation_id.lock().unwrap_or_else(PoisonError::into_inner) = Some(id.to_owned());
    }
}

impl Collector {
    fn take(&self) -> Vec<Exchange> {
        std::mem::take(&mut self.exchanges.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn conversation_id(&self) -> Option<String> {
        self.conversation_id.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Sends the messages as one conversation, up to the first without an answer.
pub async fn try_messages(request: &Request, context: &Context<'_>) -> Result<AgentTrial, Error> {
    let settings = &context.settings;
    let tools = read_tools(settings, context.notices).await?;
    let collector = Arc::new(Collector::default());
    let mut models = Models::new(settings, false);
    models.observe(Arc::<Collector>::clone(&collector));
    let agents = make_agents(&mut models, settings, &tools, request.telemetry.as_ref(), context.notices)?;
    let [agent] = agents.as_slice() else {
        return Err(Error::invalid("'matrix' has several agents").hint("pass --agent-endpoint to choose one"));
    };
    let case = match request.messages.as_slice() {
        [message] => json!({"id": "try", "input": {"message": message}, "expect": {}}),
        messages => {
            let turns: Value = messages.iter().map(|message| json!({"message": message})).collect();
            json!({"id": "try", "turns": turns, "expect": {}})
        }
    };
    let case = Case::read_one(&case).map_err(|_| Error::invalid("the message is empty"))?;
    let run_id = context.ids.run_id();
    let trial = TrialContext {
        run_id: &run_id,
        number: 0,
        case: &case,
        sample: 0,
        has_turns: case.has_turns(),
        wait_observer: &IgnoreWaits,
    };
    let endpoint = settings.agent_endpoints.first().map(|endpoint| endpoint.value.clone()).unwrap_or_default();
    let (timeout, redactor) = (settings.timeout, &settings.redactor);
    let runner = TrialRunner { collector: &collector, endpoint: &endpoint, timeout, redactor };
    let mut conversation = agent.start(trial);
    let mut turns: Vec<TrialTurn> = Vec::new();
    for message in &request.messages {
        let turn = runner.send(message, conversation.as_mut()).await;
        let is_last = turn.answer.is_none();
        turns.push(turn);
        if is_last {
            break;
        }
    }
    drop(conversation);
    let conversation_id = collector.conversation_id().or_else(|| {
        let own = trial.conversation_id();
        sends(&turns, &own).then_some(own)
    });
    Ok(AgentTrial {
        agent: settings.redactor.text(&agent.identity()).into_owned(),
        answered: turns.iter().all(|turn| turn.answer.is_some()),
        turns,
        conversation_id,
    })
}

/// Whether any request has the id of the conversation.
fn sends(turns: &[TrialTurn], id: &str) -> bool {
    let requests = turns.iter().flat_map(|turn| &turn.exchanges).map(|exchange| &exchange.request);
    requests.into_iter().any(|request| {
        let in_body = request.body.as_ref().is_some_and(|body| body.to_string().contains(id));
        in_body || request.url.as_ref().is_some_and(|url| url.contains(id))
    })
}

struct TrialRunner<'t> {
    collector: &'t Collector,
    endpoint: &'t str,
    timeout: Duration,
    redactor: &'t Redactor,
}

impl TrialRunner<'_> {
    async fn send(&self, message: &str, conversation: &mut (dyn Conversation + '_)) -> TrialTurn {
        let answered = tokio::time::timeout(self.timeout, conversation.send(message)).await;
        let exchanges = self.collector.take();
        let answered = match answered {
            Ok(answered) => answered.map_err(|error| error.message),
            Err(_) => Err(format!("no answer within {} s ('timeoutMs')", self.timeout.as_secs_f64())),
        };
        exchanges.iter().flat_map(|exchange| &exchange.headers).for_each(|(name, value)| self.add_secrets(name, value));
        let notes = self.notes(answered.as_ref(), &exchanges);
        let text = |text: &str| self.redactor.text(text).into_owned();
        let (answer, error) = match answered {
            Ok(trace) => (Some(self.answer(trace)), None),
            Err(error) => (None, Some(text(&error))),
        };
        let notes = notes.iter().map(|note| text(note)).collect();
        let exchanges = exchanges.into_iter().map(|exchange| self.exchange(exchange)).collect();
        TrialTurn { message: message.to_owned(), exchanges, answer, error, notes }
    }

    /// Registers the secrets of a header, which may also be in the reply.
    fn add_secrets(&self, name: &str, value: &str) {
        self.redactor.add_secrets_in(name, &Value::from(value));
        if name == "cookie" {
            value.split(';').filter_map(|pair| pair.split_once('=')).for_each(|(_, value)| self.redactor.add(value));
        }
    }

    fn exchange(&self, exchange: Exchange) -> TrialExchange {
        let text = |text: &str| self.redactor.text(text).into_owned();
        let (method, url) = exchange.endpoint.unzip();
        let headers = exchange.headers.iter().map(|(name, value)| {
            let value = if is_secret_name(name) { Cow::Borrowed(MASK) } else { self.redactor.text(value) };
            (name.clone(), value.into_owned())
        });
        let request = TrialRequest {
            method,
            url: url.map(|url| text(&url)),
            headers: headers.collect(),
            body: exchange.body.map(|body| self.body(&body)),
        };
        let reply = exchange.reply.map(|reply| TrialReply {
            status: reply.status,
            content_type: reply.content_type,
            bytes: reply.body.len(),
            body: self.body(&reply.body),
            stderr: Some(text(&reply.stderr)).filter(|stderr| !stderr.is_empty()),
        });
        TrialExchange {
            purpose: exchange.purpose.name().to_owned(),
            request,
            reply,
            error: exchange.error.map(|error| text(&error)),
            elapsed_ms: exchange.elapsed.as_secs_f64() * 1000.0,
        }
    }

    fn body(&self, body: &[u8]) -> Value {
        let raw = String::from_utf8_lossy(body);
        let mut value = parse(&raw).unwrap_or_else(|_| Value::from(raw.into_owned()));
        self.redactor.value(&mut value);
        value
    }

    fn answer(&self, trace: Trace) -> TrialAnswer {
        let text = |text: &str| self.redactor.text(text).into_owned();
        let mut tool_calls = trace.tool_calls;
        for call in &mut tool_calls {
            self.redactor.map(&mut call.params);
            call.raw_params.iter_mut().chain(&mut call.error).for_each(|text| self.redactor.string(text));
            if let Some(result) = &mut call.result {
                self.redactor.value(result);
            }
        }
        TrialAnswer {
            response: text(&trace.response),
            tool_calls,
            calls_unreported: trace.calls_unreported,
            waits_for_approval: trace.stop_reason.as_deref() == Some(APPROVAL),
            usage: trace.usage,
            model: trace.model,
            stop_reason: trace.stop_reason,
            latency_ms: trace.latency_ms,
            first_token_ms: trace.first_token_ms,
        }
    }

    /// Returns warnings about what the reply does not report, with the keys to configure.
    fn notes(&self, answered: Result<&Trace, &String>, exchanges: &[Exchange]) -> Vec<String> {
        let preset = Preset::split(self.endpoint).map(|(preset, _)| preset);
        let mut notes = Vec::new();
        match answered {
            Ok(trace) => {
                if trace.calls_unreported && trace.warnings.is_empty() {
                    notes.push(self.unreported_calls(preset.as_ref()));
                }
                let is_paused = trace.stop_reason.as_deref() == Some(APPROVAL);
                if !is_paused && trace.tool_calls.iter().any(|call| call.success.is_none()) {
                    notes.push(unreported_failures(preset.as_ref(), trace));
                }
                if is_paused {
                    notes.push(match &preset {
                        Some(preset) if preset.agent.get("resume").is_none() => {
                            "the agent waits for approval: describe the request after a decision in 'agent.resume', \
                             and set 'agent.approvals' to \"approve\" or \"deny\""
                                .to_owned()
                        }
                        _ => {
                            "the agent waits for approval: set 'agent.approvals' to \"approve\" or \"deny\" to continue"
                                .to_owned()
                        }
                    });
                }
                notes.extend(trace.warnings.iter().cloned());
            }
            Err(_) => notes.extend(self.other_kind(preset.as_ref(), exchanges)),
        }
        notes
    }

    fn unreported_calls(&self, preset: Option<&Preset>) -> String {
        match preset {
            Some(Preset { product, reads, calls_hint, .. }) => {
                let subject = if reads.calls == Reported::Never { product.as_str() } else { "this reply" };
                let hint = calls_hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
                format!("{subject} does not report tool calls{hint}; {READS_SPANS}")
            }
            None if self.endpoint.starts_with("python:") || self.endpoint.starts_with("node:") => format!(
                "the function returns only a string: return {{\"response\": TEXT, \"toolCalls\": […]}} or the list of \
                 messages to report tool calls; {READS_SPANS}"
            ),
            None => format!(
                "the reply does not report tool calls: set 'agent.response.toolCalls' or \
                 'agent.response.conversation' to their location; {READS_SPANS}"
            ),
        }
    }

    /// Suggests a preset if the last reply has the shape of one.
    fn other_kind(&self, preset: Option<&Preset>, exchanges: &[Exchange]) -> Option<String> {
        let reply = exchanges.last()?.reply.as_ref()?;
        let is_url = self.endpoint.starts_with("http://") || self.endpoint.starts_with("https://");
        let url = match preset {
            Some(preset) => self.endpoint.strip_prefix(preset.kind)?.strip_prefix(':')?,
            None if is_url => self.endpoint,
            None => return None,
        };
        let kind = recognise(reply.content_type.as_deref(), &reply.body)?;
        let is_other = preset.is_none_or(|preset| preset.kind != kind);
        is_other.then(|| format!("the reply has the shape of '{kind}': try --agent-endpoint {kind}:{url}"))
    }
}

/// A preset has no condition on calls without results: their other parts are the same whether they fail or not.
fn unreported_failures(preset: Option<&Preset>, trace: &Trace) -> String {
    let fix = if preset.is_some() && trace.tool_calls.iter().all(|call| call.result.is_none()) {
        READS_SPANS
    } else {
        "set 'agent.response.toolCall.failed' to a condition on the call or its result"
    };
    format!("the reply does not report which calls failed, so 'noToolErrors' cannot be judged: {fix}")
}

const READS_SPANS: &str = "'agent.telemetry' reads them from its OpenTelemetry spans";

/// The stop reason of an agent that waits for approval.
const APPROVAL: &str = "approval";
