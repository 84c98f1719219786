//! `karat.json`.

use karat_agents::{HttpConfig, Price, ProviderConfig};
use karat_core::gate::Gates;
use karat_core::judgement::LowerLimits;
use karat_core::tokenizer::Tokenizer;
use karat_evals::agreement;
use karat_json::{
    Finding, ObjectReader, Path, Problems, parse, read_bool, read_count, read_positive_count, read_positive_number,
    read_string, read_string_map, read_strings, read_word, type_name,
};
use karat_registry::{McpServerConfig, RegistryCommand, read_mcp_servers};
use karat_tools::contract::Silence;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

use super::chat_model::ChatModelConfig;
use super::recording::Replay;

/// Declares the keys of `karat.json`, each once: its documentation, type, name, the form that its flag and its variable
/// have, and how its value is read.
macro_rules! config_keys {
    ($($(#[$attribute:meta])* $field:ident: $type:ty = $key:literal as $form:ident, $read:expr;)*) => {
        /// The configuration of a project. Every key is optional; paths are relative to this file.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        #[schemars(title = "karat configuration")]
        pub struct Config {
            $($(#[$attribute])* pub $field: Option<$type>,)*
        }

        impl Config {
            /// Every key, with the form that it has as a text.
            pub(crate) const KEYS: &[(&str, Form)] = &[$(($key, Form::$form)),*];

            pub(crate) fn read_value(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
                let mut object = ObjectReader::open(value, path, problems)?;
                let config = Self { $($field: object.nullable($key, path, problems, $read),)* };
                object.close(path, problems);
                Some(config)
            }
        }
    };
}

/// How a flag or a variable writes a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Bool,
    Number,
    Json,
    /// `KIND:MODEL`, or JSON.
    Model,
    /// Names with commas between them.
    List,
}

config_keys! {
    /// Where this file's schema is, for editors.
    #[serde(rename = "$schema")]
    schema: String = "$schema" as Text, read_string;
    /// The agent: a URL, `command:PROGRAM ARGS`, or `scripted:FILE`.
    agent_endpoint: String = "agentEndpoint" as Text, read_string;
    /// Several agents in place of `agentEndpoint`: each is asked every case.
    #[schemars(length(min = 1))]
    matrix: Vec<String> = "matrix" as List, read_strings;
    /// How an HTTP agent or a program is asked and its reply read.
    agent: HttpConfig = "agent" as Json, HttpConfig::read;
    /// Where `{{seed:…}}` tokens come from.
    seed_manifest_path: String = "seedManifestPath" as Text, read_string;
    /// Whether a snapshot is captured before the run.
    snapshot_enabled: bool = "snapshotEnabled" as Bool, read_bool;
    /// Where `{{snapshot:…}}` tokens come from.
    snapshot: SnapshotSource = "snapshot" as Json, SnapshotSource::read;
    /// Where results are written.
    output_dir: String = "outputDir" as Text, read_string;
    /// The run of the output folder that results are compared with.
    baseline_run_id: String = "baselineRunId" as Text, read_string;
    /// The result file, or the folder of result files, that results are compared with.
    baseline: String = "baseline" as Text, read_string;
    /// How many cases are under way at once.
    #[schemars(range(min = 1))]
    concurrency: u64 = "concurrency" as Number, read_positive_count;
    /// How long a case may take, in milliseconds.
    #[schemars(range(min = 1))]
    timeout_ms: u64 = "timeoutMs" as Number, read_positive_count;
    /// The agent's tools: a file or folder, or an MCP server.
    tool_registry_path: String = "toolRegistryPath" as Text, read_string;
    /// The agent's tools, as a program of your own lists them, in place of `toolRegistryPath`.
    tool_registry: RegistryCommand = "toolRegistry" as Json, RegistryCommand::read;
    /// Which tools are easily taken for each other.
    overlap_map_path: String = "overlapMapPath" as Text, read_string;
    /// The folder of Python eval functions that cases name in `evals`.
    eval_functions_path: String = "evalFunctionsPath" as Text, read_string;
    /// Rules about tools that `karat check` does not report, by tool; `*` is every tool, or every rule.
    silence: Silence = "silence" as Json, Silence::read;
    /// The model that scores rubric cases; without one they are skipped.
    judge: ChatModelConfig = "judge" as Model, ChatModelConfig::read;
    /// The model that drafts cases; without one they are drafted from templates.
    forge: ChatModelConfig = "forge" as Model, ChatModelConfig::read;
    /// The model that rewrites evals; without one, that of `forge`.
    refine: ChatModelConfig = "refine" as Model, ChatModelConfig::read;
    /// The vocabulary that `maxTokens` counts with.
    tokenizer: Tokenizer = "tokenizer" as Text, |value, path, problems| { read_word(value, path, problems, &Tokenizer::ALL.map(Tokenizer::name), Tokenizer::from_name) };
    /// Whether a case in which no assertion ran fails.
    strict: bool = "strict" as Bool, read_bool;
    /// Whether every failure of a case is looked for, not only the first.
    all_failures: bool = "allFailures" as Bool, read_bool;
    /// Whether no further case begins after the first that does not pass.
    fail_fast: bool = "failFast" as Bool, read_bool;
    /// How often each case is tried.
    #[schemars(range(min = 1, max = 10_000))]
    trials: u64 = "trials" as Number, read_positive_count;
    /// The limits that decide the exit code.
    gates: Gates = "gates" as Json, Gates::read;
    /// Where answers are recorded, and replayed from.
    record: String = "record" as Text, read_string;
    /// Whether recorded answers are replayed.
    replay: Replay = "replay" as Text, |value, path, problems| { read_word(value, path, problems, &Replay::ALL.map(Replay::name), Replay::from_name) };
    /// How often a call is tried again: 2 for models, 0 for agents of your own if not given.
    max_retries: u64 = "maxRetries" as Number, read_count;
    /// How much the run may cost, in US dollars: the call that would pass it is not made.
    #[schemars(extend("exclusiveMinimum" = 0))]
    max_cost_usd: f64 = "maxCostUsd" as Number, read_positive_number;
    /// The file that holds a model's system prompt.
    system_prompt_path: String = "systemPromptPath" as Text, read_string;
    /// How freely a model chooses its words.
    #[schemars(range(min = 0))]
    temperature: f64 = "temperature" as Number, read_temperature;
    /// What a model's choices begin with, where the provider takes it.
    seed: i64 = "seed" as Number, read_seed;
    /// How long a model's answer may be, in tokens.
    #[schemars(range(min = 1))]
    max_output_tokens: u64 = "maxOutputTokens" as Number, read_positive_count;
    /// Providers of models by name, and their limits; `NAME:MODEL` is an agent then.
    providers: BTreeMap<String, ProviderConfig> = "providers" as Json, ProviderConfig::read_all;
    /// What models' tokens cost, by `KIND:MODEL`.
    prices: BTreeMap<String, Price> = "prices" as Json, Price::read_all;
    /// MCP servers by name: whose tools are the registry where no file is, and who runs live tools.
    mcp_servers: BTreeMap<String, McpServerConfig> = "mcpServers" as Json, read_mcp_servers;
    /// Who runs the tools that a model calls: its cases' stubs, or the MCP servers.
    tool_execution: ToolExecutor = "toolExecution" as Text, |value, path, problems| { read_word(value, path, problems, &ToolExecutor::NAMES, ToolExecutor::from_name) };
    /// The tools that may run on MCP servers; others are refused to the model.
    allow_tools: AllowTools = "allowTools" as List, AllowTools::read;
    /// What eval functions may use.
    eval_limits: LowerLimits = "evalLimits" as Json, LowerLimits::read;
    /// When `karat eval agreement` raises an alert.
    agreement: agreement::Limits = "agreement" as Json, agreement::Limits::read;
    /// Where traces, evals, verdicts, feedback and runs are kept: a file, or a `postgres://` URL.
    store: String = "store" as Text, read_string;
}

/// Who runs the tools that a model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolExecutor {
    #[default]
    Stub,
    Mcp,
}

impl ToolExecutor {
    pub(crate) const NAMES: [&'static str; 2] = ["stub", "mcp"];

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "stub" => Some(Self::Stub),
            "mcp" => Some(Self::Mcp),
            _ => None,
        }
    }
}

/// Which tools may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum AllowTools {
    All(Everything),
    Named(Vec<String>),
}

