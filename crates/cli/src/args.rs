//! What can be said on the command line.

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
use karat_workflows::settings::Flags;

pub(crate) use self::trace::{
    ReceiveFormat, TraceAction, TraceArgs, TraceImportArgs, TraceListArgs, TraceReceiveArgs, TraceShowArgs,
};
pub(crate) use self::trace_filter::{RatingName, TraceFilterArgs};
pub(crate) use coverage::{CoverageArgs, RequireName};
pub(crate) use tools::{ToolsArgs, ToolsDiffArgs, ToolsExportScriptArgs, ToolsListArgs, ToolsLockArgs, ToolsVerb};

const EXIT_CODES: &str = "\
Exit codes:
  0    everything passed
  1    a case failed or regressed, or a gate did not hold
  2    usage, configuration or input is invalid; nothing was run
  3    something errored, so there is no verdict
  4    nothing was selected
  130  interrupted; what had finished was written";

/// Tells whether a tool-using AI agent still does what it should.
#[derive(Debug, Parser)]
#[command(name = "karat", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Args)]
pub(crate) struct GlobalArgs {
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
    /// Use only ASCII characters [default: as the locale says]
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) ascii: Option<bool>,
    /// Show only what did not pass, and the numbers
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Log what happens to stderr; -vv for more (`KARAT_LOG` chooses what is logged)
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
    /// Run eval files against the agent and judge its answers
    Run(RunArgs),
    /// Find what is invalid or likely wrong in eval files, tools and the overlap map, without asking the agent
    Check(CheckArgs),
    /// Compare two results: what broke, what was mended
    Diff(DiffArgs),
    /// List the agent's tools; lock them, and show what changed since
    Tools(Box<ToolsArgs>),
    /// Show what is tested of each tool, what is missing, and which tools are taken for others
    Coverage(CoverageArgs),
    /// Show, propose and edit which tools are easily taken for each other
    Overlap(OverlapArgs),
    /// Keep fixed bugs fixed: add, archive and seal regression cases
    Regress(RegressArgs),
    /// Judge traces with Python functions, in a sandbox
    Eval(EvalArgs),
    /// Say what you think of traces, and see what people said
    Feedback(FeedbackArgs),
    /// Rate traces one after the other at the terminal, the most informative first
    Review(ReviewArgs),
    /// Show verdicts that people disagree with, and settle them
    Contradictions(ContradictionsArgs),
    /// Keep what agents did: import, list and show traces
    Trace(TraceArgs),
    /// Draft golden and labeled cases for a tool, for a person to approve
    Forge(Box<ForgeArgs>),
    /// Write a first configuration and a first eval file
    Init(InitArgs),
    /// Print the JSON Schema of a file format
    Schema(SchemaArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
}

