//! Selects the cases to run.

use std::collections::HashSet;

use karat_core::case::{Case, Difficulty, Tier};
use karat_json::nearest;
use karat_pattern::Pattern;
use karat_project::{EvalPath, LoadedRubric, LoadedSuite};

use crate::error::Error;

/// The cases to run. All given criteria must match.
#[derive(Debug, Clone, Default)]
pub struct SelectionRequest {
    pub ids: Vec<String>,
    /// Names of tiers.
    pub tiers: Vec<String>,
    /// Names of difficulties.
    pub difficulties: Vec<String>,
    /// A regular expression that id, description or message must match.
    pub grep: Option<String>,
    /// Only cases that did not pass in the baseline, or in the newest result without a baseline.
    pub only_failed: bool,
}

/// The parsed selection.
pub(super) struct Selection {
    ids: Vec<String>,
    tiers: Vec<Tier>,
    difficulties: Vec<Difficulty>,
    grep: Option<Pattern>,
}

impl Selection {
    pub(super) fn new(request: &SelectionRequest) -> Result<Self, Error> {
        let grep = request.grep.as_deref().map(Pattern::compile).transpose();
        Ok(Self {
            ids: request.ids.clone(),
            tiers: parse_names("tier", &request.tiers, &Tier::NAMED.map(Tier::name), Tier::from_name)?,
            difficulties: parse_names(
                "difficulty",
                &request.difficulties,
                &Difficulty::ALL.map(Difficulty::name),
                Difficulty::from_name,
            )?,
            grep: grep.map_err(|error| Error::invalid(format!("invalid regular expression in --grep: {error}")))?,
        })
    }

    /// Drops files with names of other tiers before they are parsed, so that invalid ones do not matter.
    pub(super) fn drop_other_tiers(&self, paths: &mut Vec<EvalPath>) -> Result<(), Error> {
        let is_other = |path: &EvalPath| {
            let name = path.path.file_name().unwrap_or_default().to_string_lossy();
            Tier::from_file_name(&name).is_some_and(|tier| !self.tiers.contains(&tier))
        };
        if !self.tiers.is_empty() {
            paths.retain(|path| !is_other(path));
        }
        if paths.is_empty() { Err(Error::nothing_selected("no case is selected")) } else { Ok(()) }
    }

    /// Retains the selected cases, and the files that have any.
    pub(super) fn apply(&self, loaded: &mut Vec<LoadedSuite>, rubrics: &mut Vec<LoadedRubric>) -> Result<(), Error> {
        self.check_ids(loaded, rubrics)?;
        loaded.retain(|loaded| self.tiers.is_empty() || self.tiers.contains(&loaded.file.tier));
        for loaded in loaded.iter_mut() {
            loaded.file.cases.retain(|case| self.matches(case));
        }
        loaded.retain(|loaded| !loaded.file.cases.is_empty());
        rubrics.retain(|_| self.tiers.is_empty() || self.tiers.contains(&Tier::Rubric));
        for rubric in rubrics.iter_mut() {
            rubric.file.cases.retain(|case| self.matches(&case.case));
        }
        rubrics.retain(|rubric| !rubric.file.cases.is_empty());
        if loaded.is_empty() && rubrics.is_empty() {
            return Err(Error::nothing_selected("no case is selected"));
        }
        Ok(())
    }

    /// Rejects unknown ids, even if others are known.
    fn check_ids(&self, loaded: &[LoadedSuite], rubrics: &[LoadedRubric]) -> Result<(), Error> {
        let rubric_cases = rubrics.iter().flat_map(|rubric| &rubric.file.cases).map(|case| &case.case);
        let cases = loaded.iter().flat_map(|loaded| &loaded.file.cases).chain(rubric_cases);
        let known: HashSet<&str> = cases.map(|case| case.id.as_str()).collect();
        let Some(unknown) = self.ids.iter().find(|id| !known.contains(id.as_str())) else {
            return Ok(());
        };
        let mut names: Vec<&str> = known.into_iter().collect();
        names.sort_unstable();
        let message = format!("no case has the id '{unknown}'");
        let are_all_unknown = self.ids.iter().all(|id| !names.contains(&id.as_str()));
        let error = if are_all_unknown { Error::nothing_selected(message) } else { Error::invalid(message) };
        Err(match nearest(unknown, &names) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error,
        })
    }

    fn matches(&self, case: &Case) -> bool {
        let by_id = self.ids.is_empty() || self.ids.contains(&case.id);
        let by_difficulty = self.difficulties.is_empty()
            || case.difficulty.is_some_and(|difficulty| self.difficulties.contains(&difficulty));
        by_id && by_difficulty && self.grep.as_ref().is_none_or(|grep| matches_pattern(grep, case))
    }
}

fn matches_pattern(grep: &Pattern, case: &Case) -> bool {
    [&case.id, &case.description, &case.input.message].iter().any(|text| grep.is_match(text).unwrap_or(false))
}

fn parse_names<T>(
    flag: &str,
    values: &[String],
    names: &[&str],
    from_name: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Error> {
    let read = |word: &String| {
        from_name(word).ok_or_else(|| {
            let error = Error::invalid(format!("invalid value '{word}' for --{flag}"));
            match nearest(word, names) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error.hint(format!("expected one of: {}", names.join(", "))),
            }
        })
    };
    values.iter().map(read).collect()
}
