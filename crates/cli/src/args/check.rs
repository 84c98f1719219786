//! Arguments of `karat check`.

use std::path::PathBuf;

use clap::Args;

use super::OutputFormat;
use super::config::{
    AgentEndpointArgs, ConfigFileArgs, EvalFunctionsArgs, OverlapMapArgs, RegistryArgs, SeedManifestArgs, SilenceArgs,
    ToolExecutionArgs,
};

const AFTER_HELP: &str = "\
Examples:
  karat check                                # Check all eval files and tools
  karat check evals/get-weather.golden.json  # Check one file
  karat check --strict                       # Fail on warnings too
  karat check --rules                        # List the rules with examples";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CheckArgs {
    /// Eval files, folders or globs [default: evals]
    pub(crate) paths: Vec<PathBuf>,
    /// Fail on warnings too
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) strict: Option<bool>,
    /// List the rules for cases with examples and exit
    #[arg(long)]
    pub(crate) rules: bool,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    /// Also write a report (github) to a file, or - for stdout
    #[arg(long, value_name = "github=PATH")]
    pub(crate) report: Vec<String>,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    overlap_map: OverlapMapArgs,
    #[command(flatten)]
    seed_manifest: SeedManifestArgs,
    #[command(flatten)]
    eval_functions: EvalFunctionsArgs,
    #[command(flatten)]
    silence: SilenceArgs,
    #[command(flatten)]
    agent_endpoint: AgentEndpointArgs,
    #[command(flatten)]
    tool_execution: ToolExecutionArgs,
    #[command(flatten)]
    file: ConfigFileArgs,
}
