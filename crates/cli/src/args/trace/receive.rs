//! What can be said to `karat trace receive`.

use clap::{Args, ValueEnum};

use crate::args::StoreArgs;

const RECEIVE_EXIT_CODES: &str = "\
Exit codes:
  0    it was asked to stop (Ctrl-C); everything that was acknowledged is stored
  2    a flag is invalid
  3    the port is taken, or the store cannot be opened
  130  asked twice to stop; what was not acknowledged is not stored";

#[derive(Debug, Args)]
#[command(after_help = RECEIVE_EXIT_CODES)]
pub(crate) struct TraceReceiveArgs {
    /// Where to listen; port 0 for any that is free
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4318")]
    pub(crate) listen: String,
    /// Take what traces say people said (annotations) as feedback
    #[arg(long)]
    pub(crate) feedback: bool,
    /// What stdout is: the numbers at the end, or a JSON line for everything that happens
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: ReceiveFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReceiveFormat {
    Human,
    Jsonl,
}
