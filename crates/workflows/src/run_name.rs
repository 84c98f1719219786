//! Resolves names of runs.
//!
//! A name is `latest`, `latest~1` for the one before, the path of a result file, a run id, or a prefix of one.

use std::path::{Path, PathBuf};

use karat_core::result::{EarlierResult, Incomplete};
use karat_project::{
    Baseline, EarlierResults, Layout, ResultFile, Run, list_results, list_runs, read_head, read_result, results_of,
};

use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;

/// The name of the newest run.
const LATEST: &str = "latest";

/// Maximum number of ids to list if a prefix is ambiguous.
const MAX_LISTED_IDS: usize = 5;

/// Minimum length of a shortened id, in characters.
const MIN_PREFIX_LENGTH: usize = 8;

/// A run that was found by its name.
#[derive(Debug, Clone)]
pub(crate) struct NamedRun {
    pub(crate) run_id: String,
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) source: RunSource,
}

/// The kind of source that a run's name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunSource {
    /// A run in the output folder.
    OutputFolder,
    /// One result file.
    File,
    /// A folder of result files.
    Folder,
}

impl NamedRun {
    /// Reads the results of the run; never empty.
    pub(crate) fn results(&self) -> Result<Vec<EarlierResult>, Error> {
        if let (RunSource::File, [path]) = (self.source, self.paths.as_slice()) {
            return Ok(vec![read_result(path, "the result")?]);
        }
        let results = results_of(&self.paths)?;
        if results.is_empty() {
            let error = Error::invalid(format!("run {} has only rubric results", self.run_id));
            return Err(error.hint("scores neither pass nor fail"));
        }
        Ok(results)
    }

    /// Returns the missing results of the run, given its results; `None` if it is complete.
    pub(crate) fn incomplete<'r, C: 'r>(
        &self,
        results: impl IntoIterator<Item = &'r EarlierResult<C>>,
    ) -> Option<Incomplete> {
        let incomplete = Incomplete::find(results, 0)?;
        match self.source {
            RunSource::OutputFolder => Some(incomplete),
            // Only some of the files may have been copied.
            RunSource::File | RunSource::Folder => incomplete.without_files(),
        }
    }
}

impl From<Run> for NamedRun {
    fn from(run: Run) -> Self {
        let paths = run.results.into_iter().map(|result| result.path).collect();
        Self { run_id: run.run_id, paths, source: RunSource::OutputFolder }
    }
}

/// Finds a run by its name.
pub(crate) fn find_run(name: &str, layout: &Layout) -> Result<NamedRun, Error> {
    find_run_or_file(name, &layout.current_dir.join(name), layout)
}

/// Finds a run by its name, or the newest result of each suite in a folder.
pub(crate) fn find_run_or_folder(name: &str, layout: &Layout) -> Result<NamedRun, Error> {
    let folder = layout.current_dir.join(name);
    if parse_latest(name).is_some() || name.is_empty() || !folder.is_dir() {
        return find_run(name, layout);
    }
    let mut newest: Vec<ResultFile> = Vec::new();
    for result in list_results(&folder).0 {
        let is_same_suite = |other: &ResultFile| {
            let (left, right) = (&other.head, &result.head);
            left.tier == right.tier && left.agent == right.agent && left.metadata.eval_file == right.metadata.eval_file
        };
        // Results of other runners do not name their eval file.
        if result.head.metadata.eval_file.is_empty() || !newest.iter().any(is_same_suite) {
            newest.push(result);
        }
    }
    let Some(first) = newest.first() else {
        return Err(Error::not_found(format!("the folder '{name}' contains no results")).hint(Hint::ListRuns));
    };
    let run_id = first.head.run_id.clone();
    Ok(NamedRun { run_id, paths: newest.into_iter().map(|result| result.path).collect(), source: RunSource::Folder })
}

/// Finds a run by its name, or by `path` if that is a file and the name is not `latest` or `latest~N`.
fn find_run_or_file(name: &str, path: &Path, layout: &Layout) -> Result<NamedRun, Error> {
    let age = parse_latest(name);
    if age.is_none() && path.is_file() {
        let run_id = read_head(path).map(|head| head.run_id).unwrap_or_default();
        return Ok(NamedRun { run_id, paths: vec![path.to_owned()], source: RunSource::File });
    }
    let mut runs = list_runs(&layout.output_dir);
    let folder = layout.display_path(&layout.output_dir);
    if let Some(age) = age {
        return match runs.len() {
            0 => Err(Error::not_found(format!("no runs in {folder}")).hint(Hint::RunEvals)),
            count if age >= count => {
                let runs = if count == 1 { "run" } else { "runs" };
                Err(Error::not_found(format!("no run '{name}': {folder} has {count} {runs}")).hint(Hint::ListRuns))
            }
            _ => Ok(runs.swap_remove(age).into()),
        };
    }
    let position = match runs.iter().position(|run| run.run_id == name) {
        Some(exact) => Some(exact),
        None => unique_prefix(name, &runs)?,
    };
    match position {
        Some(position) => Ok(runs.swap_remove(position).into()),
        None => {
            Err(Error::not_found(format!("'{name}' is neither a run in {folder} nor a result file"))
                .hint(Hint::ListRuns))
        }
    }
}

