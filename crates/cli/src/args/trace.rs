//! Arguments of `karat trace`.

mod receive;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub(crate) use self::receive::{ReceiveFormat, TraceReceiveArgs};
use super::{OutputFormat, RunFormat, StoreArgs, TraceFilterArgs};

const AFTER_HELP: &str = "\
Examples:
  karat trace import traces.jsonl  # Import traces from a file
  karat trace receive              # Receive OpenTelemetry data over HTTP
  karat trace list --since 7d      # List the traces of the last week
  karat trace show ID              # Show one trace";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) action: TraceAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceAction {
    /// Import traces from files or a server into the store
    Import(TraceImportArgs),
    /// List stored traces, newest first
    List(TraceListArgs),
    /// Show a trace with its verdicts and ratings
    Show(TraceShowArgs),
    /// Receive OpenTelemetry spans and log events over HTTP
    Receive(TraceReceiveArgs),
}

const IMPORT_AFTER_HELP: &str = "\
Exit codes:
  0    all traces were imported, or already in the store
  1    some traces were refused; the others were imported
  2    a flag or a path is invalid; nothing was imported
  3    a file cannot be read or the store failed; some traces may be imported
  4    no traces found
  130  interrupted; the counted traces were imported

Examples:
  karat trace import traces.jsonl               # Import a file
  karat trace import exports/ --feedback        # Import a folder with ratings
  zcat spans.json.gz | karat trace import -     # Import from stdin
  karat trace import --from langfuse --url URL  # Import from a Langfuse server";

#[derive(Debug, Args)]
#[command(after_help = IMPORT_AFTER_HELP)]
pub(crate) struct TraceImportArgs {
    /// Files, folders, or - for stdin; folders are searched for .json, .jsonl, .ndjson, .pb, .binpb, .eval and .traj,
    /// also with .gz
    #[arg(required_unless_present = "url", value_name = "FILE|FOLDER|-")]
    pub(crate) paths: Vec<PathBuf>,
    /// Trace format: karat, otlp, jaeger, langfuse, langsmith, openai, anthropic, tau-bench, tau2-bench, inspect,
    /// mlflow, openai-agents, claude-code, codex, adk, swe-agent or deepeval [default: detected]
    #[arg(long, value_name = "KIND")]
    pub(crate) from: Option<String>,
    #[arg(help = "Import from this Langfuse server (with --from langfuse), authenticated by LANGFUSE_PUBLIC_KEY and \
                LANGFUSE_SECRET_KEY; the next import continues where this one ended")]
    #[arg(long, value_name = "URL", requires = "from", conflicts_with = "paths")]
    pub(crate) url: Option<String>,
    /// With --url: only traces since this time: 2026-11-16, 2026-11-16T12:00Z, or 12h, 7d, 2w ago
    #[arg(long, value_name = "TIME", requires = "url")]
    pub(crate) since: Option<String>,
    /// Also import ratings (annotations, rewards) as feedback
    #[arg(long)]
    pub(crate) feedback: bool,
    /// Read the traces without writing to the store
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

const LIST_AFTER_HELP: &str = "\
Examples:
  karat trace list                              # List the newest traces
  karat trace list --tool get_weather --errors  # Failed traces of a tool
  karat trace list --since 7d --format jsonl    # Export as JSON Lines";

#[derive(Debug, Args)]
#[command(after_help = LIST_AFTER_HELP)]
pub(crate) struct TraceListArgs {
    /// Maximum number to list; 0 for all [default: 20, or all with another --format]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Output format: a table, one JSON document, or one JSON line per trace
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: RunFormat,
    #[command(flatten)]
    pub(crate) filter: TraceFilterArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

const SHOW_AFTER_HELP: &str = "\
Examples:
  karat trace show ID         # Show a trace
  karat trace show ID --full  # Show it in full
  karat trace show ID --raw   # Print the data as received";

#[derive(Debug, Args)]
#[command(after_help = SHOW_AFTER_HELP)]
pub(crate) struct TraceShowArgs {
    /// Id of the trace, or a unique prefix
    #[arg(value_name = "ID", allow_hyphen_values = true)]
    pub(crate) id: String,
    /// Show long messages and results in full
    #[arg(long)]
    pub(crate) full: bool,
    /// Print the original data from the source
    #[arg(long, conflicts_with_all = ["full", "format"])]
    pub(crate) raw: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
