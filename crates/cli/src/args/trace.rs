//! What can be said to `karat trace`.

mod receive;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) use self::receive::{ReceiveFormat, TraceReceiveArgs};
use super::{OutputFormat, RunFormat, StoreArgs, TraceFilterArgs};

const IMPORT_EXIT_CODES: &str = "\
Exit codes:
  0    everything was imported, or was there already
  1    something was refused; everything else was imported
  2    a flag or a path is invalid; nothing was imported
  3    a file could not be read, or the store not be written; what is counted was imported
  4    there are no traces
  130  interrupted; what is counted was imported";

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) action: TraceAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceAction {
    /// Take traces of other programs into the store; what is there already stays as it is
    Import(TraceImportArgs),
    /// List the traces of the store, the newest first
    List(TraceListArgs),
    /// Draw a trace's conversation, and what evals and people said of it
    Show(TraceShowArgs),
    /// Take OpenTelemetry's spans and log events over HTTP while agents run; acknowledged means stored
    Receive(TraceReceiveArgs),
}

#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXIT_CODES)]
pub(crate) struct TraceImportArgs {
    /// Files, folders, or - for stdin; of folders, what ends in .json, .jsonl, .ndjson, .pb or .binpb, with or without .gz
    #[arg(required_unless_present = "url", value_name = "FILE|FOLDER|-")]
    pub(crate) paths: Vec<PathBuf>,
    /// What wrote the traces: karat, otlp, jaeger, langfuse, langsmith, openai, anthropic or tau-bench [default: by content]
    #[arg(long, value_name = "KIND")]
    pub(crate) from: Option<String>,
    #[arg(
        help = "Read from this server in place of files, with --from langfuse; its keys are in LANGFUSE_PUBLIC_KEY \
                  and LANGFUSE_SECRET_KEY. The next time it goes on where it ended"
    )]
    #[arg(long, value_name = "URL", requires = "from", conflicts_with = "paths")]
    pub(crate) url: Option<String>,
    /// Of a server: traces that began then or later: 2026-11-16, 2026-11-16T12:00Z, or 12h, 7d, 2w ago
    #[arg(long, value_name = "TIME", requires = "url")]
    pub(crate) since: Option<String>,
    /// Take what the source says people said (annotations, rewards) as feedback
    #[arg(long)]
    pub(crate) feedback: bool,
    /// Read everything and keep nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TraceListArgs {
    #[command(flatten)]
    pub(crate) filter: TraceFilterArgs,
    /// Show at most this many, 0 for all [default: 20; all in JSON]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// What stdout is: a table, one JSON document, or a JSON line for each trace
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: RunFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TraceShowArgs {
    /// The trace's id, or a beginning that no other trace has
    #[arg(value_name = "ID", allow_hyphen_values = true)]
    pub(crate) id: String,
    /// Show long texts to their end
    #[arg(long)]
    pub(crate) full: bool,
    /// Print what the source said, as it is kept, and nothing else
    #[arg(long, conflicts_with_all = ["full", "format"])]
    pub(crate) raw: bool,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
