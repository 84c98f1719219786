//! The arguments of `karat eval batch`.

use clap::{Args, ValueEnum};

use super::LimitArgs;

const EXIT_CODES: &str = "\
Exit codes (whether it worked, not what the verdicts are: those are in the rows):
  0    every trace has its rows, also those that errored
  2    a function, a flag or what stdin holds is invalid; nothing was run
  3    stdin broke off or is broken Arrow, or stdout cannot be written; the rows before that
       were written. Or Python cannot be prepared
  4    there are no functions in a folder
  130  interrupted; the rows before that were written";

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct EvalBatchArgs {
    /// Python files, folders of them, or names of the functions in evals/functions, with or without eval_
    #[arg(required = true, value_name = "FILE|NAME")]
    pub(crate) functions: Vec<String>,
    /// What stdin holds, and stdout then too: by its first bytes, a JSON object on each line, or an Arrow IPC stream
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) input_format: InputFormat,
    /// Arrow: the column with the traces, as JSON text
    #[arg(long, value_name = "NAME", default_value = "trace")]
    pub(crate) trace_column: String,
    #[arg(help = "Arrow: the column with the traces' ids [default: trace_id, where there is one]")]
    #[arg(long, value_name = "NAME")]
    pub(crate) trace_id_column: Option<String>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    Auto,
    Jsonl,
    Arrow,
}
