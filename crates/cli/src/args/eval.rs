//! What can be said to `karat eval`.

mod agreement;
mod batch;
mod check;
mod doctor;
mod functions;
mod refine;
mod run;
mod stored;

use clap::{Args, Subcommand};

pub(crate) use self::agreement::{EvalAgreementArgs, EvalCompareArgs};
pub(crate) use self::batch::{EvalBatchArgs, InputFormat};
pub(crate) use self::check::EvalCheckArgs;
pub(crate) use self::doctor::EvalDoctorArgs;
pub(crate) use self::functions::{EvalNewArgs, EvalTestArgs, IsolationName, LimitArgs, RowFormat};
pub(crate) use self::refine::EvalRefineArgs;
pub(crate) use self::run::EvalRunArgs;
pub(crate) use self::stored::{EvalAddArgs, EvalHistoryArgs, EvalListArgs, EvalShowArgs};

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    #[command(subcommand)]
    pub(crate) action: EvalAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EvalAction {
    /// Find what an eval function may not do or has wrong, without running it
    Check(EvalCheckArgs),
    /// Judge traces with eval functions
    Run(Box<EvalRunArgs>),
    /// Write a first eval function with its test cases
    New(EvalNewArgs),
    /// Judge the cases that are kept beside eval functions, and compare with what they expect
    Test(EvalTestArgs),
    /// Put eval functions into the store; other code than the newest version's is a new version
    Add(EvalAddArgs),
    /// List the evals in the store, with what their newest versions said
    List(EvalListArgs),
    /// Show an eval's code, and what each version said
    Show(EvalShowArgs),
    /// Show an eval's versions: when and why they were made, what changed, what they said
    History(EvalHistoryArgs),
    /// Measure how far stored verdicts agree with what people said
    Agreement(EvalAgreementArgs),
    /// Show which verdicts changed between two versions, and whether for the better
    Compare(EvalCompareArgs),
    /// Let a model rewrite an eval after what people said of its verdicts, for a person to adopt
    Refine(Box<EvalRefineArgs>),
    /// Judge traces for another program: JSON lines or Arrow on stdin, rows of the same on stdout
    Batch(EvalBatchArgs),
    /// Show the Python that runs eval functions, and try whether the sandbox holds
    Doctor(EvalDoctorArgs),
}
