//! Presets: the configuration of agents that are built with popular products.

pub(crate) mod url;

use std::collections::BTreeMap;

use karat_json::{ObjectReader, Path, Problems, read_string, read_string_map};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::http_config::HttpConfig;
use crate::rule::Rule;
use crate::selector::Selector;

/// Declares the kinds of presets. Each is a JSON file in this folder.
macro_rules! presets {
    ($($kind:literal),* $(,)?) => {
        const PRESETS: &[(&str, &str)] = &[$(($kind, include_str!(concat!($kind, ".json")))),*];
    };
}

// Detection tries them in this order: kinds with specific discovery endpoints come first.
presets!(
    "langgraph",
    "langserve",
    "adk",
    "mastra",
    "ai-sdk",
    "ag-ui",
    "a2a",
    "a2a-v1",
    "dify",
    "n8n",
    "flowise",
    "rasa",
    "chat",
    "responses",
    "messages",
);

/// A preset of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    pub kind: &'static str,
    /// The product or protocol.
    pub product: String,
    pub description: String,
    /// A typical URL. The segment `ID` stands for any other.
    pub example: String,
    pub reads: Reads,
    /// On what it depends whether a reply tells calls.
    pub calls_hint: Option<String>,
    /// Appended to a URL that is only the base of the product.
    pub path: Option<String>,
    /// Parameters of the URL's query with their defaults; null if one is required.
    pub parameters: BTreeMap<String, Value>,
    /// Requests that show whether a server is of this kind.
    pub detect: Vec<Discovery>,
    /// The `agent` section.
    pub agent: Value,
}

/// What the replies of a product report, apart from the text of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reads {
    pub calls: Reported,
    /// Which calls failed.
    pub failures: Reported,
}

/// Whether replies report a part of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reported {
    Always,
    /// Depends on the agent.
    Sometimes,
    Never,
}

/// A GET request without side effects that shows whether a server is of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Discovery {
    /// Relative to the base of the product.
    pub url: String,
    /// The condition on the reply.
    pub when: Rule,
    /// Selectors of the possible values of parameters in the reply.
    pub parameters: BTreeMap<String, Selector>,
    /// Selector of the agent's URL in the reply.
    pub endpoint: Option<Selector>,
}

/// An endpoint of a preset with its configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct PresetEndpoint {
    pub url: String,
    /// The `agent` section: that of the preset with the configured keys.
    pub agent: Value,
    pub config: HttpConfig,
}

