//! Adopts an evaluator of another framework as an eval function.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::judgement::{ErrorKind, EvalContext, ReturnForm};
use karat_project::{create_file, read_file};
use karat_sandbox::{
    AdoptError, AdoptRequest, AdoptedFunction, Finding, Framework, Function, FunctionRunner, OPTIONAL_MODULES,
    ProjectModule, ProjectRules, Rule, adopt, unavailable_reason, validate_with,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::context::sandbox::SandboxOptions;
use crate::error::Error;
use crate::settings::{EvalRules, Settings};

pub struct Request {
    /// The file of the evaluator.
    pub file: PathBuf,
    /// The name of the function or class; required if the file has several evaluators.
    pub function: Option<String>,
    /// The name of the eval function; default: that of the evaluator.
    pub name: Option<String>,
    /// The trace for the test run; default: a trace of a weather agent.
    pub trace: Option<Value>,
    /// The reference for the test run; default: the response of the trace.
    pub reference: Option<Value>,
    /// The parameters for the test run.
    pub params: Map<String, Value>,
    /// Whether to write nothing.
    pub is_dry_run: bool,
    pub options: SandboxOptions,
}

/// The output of `karat eval adopt --format json`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "karat eval adopt report")]
pub struct AdoptReport {
    pub framework: Framework,
    /// The file of the evaluator.
    pub source: String,
    /// The name of the evaluator.
    pub evaluator: String,
    /// The name of the eval function.
    pub eval_id: String,
    /// The files of the eval function and its helper modules, in the folder of eval functions.
    pub files: Vec<String>,
    /// Whether the files were written.
    pub written: bool,
    /// Modules that must be added to `evalImports` before it can run.
    pub missing_imports: Vec<String>,
    /// Differences from the framework.
    pub notes: Vec<String>,
    /// Reasons why it cannot be adopted; empty if it can.
    pub obstacles: Vec<String>,
    /// The result of the test run; null if it cannot run.
    pub trial: Option<Trial>,
    /// The code of the eval function.
    pub code: String,
}

/// The result of an adopted function on a trace.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trial {
    /// True: passed. False: failed. Null: not applicable, or an error.
    pub result: Option<bool>,
    pub applicable: bool,
    pub score: Option<f64>,
    pub reason: Option<String>,
    pub error: Option<String>,
    pub error_kind: Option<ErrorKind>,
}

/// The files of an adopted function: paths and contents.
type Files = Vec<(PathBuf, String)>;

pub fn adopt_eval(request: &Request, context: &Context<'_>) -> Result<AdoptReport, Error> {
    let settings = &context.settings;
    let source_path = settings.layout.current_dir.join(&request.file);
    let source_name = settings.display_path(&source_path);
    let source =
        read_file(&source_path).map_err(|error| Error::invalid(format!("cannot read {source_name}: {error}")))?;
    let name = request.name.as_deref().map(crate::evals::parse_name).transpose()?.map(|name| format!("eval_{name}"));
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (root, real_path) = (real(&settings.layout.root), real(&source_path));
    let find_module = |importer: &Path, module: &str| find_module(&root, importer, module);
    let adopt_request = AdoptRequest {
        source: &source,
        path: &real_path,
        function: request.function.as_deref(),
        name: name.as_deref(),
        find_module: &find_module,
    };
    let adopted =
        adopt(&adopt_request).map_err(|error| adopt_error(error, &source_name, request.function.as_deref()))?;
    let files = files_of(&adopted, settings);
    let mut report = AdoptReport {
        framework: adopted.framework,
        source: source_name,
        evaluator: adopted.source_name.clone(),
        eval_id: adopted.name.clone(),
        files: files.iter().map(|(path, _)| settings.display_path(path)).collect(),
        written: false,
        missing_imports: Vec::new(),
        notes: adopted.notes.clone(),
        obstacles: adopted.obstacles.clone(),
        trial: None,
        code: adopted.code.clone(),
    };
    let is_missing = |name: &&String| !request.params.contains_key(*name);
    let missing = adopted.required_params.iter().filter(is_missing);
    report.obstacles.extend(missing.map(|name| {
        format!(
            "its constructor needs '{name}': pass --params '{{\"{name}\": …}}', and add it to 'params' of the entry"
        )
    }));
    if !report.obstacles.is_empty() {
        return Ok(report);
    }
    match validate_adopted(&adopted) {
        Ok(function) => {
            let EvalRules { imports: allowed, .. } = &settings.eval_rules;
            let missing = function.options.imports.iter().filter(|module| !allowed.contains(module));
            report.missing_imports = missing.cloned().collect();
            report.trial = Some(run_trial(function, request, context)?);
            if !request.is_dry_run {
                write_files(&files, settings)?;
                report.written = true;
            }
        }
        Err(obstacles) => report.obstacles = obstacles,
    }
    Ok(report)
}