/// The word for all there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Everything {
    #[serde(rename = "*")]
    Everything,
}

impl AllowTools {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::String(word) if word == "*" => Some(Self::All(Everything::Everything)),
            Value::String(_) => {
                problems.at(path, "'allowTools' is a list of tools, or \"*\" for all");
                None
            }
            _ => Some(Self::named(read_strings(value, path, problems)?)),
        }
    }

    /// Takes a `*` among the names for all.
    pub(crate) fn named(names: Vec<String>) -> Self {
        let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        if names.iter().any(|name| name == "*") { Self::All(Everything::Everything) } else { Self::Named(names) }
    }
}

/// Where a snapshot comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum SnapshotSource {
    /// A program whose output is the snapshot, as JSON.
    Command { command: Vec<String> },
    /// An address that answers with the snapshot, as JSON.
    Url {
        url: String,
        /// Values may hold `${NAME}`, an environment variable.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    /// A file that holds the snapshot, as JSON.
    File { file: String },
}

impl Config {
    /// Reads a configuration, and returns it with the tree it was read from.
    pub(crate) fn read(text: &str) -> Result<(Self, Value), Vec<Finding>> {
        let value = parse(text).map_err(|error| vec![Finding::syntax(text, error)])?;
        let mut problems = Problems::default();
        let config = Self::read_value(&value, &Path::Root, &mut problems);
        match config.filter(|_| problems.is_empty()) {
            Some(config) => Ok((config, value)),
            None => Err(Finding::locate_all(text, problems.into_list())),
        }
    }
}

pub(crate) fn read_temperature(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<f64> {
    let number = value.as_f64().filter(|number| *number >= 0.0);
    if number.is_none() {
        problems.at(path, format!("{} must be a number from 0, found {}", path.name(), type_name(value)));
    }
    number
}

pub(crate) fn read_seed(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<i64> {
    let number = value.as_i64();
    if number.is_none() {
        problems.at(path, format!("{} must be a whole number, found {}", path.name(), type_name(value)));
    }
    number
}

impl SnapshotSource {
    pub(crate) fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let command = object.optional("command", path, problems, read_strings);
        let url = object.optional("url", path, problems, read_string);
        let headers = object.optional("headers", path, problems, read_string_map);
        let file = object.optional("file", path, problems, read_string);
        object.close(path, problems);
        let source = match (command, url, headers, file) {
            (Some(command), None, None, None) if !command.is_empty() => Some(Self::Command { command }),
            (None, Some(url), headers, None) => Some(Self::Url { url, headers: headers.unwrap_or_default() }),
            (None, None, None, Some(file)) => Some(Self::File { file }),
            _ => None,
        };
        if source.is_none() && problems.is_empty() {
            problems
                .at(path, "'snapshot' must have one of 'command' (a list of words), 'url' (with 'headers') and 'file'");
        }
        source
    }
}
