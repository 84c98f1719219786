//! What can be said to `karat regress`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ConfigArgs, OutputFormat};

#[derive(Debug, Args)]
pub(crate) struct RegressArgs {
    #[command(subcommand)]
    pub(crate) action: RegressAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RegressAction {
    /// Add a case that keeps a fixed bug fixed: from flags, from a case that failed in a run, or from a trace
    Add(Box<RegressAddArgs>),
    /// Take a case out of its eval file into the archive beside it
    Archive(RegressArchiveArgs),
    /// Add the hashes of regression cases that have none; no hash is ever changed
    Seal(RegressSealArgs),
}

/// The part of the configuration that these verbs need; the rest comes from karat.json and variables.
#[derive(Debug, Default, Args)]
pub(crate) struct RegressConfigArgs {
    /// Read this configuration instead of the nearest karat.json
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The agent's tools: a JSON, TypeScript, JavaScript or Python file or a folder of them, mcp:stdio:COMMAND or
    /// mcp:URL [default: tools/tools.exports.ts]
    #[arg(long, value_name = "PATH")]
    pub(crate) tool_registry_path: Option<PathBuf>,
    /// Where results are looked for [default: evals/results/]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) output_dir: Option<PathBuf>,
    /// Where traces are kept: a file, or postgres://… [default: .karat/karat.db]
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) store: Option<String>,
}

impl RegressConfigArgs {
    pub(crate) fn config_args(&self) -> ConfigArgs {
        ConfigArgs {
            config: self.config.clone(),
            tool_registry_path: self.tool_registry_path.clone(),
            output_dir: self.output_dir.clone(),
            store: self.store.clone(),
            ..ConfigArgs::default()
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RegressAddArgs {
    /// The tool under test [default with --from-run: the failed case's; with --from-trace: the only one that was called]
    #[arg(required_unless_present_any = ["from_run", "from_trace"])]
    pub(crate) tool: Option<String>,
    /// The issue or commit of the fix [default with --from-trace: the trace, which is noted beside it too]
    #[arg(long, value_name = "TEXT", required_unless_present = "from_trace")]
    pub(crate) bug_ref: Option<String>,
    /// What the user said [default: as in the failed case, or in the trace]
    #[arg(long, value_name = "TEXT", required_unless_present_any = ["from_run", "from_trace"], allow_hyphen_values = true)]
    pub(crate) message: Option<String>,
    /// What went wrong [default: with --from-run the case's error, with --from-trace what a person noted, what failed or
    /// what was done; else the bug]
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) description: Option<String>,
    /// Take message, stubs and expectation from a case that failed in this run; 'latest' is the newest
    #[arg(long, value_name = "RUN_ID", requires = "case")]
    pub(crate) from_run: Option<String>,
    /// The failed case's id
    #[arg(long, value_name = "ID", requires = "from_run")]
    pub(crate) case: Option<String>,
    /// Take the case of --from-run even though it passed
    #[arg(long, requires = "from_run")]
    pub(crate) even_if_passed: bool,
    /// Take the message from this trace of the store, by its id or the beginning of it
    #[arg(long, value_name = "TRACE", conflicts_with = "from_run")]
    pub(crate) from_trace: Option<String>,
    /// Take the message that led to this step of the trace, as 'karat trace show' counts them [default: the first message]
    #[arg(long, value_name = "N", requires = "from_trace")]
    pub(crate) step: Option<usize>,
    /// What tools answer where a model is driven without them, as JSON: {"TOOL": …}
    #[arg(long, value_name = "JSON")]
    pub(crate) stubs: Option<String>,
    /// The regression file [default: the tool's, or else a new evals/TOOL.regression.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Print the case and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    #[command(flatten)]
    pub(crate) config: RegressConfigArgs,
    #[command(flatten)]
    pub(crate) expect: ExpectArgs,
}

/// What must be true of the answer; with --from-run, what is said here takes the place of the same key there.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Expectation (with --from-run: in place of the same keys of the failed case)")]
pub(crate) struct ExpectArgs {
    /// The tools that must be called, in order, with commas between them; an empty text for none
    #[arg(long, value_name = "TOOL,TOOL", conflicts_with = "tools_acceptable")]
    pub(crate) tools_called: Option<String>,
    /// A set of tools that may be called, with commas between them; __none__ for none (repeatable)
    #[arg(long, value_name = "TOOL,TOOL")]
    pub(crate) tools_acceptable: Vec<String>,
    /// The tools that must not be called, with commas between them
    #[arg(long, value_name = "TOOL,TOOL")]
    pub(crate) tools_not_called: Option<String>,
    /// A text that the response must hold (repeatable)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) response_contains: Vec<String>,
    /// A text that the response must not hold (repeatable)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) response_not_contains: Vec<String>,
    /// A regular expression that the response must match (repeatable)
    #[arg(long, value_name = "PATTERN", allow_hyphen_values = true)]
    pub(crate) response_matches: Vec<String>,
    /// The response must hold something
    #[arg(long)]
    pub(crate) response_non_empty: bool,
    /// No tool call may fail
    #[arg(long)]
    pub(crate) no_tool_errors: bool,
    /// Any other keys of 'expect', as JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) expect: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RegressArchiveArgs {
    /// The case's id
    pub(crate) id: String,
    /// Why it is not run any more
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) reason: Option<String>,
    /// The eval file that holds it, where several do
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    /// Read this configuration instead of the nearest karat.json
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RegressSealArgs {
    /// Eval files, folders or globs [default: evals]
    pub(crate) paths: Vec<PathBuf>,
    /// What stdout is
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: OutputFormat,
    /// Read this configuration instead of the nearest karat.json
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
