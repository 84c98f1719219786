//! The serialised form of answers, without secrets.

use std::time::Duration;

use karat_core::chat::ChatReply;
use karat_core::port::{AgentError, AgentErrorCause, UnusableReply};
use karat_core::redact::Redactor;
use karat_core::trace::{ToolCall, Trace, Usage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::file::Text;

/// An answer that can be recorded without loss.
pub(super) trait Answer: Clone + PartialEq + Send {
    type Recorded: Serialize + DeserializeOwned;

    /// Redacts secrets and replaces numbers that JSON cannot represent.
    fn sanitise(&mut self, redactor: &Redactor);
    fn to_recorded(&self) -> Self::Recorded;
    fn from_recorded(recorded: Self::Recorded) -> Self;
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RecordedTrace {
    response: Text,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    steps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    latency_ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_token_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    calls_unreported: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stderr: Option<Text>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

// Destructured without `..`, so that a new field cannot be forgotten.
impl Answer for Trace {
    type Recorded = RecordedTrace;

    fn sanitise(&mut self, redactor: &Redactor) {
        let Trace {
            response,
            tool_calls,
            steps: _,
            usage,
            model,
            stop_reason,
            latency_ms,
            first_token_ms,
            calls_unreported: _,
            stderr,
            warnings,
        } = self;
        redactor.string(response);
        let optional = [model, stop_reason, stderr].into_iter().flatten();
        optional.chain(warnings).for_each(|text| redactor.string(text));
        usage.iter_mut().for_each(sanitise_usage);
        sanitise_number(latency_ms);
        first_token_ms.iter_mut().for_each(sanitise_number);
        for call in tool_calls {
            let ToolCall { name, success: _, duration_ms, params, raw_params, result, error, step: _ } = call;
            redactor.string(name);
            redactor.map(params);
            if let Some(value) = result {
                redactor.value(value);
            }
            [raw_params, error].into_iter().flatten().for_each(|text| redactor.string(text));
            duration_ms.iter_mut().for_each(sanitise_number);
        }
    }

    fn to_recorded(&self) -> RecordedTrace {
        let Trace {
            response,
            tool_calls,
            steps,
            usage,
            model,
            stop_reason,
            latency_ms,
            first_token_ms,
            calls_unreported,
            stderr,
            warnings,
        } = self.clone();
        RecordedTrace {
            response: response.into(),
            tool_calls,
            steps,
            usage,
            model,
            stop_reason,
            latency_ms,
            first_token_ms,
            calls_unreported,
            stderr: stderr.map(Text::from),
            warnings,
        }
    }

    fn from_recorded(recorded: RecordedTrace) -> Self {
        let RecordedTrace {
            response,
            tool_calls,
            steps,
            usage,
            model,
            stop_reason,
            latency_ms,
            first_token_ms,
            calls_unreported,
            stderr,
            warnings,
        } = recorded;
        Trace {
            response: response.into(),
            tool_calls,
            steps,
            usage,
            model,
            stop_reason,
            latency_ms,
            first_token_ms,
            calls_unreported,
            stderr: stderr.map(String::from),
            warnings,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RecordedReply {
    value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    latency_ms: f64,
}

impl Answer for ChatReply {
    type Recorded = RecordedReply;

    fn sanitise(&mut self, redactor: &Redactor) {
        let ChatReply { value, usage, latency_ms } = self;
        redactor.value(value);
        usage.iter_mut().for_each(sanitise_usage);
        sanitise_number(latency_ms);
    }

    fn to_recorded(&self) -> RecordedReply {
        let ChatReply { value, usage, latency_ms } = self.clone();
        RecordedReply { value, usage, latency_ms }
    }

    fn from_recorded(recorded: RecordedReply) -> Self {
        let RecordedReply { value, usage, latency_ms } = recorded;
        ChatReply { value, usage, latency_ms }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RecordedError {
    message: Text,
    elapsed_ms: f64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unusable: Option<RecordedUnusableReply>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RecordedUnusableReply {
    text: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

const NANOS_PER_MILLI: f64 = 1e6;

impl RecordedError {
    pub(super) fn new(error: &AgentError) -> Self {
        let AgentError { message, elapsed, cause } = error.clone();
        #[expect(clippy::cast_precision_loss, reason = "exact up to about fifty days")]
        let elapsed_ms = elapsed.as_nanos() as f64 / NANOS_PER_MILLI;
        let (timed_out, unusable) = match cause {
            AgentErrorCause::Timeout => (true, None),
            AgentErrorCause::Unusable(reply) => {
                let UnusableReply { text, usage } = *reply;
                (false, Some(RecordedUnusableReply { text: text.into(), usage }))
            }
            // Budget errors are not recorded; for the connection see `as_replayed`.
            AgentErrorCause::NoAnswer | AgentErrorCause::Unreachable { .. } | AgentErrorCause::Budget => (false, None),
        };
        Self { message: message.into(), elapsed_ms, timed_out, unusable }
    }

    pub(super) fn into_error(self) -> AgentError {
        let Self { message, elapsed_ms, timed_out, unusable } = self;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
        let nanos = (elapsed_ms * NANOS_PER_MILLI).round() as u64;
        let cause = match unusable {
            _ if timed_out => AgentErrorCause::Timeout,
            Some(RecordedUnusableReply { text, usage }) => {
                AgentErrorCause::Unusable(Box::new(UnusableReply { text: text.into(), usage }))
            }
            None => AgentErrorCause::NoAnswer,
        };
        AgentError { cause, ..AgentError::new(message, Duration::from_nanos(nanos)) }
    }
}

/// Returns an error as a replay returns it: without the connection, of which a replay says nothing.
pub(super) fn as_replayed(error: &AgentError) -> AgentError {
    let mut error = error.clone();
    if matches!(error.cause, AgentErrorCause::Unreachable { .. }) {
        error.cause = AgentErrorCause::NoAnswer;
    }
    error
}

/// Redacts secrets in an error.
pub(super) fn sanitise_error(error: &mut AgentError, redactor: &Redactor) {
    redactor.string(&mut error.message);
    if let AgentErrorCause::Unusable(reply) = &mut error.cause {
        redactor.string(&mut reply.text);
        reply.usage.iter_mut().for_each(sanitise_usage);
    }
}

fn sanitise_usage(usage: &mut Usage) {
    let Usage { input_tokens: _, output_tokens: _, cached_input_tokens: _, cost_usd } = usage;
    cost_usd.iter_mut().for_each(sanitise_number);
}

/// Replaces numbers that JSON cannot represent.
fn sanitise_number(number: &mut f64) {
    if !number.is_finite() {
        *number = 0.0;
    }
}
