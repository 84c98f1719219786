//! The eval functions that cases refer to.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

use karat_cases::{Case, EvalEntry};
use karat_core::port::EvalFunctions;
use karat_json::InvalidFile;
use karat_project::LoadedSuite;
use karat_sandbox::{Function, FunctionRunner, Isolation};

use super::project::{FunctionFile, ProjectFunctions, find_functions};
use crate::case_problems::locate_in_file;
use crate::context::sandbox::open_sandbox;
use crate::error::Error;
use crate::settings::{ProcessEnv, Settings};

/// Returns the names of the eval functions of a case.
pub fn eval_names(case: &Case) -> impl Iterator<Item = &str> {
    eval_entries(case).map(|entry| entry.name.as_str())
}

fn eval_entries(case: &Case) -> impl Iterator<Item = &EvalEntry> {
    case.located_expectations().flat_map(|(_, expect)| expect.evals.iter().flatten())
}

/// Returns the entries of the eval functions of a case with their locations in it, as JSON pointers.
pub(super) fn located_entries(case: &Case) -> impl Iterator<Item = (String, &EvalEntry)> {
    case.located_expectations().flat_map(|(pointer, expect)| {
        let entries = expect.evals.iter().flatten().enumerate();
        entries.map(move |(index, entry)| (format!("{pointer}/evals/{index}"), entry))
    })
}

/// Prepares the eval functions of all cases. Opens the sandbox only if there are any.
pub fn start_functions(
    loaded: &[&LoadedSuite],
    settings: &Settings,
    process_env: &ProcessEnv,
) -> Result<Option<Arc<dyn EvalFunctions>>, Error> {
    let functions = load_case_functions(loaded, settings)?;
    if functions.is_empty() {
        return Ok(None);
    }
    let sandbox = open_sandbox(process_env.guest.as_deref())?;
    // No more than the number of parallel cases.
    let jobs = std::thread::available_parallelism().map_or(1, NonZero::get).min(settings.concurrency);
    // Cannot fail: the settings are validated.
    let limits = settings.eval_limits.limits().unwrap_or_default();
    Ok(Some(Arc::new(FunctionRunner::new(&sandbox, functions, limits, Isolation::default(), jobs)?)))
}

/// Returns the eval functions of all cases. The error has the locations of all missing or invalid ones.
fn load_case_functions(loaded: &[&LoadedSuite], settings: &Settings) -> Result<Vec<Arc<Function>>, Error> {
    let names: BTreeSet<&str> = loaded.iter().flat_map(|suite| suite.file.cases.iter().flat_map(eval_names)).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let functions = find_functions(settings)?;
    let loaded_functions: Vec<Arc<Function>> = names.iter().filter_map(|name| functions.get(name)).cloned().collect();
    let entries = || loaded.iter().flat_map(|suite| suite.file.cases.iter().flat_map(eval_entries));
    if entries().all(|entry| functions.get(&entry.name).is_some() && functions.problem_of(entry).is_none()) {
        return Ok(loaded_functions);
    }
    let mut invalid = Vec::new();
    for suite in loaded {
        invalid.extend(find_unknown(suite, &functions)?);
    }
    let broken: BTreeSet<&Path> =
        names.iter().flat_map(|name| functions.broken(name)).map(|file| file.path.as_path()).collect();
    let broken = functions.files.iter().filter(|file| broken.contains(file.path.as_path()));
    invalid.extend(broken.filter_map(FunctionFile::invalid_file));
    Err(Error::invalid_files(invalid))
}

/// Returns the locations where selected cases of a file refer to unknown functions.
fn find_unknown(loaded: &LoadedSuite, functions: &ProjectFunctions) -> Result<Option<InvalidFile>, Error> {
    if loaded.file.cases.iter().flat_map(eval_entries).all(|entry| functions.problem_of(entry).is_none()) {
        return Ok(None);
    }
    let located = locate_in_file(loaded, |file, prefix, is_selected| functions.unknown_in(file, prefix, is_selected));
    located.map(Some)
}
