//! What can be said to `karat eval doctor`.

use clap::Args;

use crate::args::OutputFormat;

#[derive(Debug, Args)]
pub(crate) struct EvalDoctorArgs {
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
}
