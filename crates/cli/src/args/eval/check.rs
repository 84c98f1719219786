//! What can be said to `karat eval check`.

use std::path::PathBuf;

use clap::Args;

use crate::args::OutputFormat;

#[derive(Debug, Args)]
pub(crate) struct EvalCheckArgs {
    /// Python files, or folders whose *.py files are meant
    #[arg(required = true, value_name = "FILE")]
    pub(crate) paths: Vec<PathBuf>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
}
