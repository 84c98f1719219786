//! Command-line arguments.

mod author;
mod contradictions;
mod coverage;
mod eval;
mod feedback;
mod forge;
mod limits;
mod overlap;
mod regress;
mod review;
mod run;
mod runs;
mod tools;
mod trace;
mod trace_filter;

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::author::{ApproverArgs, AuthorArgs};
pub(crate) use self::contradictions::{
    ContradictionsAction, ContradictionsArgs, ContradictionsListArgs, ContradictionsResolveArgs,
};
pub(crate) use self::eval::{
    EvalAction, EvalAddArgs, EvalAgreementArgs, EvalArgs, EvalBatchArgs, EvalCheckArgs, EvalCompareArgs,
    EvalDoctorArgs, EvalHistoryArgs, EvalListArgs, EvalNewArgs, EvalRefineArgs, EvalRunArgs, EvalShowArgs,
    EvalTestArgs, InputFormat, IsolationName, LimitArgs, RowFormat,
};
pub(crate) use self::feedback::{
    FeedbackAction, FeedbackAddArgs, FeedbackArgs, FeedbackImportArgs, FeedbackKind, FeedbackListArgs,
    FeedbackListFormat, FeedbackRetractArgs,
};
pub(crate) use self::forge::{ForgeArgs, ForgeTier};
pub(crate) use self::overlap::{
    OverlapAction, OverlapAddArgs, OverlapArgs, OverlapListArgs, OverlapRemoveArgs, OverlapSuggestArgs,
};
pub(crate) use self::regress::{
    ExpectArgs, RegressAction, RegressAddArgs, RegressArchiveArgs, RegressArgs, RegressSealArgs,
};
pub(crate) use self::review::ReviewArgs;
pub(crate) use self::run::{RunArgs, RunFormat, SelectionArgs};
pub(crate) use self::runs::{DiffArgs, RunsAction, RunsArgs, RunsListArgs, RunsMergeArgs, RunsPruneArgs, ShowArgs};
use karat_workflows::settings::Flags;

pub(crate) use self::trace::{
    ReceiveFormat, TraceAction, TraceArgs, TraceImportArgs, TraceListArgs, TraceReceiveArgs, TraceShowArgs,
};
pub(crate) use self::trace_filter::{OriginName, RatingName, TraceFilterArgs};
pub(crate) use coverage::{CoverageArgs, RequirementName};
pub(crate) use tools::{ToolsArgs, ToolsDiffArgs, ToolsExportScriptArgs, ToolsListArgs, ToolsLockArgs, ToolsVerb};

const AFTER_HELP: &str = "\
Exit codes:
  0    all cases passed
  1    a case failed or regressed, or a gate failed
  2    usage, configuration or input is invalid; nothing was run
  3    an error prevented a verdict
  4    nothing was selected
  130  interrupted; results so far were written

Examples:
  karat init        # Create karat.json and a first eval file
  karat run         # Run all eval files in evals/
  karat run --help  # Show the flags of a command";

/// Checks that a tool-using AI agent does what it should.
#[derive(Debug, Parser)]
#[command(name = "karat", version, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
    /// Use only ASCII characters [default: from the locale]
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) ascii: Option<bool>,
    /// Show only failures and totals
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[arg(help = "Show cases in full; -vv also logs to stderr, -vvv logs more (KARAT_LOG sets a filter)")]
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run eval files against an agent
    Run(RunArgs),
    /// Check eval files, tools and the overlap map without calling the agent
    Check(CheckArgs),
    /// Compare the results of two runs
    Diff(DiffArgs),
    /// List runs, merge the results of shards, and delete old results
    Runs(RunsArgs),
    /// Show a run or a case: message, answer, tool calls and verdicts
    Show(ShowArgs),
    /// List, lock and compare the agent's tools
    Tools(Box<ToolsArgs>),
    /// Show which tools the eval files test and which tools the agent confuses
    Coverage(CoverageArgs),
    /// List, suggest and edit overlaps between tools
    Overlap(OverlapArgs),
    /// Add, archive and seal regression cases
    Regress(RegressArgs),
    /// Write, run and improve Python functions that judge traces
    Eval(EvalArgs),
    /// Add, import and list ratings of traces
    Feedback(FeedbackArgs),
    /// Rate traces one by one in the terminal
    Review(ReviewArgs),
    /// List and resolve verdicts that contradict ratings
    Contradictions(ContradictionsArgs),
    /// Import, receive, list and show traces
    Trace(TraceArgs),
    /// Draft golden and labeled cases for a tool
    Forge(Box<ForgeArgs>),
    /// Create karat.json and a first eval file
    Init(InitArgs),
    /// Print the JSON Schema of a format
    Schema(SchemaArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
}

