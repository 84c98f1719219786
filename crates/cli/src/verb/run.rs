//! `karat run`: eval files against the agent.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use karat_agents::Throttle;
use karat_core::assertion::Strictness;
use karat_core::case::EvalFile;
use karat_core::event::ReportError;
use karat_core::event::RunTotals;
use karat_core::exit::ExitStatus;
use karat_core::port::{Agent, Ids, StoreError};
use karat_core::redact::Redactor;
use karat_core::registry::Registry;
use karat_core::staleness::CurrentTool;
use karat_core::token::TokenSources;
use karat_project::ResultFileReporter;
use karat_report::destination::Destination;
use karat_report::github::{GithubReporter, StepSummaryReporter};
use karat_report::junit::JunitReporter;
use karat_report::markdown::MarkdownReporter;
use karat_report::{ConsoleReporter, JsonLinesReporter, JsonReporter};
use karat_runner::{Baseline, Plan, Reporters, RubricPlan, Rubrics, SuitePlan};
use tokio::sync::watch;

use crate::args::{RunArgs, RunFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::kept_run::{KeptRun, Unkept};
use crate::printer::Printer;
use crate::progress::ProgressReporter;
use crate::resolve::resolve_settings;
use crate::selection::Selection;
use karat_project::Results;
use karat_project::{EvalPath, discover};
use karat_project::{Loaded, LoadedRubric, load_all, read_json_setting};
use karat_workflows::context::agents::make_agents;
use karat_workflows::context::chat_models::make_judge;
use karat_workflows::context::clock::{SystemClock, TimeOrderedIds};
use karat_workflows::context::models::Models;
use karat_workflows::context::recordings::Recordings;
use karat_workflows::context::snapshot::capture;
use karat_workflows::context::tools::read_tools;
use karat_workflows::functions::start_functions;
use karat_workflows::settings::Settings;

pub(crate) fn run(args: &RunArgs, environment: &Environment, printer: &Arc<Printer>) -> Result<ExitStatus, Failure> {
    let settings = resolve_settings(&args.config, &args.paths, environment, printer)?;
    let selection = Selection::new(&args.selection)?;
    let reports = args.report.iter().map(|report| parse_report(report)).collect::<Result<Vec<_>, _>>()?;
    if args.format != RunFormat::Human && reports.iter().any(Report::is_stdout) {
        return Err(Failure::invalid("stdout cannot hold both a report and the JSON output: give the report a file"));
    }
    let mut paths = discover(&args.paths, &settings.layout, &environment.process.current_dir)?;
    selection.drop_other_tiers(&mut paths)?;
    let (mut loaded, mut rubrics) = load_all(paths)?;
    selection.apply(&mut loaded, &mut rubrics)?;
    let baseline = Results::baseline(settings.baseline.as_ref(), &settings.layout)?;
    if args.selection.only_failed {
        if !rubrics.is_empty() {
            printer.warn("rubric files are left out by --only-failed: a score neither passes nor fails");
            rubrics.clear();
        }
        match &baseline {
            Some(results) => results.keep_failed(&mut loaded)?,
            None => Results::newest(&settings.layout)?.keep_failed(&mut loaded)?,
        }
    }
    let functions = start_functions(&loaded, &settings, &environment.process)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::errored(format!("cannot start: {error}")))?;
    let interrupts = Interrupts::listen(&runtime);
    let preparing = async {
        let tools = read_tools(&settings, printer.as_ref()).await?;
        tools.warn_of_unknown(printer.as_ref());
        // One for all: a provider's limits and the budget are the run's, not an agent's.
        let mut models = Models::new(&settings, settings.recording.asks_nobody());
        let agents = make_agents(&mut models, &settings, &tools, printer.as_ref())?;
        let judge = if rubrics.is_empty() { None } else { make_judge(&mut models, &settings, printer.as_ref())? };
        let plan = make_plan(&settings, loaded, &agents, tools.registry, baseline.as_ref(), printer).await?;
        Ok((agents, judge, models.throttles(), plan))
    };
    let (agents, judge, providers, mut plan) = match runtime.block_on(interrupts.unless_asked(preparing)) {
        Ok(prepared) => prepared,
        Err(failure) => {
            // What was given up must not keep the program.
            runtime.shutdown_background();
            return Err(failure);
        }
    };
    plan.rubrics = Rubrics { suites: rubric_plans(&rubrics, agents.len(), plan.registry.as_ref()), judge };
    plan.functions = functions;
    check_output_dir(&settings.layout.output_dir)?;
    let recordings = Recordings::open(&settings, &environment.process.current_dir)?;
    plan.rubrics.judge = plan.rubrics.judge.take().map(|judge| recordings.wrap_judge(judge));
    reports.iter().try_for_each(Report::check)?;
    let keeping =
        async { if args.no_store { Ok(None) } else { KeptRun::begin(&settings, &plan, &agents).await.map(Some) } };
    let kept = match runtime.block_on(interrupts.unless_asked(keeping)) {
        Ok(kept) => kept,
        Err(failure) => {
            runtime.shutdown_background();
            return Err(failure);
        }
    };

    let mut reporters = Reporters::default();
    reporters.add(Box::new(ResultFileReporter::new(settings.layout.output_dir.clone())));
    reporters.add(console(args.format, printer));
    if let Some(kept) = &kept {
        reporters.add(kept.reporter());
    }
    let annotates = |report: &Report| matches!(report, Report::Github(Destination::Stdout));
    // Annotations in the log, unless they are there already or a program reads it.
    let is_told = args.format != RunFormat::Human || reports.iter().any(annotates);
    let folder = repository_folder(environment);
    add_reports(reports, &folder, &mut reporters);
    if environment.github_actions && !is_told {
        reporters.add(Box::new(GithubReporter::new(Destination::Stdout).below(folder)));
    }
    if let Some(path) = environment.github_step_summary.as_ref().filter(|_| environment.github_actions) {
        reporters.add(Box::new(StepSummaryReporter::new(path.clone())));
    }
    let scored = plan.rubrics.suites.iter().map(|suite| suite.file.cases.len());
    let cases = plan.suites.iter().map(|suite| suite.file.cases.len()).chain(scored).sum();
    if let Some(progress) = ProgressReporter::new(environment, printer, cases) {
        reporters.add(Box::new(progress));
    }
    let (run_id, redactor) = (plan.run_id.clone(), plan.redactor.clone());
    let agents = agents.into_iter().map(|agent| recordings.wrap(agent)).collect();
    let totals = runtime.block_on(run_cancellable(plan, agents, &providers, &interrupts, &mut reporters, printer));
    printer.show_above(None);
    let errors = reporters.into_errors();
    let kept = kept.map_or(Ok(Vec::new()), |kept| runtime.block_on(kept.end()));
    // Answers that nobody waits for any more must not keep the program.
    runtime.shutdown_background();
    let status = finish(&totals, errors, kept, &redactor, printer);
    let count = totals.suites + totals.rubric.as_ref().map_or(0, |rubric| rubric.suites);
    let files = if count == 1 { "1 result file".to_owned() } else { format!("{count} result files") };
    let folder = settings
        .layout
        .output_dir
        .strip_prefix(&environment.process.current_dir)
        .unwrap_or(&settings.layout.output_dir);
    // Unless they could not all be written.
    if status == totals.status() {
        printer.note(&format!("run {run_id}: {files} in {}", folder.display()));
    }
    Ok(tell_of_recordings(&recordings, status, printer))
}

