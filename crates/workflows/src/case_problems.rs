//! Problems of selected cases that only the project's configuration reveals.

use std::collections::BTreeSet;

use karat_cases::{Case, EvalFile, SuiteFile};
use karat_json::{Finding, InvalidFile, Problem, without_bom};
use karat_project::{LoadedSuite, parse_suite_file, read_bytes};

use crate::error::Error;

/// Returns the problems of the selected cases of a file with their locations in it. `problems_in` gets the whole file and
/// the JSON pointer to its cases.
pub(crate) fn locate_in_file(
    loaded: &LoadedSuite,
    problems_in: impl Fn(&EvalFile, &str, &dyn Fn(&Case) -> bool) -> Vec<Problem>,
) -> Result<InvalidFile, Error> {
    // Read the whole file again: a selection does not have the indices of its cases.
    let selected: BTreeSet<&str> = loaded.file.cases.iter().map(|case| case.id.as_str()).collect();
    let bytes = read_bytes(&loaded.path)?;
    let text = String::from_utf8_lossy(without_bom(&bytes)).into_owned();
    let Ok(SuiteFile::Eval(whole)) = parse_suite_file(&loaded.path, &bytes) else {
        return Err(Error::invalid(format!("{} changed while it was read", loaded.path.display_path)));
    };
    let problems = problems_in(&whole, cases_pointer(&text), &|case| selected.contains(case.id.as_str()));
    let findings = Finding::locate_all(&text, problems);
    Ok(InvalidFile { name: loaded.path.display_path.clone(), text, findings })
}

/// Returns the JSON pointer to the cases of an eval file.
pub(crate) fn cases_pointer(text: &str) -> &'static str {
    if text.trim_start().starts_with('[') { "" } else { "/cases" }
}
