//! `karat coverage`: what is tested of each tool, and which tools are taken for others.

use clap::ValueEnum as _;
use karat_core::case::EvalFile;
use karat_core::exit::ExitStatus;
use karat_report::destination::Destination;
use karat_report::{ConsoleSettings, Verbosity, coverage_page, coverage_text};
use karat_tools::coverage::{Coverage, Requirement, Suite};
use karat_tools::lock::{LockDiff, ToolsLock};

use crate::args::{CoverageArgs, OutputFormat, RequireName};
use crate::confusion::{RunChoice, read_confusion};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::printer::Printer;
use crate::resolve::resolve_settings;
use karat_project::discover_any;
use karat_project::load_all;
use karat_project::read_overlap_map;
use karat_project::{lock_path, read_lock};
use karat_workflows::context::tools::list_tools;

pub(crate) fn run(args: &CoverageArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let pages = args.report.iter().map(|report| parse_report(report)).collect::<Result<Vec<_>, _>>()?;
    let to_stdout = pages.contains(&Destination::Stdout);
    if to_stdout && args.format == OutputFormat::Json {
        return Err(Failure::invalid("stdout cannot hold both a page and the JSON output: give the page a file"));
    }
    let mut coverage = measure(args, environment, printer)?;
    coverage.require(&required(args));
    for page in &pages {
        let written = coverage_page(&coverage).and_then(|text| page.write(&text));
        written.map_err(|error| Failure::errored(format!("cannot write the page to {page}: {error}")))?;
    }
    match args.format {
        OutputFormat::Json => printer.print_json(&coverage)?,
        OutputFormat::Human if to_stdout => {}
        OutputFormat::Human => printer.print(&coverage_text(&coverage, console_settings(printer)))?,
    }
    Ok(status(&coverage))
}

/// Reads everything that coverage is made of.
fn measure(args: &CoverageArgs, environment: &Environment, printer: &Printer) -> Result<Coverage, Failure> {
    let settings = resolve_settings(&args.config, &args.paths, environment, printer)?;
    let paths = discover_any(&args.paths, &settings.layout, &environment.process.current_dir)
        .map_err(|failure| with_requirement_hint(failure.into(), args))?;
    let runtime = runtime_that_ends()?;
    let registry = runtime.block_on(list_tools(&settings, printer))?;
    let Some(registry) = &registry else {
        let missing =
            format!("there is no tool registry to cover: {} is not there", settings.tool_registry.path.display());
        return Err(
            Failure::invalid(missing).hint("name one with --tool-registry-path, or 'toolRegistryPath' in karat.json")
        );
    };
    if karat_workflows::context::tools::is_empty(registry) {
        let empty = "the tool registry has no tools";
        if !args.require.is_empty() {
            return Err(Failure::invalid(empty).hint("of no tools everything holds, so nothing can be required"));
        }
        printer.warn(empty);
    }
    let overlaps = read_overlap_map(&settings.overlap_map)?;
    let needs_map = args.require.iter().filter_map(|name| name.requirement()).find(|one| one.is_declared());
    if let (None, Some(requirement)) = (&overlaps, needs_map) {
        let missing = settings.overlap_map.path.display();
        return Err(Failure::invalid(format!(
            "--require={} needs an overlap map: {missing} is not there",
            requirement.name()
        ))
        .hint("name one with --overlap-map-path, or make one with 'karat overlap add'"));
    }
    let (loaded, rubrics) = load_all(paths)?;
    if loaded.is_empty() && rubrics.is_empty() {
        printer.warn("no eval files found, so nothing is tested");
    }
    let choice = match &args.run {
        Some(id) => RunChoice::Run(id.clone()),
        None if args.all_runs => RunChoice::All,
        None => RunChoice::Newest,
    };
    let measured = read_confusion(&settings, &loaded, choice, printer)?;
    let has_results = measured.results > 0 || !measured.left_out.is_empty();
    let scored: Vec<EvalFile> = rubrics.iter().map(|rubric| rubric.file.without_rubrics()).collect();
    let suites = loaded.iter().map(|suite| Suite { path: &suite.path.shown, file: &suite.file });
    let scored = rubrics.iter().zip(&scored).map(|(rubric, file)| Suite { path: &rubric.path.shown, file });
    let suites: Vec<Suite<'_>> = suites.chain(scored).collect();
    let path = lock_path(args.lock_file.as_ref(), &settings.layout);
    let lock = read_lock(&path, &settings.shown(&path))?;
    if let (None, Some(_)) = (&lock, &args.lock_file) {
        return Err(
            Failure::invalid(format!("there is no {}", settings.shown(&path))).hint("'karat tools lock' writes it")
        );
    }
    let diff = lock.map(|lock| LockDiff::of(&lock, &ToolsLock::of(registry), registry.gaps().is_empty()));
    let measured = Some(&measured).filter(|_| has_results);
    Ok(Coverage::of(registry, overlaps.as_ref(), diff.as_ref(), &suites, measured))
}

/// Helps somebody who wrote `--require tested`, of which the last word is a path.
fn with_requirement_hint(failure: Failure, args: &CoverageArgs) -> Failure {
    let is_requirement = |path: &&std::path::PathBuf| {
        let mut words = path.to_str().unwrap_or_default().split(',');
        words.all(|word| RequireName::from_str(word, false).is_ok())
    };
    match args.paths.iter().find(is_requirement) {
        Some(path) => failure.hint(format!("did you mean --require={}?", path.display())),
        None => failure,
    }
}

fn required(args: &CoverageArgs) -> Vec<Requirement> {
    let required: Option<Vec<Requirement>> = args.require.iter().map(|name| name.requirement()).collect();
    // A name that stands for everything makes the rest needless.
    required.unwrap_or_else(|| Requirement::ALL.to_vec())
}

fn console_settings(printer: &Printer) -> ConsoleSettings {
    ConsoleSettings {
        columns: printer.columns,
        symbols: printer.symbols,
        palette: printer.stdout_palette,
        verbosity: if printer.quiet { Verbosity::Quiet } else { Verbosity::Normal },
    }
}

fn parse_report(text: &str) -> Result<Destination, Failure> {
    match text.split_once('=') {
        Some(("html", path)) if !path.is_empty() => Ok(Destination::parse(path)),
        Some((kind, path)) if !path.is_empty() => {
            Err(Failure::invalid(format!("there is no report of the kind '{kind}'")).hint("one of: html"))
        }
        _ => {
            Err(Failure::invalid(format!("--report {text} names no path"))
                .hint("for example --report html=coverage.html"))
        }
    }
}

/// What nobody can tell ranks above what is missing, since it hides it.
fn status(coverage: &Coverage) -> ExitStatus {
    let any = |held: Option<bool>| coverage.requirements.iter().any(|result| result.held == held);
    if any(None) {
        ExitStatus::Errored
    } else if any(Some(false)) {
        ExitStatus::Failed
    } else {
        ExitStatus::Success
    }
}
