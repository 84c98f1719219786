//! Values that are only known when a request is sent, such as `{{message}}`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use karat_core::port::TrialContext;
use karat_json::nearest;
use serde_json::Value;

use crate::headers::MissingVariable;
use crate::selector::Alternatives;

/// Why a template is not valid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TemplateError {
    #[error("unknown placeholder '{{{{{name}}}}}'")]
    Unknown { name: String, help: String },
    #[error("the selector of '{{{{{name}}}}}' {reason}")]
    Selector { name: String, reason: String },
    #[error(transparent)]
    Variable(#[from] MissingVariable),
}

/// Where a template is used, which decides what it may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Request,
    /// The request after a decision.
    Resume,
    /// A message of the history.
    Item,
}

/// A value that is only known when a request is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Placeholder {
    Message,
    ConversationId,
    Uuid,
    CaseId,
    Turn,
    /// The messages before this one.
    Messages,
    /// The message in the form of the history.
    UserMessage,
    Reply(Alternatives),
    Decision,
    Approval(Alternatives),
    Content,
}

/// The values of placeholders.
pub(crate) struct Values<'v> {
    pub(crate) message: &'v str,
    pub(crate) turn: usize,
    pub(crate) messages: &'v [Value],
    pub(crate) user_message: Option<&'v Value>,
    /// The reply to the previous request.
    pub(crate) reply: Option<&'v Value>,
    pub(crate) decision: Option<&'v Value>,
    pub(crate) approval: Option<&'v Value>,
    /// The text of a message of the history.
    pub(crate) content: Option<&'v str>,
    pub(crate) case_id: &'v str,
    /// The header `traceparent`, if the agent's spans are read.
    pub(crate) traceparent: Option<&'v str>,
    pub(crate) ids: &'v Ids<'v>,
}

/// The ids of a conversation.
pub(crate) struct Ids<'t> {
    trial: TrialContext<'t>,
    attempt: usize,
    /// Whether the agent assigns the id of the conversation.
    is_assigned: bool,
    assigned: Option<String>,
    /// karat's own id, generated on first use.
    generated: OnceLock<String>,
    count: AtomicUsize,
}

impl<'t> Ids<'t> {
    /// Creates the ids of an attempt. Every attempt has its own, so that an agent with memory never mixes them up. If the
    /// agent assigns the id of the conversation, there is none before its first reply.
    pub(crate) fn new(trial: TrialContext<'t>, is_assigned: bool, attempt: usize) -> Self {
        Self { trial, attempt, is_assigned, assigned: None, generated: OnceLock::new(), count: AtomicUsize::new(0) }
    }

    /// Creates ids of messages, which differ from those in requests.
    pub(crate) fn of_messages(trial: TrialContext<'t>) -> Self {
        Self::new(trial, false, usize::MAX)
    }

    pub(crate) fn set(&mut self, id: String) {
        self.assigned = Some(id);
    }

    fn generated(&self) -> &str {
        self.generated.get_or_init(|| match self.attempt {
            0 => self.trial.conversation_id(),
            attempt => {
                let run_id = format!("{}:{}:retry", self.trial.run_id, self.trial.number);
                TrialContext { run_id: &run_id, number: attempt, ..self.trial }.conversation_id()
            }
        })
    }

    fn conversation_id(&self) -> Option<&str> {
        match &self.assigned {
            None if self.is_assigned => None,
            None => Some(self.generated()),
            assigned => assigned.as_deref(),
        }
    }

    fn next_uuid(&self) -> String {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        TrialContext { run_id: self.generated(), number, ..self.trial }.conversation_id()
    }
}

impl Scope {
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Request => {
                &["message", "conversationId", "uuid", "caseId", "turn", "messages", "userMessage", "reply:"]
            }
            Self::Resume => &[
                "message",
                "conversationId",
                "uuid",
                "caseId",
                "turn",
                "messages",
                "userMessage",
                "reply:",
                "decision",
                "approval:",
            ],
            Self::Item => &["content", "uuid", "caseId"],
        }
    }
}

