//! Arguments of `karat run`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use karat_core::shard::Shard;

use super::ConfigArgs;

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
    pub(crate) paths: Vec<PathBuf>,
    /// Output format: a summary, one JSON document, or one JSON line per event
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: RunFormat,
    /// Also write a report (junit, markdown or github) to a file, or - for stdout (repeatable)
    #[arg(long, value_name = "KIND=PATH")]
    pub(crate) report: Vec<String>,
    /// List the selected cases without running them
    #[arg(long, conflicts_with = "report")]
    pub(crate) list: bool,
    /// Rerun what a change of an eval file, the tool registry or an eval function touches
    #[arg(long, conflicts_with = "list")]
    pub(crate) watch: bool,
    /// Do not save the run and its traces to the store
    #[arg(long)]
    pub(crate) no_store: bool,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

/// Which cases to run; a case must match every kind of flag.
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
    /// Leave out cases with this tag (repeatable)
    #[arg(long, value_name = "TAG")]
    pub(crate) skip_tag: Vec<String>,
    /// Run one part of the cases, such as 2/4; 'karat runs merge' merges the results of all parts
    #[arg(long, value_name = "NUMBER/COUNT")]
    pub(crate) shard: Option<Shard>,
    /// Run cases whose id, description or message matches this regular expression
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) grep: Option<String>,
    /// Run only cases that did not pass in the baseline or, without one, in the newest result
    #[arg(long)]
    pub(crate) only_failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    Human,
    Json,
    Jsonl,
}