/// Keys of `karat.json` as flags. A flag overrides the variable, which overrides the file.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Configuration (also in karat.json, or as a variable such as KARAT_OUTPUT_DIR)")]
pub(crate) struct ConfigArgs {
    /// Path to the config file [default: the nearest karat.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Agent to test: a URL, openai:MODEL, anthropic:MODEL, command:PROGRAM ARGS or scripted:FILE
    #[arg(long, value_name = "URL|KIND:NAME")]
    pub(crate) agent_endpoint: Option<String>,
    /// Agents to compare, separated by commas
    #[arg(long, value_name = "AGENT,AGENT", conflicts_with = "agent_endpoint")]
    pub(crate) matrix: Option<String>,
    /// Options of an HTTP or command agent, as JSON: method, headers, request, response, maxResponseBytes
    #[arg(long, value_name = "JSON")]
    pub(crate) agent: Option<String>,
    /// File with the values of {{seed:…}} tokens [default: evals/seed-manifest.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) seed_manifest_path: Option<PathBuf>,
    /// Capture a snapshot before the run
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) snapshot_enabled: Option<bool>,
    /// Source of the snapshot, as JSON: {"command": […]}, {"url": …, "headers": {…}} or {"file": …}
    #[arg(long, value_name = "JSON")]
    pub(crate) snapshot: Option<String>,
    /// Read the snapshot from this file
    #[arg(long, value_name = "FILE", conflicts_with = "snapshot")]
    pub(crate) snapshot_file: Option<PathBuf>,
    /// Write results to this folder [default: evals/results/]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output_dir: Option<PathBuf>,
    /// Compare with this earlier run in the output folder, as --baseline RUN does
    #[arg(long, value_name = "RUN")]
    pub(crate) baseline_run_id: Option<String>,
    /// Compare with this run (latest, latest~1, an id or a unique prefix), result file or folder of results
    #[arg(long, value_name = "RUN|PATH", conflicts_with = "baseline_run_id")]
    pub(crate) baseline: Option<PathBuf>,
    /// Number of cases to run in parallel [default: 1]
    #[arg(long, short = 'j', value_name = "N")]
    pub(crate) concurrency: Option<u64>,
    /// Timeout of a case in milliseconds [default: 60000]
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    /// Tool registry: a JSON, TypeScript, JavaScript or Python file or folder, mcp:stdio:COMMAND or mcp:URL
    /// [default: tools/tools.exports.ts]
    #[arg(long, value_name = "PATH")]
    pub(crate) tool_registry_path: Option<PathBuf>,
    /// Command that lists the agent's tools, as JSON: {"command": […], "timeoutMs": …}
    #[arg(long, value_name = "JSON", conflicts_with = "tool_registry_path")]
    pub(crate) tool_registry: Option<String>,
    /// Path to the overlap map [default: evals/overlap-map.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) overlap_map_path: Option<PathBuf>,
    /// Folder of the eval functions that cases name in 'evals' [default: evals/functions]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) eval_functions_path: Option<PathBuf>,
    /// Rules to silence, as JSON: {"TOOL": ["RULE", …]}; * for all tools or rules
    #[arg(long, value_name = "JSON")]
    pub(crate) silence: Option<String>,
    /// Model that scores rubrics: PROVIDER:MODEL, or JSON with model, temperature, seed, maxOutputTokens
    #[arg(long, value_name = "PROVIDER:MODEL|JSON")]
    pub(crate) judge: Option<String>,
    /// Model that drafts cases, in the form of --judge
    #[arg(long, value_name = "PROVIDER:MODEL|JSON")]
    pub(crate) forge: Option<String>,
    /// Model that rewrites evals, in the form of --judge [default: the model of --forge]
    #[arg(long, value_name = "PROVIDER:MODEL|JSON")]
    pub(crate) refine: Option<String>,
    #[arg(long, value_name = "NAME", help = "Tokenizer for maxTokens [default: o200k_base]")]
    pub(crate) tokenizer: Option<String>,
    /// Fail cases with no assertion that ran, a near miss or a misspelt token; in 'karat check', fail on warnings
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) strict: Option<bool>,
    /// Report all failed assertions of a case, not only the first
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) all_failures: Option<bool>,
    /// Stop starting cases after one fails or errors
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) fail_fast: Option<bool>,
    /// Number of trials of each case [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) trials: Option<u64>,
    /// Gates that decide the exit code, as JSON: passRate, maxCostUsd, p95LatencyMs, maxRegressions, rubricScore
    #[arg(long, value_name = "JSON")]
    pub(crate) gates: Option<String>,
    /// Record answers in this folder [default with --replay: evals/recordings]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) record: Option<PathBuf>,
    /// Replay recorded answers: auto (record missing ones), strict (fail on missing ones), on (strict in CI, else auto)
    /// or off [default without a value: on]
    #[arg(long, value_name = "MODE", num_args = 0..=1, default_missing_value = "on", hide_possible_values = true)]
    pub(crate) replay: Option<ReplayName>,
    /// Number of retries of a failed call [default: 2 for models, 0 for other agents]
    #[arg(long, value_name = "N")]
    pub(crate) max_retries: Option<u64>,
    /// Maximum cost of the run in US dollars; calls that would exceed it are not made
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost_usd: Option<f64>,
    /// Path to the SQLite store, or a postgres:// URL [default: .karat/karat.db]
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) store: Option<String>,
    /// Thresholds for agreement with ratings, as JSON: accuracy, contradictionRate, errorRate, atLeast
    /// [default: 0.8, 0.15, 0.1 and 20]
    #[arg(long, value_name = "JSON")]
    pub(crate) agreement: Option<String>,
    /// Limits of eval functions, as JSON: {"timeMs": …, "memoryMb": …} [default and maximum: 5000 and 50]
    #[arg(long, value_name = "JSON")]
    pub(crate) eval_limits: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    pub(crate) tools: ToolArgs,
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

