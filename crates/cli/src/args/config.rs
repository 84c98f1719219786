//! Keys of `karat.json` as flags, in groups: a verb takes the groups that affect it.
//!
//! A flag overrides the variable, which overrides the file. Every key can be set in the file and by a variable.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use karat_workflows::settings::Flags;

/// The heading of configuration keys, below the flags of a verb.
pub(super) const HEADING: &str = "Configuration (also in karat.json, or as a variable such as KARAT_OUTPUT_DIR)";

/// Flags that set keys of the configuration.
pub(crate) trait ConfigFlags {
    /// Adds the given flags, by configuration key.
    fn add_to(&self, flags: &mut Flags);
}

/// The config file, for every verb with a configuration.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct ConfigFileArgs {
    /// Path to the config file [default: the nearest karat.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl ConfigFlags for ConfigFileArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.config.clone_from(&self.config);
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct OutputDirArgs {
    /// Folder of the results [default: evals/results/]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output_dir: Option<PathBuf>,
}

impl ConfigFlags for OutputDirArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.path("outputDir", self.output_dir.as_deref());
    }
}

/// For verbs that need only the results of runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ResultsArgs {
    #[command(flatten)]
    pub(crate) output: OutputDirArgs,
    #[command(flatten)]
    pub(crate) file: ConfigFileArgs,
}

impl ConfigFlags for ResultsArgs {
    fn add_to(&self, flags: &mut Flags) {
        self.output.add_to(flags);
        self.file.add_to(flags);
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct StoreLocationArgs {
    /// Path to the SQLite store, or a postgres:// URL [default: .karat/karat.db]
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) store: Option<String>,
}

impl ConfigFlags for StoreLocationArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.text("store", self.store.as_deref());
    }
}

/// For verbs that need only the store.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(crate) location: StoreLocationArgs,
    #[command(flatten)]
    pub(crate) file: ConfigFileArgs,
}

impl ConfigFlags for StoreArgs {
    fn add_to(&self, flags: &mut Flags) {
        self.location.add_to(flags);
        self.file.add_to(flags);
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct AgentEndpointArgs {
    /// Agent to test: a URL, openai:MODEL, anthropic:MODEL, command:PROGRAM ARGS or scripted:FILE
    #[arg(long, value_name = "URL|KIND:NAME")]
    pub(crate) agent_endpoint: Option<String>,
}

impl ConfigFlags for AgentEndpointArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.text("agentEndpoint", self.agent_endpoint.as_deref());
    }
}

/// How the agent is called.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct AgentArgs {
    /// Options of an HTTP or command agent, as JSON: method, headers, request, response, maxResponseBytes
    #[arg(long, value_name = "JSON")]
    pub(crate) agent: Option<String>,
    /// Path to the system prompt of a model
    #[arg(long, value_name = "FILE")]
    pub(crate) system_prompt_path: Option<PathBuf>,
    /// Sampling temperature of a model
    #[arg(long, value_name = "NUMBER")]
    pub(crate) temperature: Option<f64>,
    /// Sampling seed of a model, for providers that support one
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) seed: Option<i64>,
    /// Maximum length of a model's answer in tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_output_tokens: Option<u64>,
}

impl ConfigFlags for AgentArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.text("agent", self.agent.as_deref());
        flags.path("systemPromptPath", self.system_prompt_path.as_deref());
        flags.value("temperature", self.temperature);
        flags.value("seed", self.seed);
        flags.value("maxOutputTokens", self.max_output_tokens);
    }
}

/// How tool calls of a model are answered.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct ToolExecutionArgs {
    /// Source of tool results for a model: stub (stubs of the case) or mcp (MCP servers) [default: stub]
    #[arg(long, value_name = "MODE")]
    pub(crate) tool_execution: Option<String>,
    /// Tools that a model may run on MCP servers, separated by commas; * for all
    #[arg(long, value_name = "NAMES")]
    pub(crate) allow_tools: Option<String>,
}

impl ConfigFlags for ToolExecutionArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.text("toolExecution", self.tool_execution.as_deref());
        flags.text("allowTools", self.allow_tools.as_deref());
    }
}

/// Providers of models, and the limits of calls.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct ProviderArgs {
    /// Timeout of a case or a call in milliseconds [default: 60000]
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    /// Number of retries of a failed call [default: 2 for models, 0 for other agents]
    #[arg(long, value_name = "N")]
    pub(crate) max_retries: Option<u64>,
    /// Maximum cost in US dollars; calls that would exceed it are not made
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost_usd: Option<f64>,
    /// Providers and their limits, as JSON: {"NAME": {"api", "baseUrl", "apiKeyVariable", "requestsPerMinute", …}}
    #[arg(long, value_name = "JSON")]
    pub(crate) providers: Option<String>,
    /// Token prices, as JSON: {"PROVIDER:MODEL": {"inputUsdPerMillion": …, "outputUsdPerMillion": …}}
    #[arg(long, value_name = "JSON")]
    pub(crate) prices: Option<String>,
}

impl ConfigFlags for ProviderArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.value("timeoutMs", self.timeout_ms);
        flags.value("maxRetries", self.max_retries);
        flags.value("maxCostUsd", self.max_cost_usd);
        flags.text("providers", self.providers.as_deref());
        flags.text("prices", self.prices.as_deref());
    }
}

