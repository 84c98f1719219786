//! Creates the template of a regression case from a failed case of a run.

use karat_cases::SuiteFile;
use karat_cases::registry::same_name;
use karat_core::result::{EarlierCase, EarlierResult, Outcome};
use karat_json::nearest;
use karat_project::{EvalPath, discover, parse_suite_file, read_bytes};
use serde_json::Value;

use super::template::Template;
use super::{project_file, raw_case};
use crate::context::Context;
use crate::error::Error;
use crate::hint::Hint;
use crate::run_name::find_run;
use crate::settings::Settings;

/// Finds a case of a run and reads it from its eval file.
pub(super) fn from_run(run: &str, id: &str, even_if_passed: bool, context: &Context<'_>) -> Result<Template, Error> {
    let (settings, notices) = (&context.settings, context.notices);
    let run = find_run(run, &settings.layout)?;
    let (results, run_id) = (run.results()?, run.run_id);
    let (result, case) = find_result(&results, id, &run_id)?;
    match case.outcome {
        Outcome::Failed => {}
        Outcome::Passed if even_if_passed => {}
        Outcome::Passed => {
            return Err(Error::invalid(format!("'{id}' passed in run {run_id}, so it does not show a bug"))
                .hint("pass --even-if-passed to use it anyway"));
        }
        Outcome::Errored => {
            let error = case.error.as_deref().unwrap_or_default();
            notices.warn(&format!("'{id}' has no verdict in that run: {error}"));
        }
    }
    let path = eval_file(result, settings)?;
    let bytes = read_bytes(&path)?;
    let Ok(SuiteFile::Eval(file)) = parse_suite_file(&path, &bytes) else {
        return Err(
            Error::invalid(format!("{} is no longer a valid eval file", path.display_path)).hint(Hint::CheckFiles)
        );
    };
    let hash = &result.metadata.eval_file_hash;
    if !hash.is_empty() && *hash != file.hash {
        notices.warn(&format!("{} changed since that run; using the current case", path.display_path));
    }
    // A row of a table has no text of its own.
    let row = || serde_json::to_value(file.cases.iter().find(|case| case.id == id)?).ok();
    let Some(raw) = raw_case(&bytes, id).or_else(row) else {
        return Err(Error::invalid(format!("{} no longer has a case '{id}'", path.display_path)));
    };
    Ok(Template {
        tool: file.tool_name,
        message: raw.pointer("/input/message").and_then(Value::as_str).unwrap_or_default().to_owned(),
        turns: raw.get("turns").cloned(),
        on_turn_failure: raw.get("onTurnFailure").cloned(),
        expect: raw.get("expect").and_then(Value::as_object).cloned().unwrap_or_default(),
        user: raw.get("user").cloned(),
        stubs: raw.get("stubs").cloned(),
        injections: raw.get("injections").cloned(),
        safety: raw.get("safety").cloned(),
        max_turns: raw.get("maxTurns").cloned(),
        description: case.error.clone().or_else(|| Some(case.description.clone())).filter(|text| !text.is_empty()),
        trace_ref: None,
    })
}

/// Finds the result of a case. With several agents, prefers a failed result.
fn find_result<'r>(
    results: &'r [EarlierResult],
    id: &str,
    run_id: &str,
) -> Result<(&'r EarlierResult, &'r EarlierCase), Error> {
    let select = |result: &'r EarlierResult| Some((result, result.cases.iter().find(|case| case.id == id)?));
    let mut all: Vec<(&EarlierResult, &EarlierCase)> = results.iter().filter_map(select).collect();
    all.sort_by_key(|(_, case)| match case.outcome {
        Outcome::Failed => 0,
        Outcome::Errored => 1,
        Outcome::Passed => 2,
    });
    let Some(&(result, case)) = all.first() else {
        let ids: Vec<&str> = results.iter().flat_map(|result| &result.cases).map(|case| case.id.as_str()).collect();
        let error = Error::not_found(format!("run {run_id} has no case '{id}'"));
        return Err(match nearest(id, &ids) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error,
        });
    };
    let is_other = |other: &EarlierResult| other.metadata.eval_file != result.metadata.eval_file;
    if let Some((other, _)) =
        all.iter().find(|(other, other_case)| other_case.outcome == case.outcome && is_other(other))
    {
        let (left, right) = (&result.metadata.eval_file, &other.metadata.eval_file);
        return Err(Error::invalid(format!("the id '{id}' is in {left} and in {right}"))
            .hint("pass --message and the expectation instead of --from-run"));
    }
    Ok((result, case))
}

/// Finds the eval file of a result: by its recorded path, else by tool and tier.
fn eval_file(result: &EarlierResult, settings: &Settings) -> Result<EvalPath, Error> {
    let recorded = &result.metadata.eval_file;
    let path = settings.layout.root.join(recorded);
    if !recorded.is_empty() && path.is_file() {
        return Ok(project_file(path, settings));
    }
    let is_of_suite = |path: &EvalPath| match read_bytes(path).map(|bytes| parse_suite_file(path, &bytes)) {
        Ok(Ok(SuiteFile::Eval(file))) => file.tier == result.tier && same_name(&file.tool_name, &result.tool_name),
        _ => false,
    };
    let all = discover(&[], &settings.layout, &settings.layout.current_dir)?;
    all.into_iter().find(is_of_suite).ok_or_else(|| {
        let missing = if recorded.is_empty() {
            format!("the {} eval file of {}", result.tier, result.tool_name)
        } else {
            recorded.clone()
        };
        Error::invalid(format!("the eval file of that run no longer exists: {missing}"))
            .hint("pass --message and the expectation instead of --from-run")
    })
}
