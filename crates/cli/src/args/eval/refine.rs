//! What can be said to `karat eval refine`.

use std::path::PathBuf;

use clap::Args;
use karat_workflows::refine::DEFAULT_HOLD_OUT;

use crate::args::{ApproverArgs, ConfigArgs, OutputFormat};

const REFINING: &str = "\
The rated traces are parted: the model is told of the training part (the code, contradictions and
agreeing examples, with the traces' texts and what people noted), and of the held-out part nothing.
What it writes is validated, run in the sandbox on both parts, and shown beside today's version.
Nothing becomes a version unless a person at the terminal approves it.

Exit codes:
  0    candidates were shown, and one was adopted if a person said so
  2    there is no such eval, or no model is named
  3    the model, the sandbox or the store did not answer, or nothing that the model wrote can be run
  4    too few traces are rated";

#[derive(Debug, Args)]
#[command(after_help = REFINING)]
pub(crate) struct EvalRefineArgs {
    /// The eval, with or without eval_
    pub(crate) name: String,
    /// How many candidates the model is asked for, in each round
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) candidates: usize,
    /// The model that rewrites, in place of that of 'refine' or 'forge' in karat.json
    #[arg(long, value_name = "KIND:MODEL")]
    pub(crate) model: Option<String>,
    /// The share of rated traces of which the model is told nothing
    #[arg(long, value_name = "SHARE", default_value_t = DEFAULT_HOLD_OUT)]
    pub(crate) hold_out: f64,
    /// How often the model is asked; later rounds are told what was tried before
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) rounds: usize,
    /// Print what the model would be asked, and ask nobody
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the candidates into this folder [default without a terminal: .karat/refine/NAME]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) approver: ApproverArgs,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}
