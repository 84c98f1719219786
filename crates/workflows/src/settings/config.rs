//! `karat.json`.

use karat_agents::{Price, ProviderConfig};
use karat_core::gate::Gates;
use karat_core::judgement::{LowerLimits, ReturnForm};
use karat_core::tokenizer::Tokenizer;
use karat_evals::agreement;
use karat_json::{
    Finding, ObjectReader, Path, Problems, parse, read_array, read_bool, read_count, read_enum, read_positive_count,
    read_positive_number, read_string, read_string_map, read_strings, type_name,
};
use karat_registry::{McpServerConfig, RegistryCommand, read_mcp_servers};
use karat_sandbox::OPTIONAL_MODULES;
use karat_state::{HooksConfig, SourceConfig};
use karat_tools::contract::Silence;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

use super::agent_section::AgentSection;
use super::chat_model::ChatModelConfig;
use super::recording::Replay;

/// Declares the keys of `karat.json`: documentation, type, name, text form for flags and variables, and parser.
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
            /// Every key with its text form.
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

/// The text form of a key's value in a flag or a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Bool,
    Number,
    Json,
    /// `PROVIDER:MODEL`, or JSON.
    Model,
    /// Comma-separated names.
    List,
}

config_keys! {
    /// The schema of this file, for editors.
    #[serde(rename = "$schema")]
    schema: String = "$schema" as Text, read_string;
    /// The agent: a URL, `PRESET:URL` such as `langgraph:http://127.0.0.1:2024`, `PROVIDER:MODEL`,
    /// `python:MODULE:FUNCTION`, `node:FILE#EXPORT`, `command:PROGRAM ARGS`, or `scripted:FILE`.
    agent_endpoint: String = "agentEndpoint" as Text, read_string;
    /// Several agents in place of `agentEndpoint`: each runs every case.
    #[schemars(length(min = 1))]
    matrix: Vec<String> = "matrix" as List, read_strings;
    /// How to call an HTTP agent or a program, and how to read its reply.
    agent: AgentSection = "agent" as Json, AgentSection::read;
    /// The source of `{{seed:…}}` tokens.
    seed_manifest_path: String = "seedManifestPath" as Text, read_string;
    /// Whether to capture a snapshot before the run.
    snapshot_enabled: bool = "snapshotEnabled" as Bool, read_bool;
    /// The source of `{{snapshot:…}}` tokens.
    snapshot: SnapshotSource = "snapshot" as Json, SnapshotSource::read;
    /// The folder for result files.
    output_dir: String = "outputDir" as Text, read_string;
    /// The baseline run in the output folder: an id, a unique prefix of one, `latest`, or `latest~1` for the one before.
    baseline_run_id: String = "baselineRunId" as Text, read_string;
    /// The baseline: a result file, a folder of result files, or a run as in `baselineRunId`.
    baseline: String = "baseline" as Text, read_string;
    /// Number of cases to run in parallel.
    #[schemars(range(min = 1))]
    concurrency: u64 = "concurrency" as Number, read_positive_count;
    /// Timeout of a case, in milliseconds.
    #[schemars(range(min = 1))]
    timeout_ms: u64 = "timeoutMs" as Number, read_positive_count;
    /// The agent's tools: a file or folder, or an MCP server.
    tool_registry_path: String = "toolRegistryPath" as Text, read_string;
    /// A program that lists the agent's tools, in place of `toolRegistryPath`.
    tool_registry: RegistryCommand = "toolRegistry" as Json, RegistryCommand::read;
    /// The overlap map: which tools serve similar requests.
    overlap_map_path: String = "overlapMapPath" as Text, read_string;
    /// The folder of Python eval functions that cases refer to in `evals`.
    eval_functions_path: String = "evalFunctionsPath" as Text, read_string;
    /// Rules that `karat check` does not report, by tool; `*` matches every tool or rule.
    silence: Silence = "silence" as Json, Silence::read;
    /// The model that scores rubric cases; without one, rubric cases are skipped.
    judge: ChatModelConfig = "judge" as Model, ChatModelConfig::read;
    /// The model that plays the simulated users of cases with `user`.
    simulated_user: ChatModelConfig = "simulatedUser" as Model, ChatModelConfig::read;
    /// The model that drafts cases; without one, cases are drafted from templates.
    forge: ChatModelConfig = "forge" as Model, ChatModelConfig::read;
    /// The model that rewrites evals; defaults to the model of `forge`.
    refine: ChatModelConfig = "refine" as Model, ChatModelConfig::read;
    /// The tokenizer for `maxTokens`.
    tokenizer: Tokenizer = "tokenizer" as Text, |value, path, problems| { read_enum(value, path, problems, &Tokenizer::ALL.map(Tokenizer::name), Tokenizer::from_name) };
    /// Whether to fail cases in which no assertion ran.
    strict: bool = "strict" as Bool, read_bool;
    /// Whether to report all failures of a case, not only the first.
    all_failures: bool = "allFailures" as Bool, read_bool;
    /// Whether to stop after the first case that does not pass.
    fail_fast: bool = "failFast" as Bool, read_bool;
    /// Number of trials per case.
    #[schemars(range(min = 1, max = 10_000))]
    trials: u64 = "trials" as Number, read_positive_count;
    /// Conditions on the run's totals that decide the exit code.
    gates: Gates = "gates" as Json, Gates::read;
    /// The folder of recordings.
    record: String = "record" as Text, read_string;
    /// Whether to replay recordings.
    replay: Replay = "replay" as Text, |value, path, problems| { read_enum(value, path, problems, &Replay::ALL.map(Replay::name), Replay::from_name) };
    /// Maximum number of retries of a call. Default: 2 for models, 0 for other agents.
    max_retries: u64 = "maxRetries" as Number, read_count;
    /// Maximum cost of the run in US dollars; calls that would exceed it are not made.
    #[schemars(extend("exclusiveMinimum" = 0))]
    max_cost_usd: f64 = "maxCostUsd" as Number, read_positive_number;
    /// The file with the system prompt of a model.
    system_prompt_path: String = "systemPromptPath" as Text, read_string;
    /// Sampling temperature of a model.
    #[schemars(range(min = 0))]
    temperature: f64 = "temperature" as Number, read_temperature;
    /// Sampling seed of a model, if the provider supports one.
    seed: i64 = "seed" as Number, read_seed;
    /// Maximum number of output tokens of a model.
    #[schemars(range(min = 1))]
    max_output_tokens: u64 = "maxOutputTokens" as Number, read_positive_count;
    /// Model providers by name, with their limits; `NAME:MODEL` selects a model of one.
    providers: BTreeMap<String, ProviderConfig> = "providers" as Json, ProviderConfig::read_all;
    /// Token prices of models, by `PROVIDER:MODEL`.
    prices: BTreeMap<String, Price> = "prices" as Json, Price::read_all;
    /// MCP servers by name. They run live tools, and are the tool registry if no file is.
    mcp_servers: BTreeMap<String, McpServerConfig> = "mcpServers" as Json, read_mcp_servers;
    /// How tool calls of a model are answered: by the stubs of a case or by MCP servers.
    tool_execution: ToolExecutor = "toolExecution" as Text, |value, path, problems| { read_enum(value, path, problems, &ToolExecutor::NAMES, ToolExecutor::from_name) };
    /// The tools that may run on MCP servers; calls of other tools are refused.
    allow_tools: AllowTools = "allowTools" as List, AllowTools::read;
    /// Systems whose state cases can check, by name.
    state_sources: BTreeMap<String, SourceConfig> = "stateSources" as Json, SourceConfig::read_all;
    /// What to call before and after cases and runs.
    hooks: HooksConfig = "hooks" as Json, HooksConfig::read;
    /// Timeout of a hook, and of capturing a state source, in milliseconds (default: 30000).
    #[schemars(range(min = 1))]
    hook_timeout_ms: u64 = "hookTimeoutMs" as Number, read_positive_count;
    /// Limits of eval functions.
    eval_limits: LowerLimits = "evalLimits" as Json, LowerLimits::read;
    /// Modules of the standard library that eval functions may import, in addition to json, re and typing.
    #[schemars(extend("items" = {"type": "string", "enum": OPTIONAL_MODULES}, "uniqueItems" = true))]
    eval_imports: Vec<String> = "evalImports" as List, read_modules;
    /// What eval functions may return: `contract` is `(bool, str)`; `flexible` also a bool, a number, a dict with `pass`
    /// or `score`, or None if the function is not applicable (default: contract).
    eval_returns: ReturnForm = "evalReturns" as Text, |value, path, problems| { read_enum(value, path, problems, &ReturnForm::NAMES, ReturnForm::from_name) };
    /// Minimum score for a flexible eval function to pass (default: 0.5).
    eval_threshold: f64 = "evalThreshold" as Number, read_threshold;
    /// Thresholds for the alert of `karat eval agreement`.
    agreement: agreement::Limits = "agreement" as Json, agreement::Limits::read;
    /// The store of traces, evals, verdicts, feedback and runs: a file or a `postgres://` URL.
    store: String = "store" as Text, read_string;
}

