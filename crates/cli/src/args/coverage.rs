//! Arguments of `karat coverage`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use karat_tools::coverage::Requirement;
use karat_workflows::settings::Flags;

use super::OutputFormat;
use super::config::{ConfigFlags, OverlapMapArgs, RegistryArgs, ResultsArgs};

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
        hide_possible_values = true
    )]
    pub(crate) require: Vec<RequirementName>,
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

impl ConfigFlags for CoverageArgs {
    fn add_to(&self, flags: &mut Flags) {
        self.registry.add_to(flags);
        self.overlap_map.add_to(flags);
        self.results.add_to(flags);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RequirementName {
    All,
    Tested,
    Golden,
    Labeled,
    Overlaps,
    Clusters,
    Fresh,
    Known,
}

impl RequirementName {
    /// Returns the requirement, or `None` for all of them.
    pub(crate) fn requirement(self) -> Option<Requirement> {
        match self {
            RequirementName::All => None,
            RequirementName::Tested => Some(Requirement::Tested),
            RequirementName::Golden => Some(Requirement::Golden),
            RequirementName::Labeled => Some(Requirement::Labeled),
            RequirementName::Overlaps => Some(Requirement::Overlaps),
            RequirementName::Clusters => Some(Requirement::Clusters),
            RequirementName::Fresh => Some(Requirement::Fresh),
            RequirementName::Known => Some(Requirement::Known),
        }
    }
}
