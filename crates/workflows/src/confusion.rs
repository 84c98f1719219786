//! Measures confusion from the results of earlier runs.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use karat_cases::{Case, Tier};
use karat_core::answers::{ResultHead, read_answers};
use karat_project::{LoadedSuite, ResultFile, list_results, read_head};
use karat_tools::confusion::MeasuredConfusion;

use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::run_name::find_run;

/// The results to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunChoice {
    /// The newest answer of each agent to each case.
    Newest,
    /// The answers of one run, by its name.
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
    let (mut results, unreadable) = list_results(&settings.layout.output_dir);
    measured.left_out.unreadable_results += unreadable;
    results.retain(|result| result.head.tier != Some(Tier::Rubric));
    let newest_only = choice == RunChoice::Newest;
    if let Err(error) = std::fs::read_dir(&settings.layout.output_dir)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        let folder = settings.display_path(&settings.layout.output_dir);
        context.notices.warn(&format!("cannot read the results in {folder}: {error}"));
    }
    if let RunChoice::Run(name) = choice {
        let run = find_run(&name, &settings.layout)?;
        // A path can be outside of the output folder.
        let result_file = |path: &PathBuf| read_head(path).map(|head| ResultFile { path: path.clone(), head });
        results =
            run.paths.iter().filter_map(result_file).filter(|result| result.head.tier != Some(Tier::Rubric)).collect();
        if results.is_empty() {
            return Err(Error::invalid(format!("'{name}' has no results of eval files")).hint(Hint::ListRuns));
        }
    }
    let suites = Suites::new(suites);
    // The answered cases, by suite and agent.
    let mut answered: HashMap<(usize, Option<String>), HashSet<String>> = HashMap::new();
    for ResultFile { path, head } in results {
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
                if !measured.confusion.add(&case.total_expectation(), &called) {
                    measured.left_out.without_expectation += 1;
                }
            }
        }
    }
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
