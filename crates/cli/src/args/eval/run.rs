//! Arguments of `karat eval run`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{LimitArgs, RowFormat};
use crate::args::{StoreArgs, TraceFilterArgs};

const AFTER_HELP: &str = "\
Exit codes:
  0    all traces passed; with --stored, also if all were judged before
  1    a trace failed
  2    a function, a flag or a path is invalid; nothing was run
  3    an error prevented a verdict, or Python or the store failed
  4    no traces or functions found
  130  interrupted; verdicts so far were written

Examples:
  karat eval run tone --traces traces.jsonl         # Judge the traces in a file
  karat eval run tone.py --traces - --format jsonl  # Read stdin, print verdicts
  karat eval run --stored                           # Judge with all evals
  karat eval run tone --stored --since 7d --force   # Rejudge the last week";

const USAGE: &str = "karat eval run [OPTIONS] <FILE|NAME>... --traces <FILE|->...
       karat eval run [OPTIONS] [NAME]... --stored";

#[derive(Debug, Args)]
#[command(override_usage = USAGE, after_help = AFTER_HELP)]
pub(crate) struct EvalRunArgs {
    /// Python files, folders, or names of functions in evals/functions; with --stored, names of stored evals
    /// [default with --stored: all]
    #[arg(value_name = "FILE|NAME")]
    pub(crate) functions: Vec<String>,
    /// Files with traces in any format that can be imported, or - for stdin (repeatable)
    #[arg(long, required_unless_present = "stored", num_args = 1.., value_name = "FILE|-")]
    traces: Vec<PathBuf>,
    /// Judge new and changed traces in the store with stored evals
    #[arg(long, conflicts_with = "traces")]
    pub(crate) stored: bool,
    /// With --stored: version of the eval [default: the newest]
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u64>,
    /// With --stored: judge all traces again, not only new ones
    #[arg(long)]
    pub(crate) force: bool,
    /// Output format: a summary, one JSON line per verdict, or one JSON document
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) format: RowFormat,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) filter: TraceFilterArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl EvalRunArgs {
    /// Returns the functions and the trace files. `--traces` takes several values because shells expand `*.jsonl`, so
    /// values after the first that can only be functions count as functions.
    pub(crate) fn functions_and_traces(&self, folder: &Path) -> (Vec<String>, Vec<PathBuf>) {
        let (mut functions, mut traces) = (self.functions.clone(), Vec::new());
        for value in &self.traces {
            match value.to_str() {
                Some(text) if !traces.is_empty() && can_only_be_function(text, folder) => {
                    functions.push(text.to_owned());
                }
                _ => traces.push(value.clone()),
            }
        }
        (functions, traces)
    }

    /// Returns a flag that was given but is valid only with `--stored`.
    pub(crate) fn flag_requiring_stored(&self) -> Option<&'static str> {
        // Not `requires`: clap ignores a required flag that conflicts with another given flag.
        let flags = [
            ("--version", self.version.is_some()),
            ("--force", self.force),
            ("--store", self.store.location.store.is_some()),
            ("a filter", self.filter.has_filters()),
        ];
        flags.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }
}

fn can_only_be_function(value: &str, folder: &Path) -> bool {
    let (path, file) = (Path::new(value), folder.join(value));
    let is_name = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    path.extension().is_some_and(|extension| extension == "py") || file.is_dir() || (is_name && !file.exists())
}
