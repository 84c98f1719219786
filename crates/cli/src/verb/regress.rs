//! `karat regress`: regression cases.

mod expect_flags;

use karat_core::exit::ExitStatus;
use karat_report::{archived_text, escape_json, printable, sealed_text};
use karat_workflows::regress::{AddRequest, ArchiveRequest, Outcome, SealOutcome, Source, add, archive, seal};

use self::expect_flags::{expect_from_flags, parse_json_object};
use crate::args::{RegressAction, RegressAddArgs, RegressArchiveArgs, RegressArgs, RegressSealArgs};
use crate::failure::Failure;
use crate::surface::Surface;

pub(crate) fn run(args: RegressArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match args.action {
        RegressAction::Add(args) => run_add(&args, surface),
        RegressAction::Archive(args) => run_archive(args, surface),
        RegressAction::Seal(args) => run_seal(&args, surface),
    }
}

fn run_add(args: &RegressAddArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    for (flag, text) in [("bug-ref", args.bug_ref.as_ref()), ("message", args.message.as_ref())] {
        if text.is_some_and(|text| text.trim().is_empty()) {
            return Err(Failure::invalid(format!("--{flag} is empty")));
        }
    }
    let source = match (&args.from_run, &args.case, &args.from_trace) {
        (Some(run), Some(case), _) => {
            Some(Source::Run { run: run.clone(), case: case.clone(), even_if_passed: args.even_if_passed })
        }
        (_, _, Some(trace)) => Some(Source::Trace { trace: trace.clone(), step: args.step }),
        _ => None,
    };
    let request = AddRequest {
        tool: args.tool.clone(),
        source,
        bug_ref: args.bug_ref.clone(),
        message: args.message.clone(),
        description: args.description.clone(),
        stubs: args.stubs.as_deref().map(|text| parse_json_object("stubs", text)).transpose()?,
        expect: expect_from_flags(&args.expect)?,
        file: args.file.clone(),
        dry_run: args.dry_run,
    };
    let context = surface.context(&[])?;
    let added = surface.run(add(request, &context))?;
    let printer = surface.printer;
    let (id, path) = (printable(&added.case.id), printable(&added.case.path));
    let target = |new_file: bool| if new_file { format!("{path} (new file)") } else { path.to_string() };
    let text = match &added.outcome {
        Outcome::Added { new_file } => format!("added {id} to {}\n", target(*new_file)),
        Outcome::Planned { new_file } => {
            printer.note(&format!("{id} would be added to {}", target(*new_file)));
            let json = serde_json::to_string_pretty(&added.case.case);
            format!("{}\n", escape_json(&json.map_err(|error| Failure::errored(error.to_string()))?))
        }
        Outcome::Exists { source } => {
            printer.note(if args.from_run.is_some() {
                "nothing was written; pass other assertions to add another case for the same message"
            } else {
                "nothing was written; pass TOOL and --message to add another case"
            });
            format!("{id} in {path} already covers {}\n", printable(source))
        }
    };
    printer.print_result(args.format, &added.into_report(), |_, _| text)?;
    Ok(ExitStatus::Success)
}

fn run_archive(args: RegressArchiveArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let RegressArchiveArgs { id, reason, file, format, .. } = args;
    let context = surface.context(&[])?;
    let report = archive(ArchiveRequest { id, reason, file }, &context)?;
    surface.printer.print_result(format, &report, |report, _| archived_text(report))?;
    Ok(ExitStatus::Success)
}

fn run_seal(args: &RegressSealArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&args.paths)?;
    let SealOutcome { report, failures } = seal(&args.paths, &context)?;
    let mut status = ExitStatus::Success;
    for failure in failures.into_iter().map(Failure::from) {
        surface.printer.failure(&failure);
        status = failure.status;
    }
    let has_failed = status != ExitStatus::Success;
    surface.printer.print_result(args.format, &report, |report, _| sealed_text(report, has_failed))?;
    Ok(status)
}
