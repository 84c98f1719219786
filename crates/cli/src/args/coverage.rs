//! What can be said to `karat coverage`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use karat_tools::coverage::Requirement;

use super::{ConfigArgs, OutputFormat};

#[derive(Debug, Args)]
pub(crate) struct CoverageArgs {
    /// Eval files, folders or globs [default: evals]
    pub(crate) paths: Vec<PathBuf>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    /// Write a page too: html, to a file or to - (repeatable)
    #[arg(long, value_name = "html=PATH")]
    pub(crate) report: Vec<String>,
    /// Exit with 1 unless all of this holds, with commas between: tested, golden, labeled, overlaps, clusters, fresh,
    /// known; no value: everything
    #[arg(
        long,
        value_name = "WHAT,WHAT",
        num_args = 0..=1,
        require_equals = true,
        value_delimiter = ',',
        default_missing_value = "all",
        hide_possible_values = true
    )]
    pub(crate) require: Vec<RequireName>,
    /// Take the confusion of tools from this run only; 'latest' is the newest
    #[arg(long, value_name = "RUN_ID", conflicts_with = "all_runs")]
    pub(crate) run: Option<String>,
    /// Take the confusion of tools from all stored runs, not only from the newest answers to each case
    #[arg(long)]
    pub(crate) all_runs: bool,
    /// The lock that tells which files are fresh that do not say it themselves [default: evals/tools.lock.json in the
    /// project]
    #[arg(long, value_name = "FILE")]
    pub(crate) lock_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RequireName {
    All,
    Tested,
    Golden,
    Labeled,
    Overlaps,
    Clusters,
    Fresh,
    Known,
}

impl RequireName {
    /// Returns the one thing that is required; none where everything is.
    pub(crate) fn requirement(self) -> Option<Requirement> {
        match self {
            RequireName::All => None,
            RequireName::Tested => Some(Requirement::Tested),
            RequireName::Golden => Some(Requirement::Golden),
            RequireName::Labeled => Some(Requirement::Labeled),
            RequireName::Overlaps => Some(Requirement::Overlaps),
            RequireName::Clusters => Some(Requirement::Clusters),
            RequireName::Fresh => Some(Requirement::Fresh),
            RequireName::Known => Some(Requirement::Known),
        }
    }
}
