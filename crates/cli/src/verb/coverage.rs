//! `karat coverage`: what is tested of each tool, and which tools are taken for others.

use clap::ValueEnum as _;
use karat_core::exit::ExitStatus;
use karat_report::destination::Destination;
use karat_report::{coverage_page, coverage_text};
use karat_tools::coverage::{Coverage, Requirement};
use karat_workflows::coverage::{Request, Required, RunChoice, measure};

use crate::args::{CoverageArgs, OutputFormat, RequireName};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &CoverageArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let pages = args.report.iter().map(|report| parse_report(report)).collect::<Result<Vec<_>, _>>()?;
    let to_stdout = pages.contains(&Destination::Stdout);
    if to_stdout && args.format == OutputFormat::Json {
        return Err(Failure::invalid("stdout cannot hold both a page and the JSON output: give the page a file"));
    }
    let context = surface.context(&args.config, &args.paths)?;
    let runs = match &args.run {
        Some(id) => RunChoice::Run(id.clone()),
        None if args.all_runs => RunChoice::All,
        None => RunChoice::Newest,
    };
    let request =
        Request { paths: args.paths.clone(), required: required(args), runs, lock_file: args.lock_file.clone() };
    let coverage = surface.run(measure(request, &context)).map_err(|failure| match mistaken_path(args, surface) {
        Some(path) => failure.hint(format!("did you mean --require={path}?")),
        None => failure,
    })?;
    for page in &pages {
        let written = coverage_page(&coverage).and_then(|text| page.write(&text));
        written.map_err(|error| Failure::errored(format!("cannot write the page to {page}: {error}")))?;
    }
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&coverage)?,
        OutputFormat::Human if to_stdout => {}
        OutputFormat::Human => printer.print(&coverage_text(&coverage, printer.console()))?,
    }
    Ok(status(&coverage))
}

/// Returns a path that does not exist and is a requirement: `--require tested` makes a path of the last word.
fn mistaken_path<'a>(args: &'a CoverageArgs, surface: &Surface<'_>) -> Option<std::path::Display<'a>> {
    let is_mistaken = |path: &&std::path::PathBuf| {
        let mut words = path.to_str().unwrap_or_default().split(',');
        words.all(|word| RequireName::from_str(word, false).is_ok())
            && !surface.environment.process.current_dir.join(path).exists()
    };
    args.paths.iter().find(is_mistaken).map(|path| path.display())
}

fn required(args: &CoverageArgs) -> Required {
    if args.require.is_empty() {
        return Required::Nothing;
    }
    // A name that stands for everything makes the rest needless.
    let these: Option<Vec<Requirement>> = args.require.iter().map(|name| name.requirement()).collect();
    these.map_or(Required::All, Required::These)
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
