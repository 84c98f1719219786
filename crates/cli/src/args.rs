//! Command-line arguments.

mod agent;
mod author;
mod check;
mod choice;
mod config;
mod contradictions;
mod coverage;
mod eval;
mod feedback;
mod forge;
mod init;
mod limits;
mod man;
mod overlap;
mod regress;
mod review;
mod run;
mod runs;
mod tools;
mod trace;
mod trace_filter;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use karat_workflows::schema::formats;

pub(crate) use self::agent::{AgentAction, AgentDetectArgs, AgentShowArgs, AgentTryArgs, AgentVerbArgs};
pub(crate) use self::author::AuthorArgs;
pub(crate) use self::check::CheckArgs;
pub(crate) use self::config::{ConfigFileArgs, StoreArgs, config_flags};
pub(crate) use self::contradictions::{
    ContradictionsAction, ContradictionsArgs, ContradictionsListArgs, ContradictionsResolveArgs,
};
pub(crate) use self::eval::{
    EvalAction, EvalAddArgs, EvalAddCaseArgs, EvalAdoptArgs, EvalAgreementArgs, EvalArgs, EvalBatchArgs, EvalCheckArgs,
    EvalCompareArgs, EvalDoctorArgs, EvalHistoryArgs, EvalListArgs, EvalNewArgs, EvalRefineArgs, EvalRunArgs,
    EvalShowArgs, EvalTestArgs, InputFormat, LimitArgs, RowFormat,
};
pub(crate) use self::feedback::{
    FeedbackAction, FeedbackArgs, FeedbackImportArgs, FeedbackListArgs, FeedbackListFormat,
};
pub(crate) use self::forge::ForgeArgs;
pub(crate) use self::init::InitArgs;
pub(crate) use self::man::ManArgs;
pub(crate) use self::overlap::{
    OverlapAction, OverlapAddArgs, OverlapArgs, OverlapListArgs, OverlapRemoveArgs, OverlapSuggestArgs,
};
pub(crate) use self::regress::{
    ExpectArgs, RegressAction, RegressAddArgs, RegressArchiveArgs, RegressArgs, RegressSealArgs,
};
pub(crate) use self::review::ReviewArgs;
pub(crate) use self::run::{RunArgs, RunFormat, SelectionArgs};
pub(crate) use self::runs::{DiffArgs, RunsAction, RunsArgs, RunsListArgs, RunsMergeArgs, RunsPruneArgs, ShowArgs};
pub(crate) use self::trace::{
    ReceiveFormat, TraceAction, TraceArgs, TraceImportArgs, TraceListArgs, TraceReceiveArgs, TraceShowArgs,
};
pub(crate) use self::trace_filter::{RatingName, TraceFilterArgs};
pub(crate) use coverage::{CoverageArgs, REQUIREMENTS};
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
    /// Print only totals and cases that did not pass
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
    Run(Box<RunArgs>),
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
    /// Send a message to an agent, detect its preset, and show presets
    Agent(AgentVerbArgs),
    /// Draft golden and labeled cases for a tool
    Forge(Box<ForgeArgs>),
    /// Create karat.json and a first eval file
    Init(InitArgs),
    /// Print the JSON Schema of a format
    Schema(SchemaArgs),
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Write manual pages
    #[command(hide = true)]
    Man(ManArgs),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    #[default]
    Human,
    Json,
}

const SCHEMA_AFTER_HELP: &str = "\
Examples:
  karat schema case > case.schema.json  # Write the schema of eval files
  karat schema config                   # Print the schema of karat.json";

#[derive(Debug, Args)]
#[command(after_help = SCHEMA_AFTER_HELP)]
pub(crate) struct SchemaArgs {
    /// Format to describe
    #[arg(value_parser = schema_names())]
    pub(crate) format: String,
}

fn schema_names() -> PossibleValuesParser {
    PossibleValuesParser::new(formats().map(|(name, help)| PossibleValue::new(name).help(help)))
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
