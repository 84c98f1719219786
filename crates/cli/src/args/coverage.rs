//! Arguments of `karat coverage`.

use std::path::PathBuf;

use clap::Args;
use karat_tools::coverage::Requirement;

use super::OutputFormat;
use super::choice::{Choice, one_of};
use super::config::{OverlapMapArgs, RegistryArgs, ResultsArgs};

const AFTER_HELP: &str = "\
Examples:
  karat coverage                          # Show what the eval files test
  karat coverage --require                # Exit with 1 if anything is untested
  karat coverage --require=tested,golden  # Require only these
  karat coverage --report html=page.html  # Also write an HTML page";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CoverageArgs {
    /// Eval files, folders or globs [default: evals]
    pub(crate) paths: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    /// Also write an HTML page, to a file or - for stdout (repeatable)
    #[arg(long, value_name = "html=PATH")]
    pub(crate) report: Vec<String>,
    /// Exit with 1 unless these requirements are met, separated by commas: tested, golden, labeled, overlaps, clusters,
    /// fresh, known. Without a value: all
    #[arg(
        long,
        value_name = "NAME,NAME",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        default_missing_value = "all",
        hide_possible_values = true,
        value_parser = one_of(REQUIREMENTS)
    )]
    pub(crate) require: Vec<Option<Requirement>>,
    /// Measure confusion in this run only: latest, latest~1, an id, a unique prefix or a result file
    #[arg(long, value_name = "RUN", conflicts_with = "all_runs")]
    pub(crate) run: Option<String>,
    /// Measure confusion in all stored runs, not only in the newest answer to each case
    #[arg(long)]
    pub(crate) all_runs: bool,
    /// Lock file, for eval files without a description hash [default: evals/tools.lock.json in the project]
    #[arg(long, value_name = "FILE")]
    pub(crate) lock_file: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    overlap_map: OverlapMapArgs,
    #[command(flatten)]
    results: ResultsArgs,
}

/// The values of `--require`; `all` stands for all requirements.
pub(crate) const REQUIREMENTS: &[Choice<Option<Requirement>>] = &[
    ("all", None, None),
    ("tested", None, Some(Requirement::Tested)),
    ("golden", None, Some(Requirement::Golden)),
    ("labeled", None, Some(Requirement::Labeled)),
    ("overlaps", None, Some(Requirement::Overlaps)),
    ("clusters", None, Some(Requirement::Clusters)),
    ("fresh", None, Some(Requirement::Fresh)),
    ("known", None, Some(Requirement::Known)),
];
