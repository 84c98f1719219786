//! What can be said to `karat feedback`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::author::IN_ROWS;
use super::{AuthorArgs, OutputFormat, RatingName, StoreArgs};

const IMPORT_EXIT_CODES: &str = "\
Exit codes:
  0    imported, or all of it was there already
  1    imported but for rows that are invalid (--skip-invalid)
  2    a row, a flag or the file is invalid; nothing was written
  3    the store did not do what it was asked
  4    the file has no rows";

#[derive(Debug, Args)]
pub(crate) struct FeedbackArgs {
    #[command(subcommand)]
    pub(crate) action: FeedbackAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FeedbackAction {
    /// Say what you think of a trace
    Add(FeedbackAddArgs),
    /// Take back what you said of a trace; that you said it stays in the history
    Retract(FeedbackRetractArgs),
    /// Import what people said of traces, from a table or from JSON lines
    Import(FeedbackImportArgs),
    /// List what people said, the newest first
    List(FeedbackListArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FeedbackAddArgs {
    /// The trace's id, or its beginning
    pub(crate) trace: String,
    /// How you find what the agent did
    pub(crate) rating: RatingName,
    /// Why
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
pub(crate) struct FeedbackRetractArgs {
    /// The trace's id, or its beginning
    pub(crate) trace: String,
    /// Why
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXIT_CODES, mut_arg("author", |author| author.help(IN_ROWS)))]
pub(crate) struct FeedbackImportArgs {
    /// A table with the columns `trace_id`, `rating`, and as you like `note`, `author`, `created_at`; or JSON lines with these
    /// keys; - for stdin
    #[arg(value_name = "FILE|-")]
    pub(crate) file: PathBuf,
    /// How the file is written [default: by its first character]
    #[arg(long, value_name = "KIND")]
    pub(crate) from: Option<FeedbackKind>,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    /// Pass over columns and keys that are not known
    #[arg(long)]
    pub(crate) ignore_unknown: bool,
    /// Leave out rows that are invalid, and import the others
    #[arg(long)]
    pub(crate) skip_invalid: bool,
    /// Check everything and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FeedbackKind {
    /// A table with a header, with commas, semicolons or tabs
    Csv,
    /// A JSON object on each line
    Jsonl,
}

#[derive(Debug, Args)]
pub(crate) struct FeedbackListArgs {
    /// Only of this trace: its id, or the beginning of it
    #[arg(long, value_name = "ID")]
    pub(crate) trace: Option<String>,
    /// Only what this person said
    #[arg(long, value_name = "NAME")]
    pub(crate) author: Option<String>,
    /// What people said before they changed their minds too
    #[arg(long)]
    pub(crate) history: bool,
    /// At most this many [default: 50 for people, all for programs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// What stdout is; csv and jsonl can be imported again
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: FeedbackListFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FeedbackListFormat {
    Human,
    Json,
    Jsonl,
    Csv,
}