fn adopt_error(error: AdoptError, source: &str, function: Option<&str>) -> Error {
    let message = match function {
        Some(function) => format!("cannot adopt {source}:{function}: {error}"),
        None => format!("cannot adopt {source}: {error}"),
    };
    match error {
        AdoptError::Several(names) => {
            let first = names.first().cloned().unwrap_or_default();
            Error::invalid(message).hint(format!("choose one, for example: karat eval adopt {source}:{first}"))
        }
        AdoptError::NoneFound { functions } if function.is_none() && !functions.is_empty() => {
            Error::invalid(message).hint(format!("choose a function: {}", functions.join(", ")))
        }
        AdoptError::NoneFound { .. } => Error::invalid(message)
            .hint(
                "expected the parameters of promptfoo, Braintrust, Langfuse, LangSmith, Phoenix, MLflow, DeepEval or \
                 OpenAI graders, or two such as 'prediction' and 'expected'",
            )
            .hint("karat eval new NAME creates a function in karat's own form"),
        AdoptError::ForeignBase { .. } => Error::invalid(message).hint("move the base class into the file"),
        AdoptError::Unknown(_) | AdoptError::Invalid(_) => Error::invalid(message),
    }
}

/// Finds the module that a file imports: beside it or in a folder above, up to the project's root, and there also in
/// `src`. A file outside of the project finds only the modules beside it. Relative names start with a dot.
fn find_module(root: &Path, importer: &Path, module: &str) -> Option<ProjectModule> {
    let name = module.trim_start_matches('.');
    let level = module.len() - name.len();
    let parts: Vec<&str> = name.split('.').filter(|part| !part.is_empty()).collect();
    let folder = importer.parent()?;
    let is_inside = |folder: &&Path| folder.starts_with(root);
    let folders: Vec<PathBuf> = if level > 0 {
        let above = folder.ancestors().nth(level - 1).filter(|above| is_inside(above) || *above == folder);
        above.map(Path::to_owned).into_iter().collect()
    } else if is_inside(&folder) {
        let above = folder.ancestors().take_while(is_inside);
        above.flat_map(|folder| [folder.to_owned(), folder.join("src")]).collect()
    } else {
        vec![folder.to_owned()]
    };
    let file = |folder: &PathBuf| {
        let path: PathBuf = std::iter::once(folder.as_path()).chain(parts.iter().map(Path::new)).collect();
        let module = parts.last().map(|last| path.with_file_name(format!("{last}.py")));
        module.into_iter().chain([path.join("__init__.py")]).find(|path| path.is_file())
    };
    let path = folders.iter().find_map(file)?;
    Some(ProjectModule { source: read_file(&path).ok()?, path })
}

