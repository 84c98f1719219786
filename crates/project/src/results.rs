//! Results of earlier runs.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use karat_cases::Tier;
use karat_cases::registry::same_name;
use karat_core::result::{EarlierResult, Outcome, SuiteResult};
use serde::Deserialize;

use crate::error::Error;
use crate::layout::Layout;
use crate::load::LoadedSuite;
use crate::read::read_file;

/// The parts of a result that identify a suite across runs.
#[derive(Debug, Clone, Copy)]
pub struct SuiteName<'s> {
    pub tool_name: &'s str,
    pub tier: Tier,
    /// The eval file, relative to the project folder.
    pub eval_file: &'s str,
}

/// The results that a run is compared with.
pub struct EarlierResults {
    pub suites: Vec<EarlierResult>,
}

impl EarlierResults {
    /// Reads all results in a folder, newest first.
    pub fn load_folder(folder: &Path) -> Result<Self, Error> {
        let mut suites = results_of(&result_paths(folder))?;
        sort_newest_first(&mut suites);
        Ok(Self { suites })
    }

    /// Reads all earlier results, newest first.
    pub fn load_all(layout: &Layout) -> Result<Self, Error> {
        let mut suites: Vec<EarlierResult> =
            result_paths(&layout.output_dir).iter().filter_map(|path| read_unless_rubric(path, "").ok()?).collect();
        sort_newest_first(&mut suites);
        if suites.is_empty() {
            return Err(Error::invalid(format!("no runs in {}", layout.display_path(&layout.output_dir)))
                .hint("run all cases once, or pass a result with --baseline"));
        }
        Ok(Self { suites })
    }

    /// Returns the result of a suite, preferably from the same agent.
    pub fn find(&self, suite: SuiteName<'_>, agent: &str) -> Option<&EarlierResult> {
        let all = self.find_all(suite);
        let same = all.iter().find(|result| result.agent_endpoint.as_deref() == Some(agent));
        same.or(all.first()).copied()
    }

    /// Returns the results of a suite: those of the same eval file, or else those of its tool and tier if unambiguous.
    fn find_all(&self, suite: SuiteName<'_>) -> Vec<&EarlierResult> {
        let matches_suite =
            |result: &&EarlierResult| same_name(&result.tool_name, suite.tool_name) && result.tier == suite.tier;
        let suite_results: Vec<&EarlierResult> = self.suites.iter().filter(matches_suite).collect();
        let matches_file = |result: &&EarlierResult| result.metadata.eval_file == suite.eval_file;
        let file_results: Vec<&EarlierResult> = suite_results.iter().copied().filter(matches_file).collect();
        if !file_results.is_empty() {
            return file_results;
        }
        // A single result is used even if its suite had another name; cases are matched by id.
        if let ([], [result]) = (suite_results.as_slice(), self.suites.as_slice()) {
            return vec![result];
        }
        let same_run = |left: &EarlierResult, right: &EarlierResult| {
            left.run_id == right.run_id && left.agent_endpoint == right.agent_endpoint
        };
        let is_unique =
            |result: &&EarlierResult| suite_results.iter().filter(|other| same_run(other, result)).count() == 1;
        suite_results.iter().copied().filter(is_unique).collect()
    }

    /// Keeps only the cases that did not pass in their newest result.
    pub fn retain_failed(&self, loaded: &mut Vec<LoadedSuite>) -> Result<(), Error> {
        for LoadedSuite { path, file } in loaded.iter_mut() {
            // A run can cover only some cases, so the newest result is looked up per case.
            let mut newest: HashMap<&str, (&str, bool)> = HashMap::new();
            let suite = SuiteName { tool_name: &file.tool_name, tier: file.tier, eval_file: &path.in_project };
            let results = self.find_all(suite);
            // Cases that the newest run was to run, but did not.
            let not_run: HashSet<String> = results.first().iter().flat_map(|newest| &newest.not_run).cloned().collect();
            for result in results {
                for case in &result.cases {
                    let (run_id, passed) = newest.entry(&case.id).or_insert((&result.run_id, true));
                    // With several agents in a run, a case fails if it fails for any of them.
                    *passed &= *run_id != result.run_id || case.outcome == Outcome::Passed;
                }
            }
            let failed: HashSet<String> =
                newest.into_iter().filter(|(_, (_, passed))| !passed).map(|(id, _)| id.to_owned()).collect();
            file.cases.retain(|case| failed.contains(&case.id) || not_run.contains(&case.id));
        }
        loaded.retain(|loaded| !loaded.file.cases.is_empty());
        if loaded.is_empty() {
            return Err(Error::nothing_selected("no case failed in the earlier results"));
        }
        Ok(())
    }
}

