//! Who runs a model, and how it is reached.

use std::collections::BTreeMap;

use karat_json::{
    ObjectReader, Path, Problems, read_count, read_object_map, read_positive_count, read_string, read_string_map,
    read_word,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The wire format that a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// Chat completions, as many others speak it too.
    Openai,
    /// Messages.
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

/// A provider that is ready to be asked.
#[derive(Clone, PartialEq, Eq)]
pub struct Provider {
    pub name: String,
    pub api: Api,
    pub base_url: String,
    /// The configuration names the base, so that it belongs to what is recorded; one from the environment does not.
    pub has_configured_base: bool,
    pub key: Option<String>,
    pub headers: Vec<(String, String)>,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the key, and not the headers' values.
        write!(out, "Provider({} at {})", self.name, self.base_url)
    }
}

/// A provider that karat knows by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownProvider {
    pub name: &'static str,
    pub api: Api,
    pub base_url: Option<&'static str>,
    /// The environment variable that names another base.
    pub base_variable: &'static str,
    pub key_variable: &'static str,
    /// Nobody is answered there without a key.
    pub needs_key: bool,
}

impl KnownProvider {
    pub const ALL: [Self; 8] = [
        Self {
            name: "openai",
            api: Api::Openai,
            base_url: Some("https://api.openai.com/v1"),
            base_variable: "OPENAI_BASE_URL",
            key_variable: "OPENAI_API_KEY",
            needs_key: true,
        },
        Self {
            name: "anthropic",
            api: Api::Anthropic,
            base_url: Some("https://api.anthropic.com"),
            base_variable: "ANTHROPIC_BASE_URL",
            key_variable: "ANTHROPIC_API_KEY",
            needs_key: true,
        },
        Self {
            name: "openai-compatible",
            api: Api::Openai,
            base_url: None,
            base_variable: "OPENAI_COMPATIBLE_BASE_URL",
            key_variable: "OPENAI_COMPATIBLE_API_KEY",
            needs_key: false,
        },
        Self {
            name: "ollama",
            api: Api::Openai,
            base_url: Some("http://localhost:11434/v1"),
            base_variable: "OLLAMA_BASE_URL",
            key_variable: "OLLAMA_API_KEY",
            needs_key: false,
        },
        Self {
            name: "vllm",
            api: Api::Openai,
            base_url: Some("http://localhost:8000/v1"),
            base_variable: "VLLM_BASE_URL",
            key_variable: "VLLM_API_KEY",
            needs_key: false,
        },
        Self {
            name: "gemini",
            api: Api::Openai,
            base_url: Some("https://generativelanguage.googleapis.com/v1beta/openai"),
            base_variable: "GEMINI_BASE_URL",
            key_variable: "GEMINI_API_KEY",
            needs_key: true,
        },
        Self {
            name: "deepseek",
            api: Api::Openai,
            base_url: Some("https://api.deepseek.com/v1"),
            base_variable: "DEEPSEEK_BASE_URL",
            key_variable: "DEEPSEEK_API_KEY",
            needs_key: true,
        },
        Self {
            name: "openrouter",
            api: Api::Openai,
            base_url: Some("https://openrouter.ai/api/v1"),
            base_variable: "OPENROUTER_BASE_URL",
            key_variable: "OPENROUTER_API_KEY",
            needs_key: true,
        },
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name == name)
    }
}

/// What a configuration says of a provider: of one that is known by name, or of another one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderConfig {
    /// The wire format; `openai` if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// What comes before `/chat/completions` or `/v1/messages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that holds the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_variable: Option<String>,
    /// Further headers; values may hold `${NAME}`, an environment variable.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How many calls may begin in a minute, evenly spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests_per_minute: Option<u64>,
    /// How many calls may be under way at once; `concurrency` if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_concurrency: Option<u64>,
    /// How often a call is tried again; in place of the run's `maxRetries`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u64>,
}

impl ProviderConfig {
    pub fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let config = Self {
            api: object.nullable("api", path, problems, |value, path, problems| {
                read_word(value, path, problems, &Api::NAMES, Api::from_name)
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

    /// Reads providers by name.
    pub fn read_all(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<BTreeMap<String, Self>> {
        let map = read_object_map(value, path, problems)?;
        let mut providers = BTreeMap::new();
        for (name, provider) in &map {
            let path = path.key(name);
            let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
            if name.is_empty() || !name.bytes().all(is_name) || RESERVED.contains(&name.as_str()) {
                problems.at(&path, format!("'{name}' cannot be a provider's name"));
            }
            let read = Self::read(provider, &path, problems);
            if let Some(read) = &read
                && KnownProvider::named(name).is_none()
                && read.base_url.is_none()
            {
                problems.at(&path, "'baseUrl' is missing: this provider is not known by name");
            }
            providers.extend(read.map(|read| (name.clone(), read)));
        }
        Some(providers)
    }
}

/// Kinds of agents that are no providers.
const RESERVED: [&str; 5] = ["http", "https", "scripted", "command", "mcp"];
