//! What can be said to the verbs about evals in the store.

use clap::Args;

use crate::args::{OutputFormat, StoreArgs};

const ADD_EXIT_CODES: &str = "\
Exit codes:
  0    every function is in the store now, or was there already
  2    a function is invalid or cannot be read; none was added
  3    the store did not take it
  4    there are no functions";

#[derive(Debug, Args)]
#[command(after_help = ADD_EXIT_CODES)]
pub(crate) struct EvalAddArgs {
    /// Python files, folders of them, or names of functions [default: all functions in evals/functions]
    #[arg(value_name = "FILE|NAME")]
    pub(crate) functions: Vec<String>,
    /// Why there is a new version
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) note: Option<String>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EvalListArgs {
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EvalShowArgs {
    /// The eval, with or without eval_
    pub(crate) name: String,
    /// Which version [default: the newest]
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u64>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EvalHistoryArgs {
    /// The eval, with or without eval_
    pub(crate) name: String,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
