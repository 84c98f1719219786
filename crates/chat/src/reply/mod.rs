//! Reads the reply of an agent: what it did since the last message of the user.
//!
//! The protocol is recognised by its content. A reply is one JSON value: an object, a list of messages, or the list of
//! events of a stream in the order of arrival.

use karat_core::trace::{ToolCall, Usage};
use serde_json::Value;

/// What an agent did since the last message of the user.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// Name of the protocol that the reply was recognised as, such as `openai-chat`.
    pub protocol: &'static str,
    /// One per message of the model.
    pub steps: Vec<ReplyStep>,
    /// Why the agent failed, as the reply says it.
    pub error: Option<String>,
    /// What the agent waits for, if it waits for a person's decision.
    pub approval: Option<Approval>,
    /// Index of the event with the first text of the answer, if the reply is a list of events.
    pub first_text_event: Option<usize>,
    /// The id by which the agent knows the conversation: a thread, session, context or chat.
    pub conversation_id: Option<String>,
    /// Whether the agent finished: false for a stream that was cut off and for a task that still runs.
    pub is_complete: bool,
    /// Whether the reply cannot contain calls, so that their absence proves nothing.
    pub calls_unreported: bool,
    /// The sum over all steps.
    pub usage: Option<Usage>,
    pub model: Option<String>,
    pub stop_reason: Option<String>,
    /// Results of calls that an earlier reply of the same turn made, before an approval.
    pub late_results: Vec<LateResult>,
}

/// A message of the model, with the calls that it made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplyStep {
    pub text: String,
    pub reasoning: Option<String>,
    pub calls: Vec<ReplyCall>,
}

/// A call with its id in the protocol.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplyCall {
    pub id: Option<String>,
    /// `success` is absent where the protocol does not tell it.
    pub call: ToolCall,
}

/// A decision that an agent waits for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Approval {
    /// What the agent asks; never empty.
    pub question: String,
    /// The id of the request for approval, interrupt or task.
    pub id: Option<String>,
    /// The call that is to be approved.
    pub call_id: Option<String>,
    /// The request for approval as the protocol has it.
    pub request: Value,
}

/// The result of a call that is not in the reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LateResult {
    pub call_id: String,
    pub result: Option<Value>,
    pub success: Option<bool>,
    pub error: Option<String>,
}

/// Why a reply cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    #[error("the reply is empty")]
    Empty,
    /// Neither messages nor events nor the reply of a known protocol.
    #[error("no messages or events of a known protocol in the reply: {0}")]
    UnknownShape(String),
    #[error("{0}")]
    Invalid(String),
}

impl Reply {
    /// Returns the answer: the text of the last step that is not empty.
    pub fn response(&self) -> &str {
        ""
    }

    /// Returns the calls of all steps in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.steps.iter().flat_map(|step| &step.calls).map(|call| &call.call)
    }

    /// Adds the reply that followed the decision on an approval. Calls that both contain are kept once.
    #[must_use]
    pub fn followed_by(self, later: Self) -> Self {
        later
    }
}

/// Reads a reply: an object, a list of messages, or a list of events. An event of a stream with named events is
/// `{"event": NAME, "data": VALUE}` unless its data repeats the name.
pub fn read_reply(value: &Value) -> Result<Reply, ReplyError> {
    if value.is_null() {
        return Err(ReplyError::Empty);
    }
    Err(ReplyError::UnknownShape(crate::lenient::truncate(&value.to_string())))
}