/// Why an endpoint cannot be used with a preset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PresetError {
    #[error("'{kind}' needs '{parameter}': add ?{parameter}=NAME to the URL")]
    MissingParameter { kind: &'static str, parameter: String },
    #[error("invalid 'agent' for '{kind}': {problem}")]
    Invalid { kind: &'static str, problem: String },
}

impl Preset {
    /// Returns the names of all presets.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|(kind, _)| *kind)
    }

    /// Returns the preset of this name.
    pub fn by_name(kind: &str) -> Option<Self> {
        let (kind, text) = PRESETS.iter().find(|(name, _)| *name == kind)?;
        let mut members: Map<String, Value> = serde_json::from_str(text).ok()?;
        let mut text = |key| members.remove(key).and_then(|value| value.as_str().map(str::to_owned));
        let (product, description, example) = (text("product")?, text("description")?, text("example")?);
        let (path, calls_hint) = (text("path"), text("callsHint"));
        let reads = serde_json::from_value(members.remove("reads")?).ok()?;
        let parameters = match members.remove("parameters") {
            Some(Value::Object(parameters)) => parameters.into_iter().collect(),
            _ => BTreeMap::new(),
        };
        let detect = match members.remove("detect") {
            Some(Value::Array(requests)) => requests.iter().map(Discovery::read).collect::<Option<_>>()?,
            _ => Vec::new(),
        };
        let agent = members.remove("agent")?;
        Some(Self { kind, product, description, example, reads, calls_hint, path, parameters, detect, agent })
    }

    /// Splits `KIND:URL` if it names a preset.
    pub fn split(endpoint: &str) -> Option<(Self, &str)> {
        let (kind, url) = endpoint.split_once(':')?;
        let is_url = url.starts_with("http://") || url.starts_with("https://") || url.starts_with("${");
        Self::by_name(kind).filter(|_| is_url).map(|preset| (preset, url))
    }

    /// Returns the endpoint for a URL. Keys of `overrides`, an `agent` section, replace those of the preset; null
    /// removes them.
    pub fn endpoint(&self, url: &str, overrides: &Value) -> Result<PresetEndpoint, PresetError> {
        let (url, query_parameters) = url::take_parameters(url, &self.parameters);
        let mut parameters = BTreeMap::new();
        for (name, default) in &self.parameters {
            let missing = || PresetError::MissingParameter { kind: self.kind, parameter: name.clone() };
            let value = query_parameters
                .get(name)
                .cloned()
                .or_else(|| default.as_str().map(str::to_owned))
                .ok_or_else(missing)?;
            parameters.insert(name.as_str(), value);
        }
        let mut agent = self.agent.clone();
        substitute(&mut agent, &parameters);
        // A condition is replaced as a whole: parts of two conditions make none.
        if overrides.pointer("/poll/until").is_some()
            && let Some(poll) = agent.get_mut("poll").and_then(Value::as_object_mut)
        {
            poll.shift_remove("until");
        }
        merge(&mut agent, overrides);
        let request_url = agent.pointer("/request/url").and_then(Value::as_str);
        let url = url::complete(&url, self.path.as_deref(), request_url);
        let mut problems = Problems::default();
        let config = HttpConfig::read(&agent, &Path::Root.key("agent"), &mut problems);
        match (config, problems.into_list().into_iter().next()) {
            (Some(config), None) => Ok(PresetEndpoint { url, agent, config }),
            (_, problem) => {
                let problem =
                    problem.map_or_else(String::new, |problem| format!("{}: {}", problem.pointer, problem.message));
                Err(PresetError::Invalid { kind: self.kind, problem })
            }
        }
    }
}

impl Discovery {
    fn read(value: &Value) -> Option<Self> {
        let mut problems = Problems::default();
        let path = Path::Root;
        let mut object = ObjectReader::open(value, &path, &mut problems)?;
        let url = object.required("url", &path, &mut problems, read_string);
        let when = object.required("when", &path, &mut problems, Rule::read);
        let parameters = object.optional("parameters", &path, &mut problems, read_string_map).unwrap_or_default();
        let endpoint = object.optional("endpoint", &path, &mut problems, Selector::read);
        object.close(&path, &mut problems);
        let parse = |(name, text): (String, String)| Some((name, Selector::parse(&text).ok()?));
        let parameters = parameters.into_iter().map(parse).collect::<Option<_>>()?;
        problems.is_empty().then_some(Self { url: url?, when: when?, parameters, endpoint })
    }
}

