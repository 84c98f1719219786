//! Adds a stored trace to the test cases of an eval function.

use std::io;
use std::path::Path;

use karat_core::port::TraceStore;
use karat_core::rating::Rating;
use karat_core::stored::{StoredTrace, TraceFilter};
use karat_evals::function_test::FunctionCase;
use karat_forge::{find_personal_data, trace_turns};
use karat_json::{Finding, InvalidFile};
use karat_project::{read_file, replace_file};
use karat_store::Store;
use serde_json::Value;

use crate::context::Context;
use crate::error::Error;
use crate::functions::load_functions;
use crate::notice::Notices;
use crate::settings::Settings;
use crate::trace_id::resolve_trace_id;

#[derive(Debug, Default)]
pub struct AddCaseRequest {
    /// The name of the function, with or without `eval_`, or its file.
    pub function: String,
    /// A trace id or its prefix.
    pub trace: String,
    /// The expected verdict; default: that of the trace's rating.
    pub expected: Option<bool>,
    /// A string that the reason must contain.
    pub reason: Option<String>,
    /// Default: the id of the trace.
    pub name: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct AddCaseReport {
    pub name: String,
    pub expected: bool,
    /// The name of the function.
    pub function: String,
    pub cases_file: String,
    pub new_file: bool,
}

/// Appends a case to the function's file of cases, which is created if it does not exist.
pub async fn add_case(request: AddCaseRequest, context: &Context<'_>) -> Result<AddCaseReport, Error> {
    let AddCaseRequest { function, trace, expected, reason, name } = request;
    let settings = &context.settings;
    let functions = load_functions(std::slice::from_ref(&function), settings)?;
    let [loaded] = functions.as_slice() else {
        return Err(Error::invalid(format!("'{function}' has {} functions", functions.len()))
            .hint("pass the name or the file of one function"));
    };
    let (trace, rating) = context.read_store(async |store| read_trace(&trace, store).await).await?;
    let id = &trace.head.trace_id;
    let expected = match (expected, rating) {
        (Some(expected), _) => expected,
        (None, Some(Rating::Positive)) => true,
        (None, Some(Rating::Negative)) => false,
        (None, _) => {
            let error = Error::invalid(format!(
                "cannot derive the expected verdict: trace '{id}' is rated neither good nor bad"
            ));
            return Err(error.hint("pass --expected pass or --expected fail"));
        }
    };
    warn_of_personal_data(&trace, context.notices)?;
    let name = name.unwrap_or_else(|| id.clone());
    let path = loaded.path.with_extension("cases.jsonl");
    let line = case_line(&name, &trace.text, expected, reason.as_deref());
    let _lock = context.edit_lock()?;
    let new_file = append(&path, &name, &line, settings)?;
    let cases_file = settings.display_path(&path);
    Ok(AddCaseReport { name, expected, function: loaded.function.name.clone(), cases_file, new_file })
}

async fn read_trace(trace: &str, store: &Store) -> Result<(StoredTrace, Option<Rating>), Error> {
    let id = resolve_trace_id(store, trace).await?;
    let removed = || Error::conflict(format!("trace '{id}' is no longer in the store"));
    let stored = store.trace(&id).await?.ok_or_else(removed)?;
    let filter = TraceFilter { ids: vec![id.clone()], ..TraceFilter::default() };
    let traces = store.list_traces(&filter).await?;
    Ok((stored, traces.first().and_then(|trace| trace.rating)))
}

fn warn_of_personal_data(trace: &StoredTrace, notices: &dyn Notices) -> Result<(), Error> {
    let turns = trace_turns(&trace.document()?);
    if let Some(data) = turns.iter().find_map(|turn| find_personal_data(&turn.message)) {
        notices.warn(&format!("the trace contains personal data ({data}): replace it unless the case may contain it"));
    }
    Ok(())
}

/// Returns a line for the file of cases. Line breaks in JSON occur only between values, so they can be replaced.
fn case_line(name: &str, trace: &str, expected: bool, reason: Option<&str>) -> String {
    let trace = trace.trim().replace(['\n', '\r'], " ");
    let reason = reason.map(|reason| format!(", \"reason\": {}", Value::from(reason))).unwrap_or_default();
    format!("{{\"name\": {}, \"trace\": {trace}, \"expected\": {expected}{reason}}}", Value::from(name))
}

/// Appends a line, and returns whether the file is new. Fails if the file has a case with this name.
fn append(path: &Path, name: &str, line: &str, settings: &Settings) -> Result<bool, Error> {
    let display_path = settings.display_path(path);
    let (bytes, new_file) = match read_file(path) {
        Ok(bytes) => (bytes, false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), true),
        Err(error) => return Err(Error::invalid(format!("cannot read {display_path}: {error}"))),
    };
    let invalid = |findings| Error::invalid_files(vec![InvalidFile::new(&display_path, &bytes, findings)]);
    let text = Finding::text_of(&bytes).map_err(invalid)?;
    let cases = FunctionCase::read_all(text).map_err(invalid)?;
    if cases.iter().any(|case| case.name.as_deref() == Some(name)) {
        let error = Error::invalid(format!("{display_path} already has a case '{name}'"));
        return Err(error.hint("pass another --name"));
    }
    let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    replace_file(path, &format!("{text}{separator}{line}\n"))
        .map_err(|error| Error::cannot_write(&display_path, &error))?;
    Ok(new_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_one_line() {
        let line = case_line("a \"b\"", "{\n  \"steps\": []\r\n}\n", false, Some("x\ny"));
        assert_eq!(line, r#"{"name": "a \"b\"", "trace": {   "steps": []  }, "expected": false, "reason": "x\ny"}"#);
        assert_eq!(FunctionCase::read_all(&line).map(|cases| cases.len()), Ok(1));
    }
}
