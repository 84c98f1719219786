//! Keys of `karat.json` as flags, in groups: a verb takes the groups that affect it.
//!
//! A flag overrides the variable, which overrides the file. Every key can be set in the file and by a variable. Flags
//! are read by their names (`config_flags`), so the flag of a key only needs to be declared.

use std::path::PathBuf;

use clap::{ArgMatches, Args};
use karat_workflows::settings::{FlagValue, Flags};
use serde_json::Value;

/// The heading of configuration keys, below the flags of a verb.
pub(super) const HEADING: &str = "Configuration (also in karat.json, or as a variable such as KARAT_OUTPUT_DIR)";

/// Returns the values of the command's flags: a flag with the name of a configuration key sets this key.
pub(crate) fn config_flags(mut matches: &ArgMatches) -> Flags {
    while let Some((_, verb)) = matches.subcommand() {
        matches = verb;
    }
    let mut flags = Flags::read(&|name| {
        let path = || flag_value::<PathBuf>(matches, name).map(|path| path.to_string_lossy().into_owned());
        let text = flag_value::<String>(matches, name).or_else(path);
        let values = [
            flag_value::<u64>(matches, name).map(Value::from),
            flag_value::<i64>(matches, name).map(Value::from),
            flag_value::<f64>(matches, name).map(Value::from),
            flag_value::<bool>(matches, name).map(Value::from),
        ];
        text.map(FlagValue::Text).or_else(|| values.into_iter().flatten().next().map(FlagValue::Value))
    });
    let assignments = matches.try_get_many::<String>("set").ok().flatten().into_iter().flatten();
    flags.assignments = assignments.cloned().collect();
    flags
}

/// Returns the value of a flag of this type.
fn flag_value<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Option<T> {
    matches.try_get_one(name).ok().flatten().cloned()
}

/// The config file, for every verb with a configuration.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct ConfigFileArgs {
    /// Path to the config file [default: the nearest karat.json]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set any key of karat.json (repeatable)
    #[arg(long, value_name = "KEY=JSON")]
    set: Vec<String>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct OutputDirArgs {
    /// Folder of the results [default: evals/results/]
    #[arg(long, value_name = "FOLDER")]
    output_dir: Option<PathBuf>,
}

/// For verbs that need only the results of runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ResultsArgs {
    #[command(flatten)]
    output: OutputDirArgs,
    #[command(flatten)]
    file: ConfigFileArgs,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct StoreLocationArgs {
    /// Path to the SQLite store, or a postgres:// URL [default: .karat/karat.db]
    #[arg(long, value_name = "FILE|URL")]
    pub(super) store: Option<String>,
}

/// For verbs that need only the store.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(super) location: StoreLocationArgs,
    #[command(flatten)]
    file: ConfigFileArgs,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct AgentEndpointArgs {
    /// Agent to test: a URL, PRESET:URL such as langgraph:URL, openai:MODEL, anthropic:MODEL, python:MODULE:FUNCTION,
    /// node:FILE#EXPORT, command:PROGRAM ARGS or scripted:FILE
    #[arg(long, value_name = "URL|KIND:NAME")]
    agent_endpoint: Option<String>,
}

/// How the agent is called.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct AgentArgs {
    /// Options of an HTTP or command agent, as JSON: method, headers, request, response, maxResponseBytes
    #[arg(long, value_name = "JSON")]
    agent: Option<String>,
    /// Path to the system prompt of a model
    #[arg(long, value_name = "FILE")]
    system_prompt_path: Option<PathBuf>,
    /// Sampling temperature of a model
    #[arg(long, value_name = "NUMBER")]
    temperature: Option<f64>,
    /// Sampling seed of a model, for providers that support one
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    seed: Option<i64>,
    /// Maximum length of a model's answer in tokens
    #[arg(long, value_name = "N")]
    max_output_tokens: Option<u64>,
}

/// How tool calls of a model are answered.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct ToolExecutionArgs {
    /// Source of tool results for a model: stub (stubs of the case) or mcp (MCP servers) [default: stub]
    #[arg(long, value_name = "MODE")]
    tool_execution: Option<String>,
    /// Tools that a model may run on MCP servers, separated by commas; * for all
    #[arg(long, value_name = "NAMES")]
    allow_tools: Option<String>,
}