/// Says what came of the recordings; an answer that could not be recorded is a lost result.
fn tell_of_recordings(recordings: &Recordings, status: ExitStatus, printer: &Printer) -> ExitStatus {
    let Some(told) = recordings.close() else { return status };
    told.warnings.iter().for_each(|warning| printer.warn(warning));
    for failure in &told.failures {
        printer.failure(&Failure::errored(failure));
    }
    printer.note(&told.summary);
    if told.failures.is_empty() || status == ExitStatus::Interrupted { status } else { ExitStatus::Errored }
}

async fn run_cancellable(
    plan: Plan,
    agents: Vec<Arc<dyn Agent>>,
    providers: &[(String, Arc<Throttle>)],
    interrupts: &Interrupts,
    reporters: &mut Reporters,
    printer: &Arc<Printer>,
) -> RunTotals {
    let (cancel, cancelled) = watch::channel(false);
    let running = karat_runner::run(plan, agents, &SystemClock, cancelled, reporters);
    tokio::pin!(running);
    tokio::select! {
        totals = &mut running => return totals,
        never = tell_of_slowness(providers, printer) => match never {},
        () = interrupts.asked() => printer.talk("interrupted: writing what has finished (once more to stop at once)"),
    }
    cancel.send(true).ok();
    running.await
}

