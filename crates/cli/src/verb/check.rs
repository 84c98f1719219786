//! `karat check`: checks eval files, tools and the overlap map without calling the agent.

mod annotations;
mod issues;
mod rules;

use karat_core::exit::ExitStatus;
use karat_workflows::check::check;

pub(crate) use self::rules::RuleList;

use self::issues::print_report;
use crate::args::{CheckArgs, OutputFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &CheckArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let printer = surface.printer;
    if args.rules {
        return rules::list(args.format, printer);
    }
    let destinations = annotations::destinations(args, surface.environment)?;
    let context = surface.context(args, &args.paths)?;
    let report = surface.run(check(&args.paths, &context))?;
    match args.format {
        OutputFormat::Json => printer.print_json(&report)?,
        OutputFormat::Human => print_report(&report, printer)?,
    }
    annotations::write(&report, &destinations, surface)?;
    Ok(if report.is_invalid() {
        ExitStatus::Invalid
    } else if report.has_failed(context.settings.strict) {
        ExitStatus::Failed
    } else {
        ExitStatus::Success
    })
}
