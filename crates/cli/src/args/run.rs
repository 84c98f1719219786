//! Arguments of `karat run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use karat_core::shard::Shard;

use super::config::{
    AgentArgs, ConfigFileArgs, EvalFunctionsArgs, EvalLimitsArgs, GateArgs, HEADING, OutputDirArgs, ProviderArgs,
    RecordingArgs, RegistryArgs, SeedManifestArgs, SilenceArgs, SnapshotArgs, StoreLocationArgs, TokenizerArgs,
    ToolExecutionArgs,
};

const RUN_AFTER_HELP: &str = "\
Examples:
  karat run                                # Run all eval files in evals/
  karat run evals/get-weather.golden.json  # Run one file
  karat run -j 8 --report junit=junit.xml  # Run in parallel, write JUnit XML
  karat run --only-failed                  # Rerun cases that did not pass
  karat run --tag smoke --list             # List the cases with a tag
  karat run --shard 1/4                    # Run a quarter of the cases";

#[derive(Debug, Args)]
#[command(after_help = RUN_AFTER_HELP)]
pub(crate) struct RunArgs {
    /// Eval files, folders or globs [default: evals]
    paths: Vec<PathBuf>,
    /// Alias of PATHS, for compatibility with other runners
    #[arg(long, value_name = "PATH", hide = true)]
    eval: Vec<PathBuf>,
    /// Agent to test: a URL, PRESET:URL such as langgraph:URL, openai:MODEL, anthropic:MODEL, python:MODULE:FUNCTION,
    /// node:FILE#EXPORT, command:PROGRAM ARGS or scripted:FILE
    #[arg(long, value_name = "URL|KIND:NAME")]
    pub(crate) agent_endpoint: Option<String>,
    /// Number of cases to run in parallel [default: 1]
    #[arg(id = "concurrency", long = "jobs", short = 'j', value_name = "N", visible_alias = "concurrency")]
    pub(crate) jobs: Option<u64>,
    /// Number of trials of each case [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) trials: Option<u64>,
    /// Compare with this run (latest, latest~1, an id or a unique prefix), result file or folder of results
    #[arg(long, value_name = "RUN|PATH", conflicts_with = "baseline_run_id")]
    pub(crate) baseline: Option<PathBuf>,
    /// Stop starting cases after one fails or errors
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) fail_fast: Option<bool>,
    /// Output format: a summary, one JSON document, or one JSON line per event
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: RunFormat,
    /// Also write a report (junit, markdown or github) to a file, or - for stdout (repeatable)
    #[arg(long, value_name = "KIND=PATH")]
    pub(crate) report: Vec<String>,
    /// List the selected cases without running them
    #[arg(long, conflicts_with = "report")]
    pub(crate) list: bool,
    /// Watch eval files, the tool registry and eval functions, and rerun affected cases
    #[arg(long, conflicts_with = "list")]
    pub(crate) watch: bool,
    /// Do not save the run and its traces to the store
    #[arg(long)]
    pub(crate) no_store: bool,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    judging: JudgingArgs,
    #[command(flatten)]
    output: OutputDirArgs,
    #[command(flatten)]
    store: StoreLocationArgs,
    #[command(flatten)]
    providers: ProviderArgs,
    #[command(flatten)]
    agent: AgentArgs,
    #[command(flatten)]
    tool_execution: ToolExecutionArgs,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    recording: RecordingArgs,
    #[command(flatten)]
    seed_manifest: SeedManifestArgs,
    #[command(flatten)]
    snapshot: SnapshotArgs,
    #[command(flatten)]
    eval_functions: EvalFunctionsArgs,
    #[command(flatten)]
    eval_limits: EvalLimitsArgs,
    #[command(flatten)]
    silence: SilenceArgs,
    #[command(flatten)]
    file: ConfigFileArgs,
}

/// Comparisons, and the criteria for passing.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = HEADING)]
pub(crate) struct JudgingArgs {
    /// Agents to compare, separated by commas
    #[arg(long, value_name = "AGENT,AGENT", conflicts_with = "agent_endpoint")]
    matrix: Option<String>,
    /// Compare with this earlier run in the output folder, as --baseline RUN does
    #[arg(long, value_name = "RUN")]
    baseline_run_id: Option<String>,
    #[command(flatten)]
    gates: GateArgs,
    /// Model that scores rubrics: PROVIDER:MODEL, or JSON with model, temperature, seed, maxOutputTokens
    #[arg(long, value_name = "PROVIDER:MODEL|JSON")]
    judge: Option<String>,
    /// Fail vacuous cases, near misses and misspelt tokens
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    strict: Option<bool>,
    /// Report all failed assertions of a case, not only the first
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    all_failures: Option<bool>,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
}

impl RunArgs {
    /// Returns the paths of both forms.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.paths.iter().chain(&self.eval).cloned().collect()
    }
}

/// Selection of cases; a case must match every kind of flag.
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
    /// Run cases with this tag (repeatable)
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Exclude cases with this tag (repeatable)
    #[arg(long, value_name = "TAG")]
    pub(crate) skip_tag: Vec<String>,
    /// Run one part of the cases, such as 2/4; 'karat runs merge' merges the results of all parts
    #[arg(long, value_name = "NUMBER/COUNT")]
    pub(crate) shard: Option<Shard>,
    /// Run cases whose id, description or message matches this regular expression
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) grep: Option<String>,
    /// Run only cases that did not pass in this run [default: the baseline or, without one, the newest result]
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) only_failed: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    Human,
    Json,
    Jsonl,
}
