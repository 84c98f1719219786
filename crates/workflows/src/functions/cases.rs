//! The eval functions that the cases of eval files name.

use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

use karat_core::case::{Case, SuiteFile};
use karat_core::port::EvalFunctions;
use karat_json::{Finding, InvalidFile, without_bom};
use karat_project::{Loaded, parse_suite_file, read_bytes};
use karat_sandbox::{Function, Functions, Isolation};

use super::project::{FunctionFile, ProjectFunctions, find_functions};
use crate::context::sandbox::open_sandbox;
use crate::error::Error;
use crate::settings::{Settings, Surroundings};

/// Returns the eval functions that a case names.
pub fn names_of(case: &Case) -> impl Iterator<Item = &str> {
    case.expect.evals.iter().flatten().map(String::as_str)
}

/// Returns the pointer to the cases of an eval file's text.
pub fn pointer_to_cases(text: &str) -> &'static str {
    if text.trim_start().starts_with('[') { "" } else { "/cases" }
}

/// Makes the eval functions that the cases name ready to run; the sandbox is opened only where one does.
pub fn start_functions(
    loaded: &[Loaded],
    settings: &Settings,
    surroundings: &Surroundings,
) -> Result<Option<Arc<dyn EvalFunctions>>, Error> {
    let functions = named_functions(loaded, settings)?;
    if functions.is_empty() {
        return Ok(None);
    }
    let sandbox = open_sandbox(surroundings.guest.as_deref())?;
    // No more than cases that are judged in parallel.
    let jobs = std::thread::available_parallelism().map_or(1, NonZero::get).min(settings.concurrency);
    // The settings were validated, so that these are not too large.
    let limits = settings.eval_limits.limits().unwrap_or_default();
    Ok(Some(Arc::new(Functions::new(&sandbox, functions, limits, Isolation::default(), jobs)?)))
}

/// Returns the eval functions that the cases name; the error has the places of all that are missing or invalid.
fn named_functions(loaded: &[Loaded], settings: &Settings) -> Result<Vec<Arc<Function>>, Error> {
    let names: BTreeSet<&str> = loaded.iter().flat_map(|one| one.file.cases.iter().flat_map(names_of)).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let functions = find_functions(settings)?;
    let found: Vec<Arc<Function>> = names.iter().filter_map(|name| functions.get(name)).cloned().collect();
    if found.len() == names.len() {
        return Ok(found);
    }
    let mut invalid = Vec::new();
    for one in loaded {
        invalid.extend(file_with_unknown(one, &functions)?);
    }
    let broken: BTreeSet<&Path> =
        names.iter().flat_map(|name| functions.broken(name)).map(|file| file.path.as_path()).collect();
    let broken = functions.files.iter().filter(|file| broken.contains(file.path.as_path()));
    invalid.extend(broken.filter_map(FunctionFile::invalid_file));
    Err(Error::invalid_files(invalid))
}

/// Returns where the selected cases of a file name functions that do not exist.
fn file_with_unknown(loaded: &Loaded, functions: &ProjectFunctions) -> Result<Option<InvalidFile>, Error> {
    if loaded.file.cases.iter().flat_map(names_of).all(|name| functions.has(name)) {
        return Ok(None);
    }
    // A selection has lost the cases' numbers in their file.
    let selected: BTreeSet<&str> = loaded.file.cases.iter().map(|case| case.id.as_str()).collect();
    let bytes = read_bytes(&loaded.path)?;
    let text = String::from_utf8_lossy(without_bom(&bytes)).into_owned();
    let Ok(SuiteFile::Eval(whole)) = parse_suite_file(&loaded.path, &bytes) else {
        return Err(Error::invalid(format!("{} has changed while it was read", loaded.path.shown)));
    };
    let problems = functions.unknown_in(&whole, pointer_to_cases(&text), |case| selected.contains(case.id.as_str()));
    let findings = Finding::locate_all(&text, problems);
    Ok(Some(InvalidFile { name: loaded.path.shown.clone(), text, findings }))
}
