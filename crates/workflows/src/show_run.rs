//! Reads a run, or one of its cases, from its result files.

use std::collections::HashMap;

use karat_cases::{SuiteFile, Tier};
use karat_core::assertion::Field;
use karat_core::result::{Outcome, SavedCase, SavedResult, SavedRun, SavedSuite, SkippedCase};
use karat_json::{nearest, parse, without_bom};
use karat_project::{parse_suite_file, read_bytes, read_head};
use serde_json::Value;

use crate::context::Context;
use crate::error::{Error, ErrorKind};
use crate::hint::Hint;
use crate::regress::project_file;
use crate::run_name::{NamedRun, find_run};
use crate::runs::read_saved_result;
use crate::settings::Settings;

pub struct Request {
    /// The name of a run; default: the newest. Without `case`, it can also be the id of a case of the newest run.
    pub run: Option<String>,
    /// Only the case with this id.
    pub case: Option<String>,
    /// Only cases that did not pass.
    pub only_failed: bool,
}

/// Reads a run. Fails if nothing matches.
pub fn show_run(request: &Request, context: &Context<'_>) -> Result<SavedRun, Error> {
    let settings = &context.settings;
    let (named, case) = find(request, settings)?;
    let mut run = read_run(&named, settings)?;
    if let Some(id) = case {
        let ids: Vec<String> = run.suites.iter().flat_map(case_ids).map(str::to_owned).collect();
        let did_not_run = run.suites.iter().any(|suite| suite.not_run.contains(&id));
        retain(&mut run, |case| case.id == id, |skipped| skipped.id == id);
        if run.suites.is_empty() && did_not_run {
            return Err(Error::not_found(format!("case '{id}' was selected in run {}, but did not run", run.run_id)));
        }
        if run.suites.is_empty() {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            let error = Error::not_found(format!("run {} has no case '{id}'", run.run_id));
            return Err(match nearest(&id, &ids) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error,
            });
        }
    }
    if request.only_failed {
        retain(&mut run, |case| case.outcome != Outcome::Passed, |_| false);
        if run.suites.is_empty() {
            let message = match run.incomplete {
                None => format!("every case passed in run {}", run.run_id),
                Some(incomplete) => {
                    format!("every case that ran passed in run {}, but it is incomplete: {incomplete}", run.run_id)
                }
            };
            return Err(Error::nothing_selected(message));
        }
    }
    Ok(run)
}

fn case_ids(suite: &SavedSuite) -> impl Iterator<Item = &str> {
    suite.cases.iter().map(|case| case.id.as_str()).chain(suite.skipped.iter().map(|case| case.id.as_str()))
}

fn retain(run: &mut SavedRun, keep_case: impl Fn(&SavedCase) -> bool, keep_skipped: impl Fn(&SkippedCase) -> bool) {
    for suite in &mut run.suites {
        suite.cases.retain(&keep_case);
        suite.skipped.retain(&keep_skipped);
        suite.not_run.clear();
    }
    run.suites.retain(|suite| !suite.cases.is_empty() || !suite.skipped.is_empty());
}

/// Finds the run, and the id of the case if the only name is one.
fn find(request: &Request, settings: &Settings) -> Result<(NamedRun, Option<String>), Error> {
    let layout = &settings.layout;
    let Some(name) = &request.run else {
        return Ok((find_run("latest", layout)?, request.case.clone()));
    };
    match find_run(name, layout) {
        Ok(run) => Ok((run, request.case.clone())),
        Err(error) if request.case.is_some() => Err(error),
        Err(error) => {
            let newest = find_run("latest", layout)?;
            let has_case = |result: SavedResult| {
                let ids = result.cases.iter().map(|case| &case.id).chain(result.skipped.iter().map(|case| &case.id));
                ids.chain(&result.not_run).any(|id| id == name)
            };
            if newest.paths.iter().filter_map(|path| read_saved_result(path)).any(has_case) {
                return Ok((newest, Some(name.clone())));
            }
            Err(match error.kind {
                ErrorKind::NotFound => {
                    Error::not_found(format!("'{name}' is neither a run nor a case of the newest run"))
                        .hint(Hint::ListRuns)
                }
                _ => error,
            })
        }
    }
}

fn read_run(run: &NamedRun, settings: &Settings) -> Result<SavedRun, Error> {
    let mut saved = SavedRun {
        run_id: run.run_id.clone(),
        timestamp: String::new(),
        incomplete: None,
        suites: Vec::new(),
        rubric_files: Vec::new(),
    };
    let mut results: Vec<SavedResult> = Vec::new();
    for path in &run.paths {
        if read_head(path).is_some_and(|head| head.tier == Some(Tier::Rubric)) {
            saved.rubric_files.push(settings.layout.display_path(path));
            continue;
        }
        let Some(result) = read_saved_result(path) else {
            return Err(Error::invalid(format!("{} is not a result file", settings.layout.display_path(path))));
        };
        saved.timestamp.clone_from(&result.timestamp);
        results.push(result);
    }
    saved.incomplete = run.incomplete(&results);
    saved.suites = results.into_iter().map(|result| saved_suite(result, settings)).collect();
    Ok(saved)
}

fn saved_suite(result: SavedResult, settings: &Settings) -> SavedSuite {
    let current = CurrentFile::read(&result, settings);
    let SavedResult { tier, tool_name, agent_endpoint, metadata, regressions, cases, skipped, not_run, .. } = result;
    let cases = cases.into_iter().map(|case| {
        let regression = regressions.contains(&case.id);
        let known = current.cases.get(&case.id).map(|(message, keys)| (message.clone(), keys.as_slice()));
        case.into_saved(regression, known)
    });
    SavedSuite {
        tool_name,
        tier,
        agent: agent_endpoint,
        cases: cases.collect(),
        skipped,
        not_run,
        eval_file: metadata.eval_file,
        eval_file_changed: current.is_changed,
    }
}

/// The eval file of a result: the message and the assertions of each case, if it is unchanged since the run.
#[derive(Default)]
struct CurrentFile {
    is_changed: bool,
    cases: HashMap<String, (String, Vec<String>)>,
}

impl CurrentFile {
    fn read(result: &SavedResult, settings: &Settings) -> Self {
        let changed = Self { is_changed: true, ..Self::default() };
        if result.metadata.eval_file.is_empty() {
            return Self::default();
        }
        let path = project_file(settings.layout.root.join(&result.metadata.eval_file), settings);
        let Ok(bytes) = read_bytes(&path) else { return changed };
        let Ok(SuiteFile::Eval(file)) = parse_suite_file(&path, &bytes) else { return changed };
        if file.hash != result.metadata.eval_file_hash {
            return changed;
        }
        let tree = parse(&String::from_utf8_lossy(without_bom(&bytes))).unwrap_or_default();
        let raw = tree.get("cases").unwrap_or(&tree).as_array().map_or(&[][..], Vec::as_slice);
        let cases = file.cases.iter().map(|case| {
            // The rows of a table share the text of their case.
            let raw = raw.get(case.location.index);
            let turns = raw.and_then(|raw| raw.get("turns")).and_then(Value::as_array).into_iter().flatten();
            let expects: Vec<&Value> = turns.chain(raw).filter_map(|part| part.get("expect")).collect();
            let keys = Field::ALL.into_iter().map(Field::name);
            let keys = keys.filter(|key| expects.iter().any(|expect| expect.get(key).is_some()));
            (case.id.clone(), (case.message_text().into_owned(), keys.map(str::to_owned).collect()))
        });
        Self { is_changed: false, cases: cases.collect() }
    }
}
