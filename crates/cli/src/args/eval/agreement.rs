//! Arguments of `karat eval agreement` and `karat eval compare`.

use clap::Args;
use karat_workflows::trace_filter::TraceOrigin;

use crate::args::choice::one_of;
use crate::args::config::HEADING;
use crate::args::trace_filter::ORIGINS;
use crate::args::{OutputFormat, StoreArgs};

const AGREEMENT_AFTER_HELP: &str = "\
Exit codes:
  0    all thresholds are met, or there is too little data
  1    a threshold is not met
  2    the eval or version does not exist, or the configuration is invalid
  3    the store failed
  4    nothing to compare

Examples:
  karat eval agreement tone              # Measure the newest version
  karat eval agreement tone --version 1  # Measure an older version
  karat eval agreement --all             # Measure all evals";

#[derive(Debug, Args)]
#[command(after_help = AGREEMENT_AFTER_HELP)]
pub(crate) struct EvalAgreementArgs {
    /// Name of the eval, with or without eval_; or pass --all
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Measure all evals in the store
    #[arg(long, conflicts_with_all = ["name", "version"])]
    pub(crate) all: bool,
    /// Version of the eval [default: the newest]
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u64>,
    /// Traces to compare: production (all but test runs), runs or all
    #[arg(long, value_name = "SOURCE", default_value = "production", hide_possible_values = true)]
    #[arg(value_parser = one_of(ORIGINS))]
    pub(crate) source: TraceOrigin,
    /// Alert thresholds, as JSON: accuracy, errorRate, atLeast, contradictionRate
    /// [default: 0.8, 0.1, 20 and none]
    #[arg(long, value_name = "JSON", help_heading = HEADING)]
    pub(crate) agreement: Option<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

const COMPARE_AFTER_HELP: &str = "\
Exit codes:
  0    the version is better, or the difference is not significant
  1    the version is significantly worse (p < 0.05)
  2    the eval or version does not exist
  3    the store failed
  4    no trace was judged by both versions

Examples:
  karat eval compare tone           # Compare the newest two versions
  karat eval compare tone 1 3       # Compare versions 1 and 3
  karat eval compare tone@1 tone@3  # The same";

#[derive(Debug, Args)]
#[command(after_help = COMPARE_AFTER_HELP)]
pub(crate) struct EvalCompareArgs {
    /// Eval and versions: NAME 1 2, or NAME@1 NAME@2 [default: the newest two; with one version, it and the newest]
    #[arg(value_name = "NAME|VERSION", required = true, num_args = 1..=3)]
    pub(crate) versions: Vec<String>,
    /// Maximum number of verdicts to show per kind of change; 0 for all
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
