//! Arguments of `karat eval new`, `karat eval add-case` and `karat eval test`, and the limits of eval functions.

use clap::{Args, ValueEnum};
use karat_sandbox::Isolation;

use crate::args::choice::{Choice, one_of};
use crate::args::{ConfigFileArgs, OutputFormat, StoreArgs};

const NEW_AFTER_HELP: &str = "\
Examples:
  karat eval new tone   # Write eval_tone with test cases
  karat eval test tone  # Run the test cases";

#[derive(Debug, Args)]
#[command(after_help = NEW_AFTER_HELP)]
pub(crate) struct EvalNewArgs {
    /// Name in lower case with underscores; eval_ is added if missing
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) config: ConfigFileArgs,
}

const ADD_CASE_AFTER_HELP: &str = "\
Examples:
  karat eval add-case tone TRACE                  # Expect its rating
  karat eval add-case tone TRACE --expected fail  # Expect this verdict";

#[derive(Debug, Args)]
#[command(after_help = ADD_CASE_AFTER_HELP)]
pub(crate) struct EvalAddCaseArgs {
    /// Python file or name of the function
    #[arg(value_name = "FILE|NAME")]
    pub(crate) function: String,
    /// Id of the stored trace, or a unique prefix
    #[arg(value_name = "TRACE")]
    pub(crate) trace: String,
    /// Expected verdict: pass or fail [default: pass if the trace is rated good, fail if it is rated bad]
    #[arg(long, value_name = "VERDICT", hide_possible_values = true, value_parser = one_of(VERDICTS))]
    pub(crate) expected: Option<bool>,
    /// Text that the reason must contain
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) reason: Option<String>,
    /// Name of the case [default: the trace id]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

const TEST_AFTER_HELP: &str = "\
Exit codes:
  0    all cases passed
  1    a verdict differs from the expected one
  2    a function or a case is invalid; nothing was run
  3    a function errored, or Python cannot be prepared
  4    no cases or functions found

Examples:
  karat eval test       # Test all functions in evals/functions
  karat eval test tone  # Test one function";

#[derive(Debug, Args)]
#[command(after_help = TEST_AFTER_HELP)]
pub(crate) struct EvalTestArgs {
    /// Python files, folders, or names of functions [default: all functions in evals/functions]
    #[arg(value_name = "FILE|NAME")]
    pub(crate) functions: Vec<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    config: ConfigFileArgs,
}

/// Limits of functions, and how they are run.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// Time limit per trace in milliseconds [default and maximum: 5000]
    #[arg(long, value_name = "N")]
    pub(crate) limit_ms: Option<u64>,
    /// Memory limit in megabytes [default and maximum: 50]
    #[arg(long, value_name = "N")]
    pub(crate) limit_mb: Option<u64>,
    /// Isolation of traces: fresh memory for each, or a shared Python interpreter
    #[arg(long, value_name = "LEVEL", default_value = "fresh", value_parser = one_of(ISOLATIONS))]
    pub(crate) isolation: Isolation,
    /// Number of traces to judge in parallel [default: number of processors]
    #[arg(long, short = 'j', value_name = "N")]
    pub(crate) jobs: Option<u64>,
    /// The configuration key, whose flags are --limit-ms and --limit-mb
    #[arg(long, value_name = "JSON", hide = true)]
    pub(crate) eval_limits: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    #[value(alias = "table")]
    Human,
    Jsonl,
    Json,
}

const ISOLATIONS: &[Choice<Isolation>] = &[
    ("fresh", Some("Every trace starts with the same Python memory"), Isolation::Fresh),
    (
        "shared",
        Some("Faster, but results that depend on object identity can depend on earlier traces"),
        Isolation::Shared,
    ),
    ("strict", Some("Alias of fresh"), Isolation::Fresh),
    ("namespace", Some("Alias of fresh"), Isolation::Fresh),
];

/// Whether the function is expected to pass.
const VERDICTS: &[Choice<bool>] = &[("pass", None, true), ("fail", None, false)];