/// The source of the agent's tools.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct RegistryArgs {
    /// Tool registry: a JSON, TypeScript, JavaScript or Python file or folder, mcp:stdio:COMMAND or mcp:URL
    /// [default: tools/tools.exports.ts]
    #[arg(long, value_name = "PATH")]
    pub(crate) tool_registry_path: Option<PathBuf>,
    /// Command that lists the agent's tools, as JSON: {"command": […], "timeoutMs": …}
    #[arg(long, value_name = "JSON", conflicts_with = "tool_registry_path")]
    pub(crate) tool_registry: Option<String>,
    /// MCP servers, as JSON: {"NAME": {"command": […], "env": {…}, "cwd": …}} or {"NAME": {"url": …, "headers": {…}}}
    #[arg(long, value_name = "JSON")]
    pub(crate) mcp_servers: Option<String>,
}

impl ConfigFlags for RegistryArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.path("toolRegistryPath", self.tool_registry_path.as_deref());
        flags.text("toolRegistry", self.tool_registry.as_deref());
        flags.text("mcpServers", self.mcp_servers.as_deref());
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct OverlapMapArgs {
    /// Path to the overlap map [default: evals/overlap-map.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) overlap_map_path: Option<PathBuf>,
}

impl ConfigFlags for OverlapMapArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.path("overlapMapPath", self.overlap_map_path.as_deref());
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct SeedManifestArgs {
    /// File with the values of {{seed:…}} tokens [default: evals/seed-manifest.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) seed_manifest_path: Option<PathBuf>,
}

impl ConfigFlags for SeedManifestArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.path("seedManifestPath", self.seed_manifest_path.as_deref());
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct SnapshotArgs {
    /// Capture a snapshot before the first case
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) snapshot_enabled: Option<bool>,
    /// Source of the snapshot, as JSON: {"command": […]}, {"url": …, "headers": {…}} or {"file": …}
    #[arg(long, value_name = "JSON")]
    pub(crate) snapshot: Option<String>,
    /// Read the snapshot from this file
    #[arg(long, value_name = "FILE", conflicts_with = "snapshot")]
    pub(crate) snapshot_file: Option<PathBuf>,
}

impl ConfigFlags for SnapshotArgs {
    fn add_to(&self, flags: &mut Flags) {
        let file = |path: &PathBuf| serde_json::json!({ "file": path.to_string_lossy() });
        flags.value("snapshotEnabled", self.snapshot_enabled);
        flags.text("snapshot", self.snapshot.as_deref());
        flags.value("snapshot", self.snapshot_file.as_ref().map(file));
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct EvalFunctionsArgs {
    /// Folder of the eval functions [default: evals/functions]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) eval_functions_path: Option<PathBuf>,
}

impl ConfigFlags for EvalFunctionsArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.path("evalFunctionsPath", self.eval_functions_path.as_deref());
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct EvalLimitsArgs {
    /// Limits of eval functions, as JSON: {"timeMs": …, "memoryMb": …} [default and maximum: 5000 and 50]
    #[arg(long, value_name = "JSON")]
    pub(crate) eval_limits: Option<String>,
}

impl ConfigFlags for EvalLimitsArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.text("evalLimits", self.eval_limits.as_deref());
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct SilenceArgs {
    /// Rules to silence, as JSON: {"TOOL": ["RULE", …]}; * for all tools or rules
    #[arg(long, value_name = "JSON")]
    pub(crate) silence: Option<String>,
}

impl ConfigFlags for SilenceArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.text("silence", self.silence.as_deref());
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct GateArgs {
    /// Gates that decide the exit code, as JSON: passRate, maxCostUsd, p95LatencyMs, maxRegressions, rubricScore
    #[arg(long, value_name = "JSON")]
    pub(crate) gates: Option<String>,
}

impl ConfigFlags for GateArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.text("gates", self.gates.as_deref());
    }
}

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct TokenizerArgs {
    #[arg(long, value_name = "NAME", help = "Tokenizer that counts tokens [default: o200k_base]")]
    pub(crate) tokenizer: Option<String>,
}

impl ConfigFlags for TokenizerArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.text("tokenizer", self.tokenizer.as_deref());
    }
}

/// Recordings of answers.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct RecordingArgs {
    /// Record answers in this folder [default with --replay: evals/recordings]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) record: Option<PathBuf>,
    /// Replay recorded answers: auto (record missing ones), strict (fail on missing ones), on (strict in CI, else auto)
    /// or off [default without a value: on]
    #[arg(long, value_name = "MODE", num_args = 0..=1, default_missing_value = "on", hide_possible_values = true)]
    pub(crate) replay: Option<ReplayName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayName {
    On,
    Auto,
    Strict,
    Off,
}

impl ReplayName {
    fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Auto => "auto",
            Self::Strict => "strict",
            Self::Off => "off",
        }
    }
}

impl ConfigFlags for RecordingArgs {
    fn add_to(&self, flags: &mut Flags) {
        flags.path("record", self.record.as_deref());
        flags.text("replay", self.replay.map(ReplayName::name));
    }
}
