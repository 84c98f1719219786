//! Arguments of `karat eval check`.

use clap::Args;

use crate::args::{ConfigFileArgs, OutputFormat};

const AFTER_HELP: &str = "\
Exit codes:
  0    all functions are valid
  2    a function is invalid or cannot be read
  4    no functions found

Examples:
  karat eval check                 # Check all functions in evals/functions
  karat eval check checks/tone.py  # Check one file";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct EvalCheckArgs {
    /// Python files, folders, or names of functions [default: all functions in evals/functions]
    #[arg(value_name = "FILE|NAME")]
    pub(crate) functions: Vec<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) config: ConfigFileArgs,
}