/// Says once of each provider that it asked to slow down: a run that waits should not look like one that hangs.
async fn tell_of_slowness(providers: &[(String, Arc<Throttle>)], printer: &Printer) -> Infallible {
    let mut told = BTreeSet::new();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (name, throttle) in providers {
            if let Some(window) = throttle.slowed_down()
                && told.insert(name)
            {
                printer.note(&format!(
                    "{name} asks to slow down (HTTP 429): waiting as it says, for now with {window} at once"
                ));
            }
        }
    }
}

/// Plans every rubric file for every agent.
fn rubric_plans(rubrics: &[LoadedRubric], agents: usize, registry: Option<&Registry>) -> Vec<RubricPlan> {
    let plan = |agent: usize, LoadedRubric { path, file }: &LoadedRubric| RubricPlan {
        path: path.shown.clone(),
        project_path: path.in_project.clone(),
        agent,
        file: file.clone(),
        current: CurrentTool::of(&file.without_rubrics(), registry),
    };
    (0..agents).flat_map(|agent| rubrics.iter().map(move |rubric| plan(agent, rubric))).collect()
}

async fn make_plan(
    settings: &Settings,
    mut loaded: Vec<Loaded>,
    agents: &[Arc<dyn Agent>],
    registry: Option<Registry>,
    baseline: Option<&Results>,
    printer: &Printer,
) -> Result<Plan, Failure> {
    let seed = read_json_setting(&settings.seed_manifest, "the seed manifest")?;
    let snapshot = match &settings.snapshot {
        Some(source) => Some(capture(source, settings.timeout, &settings.variables, &settings.redactor).await?),
        None => None,
    };
    let mut suites = Vec::with_capacity(loaded.len() * agents.len());
    for (place, agent) in agents.iter().enumerate() {
        let identity = agent.identity();
        let identity = settings.redactor.text(&identity);
        // Only several agents need the files several times.
        let files = if place + 1 == agents.len() { std::mem::take(&mut loaded) } else { loaded.clone() };
        suites.extend(files.into_iter().map(|Loaded { path, file }| {
            let current = CurrentTool::of(&file, registry.as_ref());
            let baseline = baseline.and_then(|results| suite_baseline(results, &path, &file, &identity, printer));
            SuitePlan { path: path.shown, project_path: path.in_project, agent: place, file, current, baseline }
        }));
    }
    Ok(Plan {
        run_id: TimeOrderedIds.run_id(),
        suites,
        rubrics: Rubrics::default(),
        concurrency: settings.concurrency,
        timeout: settings.timeout,
        trials: settings.trials,
        strictness: Strictness { all_failures: settings.all_failures, fail_vacuous: settings.strict },
        fail_fast: settings.fail_fast,
        gates: settings.gates.clone(),
        tokens: TokenSources { seed, snapshot },
        registry,
        tokenizer: settings.tokenizer,
        redactor: settings.redactor.clone(),
        functions: None,
    })
}

fn suite_baseline(
    results: &Results,
    path: &EvalPath,
    file: &EvalFile,
    agent: &str,
    printer: &Printer,
) -> Option<Baseline> {
    let Some(result) = results.of(path, file, agent) else {
        printer.warn(&format!("the baseline has no result for {}, so nothing is compared", path.shown));
        return None;
    };
    Some(Baseline { run_id: result.run_id.clone(), cases: result.cases.clone() })
}

/// Finds out before anything is sent whether results can be kept.
fn check_output_dir(folder: &Path) -> Result<(), Failure> {
    let tried = std::fs::create_dir_all(folder)
        .and_then(|()| tempfile::Builder::new().prefix(".karat-").tempfile_in(folder).map(drop));
    tried.map_err(|error| Failure::invalid(format!("cannot write results to {}: {error}", folder.display())))
}

enum Report {
    Junit(Destination),
    Markdown(Destination),
    Github(Destination),
}

impl Report {
    fn destination(&self) -> &Destination {
        let (Report::Junit(destination) | Report::Markdown(destination) | Report::Github(destination)) = self;
        destination
    }

    fn is_stdout(&self) -> bool {
        matches!(self.destination(), Destination::Stdout)
    }