fn sort_newest_first(results: &mut [EarlierResult]) {
    results.sort_by(|left, right| newest_first((&left.timestamp, &left.run_id), (&right.timestamp, &right.run_id)));
}

/// Compares the timestamps and ids of two runs. Run ids increase over time, so they break ties between equal timestamps.
pub(crate) fn newest_first(left: (&str, &str), right: (&str, &str)) -> Ordering {
    // Fractions of seconds have no trailing zeros, and 'Z' sorts after digits: 0.12Z would be later than 0.123Z.
    let key = |(timestamp, run_id): (&str, &str)| (timestamp.trim_end_matches('Z').to_owned(), run_id.to_owned());
    key(right).cmp(&key(left))
}

/// Reads result files, skipping those of rubrics.
pub fn results_of(paths: &[PathBuf]) -> Result<Vec<EarlierResult>, Error> {
    paths.iter().filter_map(|path| read_unless_rubric(path, "the result").transpose()).collect()
}

/// Reads a result found in a folder. Returns `None` for rubric results, which have another format.
fn read_unless_rubric(path: &Path, label: &str) -> Result<Option<EarlierResult>, Error> {
    match read_result(path, label) {
        Ok(result) => Ok(Some(result).filter(|result| result.tier != Tier::Rubric)),
        Err(_) if is_rubric_result(path) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_rubric_result(path: &Path) -> bool {
    #[derive(Deserialize)]
    struct TierOnly {
        tier: Tier,
    }

    let parsed = read_file(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    parsed.is_some_and(|TierOnly { tier }| tier == Tier::Rubric)
}

/// Reads a result file; `label` names it in error messages.
pub fn read_result(path: &Path, label: &str) -> Result<EarlierResult, Error> {
    let bytes =
        read_file(path).map_err(|error| Error::invalid(format!("cannot read {label} {}: {error}", path.display())))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("{label} {} is not a result file: {error}", path.display());
        if is_rubric_result(path) {
            return Error::invalid(message).hint("this is a rubric result; scores are not compared");
        }
        if is_eval_file(&bytes) {
            return Error::invalid(format!("{label} {} is an eval file, not the result of a run", path.display()))
                .hint("pass a run such as latest, a result file, or a folder of result files");
        }
        Error::invalid(message)
    })
}

/// Whether a file has cases to run instead of their results.
fn is_eval_file(bytes: &[u8]) -> bool {
    let tree: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    let cases = tree.get("cases").unwrap_or(&tree).as_array();
    cases.and_then(|cases| cases.first()).is_some_and(|case| case.get("input").or(case.get("expect")).is_some())
}

/// Reads a whole result file, with all details of its cases.
pub fn read_suite_result(path: &Path) -> Result<SuiteResult, Error> {
    let fail = |error: &dyn std::fmt::Display| Error::invalid(format!("cannot read {}: {error}", path.display()));
    let bytes = read_file(path).map_err(|error| fail(&error))?;
    serde_json::from_slice(&bytes).map_err(|error| fail(&format_args!("not a result of this version: {error}")))
}

/// Returns the JSON files in a folder and its subfolders.
pub fn result_paths_in_tree(folder: &Path) -> Vec<PathBuf> {
    let mut paths = result_paths(folder);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir() && !path.is_symlink()).collect();
    folders.sort();
    paths.extend(folders.iter().flat_map(|folder| result_paths_in_tree(folder)));
    paths
}

/// Lists the JSON files in a folder, sorted by name; none if the folder cannot be read.
pub fn result_paths(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("2026-11-18T10:00:00.123Z", "2026-11-18T10:00:00.12Z")]
    #[case("2026-11-18T10:00:00.1Z", "2026-11-18T10:00:00Z")]
    #[case("2026-11-18T10:00:01Z", "2026-11-18T10:00:00.9Z")]
    fn sorts_fractions_of_seconds(#[case] newer: &str, #[case] older: &str) {
        assert_eq!(newest_first((newer, "a"), (older, "b")), Ordering::Less);
        assert_eq!(newest_first((newer, "a"), (newer, "b")), Ordering::Greater);
    }
}
