//! Arguments of `karat contradictions`.

use clap::{Args, Subcommand};
use karat_evals::contradiction::ResolutionKind;
use karat_workflows::trace_filter::TraceOrigin;

use super::choice::{Choice, one_of};
use super::trace_filter::ORIGINS;
use super::{AuthorArgs, OutputFormat, StoreArgs};

const AFTER_HELP: &str = "\
Examples:
  karat contradictions             # List the open contradictions of all evals
  karat contradictions tone --all  # Also list resolved ones, for one eval
  karat contradictions --limit 0   # List all open contradictions";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub(crate) struct ContradictionsArgs {
    #[command(subcommand)]
    pub(crate) action: Option<ContradictionsAction>,
    #[command(flatten)]
    pub(crate) list: ContradictionsListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContradictionsAction {
    /// Resolve a contradiction: decide whether the eval or the rating is wrong
    Resolve(ContradictionsResolveArgs),
}

#[derive(Debug, Default, Args)]
pub(crate) struct ContradictionsListArgs {
    /// Name of the eval, with or without eval_ [default: all evals]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Also list resolved contradictions
    #[arg(long)]
    pub(crate) all: bool,
    /// Traces to list contradictions of: production (all but test runs), runs or all
    #[arg(long, value_name = "SOURCE", default_value = "production", hide_possible_values = true)]
    #[arg(value_parser = one_of(ORIGINS))]
    pub(crate) source: TraceOrigin,
    /// Maximum number to list; 0 for all [default: 20, or all with --format json]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

const RESOLVE_AFTER_HELP: &str = "\
Exit codes:
  0    the resolution was stored
  2    the eval or the trace does not exist
  3    the store failed
  4    the eval and the ratings agree on the trace

Examples:
  karat contradictions resolve tone TRACE eval-wrong   # The eval is wrong
  karat contradictions resolve tone TRACE label-wrong  # The rating is wrong
  karat contradictions resolve tone TRACE dismissed    # Neither is wrong";

#[derive(Debug, Args)]
#[command(after_help = RESOLVE_AFTER_HELP)]
pub(crate) struct ContradictionsResolveArgs {
    /// Name of the eval, with or without eval_
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Id of the trace, or a unique prefix
    #[arg(value_name = "TRACE")]
    pub(crate) trace: String,
    /// Which side is wrong
    #[arg(value_name = "RESOLUTION", value_parser = one_of(RESOLUTIONS))]
    pub(crate) kind: ResolutionKind,
    /// Reason for the resolution
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

const RESOLUTIONS: &[Choice<ResolutionKind>] = &[
    ("eval-wrong", Some("The verdict of the eval is wrong"), ResolutionKind::EvalWrong),
    ("label-wrong", Some("The rating is wrong"), ResolutionKind::LabelWrong),
    ("dismissed", Some("Neither is wrong"), ResolutionKind::Dismissed),
];