impl ConfigArgs {
    /// Returns the flags as keys of the configuration.
    pub(crate) fn flags(&self) -> Flags {
        let mut flags = Flags::default();
        flags.config.clone_from(&self.config);
        let (model, tools) = (&self.model, &self.tools);
        for (key, path) in [
            ("seedManifestPath", &self.seed_manifest_path),
            ("outputDir", &self.output_dir),
            ("baseline", &self.baseline),
            ("toolRegistryPath", &self.tool_registry_path),
            ("overlapMapPath", &self.overlap_map_path),
            ("evalFunctionsPath", &self.eval_functions_path),
            ("record", &self.record),
            ("systemPromptPath", &model.system_prompt_path),
        ] {
            flags.path(key, path.as_deref());
        }
        for (key, text) in [
            ("agentEndpoint", &self.agent_endpoint),
            ("matrix", &self.matrix),
            ("agent", &self.agent),
            ("snapshot", &self.snapshot),
            ("baselineRunId", &self.baseline_run_id),
            ("toolRegistry", &self.tool_registry),
            ("silence", &self.silence),
            ("judge", &self.judge),
            ("forge", &self.forge),
            ("refine", &self.refine),
            ("tokenizer", &self.tokenizer),
            ("gates", &self.gates),
            ("store", &self.store),
            ("agreement", &self.agreement),
            ("evalLimits", &self.eval_limits),
            ("providers", &model.providers),
            ("prices", &model.prices),
            ("mcpServers", &tools.mcp_servers),
            ("toolExecution", &tools.tool_execution),
            ("allowTools", &tools.allow_tools),
        ] {
            flags.text(key, text.as_deref());
        }
        flags.text("replay", self.replay.map(ReplayName::name));
        let file = |path: &PathBuf| serde_json::json!({ "file": path.to_string_lossy() });
        flags.value("snapshot", self.snapshot_file.as_ref().map(file));
        flags.value("snapshotEnabled", self.snapshot_enabled);
        flags.value("strict", self.strict);
        flags.value("allFailures", self.all_failures);
        flags.value("failFast", self.fail_fast);
        flags.value("concurrency", self.concurrency);
        flags.value("timeoutMs", self.timeout_ms);
        flags.value("trials", self.trials);
        flags.value("maxRetries", self.max_retries);
        flags.value("maxCostUsd", self.max_cost_usd);
        flags.value("temperature", model.temperature);
        flags.value("seed", model.seed);
        flags.value("maxOutputTokens", model.max_output_tokens);
        flags
    }
}

