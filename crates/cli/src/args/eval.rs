//! Arguments of `karat eval`.

mod adopt;
mod agreement;
mod batch;
mod check;
mod doctor;
mod functions;
mod refine;
mod run;
mod stored;

use clap::{Args, Subcommand};

pub(crate) use self::adopt::EvalAdoptArgs;
pub(crate) use self::agreement::{EvalAgreementArgs, EvalCompareArgs};
pub(crate) use self::batch::{EvalBatchArgs, InputFormat};
pub(crate) use self::check::EvalCheckArgs;
pub(crate) use self::doctor::EvalDoctorArgs;
pub(crate) use self::functions::{EvalAddCaseArgs, EvalNewArgs, EvalTestArgs, LimitArgs, RowFormat};
pub(crate) use self::refine::EvalRefineArgs;
pub(crate) use self::run::EvalRunArgs;
pub(crate) use self::stored::{EvalAddArgs, EvalHistoryArgs, EvalListArgs, EvalShowArgs};

const AFTER_HELP: &str = "\
Examples:
  karat eval new tone                        # Write a new eval function
  karat eval test tone                       # Run its test cases
  karat eval run tone --traces traces.jsonl  # Judge the traces in a file
  karat eval run tone --stored               # Judge the traces in the store";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    pub(crate) action: EvalAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalAction {
    /// Check eval functions without running them
    Check(EvalCheckArgs),
    /// Judge traces with eval functions
    Run(Box<EvalRunArgs>),
    /// Write a new eval function with test cases
    New(EvalNewArgs),
    /// Write an eval function around an evaluator of another framework
    Adopt(EvalAdoptArgs),
    /// Add a stored trace to the test cases of an eval function
    AddCase(EvalAddCaseArgs),
    /// Run the test cases of eval functions
    Test(EvalTestArgs),
    /// Add eval functions to the store; changed code becomes a new version
    Add(EvalAddArgs),
    /// List the evals in the store
    List(EvalListArgs),
    /// Show the code of an eval and the verdicts of each version
    Show(EvalShowArgs),
    /// Show the versions of an eval
    History(EvalHistoryArgs),
    /// Measure how often verdicts agree with ratings
    Agreement(EvalAgreementArgs),
    /// Compare the verdicts of two versions of an eval
    Compare(EvalCompareArgs),
    /// Improve an eval with a model, based on its contradictions
    Refine(Box<EvalRefineArgs>),
    /// Judge traces from stdin, as JSON Lines or Arrow, and write rows to stdout
    Batch(EvalBatchArgs),
    /// Show the Python version and test the sandbox
    Doctor(EvalDoctorArgs),
}
