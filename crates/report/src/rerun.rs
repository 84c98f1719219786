//! The command that reruns the cases that did not pass.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use karat_core::event::{ReportError, Reporter, RunEvent};
use karat_core::result::Outcome;
use karat_workflows::run_suites::SelectionRequest;

/// With more cases, `--only-failed` is shorter than their ids.
const MAX_IDS: usize = 5;

/// Collects the ids of cases that did not pass, by suite and position. Cases finish in any order.
#[derive(Clone, Default)]
pub struct FailedIds(Arc<Mutex<BTreeMap<(usize, usize), String>>>);

impl FailedIds {
    /// Returns the distinct ids in the order of the run.
    pub fn into_ids(self) -> Vec<String> {
        let failed = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut ids: Vec<String> = Vec::new();
        for id in failed.into_values() {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }
}

impl Reporter for FailedIds {
    fn on_event(&mut self, event: &RunEvent) -> Result<(), ReportError> {
        if let RunEvent::CaseFinished { suite, index, result } = event
            && result.outcome != Outcome::Passed
        {
            let mut failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            failed.insert((*suite, *index), result.id.clone());
        }
        Ok(())
    }
}

/// Returns the command for the cases that did not pass, from the arguments of this run. `failed` is `None` if some cases
/// did not run: only the results have their ids.
pub fn rerun_command(
    arguments: &[String],
    selection: &SelectionRequest,
    failed: Option<&[String]>,
    has_baseline: bool,
) -> String {
    let mut words = vec!["karat".to_owned()];
    let selects_failed = selection.only_failed;
    // The ids of the cases that did not pass replace the given ones, if that is not longer.
    let max_ids = MAX_IDS.max(selection.ids.len());
    let listed = failed.filter(|failed| !selects_failed && failed.len() <= max_ids);
    words.extend(if listed.is_some() { without_ids(arguments) } else { arguments.to_vec() });
    if let Some(failed) = listed {
        for id in failed {
            // A separate value needs no quotes, unless it looks like a flag.
            if id.starts_with('-') {
                words.push(format!("--id={id}"));
            } else {
                words.extend(["--id".to_owned(), id.clone()]);
            }
        }
    } else if !selects_failed {
        // With a baseline, the flag alone would select the cases that failed there.
        let flag = if has_baseline { "--only-failed=latest" } else { "--only-failed" };
        // Appended here, since `shell_words` would quote the '='.
        return format!("{} {flag}", shell_words::join(words));
    }
    shell_words::join(words)
}

/// The flags whose value names a run.
const RUN_FLAGS: [&str; 3] = ["--baseline", "--baseline-run-id", "--only-failed"];

/// Replaces names of runs such as `latest~1` by ids, since they mean other runs after this one.
///
/// `run_id` returns the id for a name, or `None` if the name can stay.
pub fn with_run_ids(arguments: &[String], run_id: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut fixed: Vec<String> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        // `--only-failed` takes its value only after a '='.
        let is_value = fixed.last().is_some_and(|flag| flag != "--only-failed" && RUN_FLAGS.contains(&flag.as_str()));
        let id = match argument.split_once('=') {
            _ if is_value => run_id(argument),
            Some((flag, name)) if RUN_FLAGS.contains(&flag) => run_id(name).map(|id| format!("{flag}={id}")),
            _ => None,
        };
        fixed.push(id.unwrap_or_else(|| argument.clone()));
    }
    fixed
}

/// Removes `--id` and its values from arguments.
fn without_ids(arguments: &[String]) -> Vec<String> {
    let mut rest = Vec::with_capacity(arguments.len());
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--id" {
            arguments.next();
        } else if !argument.starts_with("--id=") {
            rest.push(argument.clone());
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&["run"], &["a"], false, "karat run --id a")]
    #[case(&["-v", "run", "my evals"], &["a b"], true, "karat -v run 'my evals' --id 'a b'")]
    #[case(&["run"], &["1", "2", "3", "4", "5", "6"], false, "karat run --only-failed")]
    #[case(&["run"], &["1", "2", "3", "4", "5", "6"], true, "karat run --only-failed=latest")]
    fn selects_cases_that_did_not_pass(
        #[case] arguments: &[&str],
        #[case] failed: &[&str],
        #[case] has_baseline: bool,
        #[case] expected: &str,
    ) {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let command =
            rerun_command(&owned(arguments), &SelectionRequest::default(), Some(&owned(failed)), has_baseline);
        assert_eq!(command, expected);
    }

    #[rstest]
    #[case(&["run", "--baseline", "latest~1", "latest"], &["run", "--baseline", "ID-latest~1", "latest"])]
    #[case(&["run", "--baseline=latest"], &["run", "--baseline=ID-latest"])]
    #[case(&["run", "--baseline-run-id", "latest"], &["run", "--baseline-run-id", "ID-latest"])]
    #[case(&["run", "--only-failed", "latest"], &["run", "--only-failed", "latest"])]
    #[case(&["run", "--only-failed=latest~2"], &["run", "--only-failed=ID-latest~2"])]
    #[case(&["run", "--baseline", "a.json", "--id=latest"], &["run", "--baseline", "a.json", "--id=latest"])]
    fn replaces_relative_names_of_runs(#[case] arguments: &[&str], #[case] expected: &[&str]) {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let run_id = |name: &str| name.starts_with("latest").then(|| format!("ID-{name}"));
        assert_eq!(with_run_ids(&arguments, run_id), expected);
    }

    #[test]
    fn cases_that_did_not_run_have_no_ids() {
        let selection = SelectionRequest::default();
        assert_eq!(rerun_command(&["run".to_owned()], &selection, None, false), "karat run --only-failed");
        assert_eq!(rerun_command(&["run".to_owned()], &selection, None, true), "karat run --only-failed=latest");
    }

    #[test]
    fn keeps_a_selection() {
        let failed = ["a".to_owned()];
        let by_id = SelectionRequest { ids: vec!["a".to_owned(), "b".to_owned()], ..SelectionRequest::default() };
        let arguments = ["run", "--id", "a", "evals", "--id=b", "-q"].map(str::to_owned);
        let command = rerun_command(&arguments, &by_id, Some(&failed), false);
        assert_eq!(command, "karat run evals -q --id a");
        // The rows of a table.
        let rows: Vec<String> = (1..=6).map(|row| format!("a#{row}")).collect();
        let by_table = SelectionRequest { ids: vec!["a".to_owned()], ..SelectionRequest::default() };
        let arguments = ["run", "--id", "a"].map(str::to_owned);
        assert_eq!(rerun_command(&arguments, &by_table, Some(&rows), false), "karat run --id a --only-failed");
        let only_failed = SelectionRequest { only_failed: true, ..SelectionRequest::default() };
        let arguments = ["run", "--only-failed"].map(str::to_owned);
        assert_eq!(rerun_command(&arguments, &only_failed, Some(&failed), false), "karat run --only-failed");
    }
}
