//! Arguments of `karat tools`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use karat_registry::ScriptLanguage;

use super::OutputFormat;
use super::choice::{Choice, one_of};
use super::config::{ConfigFileArgs, RegistryArgs, TokenizerArgs};

const AFTER_HELP: &str = "\
Examples:
  karat tools          # List all tools
  karat tools 'get_*'  # List the tools that match a glob
  karat tools lock     # Write evals/tools.lock.json
  karat tools diff     # Show changes since the lock";

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<ToolsVerb>,
    #[command(flatten)]
    pub(crate) list: ToolsListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsVerb {
    /// List the agent's tools with hashes, versions and token counts (the default)
    List(ToolsListArgs),
    /// Write the hashes and versions of the tools to a lock file
    Lock(ToolsLockArgs),
    /// Show tools that changed since the lock, and stale eval files
    Diff(ToolsDiffArgs),
    /// Print a script that exports the tools of a module as JSON
    ExportScript(ToolsExportScriptArgs),
}

/// For verbs that need only the tool registry.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ToolRegistryArgs {
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    file: ConfigFileArgs,
}

const LIST_AFTER_HELP: &str = "\
Examples:
  karat tools list                        # List all tools
  karat tools list 'get_*' --format json  # Print matching tools as JSON";

#[derive(Debug, Args)]
#[command(after_help = LIST_AFTER_HELP)]
pub(crate) struct ToolsListArgs {
    /// Tool names or globs, or a project folder [default: all tools]
    pub(crate) names: Vec<String>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    #[command(flatten)]
    source: ToolRegistryArgs,
}

const LOCK_AFTER_HELP: &str = "\
Examples:
  karat tools lock          # Write evals/tools.lock.json
  karat tools lock --check  # Exit with 1 if the lock is out of date";

#[derive(Debug, Args)]
#[command(after_help = LOCK_AFTER_HELP)]
pub(crate) struct ToolsLockArgs {
    /// Project folder [default: the folder of the nearest karat.json]
    pub(crate) folder: Option<PathBuf>,
    /// Do not write; exit with 1 if the lock is out of date
    #[arg(long)]
    pub(crate) check: bool,
    /// Path to the lock file [default: evals/tools.lock.json in the project]
    #[arg(long, value_name = "FILE")]
    pub(crate) lock_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: ToolRegistryArgs,
}

const DIFF_AFTER_HELP: &str = "\
Examples:
  karat tools diff                # Show changed tools and stale eval files
  karat tools diff --format json  # Print them as JSON";

#[derive(Debug, Args)]
#[command(after_help = DIFF_AFTER_HELP)]
pub(crate) struct ToolsDiffArgs {
    /// Eval files, folders or globs to check for staleness [default: evals]
    pub(crate) paths: Vec<PathBuf>,
    /// Path to the lock file [default: evals/tools.lock.json in the project]
    #[arg(long, value_name = "FILE")]
    pub(crate) lock_file: Option<PathBuf>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) source: ToolRegistryArgs,
}

const EXPORT_SCRIPT_AFTER_HELP: &str = "\
Examples:
  karat tools export-script python > export.py  # Write the script
  python export.py tools.py > tools.json        # Export the tools of a module";

#[derive(Debug, Args)]
#[command(after_help = EXPORT_SCRIPT_AFTER_HELP)]
pub(crate) struct ToolsExportScriptArgs {
    /// Interpreter that runs the script
    #[arg(value_parser = one_of(INTERPRETERS))]
    pub(crate) interpreter: ScriptLanguage,
}

const INTERPRETERS: &[Choice<ScriptLanguage>] = &[
    ("python", Some("For Python modules (3.9 or newer)"), ScriptLanguage::Python),
    ("node", Some("For JavaScript modules, and TypeScript if Node supports it (18 or newer)"), ScriptLanguage::Node),
];
