//! Settings of an HTTP agent.

use std::collections::BTreeMap;
use std::ops::Not;

use karat_json::{
    ObjectReader, Path, Problems, read_bool, read_enum, read_object_map, read_positive_count, read_string,
    read_string_map,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::placeholder::Scope;
pub(crate) use crate::request_map::RequestMap;
use crate::response_map::ResponseMap;
use crate::rule::Rule;
use crate::selector::Selector;
use crate::telemetry_config::TelemetryConfig;
use crate::template::{check_text, check_value, read_template};

/// Settings of an HTTP agent or a program. URLs, bodies and header values may contain `${NAME}`, an environment
/// variable, and the placeholders `{{message}}`, `{{conversationId}}`, `{{messages}}`, `{{turn}}`, `{{caseId}}` and
/// `{{uuid}}`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HttpConfig {
    pub method: Method,
    /// Sent with every request. Values may contain `${NAME}`, an environment variable, which is redacted in all output.
    pub headers: BTreeMap<String, String>,
    /// Starts a session before the first message of every trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionConfig>,
    pub request: RequestMap,
    /// Polls for the answer if the reply to a message is not the answer yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll: Option<PollConfig>,
    pub response: ResponseMap,
    /// How to respond when the agent asks for approval. By default, its question is the response, and `stopReason` is
    /// `approval`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals: Option<Decision>,
    /// The request that sends the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<ResumeConfig>,
    /// Reads tool calls from the agent's spans, for agents whose replies do not report them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<TelemetryConfig>,
    /// Maximum size of a reply; a larger one is an error.
    #[schemars(range(min = 1))]
    pub max_response_bytes: u64,
    /// For `command:`: keep the program running and send it a request per line.
    #[serde(skip_serializing_if = "Not::not")]
    pub keep_alive: bool,
    /// For `python:` and `node:`: the interpreter, with optional arguments. Default: that of the project's environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
}

/// The HTTP method of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    #[default]
    Post,
    Put,
    Patch,
    Get,
    Delete,
}

/// The start of a session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionConfig {
    /// Required, unless the preset has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<ExtraRequest>,
    /// The id of the session in the reply, which becomes `{{conversationId}}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Selector>,
}

/// Requests that poll for the answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PollConfig {
    /// GET by default. `{{reply:SELECTOR}}` is a part of the reply to the message. Required, unless the preset has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<ExtraRequest>,
    /// When a reply is the answer; also checked for the reply to the message. Required, unless the preset has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Rule>,
    /// Delay before each request.
    #[serde(default = "default_interval")]
    #[schemars(range(min = 1))]
    pub interval_ms: u64,
}

/// A decision on requests for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Approve,
    Deny,
}

/// The request that sends a decision. `{{decision}}` is the value of `approve` or `deny`, `{{approval:SELECTOR}}` a part of
/// the request for approval (`id`, `question`, `callId`, `call`, `request`), and `{{reply:SELECTOR}}` a part of the reply.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResumeConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// Relative to the endpoint's URL, on the same server. Default: the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub body: Map<String, Value>,
    #[serde(default = "approved")]
    pub approve: Value,
    #[serde(default = "denied")]
    pub deny: Value,
}

/// A request other than the one for the message. The agent's headers are sent with it too.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtraRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// Relative to the endpoint's URL, on the same server. Default: the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub body: Map<String, Value>,
}

impl Method {
    const NAMES: [&'static str; 5] = ["POST", "PUT", "PATCH", "GET", "DELETE"];

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "POST" => Some(Self::Post),
            "PUT" => Some(Self::Put),
            "PATCH" => Some(Self::Patch),
            "GET" => Some(Self::Get),
            "DELETE" => Some(Self::Delete),
            _ => None,
        }
    }

    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        read_enum(value, path, problems, &Self::NAMES, Self::from_name)
    }

    pub(crate) fn has_body(self) -> bool {
        !matches!(self, Self::Get | Self::Delete)
    }
}

