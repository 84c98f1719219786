//! Annotations of findings on GitHub.

use karat_lints::Severity;
use karat_report::destination::Destination;
use karat_report::github::{Annotation, path_from_root};
use karat_workflows::check::{CheckIssue, CheckReport};

use crate::args::{CheckArgs, OutputFormat};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::surface::Surface;

/// Returns the destinations of annotations: the reports, and the log of a workflow as in `karat run`.
pub(super) fn destinations(args: &CheckArgs, environment: &Environment) -> Result<Vec<Destination>, Failure> {
    let mut destinations = Vec::new();
    for report in &args.report {
        let path = report.strip_prefix("github=").filter(|path| !path.is_empty()).ok_or_else(|| {
            Failure::invalid(format!("unknown report '{report}'")).hint("for example --report github=annotations.txt")
        })?;
        destinations.push(Destination::parse(path));
    }
    let has_stdout = destinations.contains(&Destination::Stdout);
    if has_stdout && args.format != OutputFormat::Human {
        return Err(Failure::invalid("cannot write both a report and JSON to stdout; write the report to a file"));
    }
    if environment.github_actions && args.format == OutputFormat::Human && !has_stdout {
        destinations.push(Destination::Stdout);
    }
    Ok(destinations)
}

pub(super) fn write(report: &CheckReport, destinations: &[Destination], surface: &Surface<'_>) -> Result<(), Failure> {
    if destinations.is_empty() {
        return Ok(());
    }
    let text = surface.printer.redactor.text(&render(report, &surface.environment.repository_folder())).into_owned();
    for destination in destinations {
        destination
            .write_commands(&text)
            .map_err(|error| Failure::errored(format!("cannot write the report to {destination}: {error}")))?;
    }
    Ok(())
}

/// Returns the commands, errors first: GitHub shows only ten annotations of a level per step.
fn render(report: &CheckReport, folder: &str) -> String {
    let mut out = String::new();
    let (errors, warnings): (Vec<_>, Vec<_>) =
        report.issues.iter().partition(|issue| issue.severity == Severity::Error);
    for issue in errors.into_iter().chain(warnings) {
        let CheckIssue { file, line, rule, message, help, .. } = issue;
        let level = if issue.severity == Severity::Error { "error" } else { "warning" };
        let title = issue.subject().map_or_else(|| rule.clone(), |subject| format!("{subject}: {rule}"));
        let message = help.as_ref().map_or_else(|| message.clone(), |help| format!("{message}\n\nhelp: {help}"));
        // Servers and flags are not files of the repository.
        let path = line.is_some().then(|| path_from_root(file, folder));
        Annotation { level, file: path.as_deref(), line: *line, title: &title, message: &message }.push_to(&mut out);
    }
    out
}
