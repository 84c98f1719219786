//! `karat.json`.

use karat_agents::{HttpConfig, Price, ProviderConfig};
use karat_core::agreement;
use karat_core::gate::Gates;
use karat_core::judgement::LowerLimits;
use karat_core::tokenizer::Tokenizer;
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

use crate::chat_model::ChatModelConfig;
use crate::recordings::Replay;

/// The configuration of a project. Every key is optional; paths are relative to this file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(title = "karat configuration")]
pub(crate) struct ConfigFile {
    /// Where this file's schema is, for editors.
    #[serde(rename = "$schema")]
    pub(crate) schema: Option<String>,
    /// The agent: a URL, `command:PROGRAM ARGS`, or `scripted:FILE`.
    pub(crate) agent_endpoint: Option<String>,
    /// Several agents in place of `agentEndpoint`: each is asked every case.
    #[schemars(length(min = 1))]
    pub(crate) matrix: Option<Vec<String>>,
    /// How an HTTP agent or a program is asked and its reply read.
    pub(crate) agent: Option<HttpConfig>,
    /// Where `{{seed:…}}` tokens come from.
    pub(crate) seed_manifest_path: Option<String>,
    /// Whether a snapshot is captured before the run.
    pub(crate) snapshot_enabled: Option<bool>,
    /// Where `{{snapshot:…}}` tokens come from.
    pub(crate) snapshot: Option<SnapshotSource>,
    /// Where results are written.
    pub(crate) output_dir: Option<String>,
    /// The run of the output folder that results are compared with.
    pub(crate) baseline_run_id: Option<String>,
    /// The result file, or the folder of result files, that results are compared with.
    pub(crate) baseline: Option<String>,
    /// How many cases are under way at once.
    #[schemars(range(min = 1))]
    pub(crate) concurrency: Option<u64>,
    /// How long a case may take, in milliseconds.
    #[schemars(range(min = 1))]
    pub(crate) timeout_ms: Option<u64>,
    /// The agent's tools: a file or folder, or an MCP server.
    pub(crate) tool_registry_path: Option<String>,
    /// The agent's tools, as a program of your own lists them, in place of `toolRegistryPath`.
    pub(crate) tool_registry: Option<RegistryCommand>,
    /// Which tools are easily taken for each other.
    pub(crate) overlap_map_path: Option<String>,
    /// The folder of Python eval functions that cases name in `evals`.
    pub(crate) eval_functions_path: Option<String>,
    /// Rules about tools that `karat check` does not report, by tool; `*` is every tool, or every rule.
    pub(crate) silence: Option<Silence>,
    /// The model that scores rubric cases; without one they are skipped.
    pub(crate) judge: Option<ChatModelConfig>,
    /// The model that drafts cases; without one they are drafted from templates.
    pub(crate) forge: Option<ChatModelConfig>,
    /// The model that rewrites evals; without one, that of `forge`.
    pub(crate) refine: Option<ChatModelConfig>,
    /// The vocabulary that `maxTokens` counts with.
    pub(crate) tokenizer: Option<Tokenizer>,
    /// Whether a case in which no assertion ran fails.
    pub(crate) strict: Option<bool>,
    /// Whether every failure of a case is looked for, not only the first.
    pub(crate) all_failures: Option<bool>,
    /// Whether no further case begins after the first that does not pass.
    pub(crate) fail_fast: Option<bool>,
    /// How often each case is tried.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) trials: Option<u64>,
    /// The limits that decide the exit code.
    pub(crate) gates: Option<Gates>,
    /// Where answers are recorded, and replayed from.
    pub(crate) record: Option<String>,
    /// Whether recorded answers are replayed.
    pub(crate) replay: Option<Replay>,
    /// How often a call is tried again: 2 for models, 0 for agents of your own if not given.
    pub(crate) max_retries: Option<u64>,
    /// How much the run may cost, in US dollars: the call that would pass it is not made.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(crate) max_cost_usd: Option<f64>,
    /// The file that holds a model's system prompt.
    pub(crate) system_prompt_path: Option<String>,
    /// How freely a model chooses its words.
    #[schemars(range(min = 0))]
    pub(crate) temperature: Option<f64>,
    /// What a model's choices begin with, where the provider takes it.
    pub(crate) seed: Option<i64>,
    /// How long a model's answer may be, in tokens.
    #[schemars(range(min = 1))]
    pub(crate) max_output_tokens: Option<u64>,
    /// Providers of models by name, and their limits; `NAME:MODEL` is an agent then.
    pub(crate) providers: Option<BTreeMap<String, ProviderConfig>>,
    /// What models' tokens cost, by `KIND:MODEL`.
    pub(crate) prices: Option<BTreeMap<String, Price>>,
    /// MCP servers by name: whose tools are the registry where no file is, and who runs live tools.
    pub(crate) mcp_servers: Option<BTreeMap<String, McpServerConfig>>,
    /// Who runs the tools that a model calls: its cases' stubs, or the MCP servers.
    pub(crate) tool_execution: Option<ToolExecutor>,
    /// The tools that may run on MCP servers; others are refused to the model.
    pub(crate) allow_tools: Option<AllowTools>,
    /// What eval functions may use.
    pub(crate) eval_limits: Option<LowerLimits>,
    /// When `karat eval agreement` raises an alert.
    pub(crate) agreement: Option<agreement::Limits>,
    /// Where traces, evals, verdicts, feedback and runs are kept: a file, or a `postgres://` URL.
    pub(crate) store: Option<String>,
}

