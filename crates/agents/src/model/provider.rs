//! Model providers and their endpoints.

use std::collections::BTreeMap;

use karat_json::{
    ObjectReader, Path, Problems, read_count, read_enum, read_object_map, read_positive_count, read_string,
    read_string_map,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The wire format of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// `OpenAI` chat completions, which many other providers support.
    Openai,
    /// Anthropic messages.
    Anthropic,
}

impl Api {
    const NAMES: [&'static str; 2] = ["openai", "anthropic"];

    fn from_name(name: &str) -> Option<Self> {
        match name {
            "openai" => Some(Self::Openai),
            "anthropic" => Some(Self::Anthropic),
            _ => None,
        }
    }
}

/// A resolved provider.
#[derive(Clone, PartialEq, Eq)]
pub struct Provider {
    pub name: String,
    pub api: Api,
    pub base_url: String,
    /// Whether the base URL comes from the configuration. If so, recordings depend on it; a base URL from the environment
    /// does not affect them.
    pub is_base_url_configured: bool,
    pub key: Option<String>,
    pub headers: Vec<(String, String)>,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Omits the key and the header values.
        write!(out, "Provider({} at {})", self.name, self.base_url)
    }
}

impl Provider {
    /// Whether it is a server on this machine that needs no key, and so has no price.
    pub fn is_local(&self) -> bool {
        let needs_no_key = KnownProvider::by_name(&self.name).is_none_or(|known| !known.needs_key);
        let host = self.base_url.split_once("://").map_or("", |(_, rest)| rest);
        let host = host.split(['/', '?', '#']).next().unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let is_local_host = host.starts_with("127.")
            || host.starts_with("[::1]")
            || host.split(':').next().is_some_and(|name| name.eq_ignore_ascii_case("localhost"));
        needs_no_key && self.key.is_none() && is_local_host
    }
}

/// A built-in provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownProvider {
    pub name: &'static str,
    pub api: Api,
    pub base_url: Option<&'static str>,
    /// The environment variable that overrides the base URL.
    pub base_url_variable: &'static str,
    pub key_variable: &'static str,
    pub needs_key: bool,
}

impl KnownProvider {
    pub const ALL: [Self; 8] = [
        Self {
            name: "openai",
            api: Api::Openai,
            base_url: Some("https://api.openai.com/v1"),
            base_url_variable: "OPENAI_BASE_URL",
            key_variable: "OPENAI_API_KEY",
            needs_key: true,
        },
        Self {
            name: "anthropic",
            api: Api::Anthropic,
            base_url: Some("https://api.anthropic.com"),
            base_url_variable: "ANTHROPIC_BASE_URL",
            key_variable: "ANTHROPIC_API_KEY",
            needs_key: true,
        },
        Self {
            name: "openai-compatible",
            api: Api::Openai,
            base_url: None,
            base_url_variable: "OPENAI_COMPATIBLE_BASE_URL",
            key_variable: "OPENAI_COMPATIBLE_API_KEY",
            needs_key: false,
        },
        Self {
            name: "ollama",
            api: Api::Openai,
            base_url: Some("http://localhost:11434/v1"),
            base_url_variable: "OLLAMA_BASE_URL",
            key_variable: "OLLAMA_API_KEY",
            needs_key: false,
        },
        Self {
            name: "vllm",
            api: Api::Openai,
            base_url: Some("http://localhost:8000/v1"),
            base_url_variable: "VLLM_BASE_URL",
            key_variable: "VLLM_API_KEY",
            needs_key: false,
        },
        Self {
            name: "gemini",
            api: Api::Openai,
            base_url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
            base_url_variable: "GEMINI_BASE_URL",
            key_variable: "GEMINI_API_KEY",
            needs_key: true,
        },
        Self {
            name: "deepseek",
            api: Api::Openai,
            base_url: Some("https://api.deepseek.com/v1"),
            base_url_variable: "DEEPSEEK_BASE_URL",
            key_variable: "DEEPSEEK_API_KEY",
            needs_key: true,
        },
        Self {
            name: "openrouter",
            api: Api::Openai,
            base_url: Some("https://openrouter.ai/api/v1"),
            base_url_variable: "OPENROUTER_BASE_URL",
            key_variable: "OPENROUTER_API_KEY",
            needs_key: true,
        },
    ];

    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name == name)
    }
}

/// Settings of a built-in or custom provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderConfig {
    /// The wire format; `openai` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// The URL before `/chat/completions` or `/v1/messages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable with the API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_variable: Option<String>,
    /// Additional headers; values may contain `${NAME}`, an environment variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Maximum number of calls per minute, evenly spaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests_per_minute: Option<u64>,
    /// Maximum number of concurrent calls; `concurrency` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_concurrency: Option<u64>,
    /// Maximum number of retries per call; overrides the `maxRetries` of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u64>,
}

impl ProviderConfig {
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let config = Self {
            api: object.nullable("api", path, problems, |value, path, problems| {
                read_enum(value, path, problems, &Api::NAMES, Api::from_name)
            }),
            base_url: object.nullable("baseUrl", path, problems, read_string),
            api_key_variable: object.nullable("apiKeyVariable", path, problems, read_string),
            headers: object.nullable("headers", path, problems, read_string_map).unwrap_or_default(),
            requests_per_minute: object.nullable("requestsPerMinute", path, problems, read_positive_count),
            max_concurrency: object.nullable("maxConcurrency", path, problems, read_positive_count),
            max_retries: object.nullable("maxRetries", path, problems, read_count),
        };
        object.close(path, problems);
        Some(config)
    }

    /// Reads a map of providers by name.
    pub fn read_all(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<BTreeMap<String, Self>> {
        let map = read_object_map(value, path, problems)?;
        let mut providers = BTreeMap::new();
        for (name, provider) in &map {
            let path = path.key(name);
            let is_name_byte =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
            if name.is_empty() || !name.bytes().all(is_name_byte) || RESERVED_NAMES.contains(&name.as_str()) {
                problems.at(&path, format!("'{name}' is not a valid provider name"));
            }
            let read = Self::read(provider, &path, problems);
            if let Some(read) = &read
                && KnownProvider::by_name(name).is_none()
                && read.base_url.is_none()
            {
                problems.at(&path, format!("'baseUrl' is missing: '{name}' is not a built-in provider"));
            }
            providers.extend(read.map(|read| (name.clone(), read)));
        }
        Some(providers)
    }
}

/// Kinds of agents other than models.
const RESERVED_NAMES: [&str; 5] = ["http", "https", "scripted", "command", "mcp"];

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("ollama", "http://localhost:11434/v1", None, true)]
    #[case("openai-compatible", "http://127.0.0.1:8080", None, true)]
    #[case("house", "http://[::1]:8080/v1", None, true)]
    // A key may be that of a proxy to a paid model.
    #[case("openai-compatible", "http://localhost/v1", Some("sk-1"), false)]
    #[case("openai", "http://localhost/v1", None, false)]
    #[case("vllm", "http://models.example.com/localhost", None, false)]
    #[case("vllm", "http://localhost.example.com/v1", None, false)]
    fn a_local_provider_needs_no_key(
        #[case] name: &str,
        #[case] base_url: &str,
        #[case] key: Option<&str>,
        #[case] expected: bool,
    ) {
        let provider = Provider {
            name: name.to_owned(),
            api: Api::Openai,
            base_url: base_url.to_owned(),
            is_base_url_configured: true,
            key: key.map(str::to_owned),
            headers: Vec::new(),
        };
        assert_eq!(provider.is_local(), expected);
    }
}
