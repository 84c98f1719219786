//! Arguments of `karat eval new` and `karat eval test`, and the limits of eval functions.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::{ConfigArgs, OutputFormat};

const NEW_AFTER_HELP: &str = "\
Examples:
  karat eval new tone   # Write eval_tone with test cases
  karat eval test tone  # Run the test cases";

#[derive(Debug, Args)]
#[command(after_help = NEW_AFTER_HELP)]
pub(crate) struct EvalNewArgs {
    /// Name in lower case with underscores; eval_ is added if missing
    pub(crate) name: String,
    /// Path to the config file [default: the nearest karat.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

const TEST_AFTER_HELP: &str = "\
Exit codes:
  0    all cases passed
  1    a verdict differs from the expected one
  2    a function or a case is invalid; nothing was run
  3    a function errored, or Python cannot be prepared
  4    no cases or functions found

Examples:
  karat eval test       # Test all functions in evals/functions
  karat eval test tone  # Test one function";

#[derive(Debug, Args)]
#[command(after_help = TEST_AFTER_HELP)]
pub(crate) struct EvalTestArgs {
    /// Python files, folders, or names of functions [default: all functions in evals/functions]
    #[arg(value_name = "FILE|NAME")]
    pub(crate) functions: Vec<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// Limits of functions, and how they are run.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// Time limit per trace in milliseconds [default and maximum: 5000]
    #[arg(long, value_name = "N")]
    pub(crate) limit_ms: Option<u64>,
    /// Memory limit in megabytes [default and maximum: 50]
    #[arg(long, value_name = "N")]
    pub(crate) limit_mb: Option<u64>,
    /// Isolation between traces: a new namespace, or a new Python (strict)
    #[arg(long, value_name = "LEVEL", default_value = "namespace")]
    pub(crate) isolation: IsolationName,
    /// Number of traces to judge in parallel [default: number of processors]
    #[arg(long, short = 'j', value_name = "N")]
    pub(crate) jobs: Option<u64>,
    /// Limits as JSON, as in karat.json: {"timeMs": …, "memoryMb": …}
    #[arg(long, value_name = "JSON")]
    pub(crate) eval_limits: Option<String>,
    /// Path to the config file [default: the nearest karat.json]
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