    /// Finds out before anything is sent whether the report can be written.
    fn check(&self) -> Result<(), Failure> {
        let Destination::File(path) = self.destination() else {
            return Ok(());
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let made = folder.map_or(Ok(()), std::fs::create_dir_all);
        let fail = |why: String| Err(Failure::invalid(format!("cannot write a report to {}: {why}", path.display())));
        match made {
            Err(error) => fail(error.to_string()),
            Ok(()) if path.is_dir() => fail("it is a folder".to_owned()),
            Ok(()) => Ok(()),
        }
    }
}

fn parse_report(text: &str) -> Result<Report, Failure> {
    let (kind, path) = text.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or_else(|| {
        Failure::invalid(format!("--report {text} names no path")).hint("for example --report junit=report.xml")
    })?;
    let destination = Destination::parse(path);
    match kind {
        "junit" => Ok(Report::Junit(destination)),
        "markdown" => Ok(Report::Markdown(destination)),
        "github" => Ok(Report::Github(destination)),
        other => {
            let failure = Failure::invalid(format!("there is no report of the kind '{other}'"));
            Err(failure.hint("one of: junit, markdown, github"))
        }
    }
}

fn add_reports(reports: Vec<Report>, folder: &str, reporters: &mut Reporters) {
    for report in reports {
        match report {
            Report::Junit(destination) => reporters.add(Box::new(JunitReporter::new(destination))),
            Report::Markdown(destination) => reporters.add(Box::new(MarkdownReporter::new(destination))),
            Report::Github(destination) => {
                reporters.add(Box::new(GithubReporter::new(destination).below(folder.to_owned())));
            }
        }
    }
}

/// Returns where we are in a workflow's repository: annotations name files from its root.
fn repository_folder(environment: &Environment) -> String {
    let workspace = environment.github_workspace.as_deref().filter(|_| environment.github_actions);
    let folder = workspace.and_then(|root| environment.process.current_dir.strip_prefix(root).ok());
    folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default()
}

fn console(format: RunFormat, printer: &Arc<Printer>) -> Box<dyn karat_core::event::Reporter> {
    let stdout = || Box::new(BufWriter::new(io::stdout())) as Box<dyn Write>;
    match format {
        RunFormat::Json => Box::new(JsonReporter::new(stdout())),
        RunFormat::Jsonl => Box::new(JsonLinesReporter::new(stdout())),
        RunFormat::Human => {
            let settings = printer.console();
            let printer = Arc::clone(printer);
            Box::new(ConsoleReporter::new(settings, Box::new(move |text| printer.out(text))))
        }
    }
}

/// A result that could not be kept is worse than one that is bad.
fn finish(
    totals: &RunTotals,
    errors: Vec<ReportError>,
    kept: Result<Vec<Unkept>, StoreError>,
    redactor: &Redactor,
    printer: &Printer,
) -> ExitStatus {
    // Whoever closed our stdout has read enough; the results are on disk.
    let errors = errors.into_iter().filter(|error| error.source.kind() != io::ErrorKind::BrokenPipe);
    let mut status = totals.status();
    // A reporter that cannot write says so at every event.
    let messages: BTreeSet<String> = errors.map(|error| redactor.text(&error.to_string()).into_owned()).collect();
    let mut failures: Vec<Failure> = messages.into_iter().map(Failure::errored).collect();
    match kept {
        Ok(unkept) => warn_of_unkept(&unkept, printer),
        Err(error) => {
            let failure = Failure::from(error);
            let message = format!("the run is not whole in the store: {}", failure.message);
            failures.push(Failure { message, ..failure });
        }
    }
    for failure in failures {
        printer.failure(&failure);
        if status != ExitStatus::Interrupted {
            status = ExitStatus::Errored;
        }
    }
    status
}

/// Says once for each reason which traces are not in the store.
fn warn_of_unkept(unkept: &[Unkept], printer: &Printer) {
    const MOST: usize = 5;
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in unkept {
        by_reason.entry(&one.error.message).or_default().push(&one.case_id);
    }
    for (reason, cases) in by_reason {
        let traces = if cases.len() == 1 { "1 trace is".to_owned() } else { format!("{} traces are", cases.len()) };
        let more = if cases.len() > MOST { format!(", {}", printer.symbols.ellipsis) } else { String::new() };
        let named = cases[..cases.len().min(MOST)].join(", ");
        printer.warn(&format!("{traces} not in the store ({named}{more}), all else of the run is: {reason}"));
    }
}
