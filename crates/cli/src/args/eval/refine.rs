//! Arguments of `karat eval refine`.

use std::path::PathBuf;

use clap::Args;
use karat_workflows::refine::DEFAULT_HOLD_OUT;
use karat_workflows::trace_filter::TraceOrigin;

use crate::args::choice::one_of;
use crate::args::config::{EvalFunctionsArgs, EvalLimitsArgs, ProviderArgs};
use crate::args::trace_filter::ORIGINS;
use crate::args::{AuthorArgs, OutputFormat, StoreArgs};

const AFTER_HELP: &str = "\
The model sees the code and the training part of the rated traces, not the held-out part. \
Candidates run in the sandbox on both parts. Only a candidate that you approve becomes a version.

Exit codes:
  0    candidates were shown, and one was adopted if you approved it
  2    the eval does not exist, or no model is configured
  3    the model, the sandbox or the store failed, or no candidate can be run
  4    too few traces are rated

Examples:
  karat eval refine tone                   # Ask the configured model
  karat eval refine tone --dry-run         # Print the prompt without sending it
  karat eval refine tone --out candidates  # Write the candidates to a folder";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP, mut_arg("author", |author| author.alias("approved-by")))]
pub(crate) struct EvalRefineArgs {
    /// Name of the eval, with or without eval_
    pub(crate) name: String,
    /// Number of candidates per round
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) candidates: usize,
    /// Model to use; overrides 'refine' and 'forge' in karat.json
    #[arg(long, value_name = "PROVIDER:MODEL")]
    pub(crate) model: Option<String>,
    /// Share of rated traces to hold out from the model
    #[arg(long, value_name = "SHARE", default_value_t = DEFAULT_HOLD_OUT)]
    pub(crate) hold_out: f64,
    /// Rated traces to use: production (all but test runs), runs or all
    #[arg(long, value_name = "SOURCE", default_value = "production", hide_possible_values = true)]
    #[arg(value_parser = one_of(ORIGINS))]
    pub(crate) source: TraceOrigin,
    /// Number of rounds; later rounds build on earlier candidates
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) rounds: usize,
    /// Print the request without calling the model
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the candidates to this folder [default without a terminal: .karat/refine/NAME]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    /// The configuration key; --model is the flag
    #[arg(long, value_name = "PROVIDER:MODEL|JSON", hide = true)]
    refine: Option<String>,
    /// The configuration key; --model is the flag
    #[arg(long, value_name = "PROVIDER:MODEL|JSON", hide = true)]
    forge: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    eval_functions: EvalFunctionsArgs,
    #[command(flatten)]
    eval_limits: EvalLimitsArgs,
    #[command(flatten)]
    providers: ProviderArgs,
}
