//! Arguments of the verbs for evals in the store.

use clap::Args;

use crate::args::{OutputFormat, StoreArgs};

const ADD_AFTER_HELP: &str = "\
Exit codes:
  0    all functions are in the store
  2    a function is invalid or cannot be read; none was added
  3    the store failed
  4    no functions found

Examples:
  karat eval add                                # Add all functions
  karat eval add tone --note \"allow questions\"  # Add a version with a note";

#[derive(Debug, Args)]
#[command(after_help = ADD_AFTER_HELP)]
pub(crate) struct EvalAddArgs {
    /// Python files, folders, or names of functions [default: all functions in evals/functions]
    #[arg(value_name = "FILE|NAME")]
    pub(crate) functions: Vec<String>,
    /// Reason for the new version
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) note: Option<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

const LIST_AFTER_HELP: &str = "\
Examples:
  karat eval list                # List the evals and their verdicts
  karat eval list --format json  # Print them as JSON";

#[derive(Debug, Args)]
#[command(after_help = LIST_AFTER_HELP)]
pub(crate) struct EvalListArgs {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

const SHOW_AFTER_HELP: &str = "\
Examples:
  karat eval show tone              # Show the newest version
  karat eval show tone --version 1  # Show an older version";

#[derive(Debug, Args)]
#[command(after_help = SHOW_AFTER_HELP)]
pub(crate) struct EvalShowArgs {
    /// Name of the eval, with or without eval_
    pub(crate) name: String,
    /// Version of the eval [default: the newest]
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u64>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

const HISTORY_AFTER_HELP: &str = "\
Examples:
  karat eval history tone                # List the versions, newest first
  karat eval history tone --format json  # Print them as JSON";

#[derive(Debug, Args)]
#[command(after_help = HISTORY_AFTER_HELP)]
pub(crate) struct EvalHistoryArgs {
    /// Name of the eval, with or without eval_
    pub(crate) name: String,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