/// For verbs that need only the store.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreArgs {
    /// Path to the SQLite store, or a postgres:// URL [default: .karat/karat.db]
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) store: Option<String>,
    /// Path to the config file [default: the nearest karat.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl StoreArgs {
    pub(crate) fn config_args(&self) -> ConfigArgs {
        ConfigArgs { config: self.config.clone(), store: self.store.clone(), ..ConfigArgs::default() }
    }
}

/// Keys of `karat.json` for live tools.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Live tools (also in karat.json, or as variables)")]
pub(crate) struct ToolArgs {
    /// MCP servers, as JSON: {"NAME": {"command": […], "env": {…}, "cwd": …}} or {"NAME": {"url": …, "headers": {…}}}
    #[arg(long, value_name = "JSON")]
    pub(crate) mcp_servers: Option<String>,
    /// Source of tool results for a model: stub (stubs of the case) or mcp (MCP servers) [default: stub]
    #[arg(long, value_name = "MODE")]
    pub(crate) tool_execution: Option<String>,
    /// Tools that a model may run on MCP servers, separated by commas; * for all
    #[arg(long, value_name = "NAMES")]
    pub(crate) allow_tools: Option<String>,
}

/// Keys of `karat.json` for models.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Models (also in karat.json, or as variables)")]
pub(crate) struct ModelArgs {
    /// Path to the system prompt
    #[arg(long, value_name = "FILE")]
    pub(crate) system_prompt_path: Option<PathBuf>,
    /// Sampling temperature
    #[arg(long, value_name = "NUMBER")]
    pub(crate) temperature: Option<f64>,
    /// Sampling seed, for providers that support one
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) seed: Option<i64>,
    /// Maximum length of an answer in tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_output_tokens: Option<u64>,
    /// Providers and their limits, as JSON: {"NAME": {"api", "baseUrl", "apiKeyVariable", "requestsPerMinute", …}}
    #[arg(long, value_name = "JSON")]
    pub(crate) providers: Option<String>,
    /// Token prices, as JSON: {"PROVIDER:MODEL": {"inputUsdPerMillion": …, "outputUsdPerMillion": …}}
    #[arg(long, value_name = "JSON")]
    pub(crate) prices: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    #[default]
    Human,
    Json,
}

const CHECK_AFTER_HELP: &str = "\
Examples:
  karat check                                # Check all eval files and tools
  karat check evals/get-weather.golden.json  # Check one file
  karat check --strict                       # Fail on warnings too
  karat check --rules                        # List the rules with examples";

