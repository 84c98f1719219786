//! Measures confusion from the results of earlier runs.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use karat_core::answers::{ResultHead, read_answers};
use karat_core::case::{Case, Tier};
use karat_project::{LoadedSuite, result_paths};
use karat_tools::confusion::MeasuredConfusion;

use crate::context::Context;
use crate::error::Error;

/// Enough bytes for everything before the cases in almost every result.
const HEAD_BYTES: u64 = 16 * 1024;

/// Selects the newest run in place of a run id.
const LATEST: &str = "latest";

/// The results to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunChoice {
    /// The newest answer of each agent to each case.
    Newest,
    /// The answers of one run, by id; `latest` is the newest.
    Run(String),
    /// All answers.
    All,
}

/// Compares the tools called in results with those that the eval files expect.
///
/// Uses only results of the current version of an eval file: the expectations of other versions are unknown.
pub(crate) fn read_confusion(
    suites: &[LoadedSuite],
    choice: RunChoice,
    context: &Context<'_>,
) -> Result<MeasuredConfusion, Error> {
    let settings = &context.settings;
    let mut measured = MeasuredConfusion::default();
    let mut results = list_results(&settings.layout.output_dir, &mut measured);
    let newest_only = choice == RunChoice::Newest;
    if let Err(error) = std::fs::read_dir(&settings.layout.output_dir)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        let folder = settings.display_path(&settings.layout.output_dir);
        context.notices.warn(&format!("cannot read the results in {folder}: {error}"));
    }
    if let RunChoice::Run(id) = choice {
        // Results are sorted newest first.
        let newest = results.first().filter(|_| id == LATEST).map(|result| result.head.run_id.clone());
        let id = newest.unwrap_or(id);
        results.retain(|result| result.head.run_id == id);
        if results.is_empty() {
            let folder = settings.layout.output_dir.display();
            return Err(Error::not_found(format!("run '{id}' not found in {folder}"))
                .hint("result file names contain the run id"));
        }
    }
    let suites = Suites::new(suites);
    // The answered cases, by suite and agent.
    let mut answered: HashMap<(usize, Option<String>), HashSet<String>> = HashMap::new();
    for ListedResult { path, head } in results {
        let suite = match suites.find(&head) {
            Match::Suite(suite) => suite,
            Match::Changed(suite) => {
                // Do not report an outdated result if there is a newer one.
                if !newest_only || !answered.contains_key(&(suite, head.agent.clone())) {
                    measured.left_out.changed_results += 1;
                }
                continue;
            }
            Match::Unhashed => {
                measured.left_out.unhashed_results += 1;
                continue;
            }
            Match::Other => {
                measured.left_out.other_results += 1;
                continue;
            }
        };
        let cases = &suites.cases[suite];
        let seen = answered.entry((suite, head.agent.clone())).or_default();
        if newest_only && seen.len() >= cases.len() {
            continue;
        }
        let Some(answers) = std::fs::read(&path).ok().and_then(|bytes| read_answers(&bytes).ok()) else {
            measured.left_out.unreadable_results += 1;
            continue;
        };
        let mut is_used = false;
        for answer in answers {
            let Some(case) = cases.get(answer.case_id.as_str()) else {
                continue;
            };
            if newest_only && !seen.insert(answer.case_id) {
                continue;
            }
            is_used = true;
            count(case, answer.trials, &mut measured);
        }
        if is_used {
            measured.results += 1;
            measured.run_ids.insert(head.run_id);
            measured.agents.extend(head.agent);
        }
    }
    Ok(measured)
}

fn count(case: &Case, trials: Vec<Option<Vec<String>>>, measured: &mut MeasuredConfusion) {
    for called in trials {
        match called {
            None => measured.left_out.without_answer += 1,
            Some(called) => {
                if !measured.confusion.add(&case.expect, &called) {
                    measured.left_out.without_expectation += 1;
                }
            }
        }
    }
}

/// A result on disk.
struct ListedResult {
    path: PathBuf,
    head: ResultHead,
}

/// Lists the results in a folder, newest first. Skips rubric results.
fn list_results(folder: &Path, measured: &mut MeasuredConfusion) -> Vec<ListedResult> {
    let mut results = Vec::new();
    for path in result_paths(folder) {
        match read_head(&path) {
            Some(head) if head.tier == Some(Tier::Rubric) => {}
            Some(head) => results.push(ListedResult { path, head }),
            None => measured.left_out.unreadable_results += 1,
        }
    }
    // Run ids increase over time, so they break ties between equal timestamps.
    results.sort_by(|left, right| {
        let key =
            |result: &ListedResult| (result.head.timestamp.clone(), result.head.run_id.clone(), result.path.clone());
        key(right).cmp(&key(left))
    });
    results
}

/// Reads the head of a result without parsing its cases, which can be large.
fn read_head(path: &Path) -> Option<ResultHead> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut start).ok()?;
    ResultHead::read_start(&start).or_else(|| ResultHead::read(&std::fs::read(path).ok()?))
}

/// An index of the current eval files.
struct Suites<'s> {
    loaded: &'s [LoadedSuite],
    by_hash: HashMap<&'s str, Vec<usize>>,
    by_path: HashMap<&'s str, usize>,
    cases: Vec<HashMap<&'s str, &'s Case>>,
}

/// The eval file of a result.
enum Match {
    Suite(usize),
    /// Another version of this file.
    Changed(usize),
    Unhashed,
    Other,
}

impl<'s> Suites<'s> {
    fn new(loaded: &'s [LoadedSuite]) -> Self {
        let mut by_hash: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, suite) in loaded.iter().enumerate() {
            by_hash.entry(&suite.file.hash).or_default().push(index);
        }
        let by_path = loaded.iter().enumerate().map(|(index, suite)| (suite.path.in_project.as_str(), index)).collect();
        let by_id = |suite: &'s LoadedSuite| suite.file.cases.iter().map(|case| (case.id.as_str(), case)).collect();
        Self { loaded, by_hash, by_path, cases: loaded.iter().map(by_id).collect() }
    }

    /// Finds the eval file of a result by hash, since it may have been moved; among equal files by path.
    fn find(&self, head: &ResultHead) -> Match {
        let path = head.metadata.eval_file.as_str();
        let same = self.by_hash.get(head.metadata.eval_file_hash.as_str()).map_or(&[][..], Vec::as_slice);
        let at_path = same.iter().find(|index| self.loaded[**index].path.in_project == path);
        match (at_path.or(same.first()), self.by_path.get(path)) {
            (Some(suite), _) => Match::Suite(*suite),
            (None, Some(suite)) if !head.metadata.eval_file_hash.is_empty() => Match::Changed(*suite),
            (None, _) if head.metadata.eval_file_hash.is_empty() => Match::Unhashed,
            (None, _) => Match::Other,
        }
    }
}
