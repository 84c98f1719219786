//! `karat eval test`: the cases that are kept beside eval functions.

use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use karat_core::exit::ExitStatus;
use karat_core::judgement::{Conclusion, EvalTestReport, FunctionCase, TestedCase, TestedFunction};
use karat_json::Finding;
use karat_report::eval_test_text;
use karat_sandbox::{Input, Judged, Sandbox, Task, Unit, judge_in_order};

use crate::args::{EvalTestArgs, OutputFormat};
use crate::diagnostic::print_findings;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use karat_json::without_bom;
use karat_workflows::context::sandbox::open_sandbox;
use karat_workflows::functions::{LoadedFunction, load_functions, no_functions, paths_among};
use karat_workflows::settings::Settings;

/// How many cases a thread is given at once.
const BATCH: usize = 4;

/// A function with its cases.
struct Suite {
    loaded: LoadedFunction,
    cases_file: PathBuf,
    has_cases_file: bool,
    cases: Vec<FunctionCase>,
}

pub(crate) fn run(args: &EvalTestArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let paths = paths_among(&args.functions, &environment.process.current_dir);
    let settings = resolve_settings(&args.limits.config_args(), &paths, environment, printer)?;
    let task = Task {
        functions: Vec::new(),
        limits: args.limits.limits(settings.eval_limits)?,
        isolation: args.limits.isolation(),
        jobs: args.limits.jobs()?,
    };
    let functions = load_functions(&args.functions, &settings)?;
    if functions.is_empty() {
        return Err(no_functions(&settings).into());
    }
    let suites = read_cases(functions, &settings, printer)?;
    let mut tested = Vec::with_capacity(suites.len());
    if suites.iter().any(|suite| !suite.cases.is_empty()) {
        let sandbox = open_sandbox(environment.process.guest.as_deref())?;
        let _runtime = runtime_that_ends()?;
        for suite in suites {
            tested.push(judge(suite, &sandbox, &task, &settings)?);
        }
    } else {
        tested.extend(suites.into_iter().map(|suite| suite.tested(Vec::new(), &settings)));
    }
    let report = EvalTestReport::new(tested);
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human => printer.print(&eval_test_text(&report, printer.console()))?,
    }
    Ok(status(&report))
}

/// An error ranks above a mismatch: there is no verdict to compare.
fn status(report: &EvalTestReport) -> ExitStatus {
    let summary = &report.summary;
    match (summary.passed, summary.failed, summary.errored) {
        (_, _, 1..) => ExitStatus::Errored,
        (_, 1.., _) => ExitStatus::Failed,
        (0, _, _) => ExitStatus::NothingSelected,
        _ => ExitStatus::Success,
    }
}

/// Reads the cases of all functions; where any is invalid, the findings of all are shown and nothing is run.
fn read_cases(functions: Vec<LoadedFunction>, settings: &Settings, printer: &Printer) -> Result<Vec<Suite>, Failure> {
    let mut suites = Vec::with_capacity(functions.len());
    let mut is_valid = true;
    for loaded in functions {
        let cases_file = loaded.path.with_extension("cases.jsonl");
        let shown = settings.shown(&cases_file);
        let (has_cases_file, bytes) = match std::fs::read(&cases_file) {
            Ok(bytes) => (true, bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (false, Vec::new()),
            Err(error) => return Err(Failure::invalid(format!("cannot read {shown}: {error}"))),
        };
        match Finding::text_of(&bytes).and_then(FunctionCase::read_all) {
            Ok(cases) => suites.push(Suite { loaded, cases_file, has_cases_file, cases }),
            Err(findings) => {
                is_valid = false;
                print_findings(&shown, &String::from_utf8_lossy(without_bom(&bytes)), &findings, printer);
            }
        }
    }
    if is_valid { Ok(suites) } else { Err(Failure::reported(ExitStatus::Invalid)) }
}

fn judge(mut suite: Suite, sandbox: &Sandbox, task: &Task, settings: &Settings) -> Result<TestedFunction, Failure> {
    let cases = std::mem::take(&mut suite.cases);
    if cases.is_empty() {
        return Ok(suite.tested(Vec::new(), settings));
    }
    let task = Task { functions: vec![Arc::clone(&suite.loaded.function)], jobs: task.jobs.min(cases.len()), ..*task };
    let input = |case: &FunctionCase| Input {
        unit: Unit::Line,
        number: case.line as u64,
        text: Ok(case.trace.clone().into_bytes()),
    };
    let batches: Vec<io::Result<Vec<Input>>> =
        cases.chunks(BATCH).map(|chunk| Ok(chunk.iter().map(input).collect())).collect();
    let mut conclusions: Vec<Conclusion> = Vec::with_capacity(cases.len());
    judge_in_order(sandbox, &task, batches.into_iter(), |judged: Judged| {
        conclusions.extend(judged.judgements.into_iter().map(|judgement| judgement.conclusion));
        ControlFlow::Continue(())
    })?;
    let tested = cases.into_iter().zip(conclusions).map(|(case, conclusion)| TestedCase::new(case, conclusion));
    Ok(suite.tested(tested.collect(), settings))
}

impl Suite {
    fn tested(self, cases: Vec<TestedCase>, settings: &Settings) -> TestedFunction {
        TestedFunction {
            eval_id: self.loaded.function.name.clone(),
            file: self.loaded.shown,
            cases_file: settings.shown(&self.cases_file),
            has_cases_file: self.has_cases_file,
            cases,
        }
    }
}
