//! `karat coverage`: what the eval files test, and which tools the agent confuses.

use karat_core::exit::ExitStatus;
use karat_report::destination::Destination;
use karat_report::{coverage_page, coverage_text, parse_report};
use karat_tools::coverage::{Coverage, Requirement};
use karat_workflows::coverage::{Request, Requirements, RunChoice, measure};

use crate::args::{CoverageArgs, OutputFormat, REQUIREMENTS};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &CoverageArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let parse = |text: &String| parse_report(text, &["html"], "html=coverage.html").map(|(_, page)| page);
    let pages = args.report.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let to_stdout = pages.contains(&Destination::Stdout);
    if to_stdout && args.format == OutputFormat::Json {
        return Err(Failure::invalid("cannot write both a page and JSON to stdout; write the page to a file"));
    }
    let context = surface.context(&args.paths)?;
    let runs = match &args.run {
        Some(id) => RunChoice::Run(id.clone()),
        None if args.all_runs => RunChoice::All,
        None => RunChoice::Newest,
    };
    let request =
        Request { paths: args.paths.clone(), required: required(args), runs, lock_file: args.lock_file.clone() };
    let coverage =
        surface.run(measure(request, &context)).map_err(|failure| match misplaced_requirement(args, surface) {
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

/// Returns a missing path that is a requirement: in `--require tested`, clap parses `tested` as a path.
fn misplaced_requirement<'a>(args: &'a CoverageArgs, surface: &Surface<'_>) -> Option<std::path::Display<'a>> {
    let is_misplaced = |path: &&std::path::PathBuf| {
        let mut words = path.to_str().unwrap_or_default().split(',');
        words.all(|word| REQUIREMENTS.iter().any(|(name, ..)| *name == word))
            && !surface.environment.process.current_dir.join(path).exists()
    };
    args.paths.iter().find(is_misplaced).map(|path| path.display())
}

fn required(args: &CoverageArgs) -> Requirements {
    if args.require.is_empty() {
        return Requirements::Nothing;
    }
    // `all` maps to `None`, which makes the whole list `None`.
    let requirements: Option<Vec<Requirement>> = args.require.iter().copied().collect();
    requirements.map_or(Requirements::All, Requirements::Listed)
}

/// An unknown result ranks above a failed requirement.
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
