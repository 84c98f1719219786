//! Request and response settings of an HTTP agent.

use std::collections::BTreeMap;
use std::ops::Not;

use karat_json::{
    ObjectReader, Path, Problems, read_bool, read_object_map, read_pointer, read_positive_count, read_string,
    read_string_map, read_word,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::reply::ResponseMap;

/// Settings of an HTTP agent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HttpConfig {
    pub method: Method,
    /// Values may contain `${NAME}`, an environment variable, which is redacted in all output.
    pub headers: BTreeMap<String, String>,
    pub request: RequestMap,
    pub response: ResponseMap,
    /// Maximum size of a reply; a larger one is an error.
    #[schemars(range(min = 1))]
    pub max_response_bytes: u64,
    /// For `command:`: keep the program running and send it a request per line.
    #[serde(skip_serializing_if = "Not::not")]
    pub keep_alive: bool,
    /// For `python:` and `node:`: the interpreter, if not that of the project's environment; it may have arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
}

/// The request that is sent for a message.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RequestMap {
    /// The body into which the message is inserted.
    pub body: Map<String, Value>,
    /// JSON pointer to the message in the body.
    pub message: String,
    /// Query parameter for the message instead of the body; required for GET and DELETE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
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

    pub(crate) fn has_body(self) -> bool {
        !matches!(self, Self::Get | Self::Delete)
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            method: Method::default(),
            headers: BTreeMap::new(),
            request: RequestMap::default(),
            response: ResponseMap::default(),
            max_response_bytes: 10 * 1024 * 1024,
            keep_alive: false,
            interpreter: None,
        }
    }
}

impl Default for RequestMap {
    fn default() -> Self {
        Self { body: Map::new(), message: "/message".to_owned(), query: None }
    }
}

impl HttpConfig {
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let default = Self::default();
        let config = Self {
            method: object
                .nullable("method", path, problems, |value, path, problems| {
                    read_word(value, path, problems, &Method::NAMES, Method::from_name)
                })
                .unwrap_or_default(),
            headers: object.nullable("headers", path, problems, read_string_map).unwrap_or_default(),
            request: object.nullable("request", path, problems, RequestMap::read).unwrap_or_default(),
            response: object.nullable("response", path, problems, ResponseMap::read).unwrap_or_default(),
            max_response_bytes: object
                .nullable("maxResponseBytes", path, problems, read_positive_count)
                .unwrap_or(default.max_response_bytes),
            keep_alive: object.nullable("keepAlive", path, problems, read_bool).unwrap_or_default(),
            interpreter: object.nullable("interpreter", path, problems, read_string),
        };
        object.close(path, problems);
        if !config.method.has_body() && config.request.query.is_none() {
            problems.at(path, "this method has no body: set 'request.query' to the parameter for the message");
        }
        Some(config)
    }
}

impl RequestMap {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let default = Self::default();
        let map = Self {
            body: object.nullable("body", path, problems, read_object_map).unwrap_or_default(),
            message: object.nullable("message", path, problems, read_pointer).unwrap_or(default.message),
            query: object.nullable("query", path, problems, read_string),
        };
        object.close(path, problems);
        if map.body_with("").is_none() {
            problems.at(path, format!("'message': the body has no element at '{}'", map.message));
        }
        Some(map)
    }

    /// Returns the body with the message inserted, unless it goes into the query. The last segment of the pointer
    /// need not exist yet.
    pub(crate) fn body_with(&self, message: &str) -> Option<Value> {
        let mut body = Value::Object(self.body.clone());
        if self.query.is_some() {
            return Some(body);
        }
        let (parent, last) = self.message.rsplit_once('/')?;
        let key = last.replace("~1", "/").replace("~0", "~");
        match body.pointer_mut(parent)? {
            Value::Object(map) => {
                map.insert(key, Value::from(message));
            }
            Value::Array(items) => *items.get_mut(key.parse::<usize>().ok()?)? = Value::from(message),
            _ => return None,
        }
        Some(body)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn inserts_the_message_at_its_pointer() {
        let map = RequestMap {
            body: json!({"messages": [{"role": "user", "content": ""}], "stream": false})
                .as_object()
                .cloned()
                .expect("an object"),
            message: "/messages/0/content".to_owned(),
            query: None,
        };
        let body = map.body_with("hi").expect("the pointer is valid");
        assert_eq!(body, json!({"messages": [{"role": "user", "content": "hi"}], "stream": false}));
        assert_eq!(RequestMap::default().body_with("hi"), Some(json!({"message": "hi"})));
        assert_eq!(RequestMap { message: "/a/b".to_owned(), ..RequestMap::default() }.body_with("hi"), None);
    }
}
