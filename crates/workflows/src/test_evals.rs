//! Runs the cases of eval functions in the sandbox.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use karat_evals::function_test::{EvalTestReport, FunctionCase, TestedCase, TestedFunction};
use karat_json::{Finding, InvalidFile};
use karat_project::read_file;
use karat_sandbox::{FunctionRunner, Input, Sandbox};

use crate::context::Context;
use crate::context::sandbox::SandboxOptions;
use crate::error::Error;
use crate::functions::{LoadedFunction, load_functions, no_functions};
use crate::settings::Settings;

/// Suffix of a file of cases, after the name of the function.
const CASES_SUFFIX: &str = ".cases.jsonl";

pub struct Request {
    /// Files, folders and names of functions; all functions of the project if empty.
    pub functions: Vec<String>,
    pub options: SandboxOptions,
}

/// Judges the cases of each function. Runs nothing if any function or case is invalid.
pub async fn test_evals(request: &Request, context: &Context<'_>) -> Result<EvalTestReport, Error> {
    let settings = &context.settings;
    let functions = load_functions(&request.functions, settings)?;
    if functions.is_empty() {
        return Err(no_functions(settings));
    }
    let suites = read_cases(functions, settings)?;
    let sandbox = if suites.iter().any(|suite| !suite.cases.is_empty()) { Some(context.open_sandbox()?) } else { None };
    let mut tested = Vec::with_capacity(suites.len());
    for suite in suites {
        let cases = match &sandbox {
            Some(sandbox) if !suite.cases.is_empty() => judge(&suite, sandbox, request.options).await?,
            _ => Vec::new(),
        };
        tested.push(TestedFunction {
            eval_id: suite.loaded.function.name.clone(),
            file: suite.loaded.display_path,
            cases_file: settings.display_path(&suite.cases_file),
            has_cases_file: suite.has_cases_file,
            cases,
        });
    }
    // Other files do not matter if functions are selected.
    let orphans = if request.functions.is_empty() { cases_without_function(settings)? } else { Vec::new() };
    Ok(EvalTestReport::new(tested, orphans))
}

/// Returns the files of cases whose function does not exist, so that they never run.
fn cases_without_function(settings: &Settings) -> Result<Vec<String>, Error> {
    let folder = &settings.eval_functions.path;
    let entries = folder
        .read_dir()
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(|error| Error::invalid(format!("cannot read {}: {error}", settings.display_path(folder))))?;
    let is_orphan = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let function = name.strip_suffix(CASES_SUFFIX).filter(|function| !function.starts_with('.'));
        // A file with a leading underscore is not a function.
        function.is_some_and(|name| name.starts_with('_') || !folder.join(format!("{name}.py")).is_file())
    };
    let mut orphans: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).filter(is_orphan).collect();
    orphans.sort();
    Ok(orphans.iter().map(|path| settings.display_path(path)).collect())
}

/// A function with its cases.
struct Suite {
    loaded: LoadedFunction,
    cases_file: PathBuf,
    has_cases_file: bool,
    cases: Vec<FunctionCase>,
}

/// Reads the cases of all functions. The error has the findings of all invalid files.
fn read_cases(functions: Vec<LoadedFunction>, settings: &Settings) -> Result<Vec<Suite>, Error> {
    let mut suites = Vec::with_capacity(functions.len());
    let mut invalid = Vec::new();
    for loaded in functions {
        let cases_file = loaded.path.with_extension("cases.jsonl");
        let display_path = settings.display_path(&cases_file);
        let (has_cases_file, bytes) = match read_file(&cases_file) {
            Ok(bytes) => (true, bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (false, Vec::new()),
            Err(error) => return Err(Error::invalid(format!("cannot read {display_path}: {error}"))),
        };
        match Finding::text_of(&bytes).and_then(FunctionCase::read_all) {
            Ok(cases) => suites.push(Suite { loaded, cases_file, has_cases_file, cases }),
            Err(findings) => invalid.push(InvalidFile::new(&display_path, &bytes, findings)),
        }
    }
    if invalid.is_empty() { Ok(suites) } else { Err(Error::invalid_files(invalid)) }
}

async fn judge(suite: &Suite, sandbox: &Sandbox, options: SandboxOptions) -> Result<Vec<TestedCase>, Error> {
    let cases = &suite.cases;
    if suite.loaded.function.takes_context {
        return judge_with_context(suite, sandbox, options);
    }
    let jobs = options.jobs.min(cases.len());
    let task = SandboxOptions { jobs, ..options }.task(vec![Arc::clone(&suite.loaded.function)]);
    let input = |case: &FunctionCase| Input { key: (), text: Ok(case.trace.clone().into_bytes()) };
    let judged = sandbox.judge_all(&task, cases.iter().map(input).collect()).await?;
    let conclusions = judged.into_iter().flat_map(|judged| judged.judgements).map(|judgement| judgement.conclusion);
    let tested = cases.iter().cloned().zip(conclusions);
    Ok(tested.map(|(case, conclusion)| TestedCase::new(case, conclusion)).collect())
}

/// Judges the cases one after the other, each with its context.
fn judge_with_context(suite: &Suite, sandbox: &Sandbox, options: SandboxOptions) -> Result<Vec<TestedCase>, Error> {
    let function = &suite.loaded.function;
    let SandboxOptions { limits, isolation, .. } = options;
    let runner = FunctionRunner::new(sandbox, vec![Arc::clone(function)], limits, isolation, 1)?;
    let judge = |case: &FunctionCase| {
        let judgement = runner.judge_text(&function.name, case.trace.as_bytes(), &case.context);
        TestedCase::new(case.clone(), judgement.conclusion)
    };
    Ok(suite.cases.iter().map(judge).collect())
}
