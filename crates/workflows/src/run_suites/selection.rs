//! Selects the cases to run.

use std::collections::HashSet;

use karat_cases::{Case, Difficulty, Tier};
use karat_core::shard::Shard;
use karat_json::nearest;
use karat_pattern::Pattern;
use karat_project::{EvalPath, LoadedRubric, LoadedSuite};

use crate::error::Error;
use crate::functions::eval_names;

/// The cases to run. All given criteria must match.
#[derive(Debug, Clone, Default)]
pub struct SelectionRequest {
    pub ids: Vec<String>,
    /// Names of tiers.
    pub tiers: Vec<String>,
    /// Names of difficulties.
    pub difficulties: Vec<String>,
    /// A case must have one of these tags.
    pub tags: Vec<String>,
    /// A case must have none of these tags.
    pub skip_tags: Vec<String>,
    /// A regular expression that id, description or message must match.
    pub grep: Option<String>,
    /// A case must name one of these eval functions.
    pub functions: Vec<String>,
    /// Only cases that did not pass: in `failed_in`, else in the baseline, else in the newest result.
    pub only_failed: bool,
    /// The name of the run whose failed cases are selected.
    pub failed_in: Option<String>,
    /// Only the cases of this shard.
    pub shard: Option<Shard>,
    /// The paths are only the changed files of a run, so they may lack ids and tags that other files have.
    pub is_part: bool,
}

/// The parsed selection.
pub(super) struct Selection {
    ids: Vec<String>,
    tiers: Vec<Tier>,
    difficulties: Vec<Difficulty>,
    tags: Vec<String>,
    skip_tags: Vec<String>,
    grep: Option<Pattern>,
    functions: Vec<String>,
    is_part: bool,
    /// The flags of the selection, for messages.
    flags: String,
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
            tags: request.tags.clone(),
            skip_tags: request.skip_tags.clone(),
            functions: request.functions.clone(),
            is_part: request.is_part,
            flags: flags(request),
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
        if paths.is_empty() { Err(self.nothing_selected()) } else { Ok(()) }
    }

    /// Retains the selected cases, and the files that have any.
    pub(super) fn apply(&self, loaded: &mut Vec<LoadedSuite>, rubrics: &mut Vec<LoadedRubric>) -> Result<(), Error> {
        if !self.is_part {
            self.check_ids(loaded, rubrics)?;
            self.check_tags(loaded, rubrics)?;
        }
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
            return Err(self.nothing_selected());
        }
        Ok(())
    }

    fn nothing_selected(&self) -> Error {
        Error::nothing_selected(match self.flags.as_str() {
            "" => "no case is selected".to_owned(),
            flags => format!("no case is selected by {flags}"),
        })
    }

    /// Rejects unknown ids, even if others are known.
    fn check_ids(&self, loaded: &[LoadedSuite], rubrics: &[LoadedRubric]) -> Result<(), Error> {
        let ids = all_cases(loaded, rubrics).flat_map(|case| [case.id.as_str(), case.written_id()]);
        check_known("id", &self.ids, ids.collect())
    }

    /// Rejects unknown tags, even if other tags match.
    fn check_tags(&self, loaded: &[LoadedSuite], rubrics: &[LoadedRubric]) -> Result<(), Error> {
        check_known("tag", &self.tags, known_tags(loaded, rubrics))
    }

    /// Returns the tags of `--skip-tag` that no case has.
    pub(super) fn unused_skip_tags(&self, loaded: &[LoadedSuite], rubrics: &[LoadedRubric]) -> Vec<&str> {
        if self.is_part {
            return Vec::new();
        }
        let known = known_tags(loaded, rubrics);
        self.skip_tags.iter().map(String::as_str).filter(|tag| !known.contains(tag)).collect()
    }

    fn matches(&self, case: &Case) -> bool {
        // The id of a table selects all its rows.
        let by_id = self.ids.is_empty() || self.ids.iter().any(|id| *id == case.id || id == case.written_id());
        let has_any = |tags: &[String]| tags.iter().any(|tag| case.tags.contains(tag));
        let by_tag = (self.tags.is_empty() || has_any(&self.tags)) && !has_any(&self.skip_tags);
        let by_function = self.functions.is_empty()
            || eval_names(case).any(|name| self.functions.iter().any(|function| function == name));
        let by_difficulty = self.difficulties.is_empty()
            || case.difficulty.is_some_and(|difficulty| self.difficulties.contains(&difficulty));
        by_id
            && by_difficulty
            && by_tag
            && by_function
            && self.grep.as_ref().is_none_or(|grep| matches_pattern(grep, case))
    }
}

/// Returns the flags that restrict a selection.
fn flags(request: &SelectionRequest) -> String {
    let lists = [
        ("id", &request.ids),
        ("tier", &request.tiers),
        ("difficulty", &request.difficulties),
        ("tag", &request.tags),
        ("skip-tag", &request.skip_tags),
    ];
    let flags =
        lists.into_iter().flat_map(|(flag, values)| values.iter().map(move |value| format!("--{flag} {value}")));
    let grep = request.grep.iter().map(|pattern| format!("--grep '{pattern}'"));
    flags.chain(grep).collect::<Vec<_>>().join(" ")
}

fn all_cases<'c>(loaded: &'c [LoadedSuite], rubrics: &'c [LoadedRubric]) -> impl Iterator<Item = &'c Case> {
    let rubric_cases = rubrics.iter().flat_map(|rubric| &rubric.file.cases).map(|case| &case.case);
    loaded.iter().flat_map(|loaded| &loaded.file.cases).chain(rubric_cases)
}

fn known_tags<'c>(loaded: &'c [LoadedSuite], rubrics: &'c [LoadedRubric]) -> HashSet<&'c str> {
    all_cases(loaded, rubrics).flat_map(|case| &case.tags).map(String::as_str).collect()
}

fn check_known(kind: &str, words: &[String], known: HashSet<&str>) -> Result<(), Error> {
    let Some(unknown) = words.iter().find(|word| !known.contains(word.as_str())) else {
        return Ok(());
    };
    let mut names: Vec<&str> = known.into_iter().collect();
    names.sort_unstable();
    let message = format!("no case has the {kind} '{unknown}'");
    let are_all_unknown = words.iter().all(|word| !names.contains(&word.as_str()));
    let error = if are_all_unknown { Error::nothing_selected(message) } else { Error::invalid(message) };
    Err(match nearest(unknown, &names) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error,
    })
}

fn matches_pattern(grep: &Pattern, case: &Case) -> bool {
    let texts = [case.id.as_str(), &case.description].into_iter().chain(case.messages());
    texts.into_iter().any(|text| grep.is_match(text).unwrap_or(false))
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
