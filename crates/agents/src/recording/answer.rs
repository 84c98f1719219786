//! What is recorded of an answer: all of it, but for secrets.

use std::time::Duration;

use karat_core::chat::ChatReply;
use karat_core::port::{AgentError, AgentErrorCause, UnusableReply};
use karat_core::redact::Redactor;
use karat_core::trace::{ToolCall, Trace, Usage};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::file::Text;

/// An answer that can be written and read back as it was.
pub(super) trait Answer: Clone + PartialEq + Send {
    type Written: Serialize + DeserializeOwned;

    /// Takes out what must not be on disk, or cannot be.
    fn clean(&mut self, redactor: &Redactor);
    fn write(&self) -> Self::Written;
    fn read(written: Self::Written) -> Self;
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WrittenTrace {
    response: Text,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    latency_ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stderr: Option<Text>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

// Both are taken apart whole here, so that what is new in a trace cannot be forgotten.
impl Answer for Trace {
    type Written = WrittenTrace;

    fn clean(&mut self, redactor: &Redactor) {
        let Trace { response, tool_calls, usage, model, stop_reason, latency_ms, stderr, warnings } = self;
        redactor.string(response);
        let optional = [model, stop_reason, stderr].into_iter().flatten();
        optional.chain(warnings).for_each(|text| redactor.string(text));
        usage.iter_mut().for_each(clean_usage);
        clean_number(latency_ms);
        for call in tool_calls {
            let ToolCall { name, success: _, duration_ms, params, raw_params, result, error } = call;
            redactor.string(name);
            redactor.map(params);
            if let Some(value) = result {
                redactor.value(value);
            }
            [raw_params, error].into_iter().flatten().for_each(|text| redactor.string(text));
            duration_ms.iter_mut().for_each(clean_number);
        }
    }

    fn write(&self) -> WrittenTrace {
        let Trace { response, tool_calls, usage, model, stop_reason, latency_ms, stderr, warnings } = self.clone();
        WrittenTrace {
            response: response.into(),
            tool_calls,
            usage,
            model,
            stop_reason,
            latency_ms,
            stderr: stderr.map(Text::from),
            warnings,
        }
    }

    fn read(written: WrittenTrace) -> Self {
        let WrittenTrace { response, tool_calls, usage, model, stop_reason, latency_ms, stderr, warnings } = written;
        Trace {
            response: response.into(),
            tool_calls,
            usage,
            model,
            stop_reason,
            latency_ms,
            stderr: stderr.map(String::from),
            warnings,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WrittenReply {
    value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    latency_ms: f64,
}

impl Answer for ChatReply {
    type Written = WrittenReply;

    fn clean(&mut self, redactor: &Redactor) {
        let ChatReply { value, usage, latency_ms } = self;
        redactor.value(value);
        usage.iter_mut().for_each(clean_usage);
        clean_number(latency_ms);
    }

    fn write(&self) -> WrittenReply {
        let ChatReply { value, usage, latency_ms } = self.clone();
        WrittenReply { value, usage, latency_ms }
    }

    fn read(written: WrittenReply) -> Self {
        let WrittenReply { value, usage, latency_ms } = written;
        ChatReply { value, usage, latency_ms }
    }
}

/// Why there was no answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WrittenError {
    message: Text,
    elapsed_ms: f64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unusable: Option<WrittenUnusable>,
}

/// What a model said in place of an answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenUnusable {
    text: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

const NANOS_PER_MILLI: f64 = 1e6;

impl WrittenError {
    pub(super) fn of(error: &AgentError) -> Self {
        let AgentError { message, elapsed, cause } = error.clone();
        #[expect(clippy::cast_precision_loss, reason = "exact for some fifty days, as the way back is")]
        let elapsed_ms = elapsed.as_nanos() as f64 / NANOS_PER_MILLI;
        let (timed_out, unusable) = match cause {
            AgentErrorCause::Timeout => (true, None),
            AgentErrorCause::Unusable(reply) => {
                let UnusableReply { text, usage } = *reply;
                (false, Some(WrittenUnusable { text: text.into(), usage }))
            }
            // What ends a run is not recorded.
            AgentErrorCause::NoAnswer | AgentErrorCause::Budget => (false, None),
        };
        Self { message: message.into(), elapsed_ms, timed_out, unusable }
    }

    pub(super) fn read(self) -> AgentError {
        let Self { message, elapsed_ms, timed_out, unusable } = self;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "what is out of range is cut to it"
        )]
        let nanos = (elapsed_ms * NANOS_PER_MILLI).round() as u64;
        let cause = match unusable {
            _ if timed_out => AgentErrorCause::Timeout,
            Some(WrittenUnusable { text, usage }) => {
                AgentErrorCause::Unusable(Box::new(UnusableReply { text: text.into(), usage }))
            }
            None => AgentErrorCause::NoAnswer,
        };
        AgentError { cause, ..AgentError::new(message, Duration::from_nanos(nanos)) }
    }
}

/// Takes out of an error what must not be on disk, or cannot be.
pub(super) fn clean_error(error: &mut AgentError, redactor: &Redactor) {
    redactor.string(&mut error.message);
    if let AgentErrorCause::Unusable(reply) = &mut error.cause {
        redactor.string(&mut reply.text);
        reply.usage.iter_mut().for_each(clean_usage);
    }
}

fn clean_usage(usage: &mut Usage) {
    let Usage { input_tokens: _, output_tokens: _, cached_input_tokens: _, cost_usd } = usage;
    cost_usd.iter_mut().for_each(clean_number);
}

/// JSON has no word for a number that is none.
fn clean_number(number: &mut f64) {
    if !number.is_finite() {
        *number = 0.0;
    }
}
