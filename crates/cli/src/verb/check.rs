//! `karat check`: checks eval files, tools and the overlap map without calling the agent.

mod annotations;

use karat_core::exit::ExitStatus;
use karat_report::{check_text, rules_text};
use karat_workflows::check::{RuleList, check};

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: &CheckArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let printer = surface.printer;
    if args.rules {
        printer.print_result(args.format, &RuleList::all(), |rules, _| rules_text(rules))?;
        return Ok(ExitStatus::Success);
    }
    let destinations = annotations::destinations(args, surface.environment)?;
    let context = surface.context(&args.paths)?;
    let report = surface.run(check(&args.paths, &context))?;
    let strict = context.settings.strict;
    printer.print_result(args.format, &report, |report, settings| check_text(report, strict, settings))?;
    annotations::write(&report, &destinations, surface)?;
    Ok(if report.is_invalid() {
        ExitStatus::Invalid
    } else if report.has_failed(strict) {
        ExitStatus::Failed
    } else {
        ExitStatus::Success
    })
}
