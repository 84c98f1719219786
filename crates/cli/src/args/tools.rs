//! The arguments of `karat tools`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use karat_registry::ScriptLanguage;

use super::{ConfigArgs, OutputFormat};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) verb: Option<ToolsVerb>,
    #[command(flatten)]
    pub(crate) list: ToolsListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsVerb {
    /// List the agent's tools: hashes, versions, what their descriptions cost, where they were read
    List(ToolsListArgs),
    /// Write the tools' hashes and versions to a file, so that changes show
    Lock(ToolsLockArgs),
    /// Show what changed since the lock, and which eval files that makes stale
    Diff(ToolsDiffArgs),
    /// Print a script that writes the exact tools of a module as JSON; you run it with your own interpreter
    ExportScript(ToolsExportScriptArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ToolsListArgs {
    /// Names of tools, or globs as 'get_*'; a folder that holds a karat.json is the project [default: all tools]
    pub(crate) names: Vec<String>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsLockArgs {
    /// The project's folder [default: the one that holds the nearest karat.json]
    pub(crate) folder: Option<PathBuf>,
    /// Write nothing; exit 1 if the lock would change
    #[arg(long)]
    pub(crate) check: bool,
    /// The lock [default: evals/tools.lock.json in the project]
    #[arg(long, value_name = "FILE")]
    pub(crate) lock_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsDiffArgs {
    /// Eval files, folders or globs that may be stale [default: evals]
    pub(crate) paths: Vec<PathBuf>,
    /// The lock [default: evals/tools.lock.json in the project]
    #[arg(long, value_name = "FILE")]
    pub(crate) lock_file: Option<PathBuf>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ToolsExportScriptArgs {
    /// The interpreter that runs the script
    pub(crate) interpreter: Interpreter,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Interpreter {
    /// For modules in Python (3.9 or newer)
    Python,
    /// For modules in JavaScript, and in TypeScript where Node runs it (18 or newer)
    Node,
}

impl From<Interpreter> for ScriptLanguage {
    fn from(interpreter: Interpreter) -> Self {
        match interpreter {
            Interpreter::Python => Self::Python,
            Interpreter::Node => Self::Node,
        }
    }
}