/// Keys of `karat.json` as flags: flag over variable over file over default.
#[derive(Debug, Clone, Default, Args)]
#[command(
    next_help_heading = "Configuration (each is also a key of karat.json, and a variable: --output-dir is KARAT_OUTPUT_DIR)"
)]
pub(crate) struct ConfigArgs {
    /// Read this configuration instead of the nearest karat.json
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The agent: a URL, openai:MODEL, anthropic:MODEL, command:PROGRAM ARGS, or scripted:FILE
    #[arg(long, value_name = "URL|KIND:NAME")]
    pub(crate) agent_endpoint: Option<String>,
    /// Several agents in place of one, separated by commas: each is asked every case, and they stand side by side
    #[arg(long, value_name = "AGENT,AGENT", conflicts_with = "agent_endpoint")]
    pub(crate) matrix: Option<String>,
    /// How an HTTP agent or a program is asked, as JSON: method, headers, request, response, maxResponseBytes
    #[arg(long, value_name = "JSON")]
    pub(crate) agent: Option<String>,
    /// Where {{seed:…}} tokens come from [default: evals/seed-manifest.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) seed_manifest_path: Option<PathBuf>,
    /// Capture a snapshot before the run
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) snapshot_enabled: Option<bool>,
    /// Where the snapshot comes from, as JSON: {"command": […]}, {"url": …, "headers": {…}} or {"file": …}
    #[arg(long, value_name = "JSON")]
    pub(crate) snapshot: Option<String>,
    /// Take the snapshot from this file
    #[arg(long, value_name = "FILE", conflicts_with = "snapshot")]
    pub(crate) snapshot_file: Option<PathBuf>,
    /// Where results are written [default: evals/results/]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output_dir: Option<PathBuf>,
    /// Compare with this earlier run of the output folder
    #[arg(long, value_name = "RUN_ID")]
    pub(crate) baseline_run_id: Option<String>,
    /// Compare with this result file, or with the results of this folder
    #[arg(long, value_name = "PATH", conflicts_with = "baseline_run_id")]
    pub(crate) baseline: Option<PathBuf>,
    /// How many cases are under way at once [default: 1]
    #[arg(long, short = 'j', value_name = "N")]
    pub(crate) concurrency: Option<u64>,
    /// How long a case may take, in milliseconds [default: 60000]
    #[arg(long, value_name = "MS")]
    pub(crate) timeout_ms: Option<u64>,
    /// The agent's tools: a JSON, TypeScript, JavaScript or Python file or a folder of them, mcp:stdio:COMMAND or
    /// mcp:URL [default: tools/tools.exports.ts]
    #[arg(long, value_name = "PATH")]
    pub(crate) tool_registry_path: Option<PathBuf>,
    /// A program of your own that lists the agent's tools, as JSON: {"command": […], "timeoutMs": …}
    #[arg(long, value_name = "JSON", conflicts_with = "tool_registry_path")]
    pub(crate) tool_registry: Option<String>,
    /// Which tools are easily taken for each other [default: evals/overlap-map.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) overlap_map_path: Option<PathBuf>,
    /// The folder of Python eval functions that cases name in 'evals' [default: evals/functions]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) eval_functions_path: Option<PathBuf>,
    /// Rules to turn off for a tool or for all tools (*), as JSON: {"TOOL": ["RULE", …]}, or {"TOOL": "*"} for all rules
    #[arg(long, value_name = "JSON")]
    pub(crate) silence: Option<String>,
    /// The model that scores rubric cases: KIND:MODEL, or as JSON with model, temperature, seed, maxOutputTokens
    #[arg(long, value_name = "KIND:MODEL|JSON")]
    pub(crate) judge: Option<String>,
    /// The model that drafts cases: KIND:MODEL, or as JSON with model, temperature, seed, maxOutputTokens
    #[arg(long, value_name = "KIND:MODEL|JSON")]
    pub(crate) forge: Option<String>,
    /// The model that rewrites evals [default: that of forge]: KIND:MODEL, or as JSON with model, temperature, seed,
    /// maxOutputTokens
    #[arg(long, value_name = "KIND:MODEL|JSON")]
    pub(crate) refine: Option<String>,
    /// The vocabulary that maxTokens counts with [default: `o200k_base`]
    #[arg(long, value_name = "NAME")]
    pub(crate) tokenizer: Option<String>,
    /// Fail a case in which no assertion ran; for check: let warnings fail
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) strict: Option<bool>,
    /// Look for every failure of a case, not only the first
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) all_failures: Option<bool>,
    /// Begin no further case after the first that does not pass
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) fail_fast: Option<bool>,
    /// How often each case is tried [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) trials: Option<u64>,
    /// The limits that decide the exit code, as JSON: passRate, maxCostUsd, p95LatencyMs, maxRegressions, rubricScore
    #[arg(long, value_name = "JSON")]
    pub(crate) gates: Option<String>,
    /// Record every answer in this folder, to be replayed later [default of --replay: evals/recordings]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) record: Option<PathBuf>,
    /// Replay recorded answers. auto: what is missing is asked and recorded; strict: it is an error; on, or no value:
    /// auto, but in CI strict; off
    #[arg(long, value_name = "MODE", num_args = 0..=1, default_missing_value = "on", hide_possible_values = true)]
    pub(crate) replay: Option<ReplayName>,
    /// How often a call is tried again [default: 2 for models, 0 for agents of your own]
    #[arg(long, value_name = "N")]
    pub(crate) max_retries: Option<u64>,
    /// Make no call that would take the run past this many US dollars
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost_usd: Option<f64>,
    /// Where traces, evals, verdicts, feedback and runs are kept: a file, or postgres://… [default: .karat/karat.db]
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) store: Option<String>,
    /// When verdicts that people disagree with are too many, as JSON: accuracy, contradictionRate, errorRate, atLeast
    /// [default: 0.8, 0.15, 0.1 and 20]
    #[arg(long, value_name = "JSON")]
    pub(crate) agreement: Option<String>,
    /// What eval functions may use, as JSON: {"timeMs": …, "memoryMb": …} [default: 5000 and 50, which are the most]
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
    /// Returns what these flags say of keys of the configuration.
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