impl Decision {
    const NAMES: [&'static str; 2] = ["approve", "deny"];

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "approve" => Some(Self::Approve),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            method: Method::default(),
            headers: BTreeMap::new(),
            session: None,
            request: RequestMap::default(),
            poll: None,
            response: ResponseMap::default(),
            approvals: None,
            resume: None,
            telemetry: None,
            max_response_bytes: 10 * 1024 * 1024,
            keep_alive: false,
            interpreter: None,
        }
    }
}

impl HttpConfig {
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let default = Self::default();
        let config = Self {
            method: object.nullable("method", path, problems, Method::read).unwrap_or_default(),
            headers: object.nullable("headers", path, problems, read_headers).unwrap_or_default(),
            session: object.nullable("session", path, problems, SessionConfig::read),
            request: object.nullable("request", path, problems, RequestMap::read).unwrap_or_default(),
            poll: object.nullable("poll", path, problems, PollConfig::read),
            response: object.nullable("response", path, problems, ResponseMap::read).unwrap_or_default(),
            approvals: object.nullable("approvals", path, problems, |value, path, problems| {
                read_enum(value, path, problems, &Decision::NAMES, Decision::from_name)
            }),
            resume: object.nullable("resume", path, problems, ResumeConfig::read),
            telemetry: object.nullable("telemetry", path, problems, TelemetryConfig::read),
            max_response_bytes: object
                .nullable("maxResponseBytes", path, problems, read_positive_count)
                .unwrap_or(default.max_response_bytes),
            keep_alive: object.nullable("keepAlive", path, problems, read_bool).unwrap_or_default(),
            interpreter: object.nullable("interpreter", path, problems, read_string),
        };
        object.close(path, problems);
        if !config.method.has_body() && !config.request.has_message_outside_body() {
            problems.at(path, "this method has no body: set 'request.query' to the parameter for the message");
        }
        Some(config)
    }
}

impl SessionConfig {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let request = object.nullable("request", path, problems, ExtraRequest::read_object);
        let id = object.nullable("id", path, problems, Selector::read);
        object.close(path, problems);
        Some(Self { request, id })
    }
}

impl PollConfig {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let request = object.nullable("request", path, problems, ExtraRequest::read_object);
        let until = object.nullable("until", path, problems, Rule::read);
        let interval_ms = object.nullable("intervalMs", path, problems, read_positive_count);
        object.close(path, problems);
        Some(Self { request, until, interval_ms: interval_ms.unwrap_or_else(default_interval) })
    }
}

impl ResumeConfig {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let ExtraRequest { method, url, headers, body } =
            ExtraRequest::read(&mut object, Scope::Resume, path, problems);
        let approve = object.raw("approve").cloned().unwrap_or_else(approved);
        let deny = object.raw("deny").cloned().unwrap_or_else(denied);
        object.close(path, problems);
        Some(Self { method, url, headers, body, approve, deny })
    }

    pub(crate) fn request(&self) -> ExtraRequest {
        let Self { method, url, headers, body, .. } = self.clone();
        ExtraRequest { method, url, headers, body }
    }
}

impl ExtraRequest {
    fn read_object(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let request = Self::read(&mut object, Scope::Request, path, problems);
        object.close(path, problems);
        Some(request)
    }

    fn read(object: &mut ObjectReader<'_>, scope: Scope, path: &Path<'_>, problems: &mut Problems) -> Self {
        Self {
            method: object.nullable("method", path, problems, Method::read),
            url: object
                .nullable("url", path, problems, |value, path, problems| read_template(value, scope, path, problems)),
            headers: object.nullable("headers", path, problems, read_headers).unwrap_or_default(),
            body: object
                .nullable("body", path, problems, |value, path, problems| {
                    check_value(value, scope, path, problems);
                    read_object_map(value, path, problems)
                })
                .unwrap_or_default(),
        }
    }
}

fn read_headers(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<BTreeMap<String, String>> {
    let headers = read_string_map(value, path, problems)?;
    for (name, text) in &headers {
        check_text(text, Scope::Request, &path.key(name), problems);
    }
    Some(headers)
}

fn approved() -> Value {
    Value::Bool(true)
}

fn denied() -> Value {
    Value::Bool(false)
}

fn default_interval() -> u64 {
    500
}