/// Returns the id of the run that `latest` or `latest~N` names at present; `None` for other names.
pub fn relative_run_id(name: &str, layout: &Layout) -> Option<String> {
    parse_latest(name)?;
    find_run(name, layout).ok().map(|run| run.run_id)
}

/// Parses `latest` or `latest~N`, and returns N.
fn parse_latest(name: &str) -> Option<usize> {
    match name.strip_prefix(LATEST)? {
        "" => Some(0),
        "~" => Some(1),
        rest => rest.strip_prefix('~')?.parse().ok(),
    }
}

/// Returns the only run whose id begins with this prefix.
fn unique_prefix(prefix: &str, runs: &[Run]) -> Result<Option<usize>, Error> {
    if prefix.is_empty() {
        return Err(Error::invalid("empty run id").hint(Hint::ListRuns));
    }
    let matches: Vec<usize> = (0..runs.len()).filter(|index| runs[*index].run_id.starts_with(prefix)).collect();
    if matches.len() < 2 {
        return Ok(matches.first().copied());
    }
    let ids: Vec<&str> = matches.iter().take(MAX_LISTED_IDS).map(|index| runs[*index].run_id.as_str()).collect();
    let more = if matches.len() > ids.len() { " and others" } else { "" };
    let error = Error::invalid(format!("ambiguous run id: several runs begin with '{prefix}'"));
    Err(error.hint(format!("use a longer prefix: {}{more}", ids.join(", "))))
}

/// Shortens the ids of runs to prefixes of one length that are unique among them.
pub(crate) fn short_ids(runs: &[Run]) -> Vec<String> {
    let mut sorted: Vec<&str> = runs.iter().map(|run| run.run_id.as_str()).collect();
    sorted.sort_unstable();
    let common = |pair: &[&str]| pair[0].chars().zip(pair[1].chars()).take_while(|(left, right)| left == right).count();
    let length = sorted.windows(2).map(|pair| common(pair) + 1).max().unwrap_or(0).max(MIN_PREFIX_LENGTH);
    runs.iter().map(|run| run.run_id.chars().take(length).collect()).collect()
}

/// Reads the results that a run is compared with. Warns if they are incomplete.
pub(crate) fn load_baseline(baseline: &Baseline, context: &Context<'_>) -> Result<EarlierResults, Error> {
    let run = match baseline {
        Baseline::Named { path, .. } if path.is_dir() => {
            let results = EarlierResults::load_folder(path)?;
            if results.suites.is_empty() {
                let folder = path.display();
                return Err(Error::invalid(format!("the baseline folder {folder} contains no results")));
            }
            if let Some(incomplete) = Incomplete::find(&results.suites, 0).and_then(Incomplete::without_files) {
                let folder = context.settings.display_path(path);
                context.notices.warn(&format!("the baseline {folder} is incomplete: {incomplete}"));
            }
            return Ok(results);
        }
        _ => find_baseline(baseline, &context.settings.layout),
    };
    let run =
        run.map_err(|error| Error { message: format!("cannot read the baseline: {}", error.message), ..error })?;
    let suites = run.results()?;
    if let Some(incomplete) = run.incomplete(&suites) {
        context.notices.warn(&format!("the baseline, run {}, is incomplete: {incomplete}", run.run_id));
    }
    Ok(EarlierResults { suites })
}

/// Returns the warning for a suite without a result in the baseline.
pub(crate) fn no_baseline_warning(eval_file: &str) -> String {
    format!("the baseline has no result for {eval_file}: nothing to compare")
}

/// Finds the run of a baseline that is not a folder.
pub(crate) fn find_baseline(baseline: &Baseline, layout: &Layout) -> Result<NamedRun, Error> {
    match baseline {
        Baseline::Named { name, path } => find_run_or_file(name, path, layout),
        Baseline::Run(name) => find_run(name, layout),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn runs(ids: &[&str]) -> Vec<Run> {
        let run = |id: &&str| Run { run_id: (*id).to_owned(), timestamp: String::new(), results: Vec::new() };
        ids.iter().map(run).collect()
    }

    #[rstest]
    #[case("latest", Some(0))]
    #[case("latest~", Some(1))]
    #[case("latest~12", Some(12))]
    #[case("latest~-1", None)]
    #[case("latest~x", None)]
    #[case("latest.json", None)]
    #[case("019a", None)]
    fn parses_names_relative_to_the_newest_run(#[case] name: &str, #[case] expected: Option<usize>) {
        assert_eq!(parse_latest(name), expected);
    }

    #[test]
    fn a_prefix_must_be_unique() {
        let runs = runs(&["ab1", "ab2", "b"]);
        assert_eq!(unique_prefix("b", &runs).expect("unique"), Some(2));
        assert_eq!(unique_prefix("c", &runs).expect("no match"), None);
        let error = unique_prefix("ab", &runs).expect_err("ambiguous");
        assert_eq!(error.hints, ["use a longer prefix: ab1, ab2".into()]);
        assert!(unique_prefix("", &runs).is_err());
    }

    #[test]
    fn shortened_ids_are_unique() {
        assert_eq!(short_ids(&runs(&["0123456789a", "0123456789b", "1"])), ["0123456789a", "0123456789b", "1"]);
        assert_eq!(short_ids(&runs(&["0123456789a", "1123456789b"])), ["01234567", "11234567"]);
        assert!(short_ids(&[]).is_empty());
    }
}