#[derive(Debug, Args)]
#[command(after_help = CHECK_AFTER_HELP)]
pub(crate) struct CheckArgs {
    /// Eval files, folders or globs [default: evals]
    pub(crate) paths: Vec<PathBuf>,
    /// List the rules for cases with examples and exit
    #[arg(long)]
    pub(crate) rules: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

const INIT_AFTER_HELP: &str = "\
Examples:
  karat init                                # Set up the current folder
  karat init --agent-endpoint openai:gpt-5  # Set up a model as the agent
  karat init shop --yes                     # Set up shop/ with defaults";

#[derive(Debug, Args)]
#[command(after_help = INIT_AFTER_HELP)]
pub(crate) struct InitArgs {
    /// Project folder [default: the current folder]
    pub(crate) folder: Option<PathBuf>,
    /// Agent to test: a URL, openai:MODEL, anthropic:MODEL, command:PROGRAM ARGS or scripted:FILE
    #[arg(long, value_name = "URL|KIND:NAME")]
    pub(crate) agent_endpoint: Option<String>,
    /// First tool to test
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Message that should make the agent call the tool
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Do not prompt; use defaults for missing flags
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

const SCHEMA_AFTER_HELP: &str = "\
Examples:
  karat schema case > case.schema.json  # Write the schema of eval files
  karat schema config                   # Print the schema of karat.json";

#[derive(Debug, Args)]
#[command(after_help = SCHEMA_AFTER_HELP)]
pub(crate) struct SchemaArgs {
    /// Format to describe
    pub(crate) format: SchemaName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaName {
    /// Eval files
    Case,
    /// Rubric files
    Rubric,
    /// karat.json
    Config,
    /// Result files
    Result,
    /// Result files of rubric suites
    RubricResult,
    /// Output of 'karat runs --format json'
    Runs,
    /// Output of 'karat runs prune --format json'
    RunsPrune,
    /// Output of 'karat show --format json'
    Show,
    /// Output of 'karat coverage --format json'
    Coverage,
    /// Output of 'karat run --list --format json'
    CaseList,
    /// Output of 'karat check --format json'
    Check,
    /// Files of scripted agents
    Script,
    /// Files of scripted judges
    JudgeScript,
    /// Output of 'karat tools --format json'
    Tools,
    /// Lock files of tools
    ToolsLock,
    /// Output of 'karat tools diff --format json'
    ToolsDiff,
    /// Overlap maps
    OverlapMap,
    /// Output of 'karat overlap list --format json'
    OverlapList,
    /// Output of 'karat overlap suggest --format json'
    OverlapSuggestions,
    /// Output of 'karat regress --format json'
    RegressReport,
    /// Archives of regression cases
    RegressionArchive,
    /// Output of 'karat eval doctor --format json'
    EvalDoctor,
    /// Output of 'karat eval check --format json'
    EvalCheck,
    /// Lines of the test cases of an eval function
    EvalCases,
    /// Lines of 'karat eval run --format jsonl'
    EvalExecution,
    /// Output of 'karat eval run --format json'
    EvalRun,
    /// Output of 'karat eval run --stored --format json'
    EvalRunStored,
    /// Output of 'karat eval test --format json'
    EvalTest,
    /// Output of 'karat eval add --format json'
    EvalAdd,
    /// Output of 'karat eval list --format json'
    EvalList,
    /// Output of 'karat eval show --format json'
    EvalShow,
    /// Output of 'karat eval history --format json'
    EvalHistory,
    /// Output of 'karat eval agreement --format json'
    EvalAgreement,
    /// Output of 'karat eval compare --format json'
    EvalCompare,
    /// Output of 'karat eval refine --format json'
    EvalRefine,
    /// Output of 'karat contradictions --format json'
    Contradictions,
    /// Output of 'karat contradictions resolve --format json'
    ContradictionsResolve,
    /// Output of 'karat forge --format json'
    Forge,
    /// Output of 'karat forge --brief --format json'
    ForgeBrief,
    /// Output of 'karat check --rules --format json'
    CheckRules,
    /// Lines of 'karat feedback list --format jsonl'
    Feedback,
    /// Output of 'karat feedback add --format json'
    FeedbackAdd,
    /// Output of 'karat feedback import --format json'
    FeedbackImport,
    /// Output of 'karat feedback list --format json'
    FeedbackList,
    /// Output of 'karat trace import --format json'
    TraceImport,
    /// Output of 'karat trace list --format json'
    TraceList,
    /// Output of 'karat trace show --format json'
    TraceShow,
    /// Lines of 'karat trace receive --format jsonl'
    TraceReceive,
}

const COMPLETIONS_AFTER_HELP: &str = "\
Examples:
  karat completions zsh > _karat    # Write the completions for zsh
  source <(karat completions bash)  # Load the completions in bash";

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_AFTER_HELP)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for
    pub(crate) shell: clap_complete::Shell,
}
