//! Arguments of `karat runs`.

use clap::{Args, Subcommand};

use super::{ConfigArgs, RunFormat};

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) action: RunsAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsAction {
    /// Merge the results of all shards to one run
    Merge(Box<RunsMergeArgs>),
}

const MERGE_AFTER_HELP: &str = "\
Examples:
  karat runs merge shards/                              # Merge all results of shards in a folder
  karat runs merge shards/ --report junit=junit.xml     # Also write JUnit XML of the whole run
  karat runs merge RUN_ID RUN_ID                        # Merge two runs in the output folder";

#[derive(Debug, Args)]
#[command(after_help = MERGE_AFTER_HELP)]
pub(crate) struct RunsMergeArgs {
    /// Result files of 'karat run --shard', folders with them, or run ids in the output folder
    #[arg(required = true, value_name = "RESULTS")]
    pub(crate) shards: Vec<String>,
    /// Output format: a summary, one JSON document, or one JSON line per event
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: RunFormat,
    /// Also write a report (junit, markdown or github) to a file, or - for stdout (repeatable)
    #[arg(long, value_name = "KIND=PATH")]
    pub(crate) report: Vec<String>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}
