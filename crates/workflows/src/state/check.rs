//! Checks the state sources that cases name.

use std::collections::BTreeMap;

use karat_cases::{Case, EvalFile, ParamCheck, StatePredicate, UnchangedState};
use karat_json::{Problem, Subject, nearest};
use karat_project::LoadedSuite;
use karat_state::{SourceConfig, SourceForm};

use crate::case_problems::locate_in_file;
use crate::error::Error;
use crate::settings::Settings;

/// The assertions that apply to a text.
const TEXT_CHECKS: [ParamCheck; 5] =
    [ParamCheck::Equals, ParamCheck::Contains, ParamCheck::NotContains, ParamCheck::Matches, ParamCheck::HasLength];

/// Rejects cases that name a source which the configuration lacks, or assert of a text what only JSON has.
pub(crate) fn check_sources(loaded: &[&LoadedSuite], settings: &Settings) -> Result<(), Error> {
    let sources = &settings.state.sources.value;
    let mut invalid = Vec::new();
    for suite in loaded {
        if !unknown_in(&suite.file, "", &|_| true, sources).is_empty() {
            invalid.push(locate_in_file(suite, |file, prefix, is_selected| {
                unknown_in(file, prefix, is_selected, sources)
            })?);
        }
    }
    if invalid.is_empty() { Ok(()) } else { Err(Error::invalid_files(invalid)) }
}

/// Returns the problems of entries in selected cases of a file; `prefix` is the pointer to the cases.
pub(crate) fn unknown_in(
    file: &EvalFile,
    prefix: &str,
    is_selected: &dyn Fn(&Case) -> bool,
    sources: &BTreeMap<String, SourceConfig>,
) -> Vec<Problem> {
    let mut problems = Vec::new();
    let selected = file.cases.iter().filter(|case| is_selected(case));
    let located = selected.flat_map(|case| {
        let safety = case.safety.as_ref().map(|safety| ("safety", safety));
        [("expect", &case.expect)].into_iter().chain(safety).map(move |(key, expect)| (case, key, expect))
    });
    for (case, key, expect) in located {
        let mut push = |below: String, message: String, help: String| {
            problems.push(Problem {
                pointer: format!("{prefix}/{}/{key}{below}", case.location.index),
                subject: Subject::Value,
                case_id: Some(case.id.clone()),
                message,
                help: Some(help),
            });
        };
        for (below, name) in expect.state_sources() {
            if !sources.contains_key(name) {
                let (message, help) = unknown_source(name, sources);
                push(format!("{below}/source"), message, help);
            }
        }
        let is_text = |name: &str| sources.get(name).is_some_and(|source| source.form == SourceForm::Text);
        for (index, predicate) in expect.state.iter().flatten().enumerate() {
            let StatePredicate { source, path, assertion, .. } = predicate;
            if !is_text(source) {
                continue;
            }
            if !TEXT_CHECKS.contains(assertion) {
                let message = format!("'{}' does not apply to '{source}', whose state is a text", assertion.name());
                let names: Vec<&str> = TEXT_CHECKS.into_iter().map(ParamCheck::name).collect();
                push(format!("/state/{index}/assertion"), message, format!("use one of {}", names.join(", ")));
            }
            if !path.is_empty() {
                push_text_pointer(format!("/state/{index}/path"), source, &mut push);
            }
        }
        for (index, UnchangedState { source, except }) in expect.state_unchanged.iter().flatten().enumerate() {
            if is_text(source) && !except.is_empty() {
                push_text_pointer(format!("/stateUnchanged/{index}/except"), source, &mut push);
            }
        }
    }
    problems
}

fn push_text_pointer(below: String, source: &str, push: &mut impl FnMut(String, String, String)) {
    let message = format!("the state of '{source}' is a text, which has no parts");
    push(below, message, "remove the pointer, or \"as\": \"text\" of the source".to_owned());
}

fn unknown_source(name: &str, sources: &BTreeMap<String, SourceConfig>) -> (String, String) {
    let message = format!("the configuration has no state source '{name}'");
    let names: Vec<&str> = sources.keys().map(String::as_str).collect();
    let help = match nearest(name, &names) {
        Some(near) => format!("did you mean '{near}'?"),
        None if names.is_empty() => "define it in 'stateSources' of karat.json".to_owned(),
        None => format!("known state sources: {}", names.join(", ")),
    };
    (message, help)
}
