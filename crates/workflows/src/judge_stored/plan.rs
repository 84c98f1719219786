//! Selects the evals of a run and counts the missing executions.

use std::sync::Arc;

use karat_core::port::TraceStore;
use karat_core::stored::TraceFilter;
use karat_evals::port::EvalStore;
use karat_evals::version::{EvalSummary, EvalVersion};
use karat_sandbox::Function;
use karat_store::Store;

use super::{Request, guest_function, validate_version};
use crate::error::Error;
use crate::functions::{FunctionFile, find_functions};
use crate::hint::Hint;
use crate::notice::Notices;
use crate::settings::Settings;
use crate::stored_eval::{select_eval, select_version, versions_of};
use crate::trace_filter::no_match_error;

/// A version of an eval and the number of traces to judge.
pub(super) struct PlannedEval {
    pub(super) version: EvalVersion,
    pub(super) function: Arc<Function>,
    /// The code hash of its executions.
    pub(super) execution_hash: String,
    pub(super) judged_before: u64,
    pub(super) to_judge: u64,
}

/// Returns the number of selected traces and the planned evals.
pub(super) async fn plan(
    store: &Store,
    request: &Request,
    guest_hash: &str,
    settings: &Settings,
) -> Result<(u64, Vec<PlannedEval>), Error> {
    let evals = select_evals(store.evals().await?, &request.evals, settings)?;
    if request.version.is_some() && evals.len() != 1 {
        return Err(Error::invalid("--version requires exactly one eval"));
    }
    let mut chosen = Vec::with_capacity(evals.len());
    for eval in &evals {
        let version = select_version(&versions_of(store, eval).await?, request.version)?;
        let function = Arc::new(validate_version(&version)?);
        chosen.push((version, function));
    }
    let traces = store.count_traces(&request.filter).await?;
    if traces == 0 {
        return Err(no_traces(store, &request.filter).await?);
    }
    let mut planned = Vec::with_capacity(chosen.len());
    for (version, function) in chosen {
        let execution_hash = guest_function(&version, guest_hash).execution_hash();
        let to_judge = if request.again {
            traces
        } else {
            store.count_unjudged(&version.eval_id, version.version, &execution_hash, &request.filter).await?
        };
        // Traces may have been added in the meantime.
        let judged_before = traces.saturating_sub(to_judge);
        planned.push(PlannedEval { version, function, execution_hash, judged_before, to_judge });
    }
    Ok((traces, planned))
}

/// Returns the named evals, each once, in order; all evals without names.
fn select_evals(evals: Vec<EvalSummary>, names: &[String], settings: &Settings) -> Result<Vec<EvalSummary>, Error> {
    if names.is_empty() {
        if evals.is_empty() {
            return Err(Error::nothing_selected("no evals in the store").hint(Hint::AddEval { file: None }));
        }
        return Ok(evals);
    }
    let mut chosen: Vec<EvalSummary> = Vec::with_capacity(names.len());
    for name in names {
        let eval = select_eval(evals.clone(), name).map_err(|error| {
            if is_in_project(name, settings) {
                Error { hints: Vec::new(), ..error }.hint(Hint::AddEval { file: Some(name.clone()) })
            } else {
                error
            }
        })?;
        if chosen.iter().all(|other| other.eval_id != eval.eval_id) {
            chosen.push(eval);
        }
    }
    Ok(chosen)
}

fn is_in_project(name: &str, settings: &Settings) -> bool {
    let function_name = if name.starts_with("eval_") { name.to_owned() } else { format!("eval_{name}") };
    find_functions(settings).is_ok_and(|functions| functions.get(&function_name).is_some())
}

/// Warns about evals whose file in the project differs from the newest stored version.
pub(super) fn warn_about_edited_files(planned: &[PlannedEval], settings: &Settings, notices: &dyn Notices) {
    let project = match find_functions(settings) {
        Ok(project) => project,
        Err(error) => return notices.warn(&error.message),
    };
    for EvalVersion { eval_id, version, code_hash, .. } in planned.iter().map(|eval| &eval.version) {
        let is_edited = |file: &&FunctionFile| match &file.function {
            Ok(function) => function.name == *eval_id && function.code_hash != *code_hash,
            Err(_) => file.defines(eval_id),
        };
        for file in project.files.iter().filter(is_edited) {
            let path = &file.display_path;
            notices.warn(&format!(
                "{path} differs from the stored version {version}, which is used; add it with 'karat eval add {path}'"
            ));
        }
    }
}

async fn no_traces(store: &Store, filter: &TraceFilter) -> Result<Error, Error> {
    if store.count_traces(&TraceFilter::default()).await? == 0 {
        return Ok(Error::nothing_selected("no traces in the store").hint(Hint::ImportTraces));
    }
    let error = no_match_error(filter, store).await?;
    Ok(if error.hints.is_empty() { error.hint(Hint::FilterTraces) } else { error })
}
