//! Arguments of `karat regress`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputFormat;
use super::config::{ConfigFileArgs, OutputDirArgs, RegistryArgs, StoreArgs};

const AFTER_HELP: &str = "\
Examples:
  karat regress add --from-run latest --case ID --bug-ref 12  # Add a case
  karat regress archive ID --reason \"tool removed\"            # Archive a case
  karat regress seal                                          # Add hashes";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct RegressArgs {
    #[command(subcommand)]
    pub(crate) action: RegressAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RegressAction {
    /// Add a regression case from flags, a failed case or a trace
    Add(Box<RegressAddArgs>),
    /// Move a case from its eval file to the archive
    Archive(RegressArchiveArgs),
    /// Add missing hashes to regression cases; existing hashes never change
    Seal(RegressSealArgs),
}

const ADD_AFTER_HELP: &str = "\
Examples:
  karat regress add --from-run latest --case ID --bug-ref 12  # A failed case
  karat regress add --from-trace TRACE --no-tool-errors       # A trace";

#[derive(Debug, Args)]
#[command(after_help = ADD_AFTER_HELP)]
pub(crate) struct RegressAddArgs {
    /// Tool under test [default: the tool of the failed case, or the only tool called in the trace]
    #[arg(required_unless_present_any = ["from_run", "from_trace"])]
    pub(crate) tool: Option<String>,
    /// Issue or commit of the fix [default with --from-trace: the trace id]
    #[arg(long, value_name = "TEXT", required_unless_present = "from_trace")]
    pub(crate) bug_ref: Option<String>,
    /// Message to the agent [default: from the failed case or the trace]
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["from_run", "from_trace"], allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    /// Description of the bug [default: from the failed case or the trace, or else the value of --bug-ref]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// Copy message, stubs and expectation from a failed case of this run: latest, latest~1, an id, a unique prefix or a
    /// result file
    #[arg(long, value_name = "RUN", requires = "case")]
    pub(crate) from_run: Option<String>,
    /// Id of the failed case
    #[arg(long, value_name = "ID", requires = "from_run")]
    pub(crate) case: Option<String>,
    /// Accept a case that passed
    #[arg(long, requires = "from_run")]
    pub(crate) even_if_passed: bool,
    /// Copy the message from this stored trace, by its id or a unique prefix
    #[arg(long, value_name = "TRACE", conflicts_with = "from_run")]
    pub(crate) from_trace: Option<String>,
    /// End with the turn of this step of the trace, as numbered by 'karat trace show'; several messages make a
    /// conversation [default: the last turn]
    #[arg(long, value_name = "N", requires = "from_trace")]
    pub(crate) step: Option<usize>,
    /// Results of stubbed tools, as JSON: {"TOOL": …}
    #[arg(long, value_name = "JSON")]
    pub(crate) stubs: Option<String>,
    /// Regression file [default: the tool's file, or a new evals/TOOL.regression.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Print the case without writing it
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    output: OutputDirArgs,
    #[command(flatten)]
    store: StoreArgs,
}

/// Assertions on the answer; with --from-run, a flag replaces the same key of the failed case.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Expectation (with --from-run, replaces the same keys of the failed case)")]
pub(crate) struct ExpectArgs {
    /// Tools that must be called, in order, separated by commas; empty for none
    #[arg(long, value_name = "TOOL,TOOL", conflicts_with = "tools_acceptable")]
    pub(crate) tools_called: Option<String>,
    /// Acceptable set of tools, separated by commas; __none__ for none (repeatable)
    #[arg(long, value_name = "TOOL,TOOL")]
    pub(crate) tools_acceptable: Vec<String>,
    /// Tools that must not be called, separated by commas
    #[arg(long, value_name = "TOOL,TOOL")]
    pub(crate) tools_not_called: Option<String>,
    /// Text that the response must contain (repeatable)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) response_contains: Vec<String>,
    /// Text that the response must not contain (repeatable)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) response_not_contains: Vec<String>,
    /// Regular expression that the response must match (repeatable)
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) response_matches: Vec<String>,
    /// The response must not be empty
    #[arg(long)]
    pub(crate) response_non_empty: bool,
    /// No tool call may fail
    #[arg(long)]
    pub(crate) no_tool_errors: bool,
    /// Other keys of 'expect', as JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) expect: Option<String>,
}

const ARCHIVE_AFTER_HELP: &str = "\
Examples:
  karat regress archive ID --reason \"tool removed\"            # Archive a case
  karat regress archive ID --file evals/mail.regression.json  # Pass its file";

#[derive(Debug, Args)]
#[command(after_help = ARCHIVE_AFTER_HELP)]
pub(crate) struct RegressArchiveArgs {
    /// Id of the case
    pub(crate) id: String,
    /// Reason for archiving the case
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) reason: Option<String>,
    /// Eval file of the case, if several contain it
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) config: ConfigFileArgs,
}

const SEAL_AFTER_HELP: &str = "\
Examples:
  karat regress seal                             # Seal all files in evals/
  karat regress seal evals/mail.regression.json  # Seal one file";

#[derive(Debug, Args)]
#[command(after_help = SEAL_AFTER_HELP)]
pub(crate) struct RegressSealArgs {
    /// Eval files, folders or globs [default: evals]
    pub(crate) paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) config: ConfigFileArgs,
}
