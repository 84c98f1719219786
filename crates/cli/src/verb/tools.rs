//! `karat tools`: what is known of the agent's tools, and what changed of them since they were locked.

use std::path::PathBuf;

use karat_core::exit::ExitStatus;
use karat_core::registry::{Gap, GapKind};
use karat_registry::export_script;
use karat_report::{changes_text, counted, tool_list_text, tools_diff_text};
use karat_tools::lock::LockDiff;
use karat_workflows::tools::{DiffRequest, LockOutcome, LockRequest, Locked, diff, list, lock};
use karat_workflows::{Error, ErrorKind};
use serde::Serialize;

use crate::args::{
    OutputFormat, ToolsArgs, ToolsDiffArgs, ToolsExportScriptArgs, ToolsListArgs, ToolsLockArgs, ToolsVerb,
};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::surface::Surface;

/// What may be taken for a tool's name where options stand before it.
const COMMANDS: [&str; 4] = ["list", "lock", "diff", "export-script"];

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
    let here = &surface.environment.process.current_dir;
    let is_project = |name: &String| here.join(name).join("karat.json").is_file();
    let (folders, names): (Vec<String>, Vec<String>) = args.names.iter().cloned().partition(is_project);
    if let [_, other, ..] = &folders[..] {
        return Err(Failure::invalid(format!("'{other}' is a project of its own: list one at a time")));
    }
    let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
    let context = surface.context(&args.config, &folders)?;
    let list = surface.run(async { list(&names, &context).await.map_err(|error| suggest_command(error, &names)) })?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => print_json(&list, printer)?,
        OutputFormat::Human => print_text(&tool_list_text(&list, printer.console(), printer.screen), printer)?,
    }
    let is_broken = list.gaps.iter().any(|gap| gap.kind == GapKind::Broken);
    let has_no_tool = list.tools.is_empty() && !list.gaps.is_empty();
    for gap in list.gaps {
        printer.warn_of_gap(&Gap { kind: gap.kind, place: gap.place, what: gap.what });
    }
    if is_broken {
        return Ok(ExitStatus::Errored);
    }
    if has_no_tool {
        return Err(Failure::invalid("no tool of the registry is known").hint(
            "name the file that gives the tools to the agent or server, or export them with 'karat tools export-script'",
        ));
    }
    Ok(ExitStatus::Success)
}

fn suggest_command(error: Error, names: &[String]) -> Error {
    match names.iter().find(|name| COMMANDS.contains(&name.as_str())) {
        Some(name) if error.kind == ErrorKind::NothingSelected => Error { hints: Vec::new(), ..error }
            .hint(format!("if you mean the command, options come behind it: 'karat tools {name} …'")),
        _ => error,
    }
}

fn run_lock(args: &ToolsLockArgs, surface: &Surface<'_>) -> Result<ExitStatus, Failure> {
    let here = &surface.environment.process.current_dir;
    if let Some(folder) = args.folder.as_ref().filter(|folder| !here.join(folder).is_dir()) {
        return Err(Failure::invalid(format!("there is no folder {}", folder.display()))
            .hint("all tools of a project are locked: name its folder, or nothing"));
    }
    let context = surface.context(&args.config, args.folder.as_slice())?;
    let request = LockRequest { check: args.check, lock_file: args.lock_file.clone() };
    let Locked { file, tools, outcome } = surface.run(lock(request, &context))?;
    let printer = surface.printer;
    let count = counted(tools, "tool");
    let print_changes = |diff: &LockDiff| print_text(&changes_text(diff, printer.console()), printer);
    let failed = |message: String| Failure { status: ExitStatus::Failed, ..Failure::invalid(message) };
    match &outcome {
        LockOutcome::Missing => {
            return Err(failed(format!("there is no {file}")).hint("'karat tools lock' writes it"));
        }
        LockOutcome::OutOfDate(diff) => {
            print_changes(diff)?;
            return Err(failed(format!("{file} is out of date"))
                .hint("'karat tools diff' shows what that makes stale, 'karat tools lock' brings it up to date"));
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
    let context = surface.context(&args.config, &args.paths)?;
    let request = DiffRequest { paths: args.paths.clone(), lock_file: args.lock_file.clone() };
    let diff = surface.run(diff(request, &context))?;
    let printer = surface.printer;
    match args.format {
        OutputFormat::Json => print_json(&diff, printer)?,
        OutputFormat::Human => print_text(&tools_diff_text(&diff, printer.console()), printer)?,
    }
    for file in &diff.invalid_files {
        printer.warn(&format!("{file} is invalid, so it is not known whether it is stale; 'karat check' says more"));
    }
    Ok(if diff.tools.is_empty() { ExitStatus::Success } else { ExitStatus::Failed })
}

/// Prints the script as it is: nothing of the project is read, and nothing is run.
fn print_export_script(args: &ToolsExportScriptArgs, printer: &Printer) -> Result<ExitStatus, Failure> {
    printer.print(export_script(args.interpreter.into()))?;
    Ok(ExitStatus::Success)
}

/// Prints a document without secrets, which tools may hold.
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
