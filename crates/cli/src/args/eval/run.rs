//! The arguments of `karat eval run`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::{LimitArgs, RowFormat};
use crate::args::{ConfigArgs, TraceFilterArgs};

const EXIT_CODES: &str = "\
Exit codes:
  0    every trace passed; with --stored, every one that was judged now, or all were judged before
  1    a trace failed
  2    a function, a flag or a path is invalid; nothing was run
  3    a function errored, or a line holds no trace, so that there is no verdict.
       Or Python cannot be prepared, or the store did not take what was judged
  4    there are no traces, or no functions in a folder
  130  interrupted; what had been judged was written";

const USAGE: &str = "karat eval run [OPTIONS] <FILE|NAME>... --traces <FILE|->...
       karat eval run [OPTIONS] [NAME]... --stored";

#[derive(Debug, Args)]
#[command(override_usage = USAGE, after_help = EXIT_CODES)]
pub(crate) struct EvalRunArgs {
    /// Python files, folders of them, or names of the functions in evals/functions, with or without eval_; with
    /// --stored, names of evals in the store [default then: all of them]
    #[arg(value_name = "FILE|NAME")]
    pub(crate) functions: Vec<String>,
    /// The traces: files with one JSON object on each line, or - for stdin (repeatable)
    #[arg(long, required_unless_present = "stored", num_args = 1.., value_name = "FILE|-")]
    traces: Vec<PathBuf>,
    /// Judge the traces in the store that were not judged yet as they are now, by evals in the store
    #[arg(long, conflicts_with = "traces")]
    pub(crate) stored: bool,
    /// With --stored: which version of the eval [default: the newest]
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u64>,
    /// With --stored: judge again what was judged before
    #[arg(long)]
    pub(crate) force: bool,
    /// What stdout is: a summary, a JSON line for each verdict as it comes, or one JSON document
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: RowFormat,
    /// Where traces and evals are kept: a file, or postgres://… [default: .karat/karat.db]
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) store: Option<String>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) filter: TraceFilterArgs,
}

impl EvalRunArgs {
    /// Returns the functions and the traces. A shell makes several files of `--traces *.jsonl`, and some write the
    /// functions behind it: what can only be a function is one.
    pub(crate) fn functions_and_traces(&self, here: &Path) -> (Vec<String>, Vec<PathBuf>) {
        let (mut functions, mut traces) = (self.functions.clone(), Vec::new());
        for value in &self.traces {
            match value.to_str() {
                Some(text) if !traces.is_empty() && can_only_be_function(text, here) => functions.push(text.to_owned()),
                _ => traces.push(value.clone()),
            }
        }
        (functions, traces)
    }

    /// Returns a flag that was given and says something of stored traces only.
    pub(crate) fn only_stored(&self) -> Option<&'static str> {
        // Not said to clap, which does not ask for a flag that another one excludes.
        let given = [
            ("--version", self.version.is_some()),
            ("--force", self.force),
            ("--store", self.store.is_some()),
            ("a filter", self.filter.is_narrow()),
        ];
        given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    pub(crate) fn config_args(&self) -> ConfigArgs {
        ConfigArgs { store: self.store.clone(), ..self.limits.config_args() }
    }
}

fn can_only_be_function(value: &str, here: &Path) -> bool {
    let (path, file) = (Path::new(value), here.join(value));
    let is_name = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    path.extension().is_some_and(|ending| ending == "py") || file.is_dir() || (is_name && !file.exists())
}
