//! Arguments of `karat feedback`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use karat_evals::feedback::FeedbackFormat;

use super::author::ROW_AUTHOR_HELP;
use super::choice::{Choice, one_of};
use super::{AuthorArgs, OutputFormat, RatingName, StoreArgs};

const AFTER_HELP: &str = "\
Examples:
  karat feedback add TRACE good      # Rate a trace
  karat feedback import ratings.csv  # Import ratings from a table
  karat feedback list                # List the newest ratings";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct FeedbackArgs {
    #[command(subcommand)]
    pub(crate) action: FeedbackAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FeedbackAction {
    /// Rate a trace
    Add(FeedbackAddArgs),
    /// Retract your rating of a trace; it stays in the history
    Retract(FeedbackRetractArgs),
    /// Import ratings from a CSV or JSON Lines file
    Import(FeedbackImportArgs),
    /// List ratings, newest first
    List(FeedbackListArgs),
}

const ADD_AFTER_HELP: &str = "\
Examples:
  karat feedback add TRACE good                     # Rate a trace
  karat feedback add TRACE bad --note \"wrong city\"  # Rate it with a reason";

#[derive(Debug, Args)]
#[command(after_help = ADD_AFTER_HELP)]
pub(crate) struct FeedbackAddArgs {
    /// Id of the trace, or a unique prefix
    pub(crate) trace: String,
    /// Your rating of the trace
    pub(crate) rating: RatingName,
    /// Reason for the rating
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

const RETRACT_AFTER_HELP: &str = "\
Examples:
  karat feedback retract TRACE               # Retract your rating
  karat feedback retract TRACE --author Ada  # Retract the rating of Ada";

#[derive(Debug, Args)]
#[command(after_help = RETRACT_AFTER_HELP)]
pub(crate) struct FeedbackRetractArgs {
    /// Id of the trace, or a unique prefix
    pub(crate) trace: String,
    /// Reason for the retraction
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

const IMPORT_AFTER_HELP: &str = "\
Exit codes:
  0    all rows were imported, or already in the store
  1    invalid rows were left out (--skip-invalid)
  2    a row, a flag or the file is invalid; nothing was written
  3    the store failed
  4    the file has no rows

Examples:
  karat feedback import ratings.csv            # Import a table
  karat feedback import ratings.csv --dry-run  # Check it without writing
  karat feedback import - < ratings.jsonl      # Import JSON Lines from stdin";

#[derive(Debug, Args)]
#[command(after_help = IMPORT_AFTER_HELP, mut_arg("author", |author| author.help(ROW_AUTHOR_HELP)))]
pub(crate) struct FeedbackImportArgs {
    #[arg(help = "CSV or JSON Lines file with trace_id, rating and optionally note, author, created_at; - for stdin")]
    #[arg(value_name = "FILE|-")]
    pub(crate) file: PathBuf,
    /// Format of the file [default: detected]
    #[arg(long, value_name = "KIND", value_parser = one_of(FORMATS))]
    pub(crate) from: Option<FeedbackFormat>,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    /// Ignore unknown columns and keys
    #[arg(long)]
    pub(crate) ignore_unknown: bool,
    /// Import the valid rows and leave out the others
    #[arg(long)]
    pub(crate) skip_invalid: bool,
    /// Check the file without writing to the store
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

const FORMATS: &[Choice<FeedbackFormat>] = &[
    ("csv", Some("A table with a header, separated by commas, semicolons or tabs"), FeedbackFormat::Csv),
    ("jsonl", Some("A JSON object on each line"), FeedbackFormat::JsonLines),
];

const LIST_AFTER_HELP: &str = "\
Examples:
  karat feedback list                             # List the newest ratings
  karat feedback list --trace TRACE --history     # Show all ratings of a trace
  karat feedback list --format csv > ratings.csv  # Export the ratings";

#[derive(Debug, Args)]
#[command(after_help = LIST_AFTER_HELP)]
pub(crate) struct FeedbackListArgs {
    /// Only ratings of this trace (id or unique prefix)
    #[arg(long, value_name = "ID")]
    pub(crate) trace: Option<String>,
    /// Only ratings of this author
    #[arg(long, value_name = "NAME")]
    pub(crate) author: Option<String>,
    /// Also list replaced and retracted ratings
    #[arg(long)]
    pub(crate) history: bool,
    /// Maximum number to list; 0 for all [default: 50, or all with another --format]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Output format; csv and jsonl can be imported again
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