/// Where things are kept, for verbs that need no more of the configuration.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreArgs {
    /// Where things are kept: a file, or postgres://… [default: .karat/karat.db]
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) store: Option<String>,
    /// Read this configuration instead of the nearest karat.json
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl StoreArgs {
    pub(crate) fn config_args(&self) -> ConfigArgs {
        ConfigArgs { config: self.config.clone(), store: self.store.clone(), ..ConfigArgs::default() }
    }
}

/// Live tools, as keys of `karat.json`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Live tools (keys of karat.json and variables as well)")]
pub(crate) struct ToolArgs {
    /// MCP servers, as JSON: {"NAME": {"command": […], "env": {…}, "cwd": …}} or {"NAME": {"url": …, "headers": {…}}}
    #[arg(long, value_name = "JSON")]
    pub(crate) mcp_servers: Option<String>,
    /// Who runs the tools that a model calls: stub (the case's stubs) or mcp (the MCP servers) [default: stub]
    #[arg(long, value_name = "WHO")]
    pub(crate) tool_execution: Option<String>,
    /// The tools that may run, with commas between them, or * for all; others are refused to the model
    #[arg(long, value_name = "NAMES")]
    pub(crate) allow_tools: Option<String>,
}

/// How a model is driven, as keys of `karat.json`.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Models (keys of karat.json and variables as well)")]
pub(crate) struct ModelArgs {
    /// The file that holds the system prompt
    #[arg(long, value_name = "FILE")]
    pub(crate) system_prompt_path: Option<PathBuf>,
    /// How freely the model chooses its words
    #[arg(long, value_name = "NUMBER")]
    pub(crate) temperature: Option<f64>,
    /// What the model's choices begin with, where the provider takes it
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) seed: Option<i64>,
    /// How long an answer may be, in tokens
    #[arg(long, value_name = "N")]
    pub(crate) max_output_tokens: Option<u64>,
    /// Providers and their limits, as JSON: {"NAME": {"api", "baseUrl", "apiKeyVariable", "requestsPerMinute", …}}
    #[arg(long, value_name = "JSON")]
    pub(crate) providers: Option<String>,
    /// What tokens cost, as JSON: {"KIND:MODEL": {"inputUsdPerMillion": …, "outputUsdPerMillion": …}}
    #[arg(long, value_name = "JSON")]
    pub(crate) prices: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Eval files, folders or globs; a folder that holds a karat.json is a project of its own [default: evals]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// What stdout is: a summary, one JSON document, or a JSON line for each event
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: RunFormat,
    /// Write a report too: junit, markdown or github, to a file or to - (repeatable)
    #[arg(long, value_name = "KIND=PATH")]
    pub(crate) report: Vec<String>,
    /// Do not keep the run and its traces in the store
    #[arg(long)]
    pub(crate) no_store: bool,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// Which cases are run; kinds of selection narrow each other.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Selection")]