/// How tool calls of a model are answered.
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

/// The tools that may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum AllowTools {
    All(ToolWildcard),
    Named(Vec<String>),
}

/// The wildcard for all tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum ToolWildcard {
    #[serde(rename = "*")]
    All,
}

impl AllowTools {
    fn read(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        match value {
            Value::String(word) if word == "*" => Some(Self::All(ToolWildcard::All)),
            Value::String(_) => {
                problems.at(path, "'allowTools' must be a list of tools, or \"*\" for all");
                None
            }
            _ => Some(Self::from_names(read_strings(value, path, problems)?)),
        }
    }

    /// Converts tool names; `*` allows all tools.
    pub(crate) fn from_names(names: Vec<String>) -> Self {
        let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        if names.iter().any(|name| name == "*") { Self::All(ToolWildcard::All) } else { Self::Named(names) }
    }
}

/// The source of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum SnapshotSource {
    /// A program that prints the snapshot as JSON.
    Command { command: Vec<String> },
    /// A URL that returns the snapshot as JSON.
    Url {
        url: String,
        /// Values may contain environment variables as `${NAME}`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    /// A JSON file with the snapshot.
    File { file: String },
}

impl Config {
    /// Parses a configuration. Also returns the JSON tree.
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

/// Reads the names of modules that eval functions may import.
fn read_modules(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    read_array(value, path, problems, |value, path, problems| {
        read_enum(value, path, problems, &OPTIONAL_MODULES, |name| {
            OPTIONAL_MODULES.contains(&name).then(|| name.to_owned())
        })
    })
}

fn read_threshold(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<f64> {
    let number = value.as_f64();
    if number.is_none() {
        problems.at(path, format!("{} must be a number, found {}", path.name(), type_name(value)));
    }
    number
}

pub(crate) fn read_temperature(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<f64> {
    let number = value.as_f64().filter(|number| *number >= 0.0);
    if number.is_none() {
        problems.at(path, format!("{} must be a number of at least 0, found {}", path.name(), type_name(value)));
    }
    number
}

pub(crate) fn read_seed(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<i64> {
    let number = value.as_i64();
    if number.is_none() {
        problems.at(path, format!("{} must be an integer, found {}", path.name(), type_name(value)));
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
                .at(path, "'snapshot' must have one of 'command' (a list), 'url' (with optional 'headers') and 'file'");
        }
        source
    }
}