/// Providers of models, and the limits of calls.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct ProviderArgs {
    /// Timeout of a case or a call in milliseconds [default: 60000]
    #[arg(long, value_name = "MS")]
    timeout_ms: Option<u64>,
    /// Number of retries of a failed call [default: 2 for models, 0 for other agents]
    #[arg(long, value_name = "N")]
    max_retries: Option<u64>,
    /// Maximum cost in US dollars; calls that would exceed it are not made
    #[arg(long, value_name = "USD")]
    max_cost_usd: Option<f64>,
    /// Providers and their limits, as JSON: {"NAME": {"api", "baseUrl", "apiKeyVariable", "requestsPerMinute", …}}
    #[arg(long, value_name = "JSON")]
    providers: Option<String>,
    /// Token prices, as JSON: {"PROVIDER:MODEL": {"inputUsdPerMillion": …, "outputUsdPerMillion": …}}
    #[arg(long, value_name = "JSON")]
    prices: Option<String>,
}

/// The source of the agent's tools.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct RegistryArgs {
    /// Tool registry: a JSON, TypeScript, JavaScript or Python file or folder, mcp:stdio:COMMAND or mcp:URL
    /// [default: tools/tools.exports.ts]
    #[arg(long, value_name = "PATH")]
    tool_registry_path: Option<PathBuf>,
    /// Command that lists the agent's tools, as JSON: {"command": […], "timeoutMs": …}
    #[arg(long, value_name = "JSON", conflicts_with = "tool_registry_path")]
    tool_registry: Option<String>,
    /// MCP servers, as JSON: {"NAME": {"command": […], "env": {…}, "cwd": …}} or {"NAME": {"url": …, "headers": {…}}}
    #[arg(long, value_name = "JSON")]
    mcp_servers: Option<String>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct OverlapMapArgs {
    /// Path to the overlap map [default: evals/overlap-map.json]
    #[arg(long, value_name = "FILE")]
    overlap_map_path: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct SeedManifestArgs {
    /// File with the values of {{seed:…}} tokens [default: evals/seed-manifest.json]
    #[arg(long, value_name = "FILE")]
    seed_manifest_path: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct SnapshotArgs {
    /// Capture a snapshot before the first case
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    snapshot_enabled: Option<bool>,
    /// Source of the snapshot, as JSON: {"command": […]}, {"url": …, "headers": {…}} or {"file": …}
    #[arg(long, value_name = "JSON")]
    snapshot: Option<String>,
    /// Read the snapshot from this file
    #[arg(long, value_name = "FILE", conflicts_with = "snapshot")]
    snapshot_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct EvalFunctionsArgs {
    /// Folder of the eval functions [default: evals/functions]
    #[arg(long, value_name = "FOLDER")]
    eval_functions_path: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct EvalLimitsArgs {
    /// Limits of eval functions, as JSON: {"timeMs": …, "memoryMb": …} [default and maximum: 5000 and 50]
    #[arg(long, value_name = "JSON")]
    eval_limits: Option<String>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct SilenceArgs {
    /// Rules to silence, as JSON: {"TOOL": ["RULE", …]}; * for all tools or rules
    #[arg(long, value_name = "JSON")]
    silence: Option<String>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct GateArgs {
    /// Gates that decide the exit code, as JSON: passRate, maxCostUsd, p95LatencyMs, maxRegressions, rubricScore
    #[arg(long, value_name = "JSON")]
    gates: Option<String>,
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct TokenizerArgs {
    #[arg(long, value_name = "NAME", help = "Tokenizer that counts tokens [default: o200k_base]")]
    tokenizer: Option<String>,
}

/// Recordings of answers.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct RecordingArgs {
    /// Record answers in this folder [default with --replay: evals/recordings]
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// Replay recorded answers: auto (record missing ones), strict (fail on missing ones), on (strict in CI, else auto)
    /// or off [default without a value: on]
    #[arg(long, value_name = "MODE", num_args = 0..=1, default_missing_value = "on", hide_possible_values = true)]
    #[arg(value_parser = ["on", "auto", "strict", "off"])]
    replay: Option<String>,
}