pub(crate) struct SelectionArgs {
    /// Run the case with this id (repeatable)
    #[arg(long, value_name = "ID")]
    pub(crate) id: Vec<String>,
    /// Run files of this tier (repeatable): golden, labeled, regression, rubric
    #[arg(long, value_name = "TIER")]
    pub(crate) tier: Vec<String>,
    /// Run cases of this difficulty (repeatable): straightforward, ambiguous, edge, regression
    #[arg(long, value_name = "DIFFICULTY")]
    pub(crate) difficulty: Vec<String>,
    /// Run cases whose id, description or message matches this regular expression
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) grep: Option<String>,
    /// Run only what did not pass in the baseline, or else in the newest result
    #[arg(long)]
    pub(crate) only_failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    Human,
    Json,
    Jsonl,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    #[default]
    Human,
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Eval files, folders or globs [default: evals]
    pub(crate) paths: Vec<PathBuf>,
    /// List all rules for cases, each with an example, and check nothing
    #[arg(long)]
    pub(crate) rules: bool,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The result before: a result file, or a run id of the output folder
    pub(crate) before: String,
    /// The result now: a result file, or a run id of the output folder
    pub(crate) now: String,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    /// Read this configuration instead of the nearest karat.json
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where run ids are looked for [default: evals/results/]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The project's folder [default: the current one]
    pub(crate) folder: Option<PathBuf>,
    /// The agent: a URL, openai:MODEL, anthropic:MODEL, command:PROGRAM ARGS, or scripted:FILE
    #[arg(long, value_name = "URL|KIND:NAME")]
    pub(crate) agent_endpoint: Option<String>,
    /// The first tool to test
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// A message that should make the agent call the tool
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Ask nothing; take defaults for what no flag says
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Which format
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
    /// What 'karat coverage --format json' prints
    Coverage,
    /// What `karat check --format json` prints
    Check,
    /// Files of the scripted agent
    Script,
    /// Files of the scripted judge
    JudgeScript,
    /// What 'karat tools --format json' prints
    Tools,
    /// Tool locks
    ToolsLock,
    /// What 'karat tools diff --format json' prints
    ToolsDiff,
    /// Overlap maps
    OverlapMap,
    /// What overlap list prints
    OverlapList,
    /// What overlap suggest prints
    OverlapSuggestions,
    /// What regress prints
    RegressReport,
    /// Archives of regression cases
    RegressionArchive,
    /// What 'karat eval doctor --format json' prints
    EvalDoctor,
    /// What 'karat eval check --format json' prints
    EvalCheck,
    /// Lines of an eval function's cases
    EvalCases,
    /// Lines that 'karat eval run --format jsonl' prints
    EvalExecution,
    /// What 'karat eval run --format json' prints
    EvalRun,
    /// What 'karat eval run --stored --format json' prints
    EvalRunStored,
    /// What 'karat eval test --format json' prints
    EvalTest,
    /// What 'karat eval add --format json' prints
    EvalAdd,
    /// What 'karat eval list --format json' prints
    EvalList,
    /// What 'karat eval show --format json' prints
    EvalShow,
    /// What 'karat eval history --format json' prints
    EvalHistory,
    /// What 'karat eval agreement --format json' prints
    EvalAgreement,
    /// What 'karat eval compare --format json' prints
    EvalCompare,
    /// What 'karat eval refine --format json' prints
    EvalRefine,
    /// What 'karat contradictions --format json' prints
    Contradictions,
    /// What 'karat contradictions resolve --format json' prints
    ContradictionsResolve,
    /// What 'karat forge --format json' prints
    Forge,
    /// What 'karat forge --brief --format json' prints
    ForgeBrief,
    /// What 'karat check --rules --format json' prints
    CheckRules,
    /// Statements of people: a line of 'karat feedback list --format jsonl'
    Feedback,
    /// What 'karat feedback add --format json' prints
    FeedbackAdd,
    /// What 'karat feedback import --format json' prints
    FeedbackImport,
    /// What 'karat feedback list --format json' prints
    FeedbackList,
    /// What 'karat trace import --format json' prints
    TraceImport,
    /// What 'karat trace list --format json' prints
    TraceList,
    /// What 'karat trace show --format json' prints
    TraceShow,
    /// Lines that 'karat trace receive --format jsonl' prints
    TraceReceive,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}