/// Replaces the placeholders of the preset's parameters; other placeholders stay.
fn substitute(value: &mut Value, parameters: &BTreeMap<&str, String>) {
    match value {
        Value::String(text) => {
            for (name, parameter) in parameters {
                let placeholder = format!("{{{{{name}}}}}");
                if text.contains(&placeholder) {
                    *text = text.replace(&placeholder, parameter);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| substitute(item, parameters)),
        Value::Object(members) => members.values_mut().for_each(|value| substitute(value, parameters)),
        _ => {}
    }
}

/// Merges overrides into a value, key by key; null removes a key.
fn merge(value: &mut Value, overrides: &Value) {
    match (value, overrides) {
        (Value::Object(members), Value::Object(overrides)) => {
            for (key, value) in overrides {
                match members.get_mut(key) {
                    _ if value.is_null() => {
                        members.shift_remove(key);
                    }
                    Some(member) => merge(member, value),
                    None => {
                        members.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (_, Value::Null) => {}
        (value, other) => *value = other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::http::HttpAgent;

    #[test]
    fn every_preset_is_a_valid_configuration() {
        for kind in Preset::kinds() {
            let preset = Preset::by_name(kind).expect(kind);
            let query: Vec<String> = preset.parameters.keys().map(|name| format!("{name}=x")).collect();
            let url = format!("http://127.0.0.1:9/?{}", query.join("&"));
            for overrides in [json!({}), json!({"approvals": "approve"})] {
                if overrides["approvals"].is_string() && preset.agent.get("resume").is_none() {
                    continue;
                }
                let endpoint = preset.endpoint(&url, &overrides).expect(kind);
                HttpAgent::new(&endpoint.url, endpoint.config, &|_| Some("key".to_owned())).expect(kind);
            }
            preset.endpoint(&preset.example, &json!({})).expect(kind);
            assert_eq!(Preset::split(&format!("{kind}:{url}")).map(|(preset, _)| preset.kind), Some(kind));
        }
        assert_eq!(Preset::split("openai:gpt"), None);
        assert_eq!(Preset::split("chat:gpt"), None);
    }

    #[test]
    fn overrides_replace_keys() {
        let preset = Preset::by_name("langgraph").expect("a preset");
        let overrides = json!({
            "headers": {"x-api-key": "${KEY}"},
            "request": {"body": {"config": {"recursion_limit": 5}}},
            "session": null,
        });
        let endpoint = preset.endpoint("http://host/base?assistant=shop&x=1", &overrides).expect("valid");
        assert_eq!(endpoint.url, "http://host/base/?x=1");
        assert_eq!(
            endpoint.agent["request"]["body"],
            json!({
                "assistant_id": "shop",
                "input": {"messages": [{"role": "user", "content": "{{message}}"}]},
                "config": {"recursion_limit": 5},
            })
        );
        assert_eq!(endpoint.agent["headers"], json!({"x-api-key": "${KEY}"}));
        assert_eq!(endpoint.config.session, None);
    }

    #[test]
    fn overrides_replace_keys_of_session_and_poll() {
        let endpoint = |kind: &str, overrides: Value| {
            let preset = Preset::by_name(kind).expect(kind);
            let endpoint = preset.endpoint("http://host", &overrides).expect(kind);
            HttpAgent::new(&endpoint.url, endpoint.config.clone(), &|_| None).expect(kind);
            (preset.agent, endpoint.agent)
        };
        let (preset, agent) = endpoint("a2a", json!({"poll": {"intervalMs": 50}}));
        assert_eq!(agent["poll"]["request"], preset["poll"]["request"]);
        assert_eq!(agent["poll"]["until"], preset["poll"]["until"]);
        assert_eq!(agent["poll"]["intervalMs"], 50);
        let until = json!({"path": "/result/status/state", "equals": "completed"});
        let (preset, agent) = endpoint("a2a", json!({"poll": {"until": until}}));
        assert_eq!((&agent["poll"]["until"], &agent["poll"]["request"]), (&until, &preset["poll"]["request"]));
        let body = json!({"metadata": {"source": "karat"}});
        let (preset, agent) = endpoint("langgraph", json!({"session": {"request": {"body": body}}}));
        assert_eq!(agent["session"], json!({"request": {"url": "threads", "body": body}, "id": "/thread_id"}));
        assert_eq!(agent["request"], {
            let mut request = preset["request"].clone();
            request["body"]["assistant_id"] = "agent".into();
            request
        });
        let (_, agent) = endpoint("langgraph", json!({"session": {"id": "/id"}}));
        assert_eq!(agent["session"], json!({"request": {"url": "threads", "body": {}}, "id": "/id"}));
    }

    #[rstest]
    #[case("adk", "http://host", "'adk' needs 'app': add ?app=NAME to the URL")]
    #[case("chat", "http://host", "invalid 'agent' for 'chat': /agent/request/mesages: unknown key 'mesages'")]
    fn rejects_incomplete_endpoints(#[case] kind: &str, #[case] url: &str, #[case] message: &str) {
        let error = Preset::by_name(kind).expect(kind).endpoint(url, &json!({"request": {"mesages": "/x"}}));
        assert_eq!(error.expect_err(kind).to_string(), message);
    }
}
