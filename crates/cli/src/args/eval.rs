//! What can be said to `karat eval`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputFormat;

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    pub(crate) action: EvalAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalAction {
    /// Find what an eval function may not do or has wrong, without running it
    Check(EvalCheckArgs),
}

#[derive(Debug, Args)]
pub(crate) struct EvalCheckArgs {
    /// Python files, or folders whose *.py files are meant
    #[arg(required = true, value_name = "FILE")]
    pub(crate) paths: Vec<PathBuf>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
}
