//! `karat tools`: lists the agent's tools, locks them and compares them with the lock.

use std::path::PathBuf;

use karat_cases::registry::{Gap, GapKind};
use karat_core::exit::ExitStatus;
use karat_registry::export_script;
use karat_report::{changes_text, counted, tool_list_text, tools_diff_text};
use karat_tools::lock::LockDiff;
use karat_workflows::tools::{DiffRequest, LockOutcome, LockReport, LockRequest, diff, list, lock};
use karat_workflows::{Error, ErrorKind};
use serde::Serialize;

use crate::args::{
    OutputFormat, ToolsArgs, ToolsDiffArgs, ToolsExportScriptArgs, ToolsListArgs, ToolsLockArgs, ToolsVerb,
};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

/// Subcommands that clap parses as tool names when options come before them.
const SUBCOMMANDS: [&str; 4] = ["list", "lock", "diff", "export-script"];

pub(crate) fn run(args: &ToolsArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    match &args.verb {
        None => run_list(&args.list, surface),
        Some(ToolsVerb::List(args)) => run_list(args, surface),
        Some(ToolsVerb::Lock(args)) => run_lock(args, surface),
        Some(ToolsVerb::Diff(args)) => run_diff(args, surface),
        Some(ToolsVerb::ExportScript(args)) => print_export_script(args, surface.printer),
    }
}

fn run_list(args: &ToolsListArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let current_dir = &surface.environment.process.current_dir;
    let is_project = |name: &String| current_dir.join(name).join("karat.json").is_file();
    let (folders, names): (Vec<String>, Vec<String>) = args.names.iter().cloned().partition(is_project);
    if let [_, other, ..] = &folders[..] {
        return Err(Failure::invalid(format!("'{other}' is another project; list one project at a time")));
    }
    let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
    let context = surface.context(&folders)?;
    let list =
        surface.run(async { list(&names, &context).await.map_err(|error| suggest_subcommand(error, &names)) })?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => print_json(&list, printer)?,
        OutputFormat::Human => {
            print_text(&tool_list_text(&list, printer.console(), printer.terminal_columns), printer)?;
        }
    }
    let is_broken = list.gaps.iter().any(|gap| gap.kind == GapKind::Broken);
    let has_no_tool = list.tools.is_empty() && !list.gaps.is_empty();
    for gap in list.gaps {
        printer.warn_gap(&Gap { kind: gap.kind, location: gap.location, message: gap.message });
    }
    if is_broken {
        return Ok(ExitStatus::Errored);
    }
    if has_no_tool {
        return Err(Failure::invalid("no tools found in the registry")
            .hint("pass the file that registers the tools, or export them with 'karat tools export-script'"));
    }
    Ok(ExitStatus::Success)
}

fn suggest_subcommand(error: Error, names: &[String]) -> Error {
    match names.iter().find(|name| SUBCOMMANDS.contains(&name.as_str())) {
        Some(name) if error.kind == ErrorKind::NothingSelected => Error { hints: Vec::new(), ..error }
            .hint(format!("options come after the subcommand: 'karat tools {name} …'")),
        _ => error,
    }
}

fn run_lock(args: &ToolsLockArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let current_dir = &surface.environment.process.current_dir;
    if let Some(folder) = args.folder.as_ref().filter(|folder| !current_dir.join(folder).is_dir()) {
        return Err(Failure::invalid(format!("folder {} does not exist", folder.display()))
            .hint("the lock covers all tools of a project; pass its folder, or nothing"));
    }
    let context = surface.context(args.folder.as_slice())?;
    let request = LockRequest { check: args.check, lock_file: args.lock_file.clone() };
    let LockReport { file, tools, outcome } = surface.run(lock(request, &context))?;
    let printer = surface.printer;
    let count = counted(tools, "tool");
    let print_changes = |diff: &LockDiff| print_text(&changes_text(diff, printer.console()), printer);
    let failed = |message: String| Failure { status: ExitStatus::Failed, ..Failure::invalid(message) };
    match &outcome {
        LockOutcome::Missing => {
            return Err(failed(format!("{file} does not exist")).hint("run 'karat tools lock' to write it"));
        }
        LockOutcome::OutOfDate(diff) => {
            print_changes(diff)?;
            return Err(failed(format!("{file} is out of date"))
                .hint("run 'karat tools diff' to see stale eval files, or 'karat tools lock' to update it"));
        }
        LockOutcome::Unchanged => printer.note(&format!("{file} is up to date: {count}")),
        LockOutcome::Created => printer.note(&format!("locked {count} in {file}")),
        LockOutcome::Updated(diff) => {
            print_changes(diff)?;
            printer.note(&format!("locked {count} in {file}"));
        }
    }
    Ok(ExitStatus::Success)
}

fn run_diff(args: &ToolsDiffArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let context = surface.context(&args.paths)?;
    let request = DiffRequest { paths: args.paths.clone(), lock_file: args.lock_file.clone() };
    let diff = surface.run(diff(request, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => print_json(&diff, printer)?,
        OutputFormat::Human => print_text(&tools_diff_text(&diff, printer.console()), printer)?,
    }
    for file in &diff.invalid_files {
        printer.warn(&format!("{file} is invalid and may be stale; run 'karat check' for details"));
    }
    Ok(if diff.tools.is_empty() { ExitStatus::Success } else { ExitStatus::Failed })
}

/// Prints the export script; the project is not read.
fn print_export_script(args: &ToolsExportScriptArgs, printer: &Printer) -> Result<ExitStatus, Failure> {
    printer.print(export_script(args.interpreter))?;
    Ok(ExitStatus::Success)
}

/// Prints a document with secrets redacted, which tools may contain.
fn print_json(document: &impl Serialize, printer: &Printer) -> Result<(), Failure> {
    if printer.redactor.is_empty() {
        return printer.print_json(document);
    }
    let mut value = serde_json::to_value(document).map_err(|error| Failure::errored(error.to_string()))?;
    printer.redactor.value(&mut value);
    printer.print_json(&value)
}

fn print_text(text: &str, printer: &Printer) -> Result<(), Failure> {
    printer.print(&printer.redactor.text(text))
}
