//! What can be said to `karat eval check`.

use std::path::PathBuf;

use clap::Args;

use crate::args::OutputFormat;

const EXIT_CODES: &str = "\
Exit codes:
  0    every function is in order
  2    a function is not, or cannot be read
  4    there are no functions";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct EvalCheckArgs {
    /// Python files, folders of them, or names of functions [default: all functions in evals/functions]
    #[arg(value_name = "FILE|NAME")]
    pub(crate) functions: Vec<String>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    /// Read this configuration instead of the nearest karat.json
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