/// Who runs the tools that a model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolExecutor {
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
pub(crate) enum AllowTools {
    All(Everything),
    Named(Vec<String>),
}

/// The word for all there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum Everything {
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
        if names.iter().any(|name| name == "*") { Self::All(Everything::Everything) } else { Self::Named(names) }
    }
}

/// Where a snapshot comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum SnapshotSource {
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

impl ConfigFile {
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

    fn read_value(value: &Value, path: &Path<'_>, problems: &mut Problems) -> Option<Self> {
        let mut object = ObjectReader::open(value, path, problems)?;
        let config = Self {
            schema: object.nullable("$schema", path, problems, read_string),
            agent_endpoint: object.nullable("agentEndpoint", path, problems, read_string),
            matrix: object.nullable("matrix", path, problems, read_strings),
            agent: object.nullable("agent", path, problems, HttpConfig::read),
            seed_manifest_path: object.nullable("seedManifestPath", path, problems, read_string),
            snapshot_enabled: object.nullable("snapshotEnabled", path, problems, read_bool),
            snapshot: object.nullable("snapshot", path, problems, SnapshotSource::read),
            output_dir: object.nullable("outputDir", path, problems, read_string),
            baseline_run_id: object.nullable("baselineRunId", path, problems, read_string),
            baseline: object.nullable("baseline", path, problems, read_string),
            concurrency: object.nullable("concurrency", path, problems, read_positive_count),
            timeout_ms: object.nullable("timeoutMs", path, problems, read_positive_count),
            tool_registry_path: object.nullable("toolRegistryPath", path, problems, read_string),
            tool_registry: object.nullable("toolRegistry", path, problems, RegistryCommand::read),
            overlap_map_path: object.nullable("overlapMapPath", path, problems, read_string),
            eval_functions_path: object.nullable("evalFunctionsPath", path, problems, read_string),
            silence: object.nullable("silence", path, problems, Silence::read),
            judge: object.nullable("judge", path, problems, ChatModelConfig::read),
            forge: object.nullable("forge", path, problems, ChatModelConfig::read),
            refine: object.nullable("refine", path, problems, ChatModelConfig::read),
            tokenizer: object.nullable("tokenizer", path, problems, |value, path, problems| {
                read_word(value, path, problems, &Tokenizer::ALL.map(Tokenizer::name), Tokenizer::from_name)
            }),
            strict: object.nullable("strict", path, problems, read_bool),
            all_failures: object.nullable("allFailures", path, problems, read_bool),
            fail_fast: object.nullable("failFast", path, problems, read_bool),
            trials: object.nullable("trials", path, problems, read_positive_count),
            gates: object.nullable("gates", path, problems, Gates::read),
            record: object.nullable("record", path, problems, read_string),
            replay: object.nullable("replay", path, problems, |value, path, problems| {
                read_word(value, path, problems, &Replay::ALL.map(Replay::name), Replay::from_name)
            }),
            max_retries: object.nullable("maxRetries", path, problems, read_count),
            max_cost_usd: object.nullable("maxCostUsd", path, problems, read_positive_number),
            system_prompt_path: object.nullable("systemPromptPath", path, problems, read_string),
            temperature: object.nullable("temperature", path, problems, read_temperature),
            seed: object.nullable("seed", path, problems, read_seed),
            max_output_tokens: object.nullable("maxOutputTokens", path, problems, read_positive_count),
            providers: object.nullable("providers", path, problems, ProviderConfig::read_all),
            prices: object.nullable("prices", path, problems, Price::read_all),
            mcp_servers: object.nullable("mcpServers", path, problems, read_mcp_servers),
            tool_execution: object.nullable("toolExecution", path, problems, |value, path, problems| {
                read_word(value, path, problems, &ToolExecutor::NAMES, ToolExecutor::from_name)
            }),
            allow_tools: object.nullable("allowTools", path, problems, AllowTools::read),
            eval_limits: object.nullable("evalLimits", path, problems, LowerLimits::read),
            agreement: object.nullable("agreement", path, problems, agreement::Limits::read),
            store: object.nullable("store", path, problems, read_string),
        };
        object.close(path, problems);
        Some(config)
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
