//! The request that is sent for a message.

use karat_json::{ObjectReader, Path, Problems, read_object_map, read_pointer, read_string};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::placeholder::Scope;
use crate::template::{check_value, read_template};

/// The request that is sent for a message.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RequestMap {
    /// Relative to the endpoint's URL, on the same server. Default: the endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The body into which the message is inserted.
    pub body: Map<String, Value>,
    /// JSON pointer to the message in the body; not used if the body or URL contains `{{message}}`.
    pub message: String,
    /// Query parameter for the message instead of the body; required for GET and DELETE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// JSON pointer to a list in the body, to which the messages of the conversation and the new one are appended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<String>,
    /// The form of the messages in `messages` and `{{messages}}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_form: Option<MessageForm>,
    /// JSON pointer to the id of the conversation in the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    /// JSON pointer to the number of the turn in the body, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
}

/// The form of messages in the history: by default `{"role": "user" or "assistant", "content": TEXT}`. `{{content}}` is
/// the text.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MessageForm {
    pub user: Value,
    pub assistant: Value,
}

impl Default for RequestMap {
    fn default() -> Self {
        Self {
            url: None,
            body: Map::new(),
            message: "/message".to_owned(),
            query: None,
            messages: None,
            message_form: None,
            conversation_id: None,
            turn: None,
        }
    }
}

impl Default for MessageForm {
    fn default() -> Self {
        let form = |role| json!({"role": role, "content": "{{content}}"});
        Self { user: form("user"), assistant: form("assistant") }
    }
}

impl RequestMap {
    pub(crate) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let default = Self::default();
        let map = Self {
            url: object.nullable("url", path, problems, |value, path, problems| {
                read_template(value, Scope::Request, path, problems)
            }),
            body: object
                .nullable("body", path, problems, |value, path, problems| {
                    check_value(value, Scope::Request, path, problems);
                    read_object_map(value, path, problems)
                })
                .unwrap_or_default(),
            message: object.nullable("message", path, problems, read_pointer).unwrap_or(default.message),
            query: object.nullable("query", path, problems, read_string),
            messages: object.nullable("messages", path, problems, read_pointer),
            message_form: object.nullable("messageForm", path, problems, MessageForm::read),
            conversation_id: object.nullable("conversationId", path, problems, read_pointer),
            turn: object.nullable("turn", path, problems, read_pointer),
        };
        object.close(path, problems);
        if let Err(message) = map.body_template(false) {
            problems.at(path, message);
        }
        Some(map)
    }

    /// Whether the URL or query has the message, so that a request without a body has it too.
    pub(crate) fn has_message_outside_body(&self) -> bool {
        self.query.is_some() || self.url.as_deref().is_some_and(has_message)
    }

    /// Whether a placeholder or pointer adds the conversation to the request.
    pub(crate) fn maps_conversation(&self) -> bool {
        let names = ["{{conversationId}}", "{{messages}}", "{{turn}}"];
        let in_url = |name: &&str| self.url.as_deref().is_some_and(|url| url.contains(name));
        let in_body = |name: &&str| self.body.values().any(|value| any_string(value, &|text| text.contains(name)));
        self.messages.is_some()
            || self.conversation_id.is_some()
            || self.turn.is_some()
            || names.iter().any(|name| in_url(name) || in_body(name))
    }

    /// Returns the body with placeholders at all configured pointers. `adds_conversation` also adds the keys that a
    /// conversation has by default.
    pub(crate) fn body_template(&self, adds_conversation: bool) -> Result<Value, String> {
        let mut body = Value::Object(self.body.clone());
        let insert = |body: &mut Value, key: &str, pointer: &str, placeholder: &str| {
            insert(body, pointer, placeholder.into())
                .ok_or_else(|| format!("'{key}': the body has no element at '{pointer}'"))
        };
        let has_message = self.has_message_outside_body()
            || self.body.values().any(|value| any_string(value, &has_message))
            || self.messages.is_some();
        if !has_message || self.query.is_none() && self.message != Self::default().message {
            insert(&mut body, "message", &self.message, "{{message}}")?;
        }
        if let Some(pointer) = &self.messages {
            let list = match body.pointer_mut(pointer) {
                Some(list) => Some(list),
                None => insert(&mut body, "messages", pointer, "").ok().and_then(|()| {
                    let list = body.pointer_mut(pointer)?;
                    *list = json!([]);
                    Some(list)
                }),
            };
            let Some(Value::Array(list)) = list else {
                return Err(format!("'messages': the body has no list at '{pointer}'"));
            };
            list.extend(["{{messages}}".into(), "{{userMessage}}".into()]);
        }
        if let Some(pointer) = &self.conversation_id {
            insert(&mut body, "conversationId", pointer, "{{conversationId}}")?;
        }
        if let Some(pointer) = &self.turn {
            insert(&mut body, "turn", pointer, "{{turn}}")?;
        }
        if adds_conversation && let Value::Object(body) = &mut body {
            for (key, placeholder) in
                [("conversationId", "{{conversationId}}"), ("turn", "{{turn}}"), ("messages", "{{messages}}")]
            {
                body.entry(key).or_insert_with(|| placeholder.into());
            }
        }
        Ok(body)
    }
}

impl MessageForm {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let default = Self::default();
        let mut read = |key, default| match object.raw(key) {
            Some(form) => {
                check_value(form, Scope::Item, &path.key(key), problems);
                form.clone()
            }
            None => default,
        };
        let form = Self { user: read("user", default.user), assistant: read("assistant", default.assistant) };
        object.close(path, problems);
        Some(form)
    }
}

/// Inserts a value. The last segment of the pointer need not exist yet.
fn insert(body: &mut Value, pointer: &str, value: Value) -> Option<()> {
    let (parent, last) = pointer.rsplit_once('/')?;
    let key = last.replace("~1", "/").replace("~0", "~");
    match body.pointer_mut(parent)? {
        Value::Object(map) => {
            map.insert(key, value);
        }
        Value::Array(items) => *items.get_mut(key.parse::<usize>().ok()?)? = value,
        _ => return None,
    }
    Some(())
}

fn has_message(text: &str) -> bool {
    text.contains("{{message}}") || text.contains("{{userMessage}}")
}

fn any_string(value: &Value, predicate: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => predicate(text),
        Value::Array(items) => items.iter().any(|item| any_string(item, predicate)),
        Value::Object(map) => map.values().any(|value| any_string(value, predicate)),
        _ => false,
    }
}
