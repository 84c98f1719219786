//! `karat tools`: what is known of the agent's tools, and what changed of them since they were locked.

use std::path::{Path, PathBuf};

use glob::Pattern;
use karat_core::case::SuiteFile;
use karat_core::exit::ExitStatus;
use karat_core::registry::{GapKind, Registry, Tool};
use karat_json::nearest;
use karat_registry::export_script;
use karat_report::destination::Destination;
use karat_report::{changes_text, counted, tool_list_text, tools_diff_text};
use karat_tools::lock::{LockDiff, StaleFile, ToolsDiff, ToolsLock, effects};
use karat_tools::tool_list::ToolList;
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::args::{
    ConfigArgs, OutputFormat, ToolsArgs, ToolsDiffArgs, ToolsExportScriptArgs, ToolsListArgs, ToolsLockArgs, ToolsVerb,
};
use crate::discover::{EvalPath, discover};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::interrupt::runtime_that_ends;
use crate::load::{parse_suite_file, read_bytes};
use crate::lock::{lock_path, read_lock};
use crate::printer::Printer;
use crate::registry::list_tools;
use crate::settings::Settings;

pub(crate) fn run(args: &ToolsArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    match &args.verb {
        None => list(&args.list, environment, printer),
        Some(ToolsVerb::List(args)) => list(args, environment, printer),
        Some(ToolsVerb::Lock(args)) => lock(args, environment, printer),
        Some(ToolsVerb::Diff(args)) => diff(args, environment, printer),
        Some(ToolsVerb::ExportScript(args)) => print_export_script(args, printer),
    }
}

/// The project and the tools that it names.
struct Known {
    settings: Settings,
    registry: Registry,
    /// Listens for Ctrl-C as long as the verb works.
    _runtime: Runtime,
}

impl Known {
    fn read(
        config: &ConfigArgs,
        paths: &[PathBuf],
        environment: &Environment,
        printer: &Printer,
    ) -> Result<Self, Failure> {
        let mut settings = Settings::resolve(config, paths, environment, printer)?;
        let runtime = runtime_that_ends()?;
        let registry = runtime.block_on(list_tools(&mut settings, printer))?;
        let registry = registry.ok_or_else(|| {
            let default = shown(&settings.tool_registry.path, &settings.here);
            Failure::invalid("nothing says what the agent's tools are")
                .hint(format!("the default, {default}, is not there"))
                .hint("name a source with --tool-registry-path, or as 'toolRegistryPath' in karat.json: docs/tools.md lists the kinds")
        })?;
        if crate::registry::is_empty(&registry) {
            printer.warn("the tool registry has no tools");
        }
        Ok(Self { settings, registry, _runtime: runtime })
    }

    /// Says what could not be read, and tells whether somebody has to mend it.
    fn warn_of_gaps(&self, printer: &Printer) -> bool {
        for gap in self.registry.gaps() {
            printer.warn_of_gap(gap);
        }
        self.registry.gaps().iter().any(|gap| gap.kind == GapKind::Broken)
    }

    fn lock_path(&self, flag: Option<&PathBuf>) -> PathBuf {
        lock_path(flag, &self.settings)
    }

    /// Prints a document as programs read it.
    fn print_json(&self, document: &impl Serialize, printer: &Printer) -> Result<(), Failure> {
        if self.settings.redactor.is_empty() {
            return printer.print_json(document);
        }
        let mut value = serde_json::to_value(document).map_err(|error| Failure::errored(error.to_string()))?;
        self.settings.redactor.value(&mut value);
        printer.print_json(&value)
    }

    fn print_text(&self, text: &str, printer: &Printer) -> Result<(), Failure> {
        printer.print(&self.settings.redactor.text(text))
    }
}

