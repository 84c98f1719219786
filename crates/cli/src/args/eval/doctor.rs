//! Arguments of `karat eval doctor`.

use clap::Args;

use crate::args::OutputFormat;

const AFTER_HELP: &str = "\
Examples:
  karat eval doctor                # Test the sandbox
  karat eval doctor --format json  # Print the results as JSON";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct EvalDoctorArgs {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
}
