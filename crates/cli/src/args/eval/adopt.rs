//! Arguments of `karat eval adopt`.

use clap::Args;

use super::LimitArgs;
use crate::args::{ConfigFileArgs, OutputFormat};

const AFTER_HELP: &str = "\
Supported: promptfoo (get_assert), Braintrust and autoevals, Langfuse, LangSmith
and openevals, Phoenix, MLflow, DeepEval (BaseMetric) and OpenAI graders, and by
name also functions with parameters such as prediction and expected. The code of
the evaluator is not changed.

Exit codes:
  0    adopted; the test run gave a verdict
  1    the evaluator cannot be adopted
  2    the file has no evaluator, or a file already exists
  3    the test run errored

Examples:
  karat eval adopt assert.py                        # The only evaluator
  karat eval adopt evaluators.py:exact_match        # One of several
  karat eval adopt metrics.py:Politeness --dry-run  # Show the code only
  karat eval adopt score.py --reference 'Sunny, 21 degrees'";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct EvalAdoptArgs {
    /// Python file of the evaluator, and its function or class if the file has several
    #[arg(value_name = "FILE[:FUNCTION]")]
    pub(crate) source: String,
    /// Name of the eval function [default: that of the evaluator]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// JSON file with the trace for the test run [default: a trace of a weather agent]
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<std::path::PathBuf>,
    /// Reference for the test run: JSON or text [default: the response of the trace]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) reference: Option<String>,
    /// Parameters for the test run, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) params: Option<String>,
    /// Show the code and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) config: ConfigFileArgs,
}
