//! Selectors of the parts of a reply.

use karat_json::{ObjectReader, Path, Problems, read_enum};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;

use crate::rule::Rule;
use crate::selector::Selector;

/// Selectors of the parts of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ResponseMap {
    /// By default, the content type of the reply decides. A stream is read as the list of its events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// The agent's text.
    pub response: SelectorOrDefault,
    /// The list of tool calls, or the tool calls themselves. Optional in a reply.
    pub tool_calls: SelectorOrDefault,
    /// Selectors of the parts of each tool call, relative to the call.
    pub tool_call: ToolCallMap,
    /// A list of messages or events, or a reply, of a known protocol: text, tool calls and usage are read from it,
    /// unless they are selected too. Only what follows the last message of the user counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Selector>,
    /// The id of the conversation in the first reply; later requests contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<Selector>,
    /// An error that the agent reports. If it is present and not null, the case is errored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Selector>,
    /// Usage: `inputTokens`, `outputTokens`, `costUsd`.
    pub usage: SelectorOrDefault,
    pub model: SelectorOrDefault,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<Selector>,
    /// When the agent asks for approval, and its question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalMap>,
}

/// The format of a reply's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Json,
    /// Server-sent events.
    Sse,
    /// JSON lines.
    Jsonl,
}

/// A request for approval in a reply.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalMap {
    pub when: Rule,
    pub question: Selector,
}

/// Selectors of the parts of a tool call, relative to the call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolCallMap {
    pub name: Selector,
    /// An object, or a string that contains one as JSON.
    pub params: Selector,
    pub success: Selector,
    pub duration_ms: Selector,
    pub result: Selector,
    /// When a call failed; other calls succeeded. With `conversation`, a call is `{name, params, result, error}`,
    /// and the condition adds to the failures that the protocol reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<Rule>,
}

/// A selector that has a default.
#[derive(Debug, Clone)]
pub struct SelectorOrDefault {
    pub selector: Selector,
    /// Whether it is set explicitly, even to the default.
    pub is_configured: bool,
}

impl Format {
    const NAMES: [&'static str; 3] = ["json", "sse", "jsonl"];

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "json" => Some(Self::Json),
            "sse" => Some(Self::Sse),
            "jsonl" => Some(Self::Jsonl),
            _ => None,
        }
    }
}

impl Default for ResponseMap {
    fn default() -> Self {
        Self {
            format: None,
            response: SelectorOrDefault::at("response"),
            tool_calls: SelectorOrDefault::at("toolCalls"),
            tool_call: ToolCallMap::default(),
            conversation: None,
            conversation_id: None,
            error: None,
            usage: SelectorOrDefault::at("usage"),
            model: SelectorOrDefault::at("model"),
            stop_reason: None,
            approval: None,
        }
    }
}

impl Default for ToolCallMap {
    fn default() -> Self {
        Self {
            name: Selector::key("name"),
            params: Selector::key("params"),
            success: Selector::key("success"),
            duration_ms: Selector::key("durationMs"),
            result: Selector::key("result"),
            failed: None,
        }
    }
}

impl ResponseMap {
    pub(crate) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let map = Self {
            format: object.nullable("format", path, problems, |value, path, problems| {
                read_enum(value, path, problems, &Format::NAMES, Format::from_name)
            }),
            response: SelectorOrDefault::read("response", &mut object, path, problems),
            tool_calls: SelectorOrDefault::read("toolCalls", &mut object, path, problems),
            tool_call: object.nullable("toolCall", path, problems, ToolCallMap::read).unwrap_or_default(),
            conversation: object.nullable("conversation", path, problems, Selector::read),
            conversation_id: object.nullable("conversationId", path, problems, Selector::read),
            error: object.nullable("error", path, problems, Selector::read),
            usage: SelectorOrDefault::read("usage", &mut object, path, problems),
            model: SelectorOrDefault::read("model", &mut object, path, problems),
            stop_reason: object.nullable("stopReason", path, problems, Selector::read),
            approval: object.nullable("approval", path, problems, ApprovalMap::read),
        };
        object.close(path, problems);
        Some(map)
    }
}

impl ApprovalMap {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let when = object.required("when", path, problems, Rule::read);
        let question = object.required("question", path, problems, Selector::read);
        object.close(path, problems);
        Some(Self { when: when?, question: question? })
    }
}

impl ToolCallMap {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let default = Self::default();
        let map = Self {
            name: object.nullable("name", path, problems, Selector::read).unwrap_or(default.name),
            params: object.nullable("params", path, problems, Selector::read).unwrap_or(default.params),
            success: object.nullable("success", path, problems, Selector::read).unwrap_or(default.success),
            duration_ms: object.nullable("durationMs", path, problems, Selector::read).unwrap_or(default.duration_ms),
            result: object.nullable("result", path, problems, Selector::read).unwrap_or(default.result),
            failed: object.nullable("failed", path, problems, Rule::read),
        };
        object.close(path, problems);
        Some(map)
    }
}

impl SelectorOrDefault {
    fn at(key: &str) -> Self {
        Self { selector: Selector::key(key), is_configured: false }
    }

    fn read(key: &'static str, object: &mut ObjectReader<'_>, path: &Path<'_>, problems: &mut Problems) -> Self {
        match object.nullable(key, path, problems, Selector::read) {
            Some(selector) => Self { selector, is_configured: true },
            None => Self::at(key),
        }
    }

    /// Returns the selector if it is configured.
    pub(crate) fn configured(&self) -> Option<&Selector> {
        self.is_configured.then_some(&self.selector)
    }
}

impl PartialEq for SelectorOrDefault {
    fn eq(&self, other: &Self) -> bool {
        self.selector == other.selector
    }
}

impl Serialize for SelectorOrDefault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.selector.serialize(serializer)
    }
}

impl JsonSchema for SelectorOrDefault {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Selector::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        generator.subschema_for::<Selector>()
    }
}