impl Placeholder {
    pub(crate) fn parse(name: &str, scope: Scope) -> Result<Self, TemplateError> {
        let trimmed = name.trim();
        let (keyword, argument) = trimmed.split_once(':').unwrap_or((trimmed, ""));
        let known = |candidate: &&&str| candidate.strip_suffix(':').unwrap_or(candidate) == keyword;
        let has_argument = trimmed.contains(':');
        let is_known = scope.names().iter().find(known).is_some_and(|known| known.ends_with(':') == has_argument);
        let selector = || {
            let fail = |reason| TemplateError::Selector { name: name.to_owned(), reason };
            Alternatives::parse(argument).map_err(fail)
        };
        match keyword {
            _ if !is_known || trimmed != name => {}
            "message" => return Ok(Self::Message),
            "conversationId" => return Ok(Self::ConversationId),
            "uuid" => return Ok(Self::Uuid),
            "caseId" => return Ok(Self::CaseId),
            "turn" => return Ok(Self::Turn),
            "messages" => return Ok(Self::Messages),
            "userMessage" => return Ok(Self::UserMessage),
            "reply" => return Ok(Self::Reply(selector()?)),
            "decision" => return Ok(Self::Decision),
            "approval" => return Ok(Self::Approval(selector()?)),
            "content" => return Ok(Self::Content),
            _ => {}
        }
        let quoted = |name: &str| match name {
            "reply:" | "approval:" => format!("'{{{{{name}SELECTOR}}}}'"),
            name => format!("'{{{{{name}}}}}'"),
        };
        let help = match nearest(keyword, scope.names()) {
            Some(known) => format!("did you mean {}?", quoted(known)),
            None => {
                format!(
                    "available placeholders: {}",
                    scope.names().iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
                )
            }
        };
        Err(TemplateError::Unknown { name: name.to_owned(), help })
    }

    pub(crate) fn value(&self, values: &Values<'_>) -> Option<Value> {
        Some(match self {
            Self::Message => values.message.into(),
            Self::ConversationId => values.ids.conversation_id()?.into(),
            Self::Uuid => values.ids.next_uuid().into(),
            Self::CaseId => values.case_id.into(),
            Self::Turn => values.turn.into(),
            Self::Messages => values.messages.into(),
            Self::UserMessage => values.user_message?.clone(),
            Self::Reply(selector) => selector.find_non_null(values.reply?)?.clone(),
            Self::Decision => values.decision?.clone(),
            Self::Approval(selector) => selector.find_non_null(values.approval?)?.clone(),
            Self::Content => values.content?.into(),
        })
    }

    fn name(&self) -> String {
        match self {
            Self::Reply(selector) => format!("reply:{}", selector.as_str()),
            Self::Approval(selector) => format!("approval:{}", selector.as_str()),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    pub(crate) fn required(&self, values: &Values<'_>) -> Result<Value, String> {
        self.value(values).ok_or_else(|| match self {
            Self::Reply(selector) => {
                format!("the reply has no value at '{}', which the next request needs", selector.as_str())
            }
            Self::ConversationId => "the agent has not given a conversation id yet".to_owned(),
            other => format!("'{{{{{}}}}}' has no value", other.name()),
        })
    }

    /// Whether a request without the value would go to another conversation. A decision may refer to parts that only
    /// some agents send.
    pub(crate) fn is_required(&self, values: &Values<'_>) -> bool {
        matches!(self, Self::Reply(_)) && values.reply.is_some() && values.decision.is_none()
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use karat_cases::{Case, CaseLocation, Expectation, Input};
    use karat_core::port::IgnoreWaits;
    use serde_json::json;

    use super::*;

    /// Calls a function with the values of a second turn.
    pub(crate) fn with_values<T>(run: impl FnOnce(&Values<'_>) -> T) -> T {
        let case = Case {
            id: "gs-x-001".to_owned(),
            description: String::new(),
            difficulty: None,
            created_at: None,
            bug_ref: None,
            input: Some(Input { message: String::new() }),
            turns: None,
            user: None,
            on_turn_failure: None,
            stubs: None,
            injections: None,
            max_turns: None,
            expect: Expectation::default(),
            safety: None,
            tags: Vec::new(),
            skip: None,
            location: CaseLocation { line: 1, ..CaseLocation::default() },
        };
        let trial = TrialContext {
            run_id: "run",
            number: 0,
            case: &case,
            sample: 0,
            has_turns: true,
            wait_observer: &IgnoreWaits,
        };
        let mut ids = Ids::new(trial, false, 0);
        ids.set("c/1".to_owned());
        run(&Values {
            message: "say \"hi\" & go",
            turn: 1,
            messages: &[json!({"role": "user", "content": "a"}), json!({"role": "assistant", "content": "b"})],
            reply: Some(&json!({"id": 7, "list": [1, 2]})),
            decision: Some(&json!({"approved": true})),
            approval: None,
            user_message: None,
            content: None,
            case_id: &case.id,
            traceparent: None,
            ids: &ids,
        })
    }
}