fn list(args: &ToolsListArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let is_project = |name: &&String| environment.current_dir.join(name).join("karat.json").is_file();
    let (folders, names): (Vec<&String>, Vec<&String>) = args.names.iter().partition(is_project);
    if let [_, other, ..] = folders[..] {
        return Err(Failure::invalid(format!("'{other}' is a project of its own: list one at a time")));
    }
    let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
    let known = Known::read(&args.config, &folders, environment, printer)?;
    let selection = Selection::read(&names)?;
    if let Some(failure) = selection.without_match(&known.registry) {
        known.warn_of_gaps(printer);
        return Err(failure);
    }
    let list = ToolList::of(&known.registry, |tool| selection.holds(tool), known.settings.tokenizer);
    match args.format {
        OutputFormat::Json => known.print_json(&list, printer)?,
        OutputFormat::Human => {
            known.print_text(&tool_list_text(&list, printer.console(), printer.screen), printer)?;
        }
    }
    if known.warn_of_gaps(printer) {
        return Ok(ExitStatus::Errored);
    }
    if known.registry.tools().is_empty() && !known.registry.gaps().is_empty() {
        return Err(Failure::invalid("no tool of the registry is known")
            .hint("name the file that gives the tools to the agent or server, or export them with 'karat tools export-script'"));
    }
    Ok(ExitStatus::Success)
}

/// The tools that were asked for; without a name, all.
struct Selection<'s> {
    names: Vec<(&'s str, Pattern)>,
}

impl<'s> Selection<'s> {
    fn read(names: &[&'s String]) -> Result<Self, Failure> {
        let read = |name: &&'s String| {
            // A name that is no glob can still be a tool's.
            let pattern = Pattern::new(name).or_else(|_| Pattern::new(&Pattern::escape(name)));
            pattern
                .map(|pattern| (name.as_str(), pattern))
                .map_err(|error| Failure::invalid(format!("'{name}' is not a glob: {error}")))
        };
        Ok(Self { names: names.iter().map(read).collect::<Result<_, _>>()? })
    }

    fn holds(&self, tool: &Tool) -> bool {
        self.names.is_empty() || self.names.iter().any(|(name, pattern)| is_meant(name, pattern, tool))
    }

    /// Says which name means no tool: a misspelt one must not look like an empty registry.
    fn without_match(&self, registry: &Registry) -> Option<Failure> {
        let lost =
            |(name, pattern): &&(&str, Pattern)| !registry.tools().iter().any(|tool| is_meant(name, pattern, tool));
        let (name, _) = self.names.iter().find(lost)?;
        let failure = Failure::nothing_selected(format!("no tool of the registry is '{name}'"));
        Some(match nearest(name, &registry.names()) {
            _ if ["list", "lock", "diff", "export-script"].contains(name) => {
                failure.hint(format!("if you mean the command, options come behind it: 'karat tools {name} …'"))
            }
            Some(near) => failure.hint(format!("did you mean '{near}'?")),
            None => failure,
        })
    }
}

fn is_meant(name: &str, pattern: &Pattern, tool: &Tool) -> bool {
    tool.name == name || pattern.matches(&tool.name)
}

fn lock(args: &ToolsLockArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    if let Some(folder) = args.folder.as_ref().filter(|folder| !environment.current_dir.join(folder).is_dir()) {
        return Err(Failure::invalid(format!("there is no folder {}", folder.display()))
            .hint("all tools of a project are locked: name its folder, or nothing"));
    }
    let known = Known::read(&args.config, args.folder.as_slice(), environment, printer)?;
    let path = known.lock_path(args.lock_file.as_ref());
    let shown = shown(&path, &known.settings.here);
    if known.warn_of_gaps(printer) {
        return Err(Failure::errored(format!("{shown} is left as it is: a part of the tool registry is broken"))
            .hint("mend what the warnings name, so that the lock holds all tools"));
    }
    let before = read_lock(&path, &shown, printer)?;
    let mut now = ToolsLock::of(&known.registry);
    if crate::registry::is_empty(&known.registry) && before.as_ref().is_some_and(|before| !before.tools.is_empty()) {
        return Err(Failure::invalid(format!("{shown} is left as it is: the tool registry has no tools"))
            .hint("if that is right, remove the lock"));
    }
    let is_whole = known.registry.gaps().is_empty();
    let diff = before.as_ref().map(|before| LockDiff::of(before, &now, is_whole));
    if let (Some(before), Some(diff)) = (&before, &diff) {
        let kept = now.keep_hidden(before, diff);
        if kept > 0 {
            let tools = if kept == 1 { "1 tool is".to_owned() } else { format!("{kept} tools are") };
            printer.warn(&format!("{tools} not wholly known any more; what was locked of them is kept"));
        }
    }
    let count = counted(now.tools.len(), "tool");
    let (Some(before), Some(diff)) = (before, diff) else {
        if args.check {
            return Err(Failure { status: ExitStatus::Failed, ..Failure::invalid(format!("there is no {shown}")) }
                .hint("'karat tools lock' writes it"));
        }
        write_lock(&now, &path, &shown)?;
        printer.note(&format!("locked {count} in {shown}"));
        return Ok(ExitStatus::Success);
    };
    if now.locks_the_same(&before) {
        printer.note(&format!("{shown} is up to date: {count}"));
        return Ok(ExitStatus::Success);
    }
    known.print_text(&changes_text(&diff, printer.console()), printer)?;
    if args.check {
        return Err(Failure { status: ExitStatus::Failed, ..Failure::invalid(format!("{shown} is out of date")) }
            .hint("'karat tools diff' shows what that makes stale, 'karat tools lock' brings it up to date"));
    }
    now.schema = before.schema;
    write_lock(&now, &path, &shown)?;
    printer.note(&format!("locked {count} in {shown}"));
    Ok(ExitStatus::Success)
}

