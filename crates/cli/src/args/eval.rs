//! What can be said to `karat eval`.

mod doctor;

use clap::{Args, Subcommand};

pub(crate) use self::doctor::EvalDoctorArgs;

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    pub(crate) action: EvalAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalAction {
    /// Show the Python that runs eval functions, and try whether the sandbox holds
    Doctor(EvalDoctorArgs),
}
