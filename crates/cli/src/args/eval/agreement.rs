//! What can be said to `karat eval agreement` and `karat eval compare`.

use clap::Args;

use crate::args::{ConfigArgs, OutputFormat, StoreArgs};

const FIGURES: &str = "\
Compared are verdicts on traces that people together find positive or negative; neutral and unrated
traces and errors are counted apart. The positive class: the eval passes, people find it positive.
Intervals hold 95 %: Wilson's for shares, by its asymptotic standard error for kappa.

Exit codes:
  0    every threshold holds, or there are too few to tell
  1    an alert: a threshold does not hold
  2    there is no such eval or version, or the configuration is invalid
  3    the store did not answer
  4    there is nothing to compare";

#[derive(Debug, Args)]
#[command(after_help = FIGURES)]
pub(crate) struct EvalAgreementArgs {
    /// The eval, with or without eval_
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub(crate) name: Option<String>,
    /// All evals in the store
    #[arg(long, conflicts_with_all = ["name", "version"])]
    pub(crate) all: bool,
    /// Which version [default: the newest]
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u64>,
    /// When an alert is raised, as JSON: accuracy, contradictionRate, errorRate, atLeast
    /// [default: 0.8, 0.15, 0.1 and 20]
    #[arg(long, value_name = "JSON")]
    pub(crate) agreement: Option<String>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

impl EvalAgreementArgs {
    pub(crate) fn config_args(&self) -> ConfigArgs {
        ConfigArgs { agreement: self.agreement.clone(), ..self.store.config_args() }
    }
}

const COMPARING: &str = "\
Only traces that both versions have judged are compared, and a change is for the better or the worse
only where people find the trace positive or negative. McNemar's exact test tells a change from chance.

Exit codes:
  0    the version is better, or one cannot tell
  1    it is worse, and chance does not explain it (p < 0.05)
  2    there is no such eval or version
  3    the store did not answer
  4    no trace was judged by both";

#[derive(Debug, Args)]
#[command(after_help = COMPARING)]
pub(crate) struct EvalCompareArgs {
    /// The eval and two of its versions: NAME 1 2, or NAME@1 NAME@2 [default: the newest two; with one, it and the
    /// newest]
    #[arg(value_name = "NAME|VERSION", required = true, num_args = 1..=3)]
    pub(crate) versions: Vec<String>,
    /// Show at most so many verdicts of each kind of change, 0 for all; programs get all
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) limit: usize,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
