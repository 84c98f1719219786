//! What can be said to `karat contradictions`.

use clap::{Args, Subcommand, ValueEnum};
use karat_evals::contradiction::ResolutionKind;

use super::{AuthorArgs, OutputFormat, StoreArgs};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ContradictionsArgs {
    #[command(subcommand)]
    pub(crate) action: Option<ContradictionsAction>,
    #[command(flatten)]
    pub(crate) list: ContradictionsListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContradictionsAction {
    /// Note who is wrong: the eval, the people, or neither that matters
    Resolve(ContradictionsResolveArgs),
}

#[derive(Debug, Default, Args)]
pub(crate) struct ContradictionsListArgs {
    /// Only this eval's, with or without eval_
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Show those that were resolved too
    #[arg(long)]
    pub(crate) all: bool,
    /// Show at most so many; 0 for all [default: 20 for people, all for programs]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

const RESOLVING: &str = "\
A resolution holds as long as the same verdict stands against the same rating. It changes no figure:
who finds a label wrong corrects it with 'karat feedback add', who finds the eval wrong writes a new
version.

Exit codes:
  0    it is noted
  2    there is no such eval or trace
  3    the store did not answer
  4    the eval and people do not contradict each other there";

#[derive(Debug, Args)]
#[command(after_help = RESOLVING)]
pub(crate) struct ContradictionsResolveArgs {
    /// The eval, with or without eval_
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The trace's id, or its beginning
    #[arg(value_name = "TRACE")]
    pub(crate) trace: String,
    /// Who is wrong
    #[arg(value_name = "WHO")]
    pub(crate) kind: ResolutionName,
    /// Why
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) note: Option<String>,
    #[command(flatten)]
    pub(crate) author: AuthorArgs,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResolutionName {
    /// The eval judges wrongly
    EvalWrong,
    /// People rated wrongly
    LabelWrong,
    /// It does not matter
    Dismissed,
}

impl From<ResolutionName> for ResolutionKind {
    fn from(name: ResolutionName) -> Self {
        match name {
            ResolutionName::EvalWrong => ResolutionKind::EvalWrong,
            ResolutionName::LabelWrong => ResolutionKind::LabelWrong,
            ResolutionName::Dismissed => ResolutionKind::Dismissed,
        }
    }
}
