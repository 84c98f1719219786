//! Earlier results on disk.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use karat_core::case::{EvalFile, Tier};
use karat_core::registry::same_name;
use karat_core::result::{EarlierResult, Outcome};
use serde::Deserialize;

use crate::discover::EvalPath;
use crate::error::Error;
use crate::layout::{Baseline, Layout};
use crate::load::Loaded;

/// The results that a run is compared with.
pub struct Results {
    pub suites: Vec<EarlierResult>,
}

impl Results {
    /// Reads the baseline that the settings name.
    pub fn baseline(baseline: Option<&Baseline>, layout: &Layout) -> Result<Option<Self>, Error> {
        match baseline {
            None => Ok(None),
            Some(Baseline::File(path)) if path.is_dir() => {
                let paths = result_paths(path);
                let mut suites = read_results(paths.iter())?;
                newest_first(&mut suites);
                if suites.is_empty() {
                    return Err(Error::invalid(format!("the baseline folder {} holds no results", path.display())));
                }
                Ok(Some(Self { suites }))
            }
            Some(Baseline::File(path)) => Ok(Some(Self { suites: vec![read_result(path, "the baseline")?] })),
            Some(Baseline::RunId(id)) => {
                let suites = run_results(&layout.output_dir, id)?;
                if suites.is_empty() {
                    return Err(Error::invalid(format!(
                        "the baseline run '{id}' is not in {}",
                        layout.output_dir.display()
                    ))
                    .hint("a run's id is in its result files' names; --baseline PATH takes results from anywhere"));
                }
                Ok(Some(Self { suites }))
            }
        }
    }

    /// Reads all earlier results, the newest first.
    pub fn newest(layout: &Layout) -> Result<Self, Error> {
        let mut suites: Vec<EarlierResult> =
            result_paths(&layout.output_dir).iter().filter_map(|path| read_listed(path, "").ok()?).collect();
        newest_first(&mut suites);
        if suites.is_empty() {
            return Err(Error::invalid(format!("there is no earlier result in {}", layout.output_dir.display()))
                .hint("run everything once, or name a result with --baseline"));
        }
        Ok(Self { suites })
    }

    /// Returns the result of a suite: the same agent's, or else another's.
    pub fn of(&self, path: &EvalPath, file: &EvalFile, agent: &str) -> Option<&EarlierResult> {
        let all = self.all_of(path, file);
        let same = all.iter().find(|result| result.agent_endpoint.as_deref() == Some(agent));
        same.or(all.first()).copied()
    }

    /// Returns the results of a suite: of the same eval file, or else of its tool and tier where that is no question.
    fn all_of(&self, path: &EvalPath, file: &EvalFile) -> Vec<&EarlierResult> {
        let is_suite =
            |result: &&EarlierResult| same_name(&result.tool_name, &file.tool_name) && result.tier == file.tier;
        let of_suite: Vec<&EarlierResult> = self.suites.iter().filter(is_suite).collect();
        let is_file = |result: &&EarlierResult| result.metadata.eval_file == path.in_project;
        let of_file: Vec<&EarlierResult> = of_suite.iter().copied().filter(is_file).collect();
        if !of_file.is_empty() {
            return of_file;
        }
        // The only result there is was meant, whatever its suite was called then; cases are compared by their ids.
        if let ([], [result]) = (of_suite.as_slice(), self.suites.as_slice()) {
            return vec![result];
        }
        let same_run = |left: &EarlierResult, right: &EarlierResult| {
            left.run_id == right.run_id && left.agent_endpoint == right.agent_endpoint
        };
        let is_alone = |result: &&EarlierResult| of_suite.iter().filter(|other| same_run(other, result)).count() == 1;
        of_suite.iter().copied().filter(is_alone).collect()
    }

    /// Keeps the cases that did not pass when they last ran in these results.
    pub fn keep_failed(&self, loaded: &mut Vec<Loaded>) -> Result<(), Error> {
        for Loaded { path, file } in loaded.iter_mut() {
            // A run of some cases says nothing of the others: for each case its newest result counts.
            let mut newest: HashMap<&str, (&str, bool)> = HashMap::new();
            for result in self.all_of(path, file) {
                for case in &result.cases {
                    let (run_id, passed) = newest.entry(&case.id).or_insert((&result.run_id, true));
                    // A run can ask several agents; to have failed with one of them is enough.
                    *passed &= *run_id != result.run_id || case.outcome == Outcome::Passed;
                }
            }
            let failed: HashSet<String> =
                newest.into_iter().filter(|(_, (_, passed))| !passed).map(|(id, _)| id.to_owned()).collect();
            file.cases.retain(|case| failed.contains(&case.id));
        }
        loaded.retain(|loaded| !loaded.file.cases.is_empty());
        if loaded.is_empty() {
            return Err(Error::nothing_selected("no case failed in the earlier results"));
        }
        Ok(())
    }
}

/// Run ids grow with time, so that they decide between equal times.
fn newest_first(results: &mut [EarlierResult]) {
    results.sort_by(|left, right| (&right.timestamp, &right.run_id).cmp(&(&left.timestamp, &left.run_id)));
}

/// Reads the results of one run: by their names, or else by what they say.
pub fn run_results(folder: &Path, run_id: &str) -> Result<Vec<EarlierResult>, Error> {
    let paths = result_paths(folder);
    let named: Vec<&PathBuf> = paths
        .iter()
        .filter(|path| {
            path.file_name().is_some_and(|name| !run_id.is_empty() && name.to_string_lossy().contains(run_id))
        })
        .collect();
    if !named.is_empty() {
        let read = read_results(named.into_iter())?;
        return Ok(read.into_iter().filter(|result| result.run_id == run_id).collect());
    }
    let all = paths.iter().filter_map(|path| read_listed(path, "").ok()?);
    Ok(all.filter(|result| result.run_id == run_id).collect())
}

fn read_results<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> Result<Vec<EarlierResult>, Error> {
    paths.filter_map(|path| read_listed(path, "the baseline").transpose()).collect()
}

/// Reads a result that nobody named; those of rubrics are of another form, and are passed over.
fn read_listed(path: &Path, what: &str) -> Result<Option<EarlierResult>, Error> {
    match read_result(path, what) {
        Ok(result) => Ok(Some(result).filter(|result| result.tier != Tier::Rubric)),
        Err(_) if is_rubric_result(path) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn is_rubric_result(path: &Path) -> bool {
    #[derive(Deserialize)]
    struct OfTier {
        tier: Tier,
    }

    let read = std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    read.is_some_and(|OfTier { tier }| tier == Tier::Rubric)
}

pub fn read_result(path: &Path, what: &str) -> Result<EarlierResult, Error> {
    let bytes = std::fs::read(path)
        .map_err(|error| Error::invalid(format!("cannot read {what} {}: {error}", path.display())))?;
    serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("{what} {} is not a result file: {error}", path.display());
        if is_rubric_result(path) {
            return Error::invalid(message).hint("it is a rubric's result: scores are not compared");
        }
        Error::invalid(message)
    })
}

pub fn result_paths(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    paths
}