fn diff(args: &ToolsDiffArgs, environment: &Environment, printer: &Printer) -> Result<ExitStatus, Failure> {
    let known = Known::read(&args.config, &args.paths, environment, printer)?;
    let path = known.lock_path(args.lock_file.as_ref());
    let shown = shown(&path, &known.settings.here);
    let before = read_lock(&path, &shown, printer)?.ok_or_else(|| {
        Failure::invalid(format!("there is no {shown} to compare with"))
            .hint("'karat tools lock' writes it, to be committed with the eval files")
    })?;
    if known.warn_of_gaps(printer) {
        return Err(Failure::errored("a part of the tool registry is broken, so what changed is not known")
            .hint("mend what the warnings name"));
    }
    let is_whole = known.registry.gaps().is_empty();
    let tools = LockDiff::of(&before, &ToolsLock::of(&known.registry), is_whole);
    let mut document = ToolsDiff { lock: shown, tools, stale_files: Vec::new(), invalid_files: Vec::new() };
    for path in eval_paths(&args.paths, &known.settings, environment)? {
        match parse_suite_file(&path, &read_bytes(&path)?) {
            Ok(file) => {
                let file = match file {
                    SuiteFile::Eval(file) => file,
                    SuiteFile::Rubric(file) => file.without_rubrics(),
                };
                let effects = effects(&file, &document.tools, &known.registry);
                if !effects.is_empty() {
                    document.stale_files.push(StaleFile { file: path.shown, effects });
                }
            }
            Err(_) => document.invalid_files.push(path.shown),
        }
    }
    match args.format {
        OutputFormat::Json => known.print_json(&document, printer)?,
        OutputFormat::Human => known.print_text(&tools_diff_text(&document, printer.console()), printer)?,
    }
    for file in &document.invalid_files {
        printer.warn(&format!("{file} is invalid, so it is not known whether it is stale; 'karat check' says more"));
    }
    Ok(if document.tools.is_empty() { ExitStatus::Success } else { ExitStatus::Failed })
}

/// Prints the script as it is: nothing of the project is read, and nothing is run.
fn print_export_script(args: &ToolsExportScriptArgs, printer: &Printer) -> Result<ExitStatus, Failure> {
    printer.print(export_script(args.interpreter.into()))?;
    Ok(ExitStatus::Success)
}

/// Finds the eval files; where nobody named any, none need to be there.
fn eval_paths(paths: &[PathBuf], settings: &Settings, environment: &Environment) -> Result<Vec<EvalPath>, Failure> {
    if paths.is_empty() && !settings.root.join("evals").is_dir() {
        return Ok(Vec::new());
    }
    match discover(paths, settings, &environment.current_dir) {
        Err(failure) if paths.is_empty() && failure.status == ExitStatus::NothingSelected => Ok(Vec::new()),
        found => found,
    }
}

fn write_lock(lock: &ToolsLock, path: &Path, shown: &str) -> Result<(), Failure> {
    let text = lock.text().map_err(|error| Failure::errored(error.to_string()))?;
    Destination::File(path.to_path_buf())
        .write(&text)
        .map_err(|error| Failure::errored(format!("cannot write {shown}: {error}")))
}

fn shown(path: &Path, here: &Path) -> String {
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}
