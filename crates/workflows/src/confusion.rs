//! Which tools were called in place of others, by the results of earlier runs.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use karat_core::answers::{ResultHead, read_answers};
use karat_core::case::{Case, Tier};
use karat_project::{Loaded, result_paths};
use karat_tools::confusion::MeasuredConfusion;

use crate::context::Context;
use crate::error::Error;

/// Where the cases begin in almost every result.
const HEAD_BYTES: u64 = 16 * 1024;

/// Names the newest run, whichever it is.
const LATEST: &str = "latest";

/// Which of the stored results count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunChoice {
    /// The newest answers of each agent to each case.
    Newest,
    /// The answers of one run, by its id; `latest` is the newest.
    Run(String),
    /// All answers.
    All,
}

/// Counts which tools the stored results called, against what the eval files expect now.
///
/// A result counts only when it was made with the eval file as it is: nobody knows what another version expected.
pub(crate) fn read_confusion(
    suites: &[Loaded],
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
        let folder = settings.shown(&settings.layout.output_dir);
        context.notices.warn(&format!("cannot read the results in {folder}: {error}"));
    }
    if let RunChoice::Run(id) = choice {
        // The results come with the newest first.
        let newest = results.first().filter(|_| id == LATEST).map(|result| result.head.run_id.clone());
        let id = newest.unwrap_or(id);
        results.retain(|result| result.head.run_id == id);
        if results.is_empty() {
            let folder = settings.layout.output_dir.display();
            return Err(Error::not_found(format!("the run '{id}' is not in {folder}"))
                .hint("a run's id is in its result files' names"));
        }
    }
    let suites = Suites::new(suites);
    // Of each suite and agent, the cases that have their answer.
    let mut answered: HashMap<(usize, Option<String>), HashSet<String>> = HashMap::new();
    for Listed { path, head } in results {
        let suite = match suites.of(&head) {
            Match::Suite(suite) => suite,
            Match::Changed(suite) => {
                // An older result is out of date for a good reason where there is a newer one.
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
        let mut counts = false;
        for answer in answers {
            let Some(case) = cases.get(answer.case_id.as_str()) else {
                continue;
            };
            if newest_only && !seen.insert(answer.case_id) {
                continue;
            }
            counts = true;
            count(case, answer.tries, &mut measured);
        }
        if counts {
            measured.results += 1;
            measured.run_ids.insert(head.run_id);
            measured.agents.extend(head.agent);
        }
    }
    Ok(measured)
}

fn count(case: &Case, tries: Vec<Option<Vec<String>>>, measured: &mut MeasuredConfusion) {
    for called in tries {
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
struct Listed {
    path: PathBuf,
    head: ResultHead,
}

/// Lists the results of a folder, the newest first; rubrics' are of another form, and are passed over.
fn list_results(folder: &Path, measured: &mut MeasuredConfusion) -> Vec<Listed> {
    let mut results = Vec::new();
    for path in result_paths(folder) {
        match read_head(&path) {
            Some(head) if head.tier == Some(Tier::Rubric) => {}
            Some(head) => results.push(Listed { path, head }),
            None => measured.left_out.unreadable_results += 1,
        }
    }
    // Run ids grow with time, so that they decide between equal times.
    results.sort_by(|left, right| {
        let key = |result: &Listed| (result.head.timestamp.clone(), result.head.run_id.clone(), result.path.clone());
        key(right).cmp(&key(left))
    });
    results
}

/// Reads what stands before the cases, which can be long.
fn read_head(path: &Path) -> Option<ResultHead> {
    let mut start = Vec::new();
    File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut start).ok()?;
    ResultHead::read_start(&start).or_else(|| ResultHead::read(&std::fs::read(path).ok()?))
}

/// The eval files as they are now.
struct Suites<'s> {
    loaded: &'s [Loaded],
    by_hash: HashMap<&'s str, Vec<usize>>,
    by_path: HashMap<&'s str, usize>,
    cases: Vec<HashMap<&'s str, &'s Case>>,
}

/// Which eval file a result is of.
enum Match {
    Suite(usize),
    /// Another version of this one.
    Changed(usize),
    Unhashed,
    Other,
}

impl<'s> Suites<'s> {
    fn new(loaded: &'s [Loaded]) -> Self {
        let mut by_hash: HashMap<&str, Vec<usize>> = HashMap::new();
        for (place, suite) in loaded.iter().enumerate() {
            by_hash.entry(&suite.file.hash).or_default().push(place);
        }
        let by_path = loaded.iter().enumerate().map(|(place, suite)| (suite.path.in_project.as_str(), place)).collect();
        let by_id = |suite: &'s Loaded| suite.file.cases.iter().map(|case| (case.id.as_str(), case)).collect();
        Self { loaded, by_hash, by_path, cases: loaded.iter().map(by_id).collect() }
    }

    /// Finds a result's eval file by its hash, since it may have been moved; among equal files by its path.
    fn of(&self, head: &ResultHead) -> Match {
        let path = head.metadata.eval_file.as_str();
        let same = self.by_hash.get(head.metadata.eval_file_hash.as_str()).map_or(&[][..], Vec::as_slice);
        let named = same.iter().find(|place| self.loaded[**place].path.in_project == path);
        match (named.or(same.first()), self.by_path.get(path)) {
            (Some(suite), _) => Match::Suite(*suite),
            (None, Some(suite)) if !head.metadata.eval_file_hash.is_empty() => Match::Changed(*suite),
            (None, _) if head.metadata.eval_file_hash.is_empty() => Match::Unhashed,
            (None, _) => Match::Other,
        }
    }
}
