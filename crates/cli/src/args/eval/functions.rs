//! The arguments of what writes and tests eval functions, and how they are run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::{ConfigArgs, OutputFormat};

const TEST_EXIT_CODES: &str = "\
Exit codes:
  0    every case holds
  1    a function says something else than its case expects
  2    a function or a case is invalid; nothing was run
  3    a function errored where a verdict was expected, or Python cannot be prepared
  4    there are no cases, or no functions";

#[derive(Debug, Args)]
pub(crate) struct EvalNewArgs {
    /// What it is about, in words of small letters with _ between; eval_ goes before it if it is not there
    pub(crate) name: String,
    /// Read this configuration instead of the nearest karat.json
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = TEST_EXIT_CODES)]
pub(crate) struct EvalTestArgs {
    /// Python files, folders of them, or names of functions [default: all functions in evals/functions]
    #[arg(value_name = "FILE|NAME")]
    pub(crate) functions: Vec<String>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// What functions may use, and how they are run.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// How long a function may take for a trace, in milliseconds [default: 5000, which is the most]
    #[arg(long, value_name = "N")]
    pub(crate) limit_ms: Option<u64>,
    /// How much it may allocate, in megabytes [default: 50, which is the most]
    #[arg(long, value_name = "N")]
    pub(crate) limit_mb: Option<u64>,
    /// How far traces are kept apart: each its own namespace, or strictly each its own Python
    #[arg(long, value_name = "HOW", default_value = "namespace")]
    pub(crate) isolation: IsolationName,
    /// How many traces are judged at once [default: as many as there are processors]
    #[arg(long, short = 'j', value_name = "N")]
    pub(crate) jobs: Option<u64>,
    /// The limits as JSON, as in karat.json: {"timeMs": …, "memoryMb": …}
    #[arg(long, value_name = "JSON")]
    pub(crate) eval_limits: Option<String>,
    /// Read this configuration instead of the nearest karat.json
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

impl LimitArgs {
    pub(crate) fn config_args(&self) -> ConfigArgs {
        ConfigArgs { config: self.config.clone(), eval_limits: self.eval_limits.clone(), ..ConfigArgs::default() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    Table,
    Jsonl,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IsolationName {
    Namespace,
    Strict,
}
