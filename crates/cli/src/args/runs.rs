//! Arguments of `karat diff`, `karat runs` and `karat show`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::config::{GateArgs, ResultsArgs};
use super::{OutputFormat, RunFormat};

const DIFF_AFTER_HELP: &str = "\
Runs:
  latest, latest~1 (the run before), a run id, a unique prefix of an id, or the
  path of a result file

Exit codes:
  0    no case regressed
  1    a case regressed
  2    a run does not exist, or a file is invalid
  3    a case of the later run errored, or nothing can be compared

Examples:
  karat diff                       # Compare the last two comparable runs
  karat diff latest~3              # Compare a run with the newest
  karat diff before.json now.json  # Compare two result files";

#[derive(Debug, Args)]
#[command(after_help = DIFF_AFTER_HELP)]
pub(crate) struct DiffArgs {
    /// Earlier run [default: the last one before NOW with the same eval files and agent]
    #[arg(value_name = "BEFORE")]
    pub(crate) before: Option<String>,
    /// Later run [default: latest]
    #[arg(value_name = "NOW")]
    pub(crate) now: Option<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) results: ResultsArgs,
}

const RUNS_AFTER_HELP: &str = "\
Examples:
  karat runs                  # List the newest runs
  karat runs list --limit 0   # List all runs
  karat runs merge shards/    # Merge the results of shards
  karat runs prune --keep 50  # Delete the results of all but 50 runs";

#[derive(Debug, Args)]
#[command(after_help = RUNS_AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) action: Option<RunsAction>,
    #[command(flatten)]
    pub(crate) list: RunsListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsAction {
    /// List runs, newest first
    List(RunsListArgs),
    /// Merge the results of all shards into one run
    Merge(Box<RunsMergeArgs>),
    /// Delete the result files of old runs, but not the store or the configured baseline
    Prune(RunsPruneArgs),
}

const LIST_AFTER_HELP: &str = "\
Examples:
  karat runs list --limit 0      # List all runs
  karat runs list --format json  # Print them as JSON";

#[derive(Debug, Clone, Args)]
#[command(after_help = LIST_AFTER_HELP)]
pub(crate) struct RunsListArgs {
    /// Maximum number to list; 0 for all [default: 20, or all with --format json]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) results: ResultsArgs,
}

const MERGE_AFTER_HELP: &str = "\
Examples:
  karat runs merge shards/                           # Merge a folder
  karat runs merge shards/ --report junit=junit.xml  # Also write JUnit
  karat runs merge latest latest~1                   # Merge two runs";

#[derive(Debug, Args)]
#[command(after_help = MERGE_AFTER_HELP)]
pub(crate) struct RunsMergeArgs {
    /// Result files of 'karat run --shard', folders with them, or names of runs in the output folder
    #[arg(required = true, value_name = "RESULTS")]
    pub(crate) shards: Vec<String>,
    /// Compare with this run (latest, latest~1, an id or a unique prefix), result file or folder of results
    #[arg(long, value_name = "RUN|PATH")]
    baseline: Option<PathBuf>,
    /// Output format: a summary, one JSON document, or one JSON line per event
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: RunFormat,
    /// Also write a report (junit, markdown or github) to a file, or - for stdout (repeatable)
    #[arg(long, value_name = "KIND=PATH")]
    pub(crate) report: Vec<String>,
    #[command(flatten)]
    gates: GateArgs,
    #[command(flatten)]
    results: ResultsArgs,
}

const PRUNE_AFTER_HELP: &str = "\
Examples:
  karat runs prune --keep 50            # Keep the newest 50 runs
  karat runs prune --keep 50 --dry-run  # Show what would be deleted";

#[derive(Debug, Args)]
#[command(after_help = PRUNE_AFTER_HELP)]
pub(crate) struct RunsPruneArgs {
    /// Number of runs to keep
    #[arg(long, value_name = "N")]
    pub(crate) keep: usize,
    /// Show what would be deleted
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) results: ResultsArgs,
}

const SHOW_AFTER_HELP: &str = "\
Runs:
  latest, latest~1 (the run before), a run id, a unique prefix of an id, or the
  path of a result file

Examples:
  karat show                          # Show the newest run
  karat show --failed                 # Show its cases that did not pass
  karat show gs-weather-001           # Show one case of the newest run
  karat show latest~1 gs-weather-001  # Show it in the previous run";

#[derive(Debug, Args)]
#[command(after_help = SHOW_AFTER_HELP)]
pub(crate) struct ShowArgs {
    /// Run to show, or a case of the newest run [default: latest]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Id of the case to show [default: all cases]
    #[arg(value_name = "CASE")]
    pub(crate) case: Option<String>,
    /// Show only cases that did not pass
    #[arg(long)]
    pub(crate) failed: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) results: ResultsArgs,
}
