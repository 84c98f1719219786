//! `karat eval compare`: compares the verdicts of two versions.

use karat_core::exit::ExitStatus;
use karat_evals::agreement::{Direction, VersionComparison, VersionFigures};
use karat_report::version_comparison_text;
use karat_workflows::agreement::{CompareRequest, compare};

use crate::args::{EvalCompareArgs, OutputFormat};
use crate::failure::Failure;
use crate::surface::Surface;

pub(super) fn run(args: &EvalCompareArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let request = CompareRequest::parse(&args.versions)?;
    let context = surface.context(&[])?;
    let comparison = surface.run(compare(request, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => printer.print_json(&comparison)?,
        OutputFormat::Human => {
            let limit = if args.limit == 0 { usize::MAX } else { args.limit };
            printer.print(&version_comparison_text(&comparison, limit, printer.console()))?;
        }
    }
    if comparison.common_traces == 0 && args.format == OutputFormat::Human {
        let version = |figures: VersionFigures| figures.version.unwrap_or_default();
        let (name, before, now) = (&comparison.eval_id, version(comparison.before), version(comparison.now));
        printer.note(&format!(
            "no trace was judged by both versions {before} and {now}; run 'karat eval run {name} --stored' to judge \
             with the newest"
        ));
    }
    Ok(status(&comparison))
}

fn status(comparison: &VersionComparison) -> ExitStatus {
    match comparison.direction {
        Direction::Worse => ExitStatus::Failed,
        _ if comparison.common_traces == 0 => ExitStatus::NothingSelected,
        Direction::Better | Direction::Unclear => ExitStatus::Success,
    }
}
