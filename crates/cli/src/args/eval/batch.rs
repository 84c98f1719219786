//! Arguments of `karat eval batch`.

use clap::{Args, ValueEnum};

use super::LimitArgs;
use crate::args::ConfigFileArgs;

const AFTER_HELP: &str = "\
Exit codes (verdicts do not affect them):
  0    every trace has its rows, including traces that errored
  2    a function, a flag or the input is invalid; nothing was run
  3    stdin, stdout or Python failed; the rows before the failure were written
  4    a folder contains no functions
  130  interrupted; the rows so far were written

Examples:
  karat eval batch tone < traces.jsonl > rows.jsonl  # JSON Lines
  karat eval batch tone < traces.arrow > rows.arrow  # Arrow IPC stream";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct EvalBatchArgs {
    /// Python files, folders, or names of functions in evals/functions, with or without eval_
    #[arg(required = true, value_name = "FILE|NAME")]
    pub(crate) functions: Vec<String>,
    /// Format of stdin and stdout: JSON Lines or an Arrow IPC stream; auto detects it
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) input_format: InputFormat,
    /// Arrow: name of the column with the traces as JSON text
    #[arg(long, value_name = "NAME", default_value = "trace")]
    pub(crate) trace_column: String,
    #[arg(help = "Arrow: name of the column with the trace ids [default: trace_id, if present]")]
    #[arg(long, value_name = "NAME")]
    pub(crate) trace_id_column: Option<String>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    config: ConfigFileArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    Auto,
    Jsonl,
    Arrow,
}