fn files_of(adopted: &AdoptedFunction, settings: &Settings) -> Files {
    let folder = &settings.eval_functions.path;
    let stem = adopted.name.strip_prefix("eval_").unwrap_or(&adopted.name);
    let mut files = vec![(folder.join(format!("{stem}.py")), adopted.code.clone())];
    files.extend(adopted.helpers.iter().map(|(name, code)| (folder.join(format!("{name}.py")), code.clone())));
    files
}

/// Validates the adopted code as if the project allowed its imports; an error lists the obstacles.
fn validate_adopted(adopted: &AdoptedFunction) -> Result<Function, Vec<String>> {
    let helpers = &adopted.helpers;
    let helper = |name: &str| helpers.get(name).map(|code| code.clone().into_bytes());
    let imports = OPTIONAL_MODULES.map(str::to_owned);
    let rules =
        ProjectRules { imports: &imports, returns: ReturnForm::Flexible, helper: &helper, ..ProjectRules::default() };
    let obstacle = |finding: Finding| match adopted.code.get(finding.range) {
        Some(module) if finding.rule == Rule::Import && !helpers.contains_key(module) => unavailable_reason(module),
        _ => format!("validation failed: {}", finding.message),
    };
    validate_with(adopted.code.as_bytes(), &rules).map_err(|findings| {
        let obstacles: BTreeSet<String> = findings.into_iter().map(obstacle).collect();
        obstacles.into_iter().collect()
    })
}

fn run_trial(function: Function, request: &Request, context: &Context<'_>) -> Result<Trial, Error> {
    let SandboxOptions { limits, isolation, .. } = request.options;
    let name = function.name.clone();
    let sandbox = context.open_sandbox()?;
    let runner = FunctionRunner::new(&sandbox, vec![Arc::new(function)], limits, isolation, 1)?;
    let trace = request.trace.clone().unwrap_or_else(sample_trace);
    let response = trace.pointer("/steps/0/output/response").cloned();
    let reference = request.reference.clone().or(response);
    let eval_context = EvalContext { case: None, reference, params: request.params.clone() };
    let judgement = runner.judge_text(&name, trace.to_string().as_bytes(), &eval_context);
    let (score, applicable) = (judgement.score, judgement.conclusion.is_applicable());
    let (result, reason, error) = judgement.conclusion.into_parts();
    let (error, error_kind) = error.map(|error| (error.message, error.kind)).unzip();
    Ok(Trial { result, applicable, score, reason, error, error_kind })
}

fn sample_trace() -> Value {
    json!({
        "trace_id": "sample",
        "steps": [{
            "input": { "message": "What is the weather in Tokyo?" },
            "output": { "response": "It is sunny in Tokyo, 21 degrees." },
            "tool_calls": [{ "name": "get_weather", "arguments": { "city": "Tokyo" }, "result": { "degrees": 21 } }],
            "error": null,
        }],
    })
}

/// Writes the files, unless one of them exists with other contents.
fn write_files(files: &Files, settings: &Settings) -> Result<(), Error> {
    let is_same = |path: &Path, text: &str| read_file(path).is_ok_and(|bytes| bytes == text.as_bytes());
    if let Some((path, _)) = files.iter().find(|(path, text)| path.exists() && !is_same(path, text)) {
        let path = settings.display_path(path);
        return Err(Error::invalid(format!("{path} already exists")).hint("pass --name to use another name"));
    }
    for (path, text) in files.iter().filter(|(path, _)| !path.exists()) {
        create_file(path, text.as_bytes())
            .map_err(|error| Error::invalid(format!("cannot write {}: {error}", settings.display_path(path))))?;
    }
    Ok(())
}

/// Splits `FILE:FUNCTION`.
pub fn parse_source(argument: &str) -> (PathBuf, Option<String>) {
    match argument.rsplit_once(':') {
        Some((file, function)) if !function.is_empty() && !function.contains(['/', '\\', '.']) && file.len() > 1 => {
            (PathBuf::from(file), Some(function.to_owned()))
        }
        _ => (PathBuf::from(argument), None),
    }
}
