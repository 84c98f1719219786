//! Arguments of `karat trace receive`.

use clap::{Args, ValueEnum};

use crate::args::StoreArgs;

const AFTER_HELP: &str = "\
Exit codes:
  0    stopped by Ctrl-C; all acknowledged data is stored
  2    a flag is invalid
  3    the port is in use, or the store cannot be opened
  130  stopped by a second Ctrl-C; unacknowledged data is not stored

Examples:
  karat trace receive                        # Listen on 127.0.0.1:4318
  karat trace receive --listen 0.0.0.0:4318  # Accept other machines
  karat trace receive --format jsonl         # Print an event per trace";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TraceReceiveArgs {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4318")]
    pub(crate) listen: String,
    /// Also store annotations in traces as feedback
    #[arg(long)]
    pub(crate) feedback: bool,
    /// Output format: totals at the end, or one JSON line per event
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
