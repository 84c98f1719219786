//! Lists the agent's tools, locks them and compares them with the lock.

use std::path::PathBuf;

use glob::Pattern;
use karat_cases::SuiteFile;
use karat_cases::registry::{GapKind, Registry, Tool};
use karat_json::nearest;
use karat_project::{EvalPath, discover, lock_path, parse_suite_file, read_bytes, read_lock, replace_file};
use karat_tools::lock::{LockDiff, StaleFile, ToolsDiff, ToolsLock, effects};
use karat_tools::tool_list::ToolList;

use crate::context::Context;
use crate::context::tools::is_empty;
use crate::error::Error;
use crate::hint::Hint;

/// Lists the tools that match these names or globs; all tools if empty.
pub async fn list(names: &[String], context: &Context<'_>) -> Result<ToolList, Error> {
    let registry = read_registry(context).await?;
    let selection = Selection::read(names)?;
    if let Some(error) = selection.unmatched_name_error(&registry) {
        report_gaps(&registry, context);
        return Err(error);
    }
    Ok(ToolList::of(&registry, |tool| selection.matches(tool), context.settings.tokenizer))
}

pub struct LockRequest {
    /// Only compare, write nothing.
    pub check: bool,
    /// Default: the project's lock.
    pub lock_file: Option<PathBuf>,
}

/// The result of [`lock`].
#[derive(Debug)]
pub struct LockReport {
    /// The path of the lock, for display.
    pub file: String,
    /// The number of locked tools.
    pub tools: usize,
    pub outcome: LockOutcome,
}

#[derive(Debug, PartialEq, Eq)]
pub enum LockOutcome {
    Created,
    Updated(LockDiff),
    Unchanged,
    /// With `check`: the lock does not exist.
    Missing,
    /// With `check`: the lock would be updated.
    OutOfDate(LockDiff),
}

/// Writes the hashes and versions of all tools to the lock.
pub async fn lock(request: LockRequest, context: &Context<'_>) -> Result<LockReport, Error> {
    let registry = read_registry(context).await?;
    let path = lock_path(request.lock_file.as_ref(), &context.settings.layout);
    let file = context.settings.display_path(&path);
    if report_gaps(&registry, context) {
        return Err(Error::unavailable(format!("{file} cannot be updated: a part of the tool registry is broken"))
            .hint("fix the reported problems, so that the lock has all tools"));
    }
    let before = read_lock(&path, &file)?;
    let mut now = ToolsLock::of(&registry);
    if is_empty(&registry) && before.as_ref().is_some_and(|before| !before.tools.is_empty()) {
        return Err(Error::invalid(format!("{file} cannot be updated: the tool registry has no tools"))
            .hint("if this is intended, remove the lock"));
    }
    let outcome = match before {
        None if request.check => LockOutcome::Missing,
        None => LockOutcome::Created,
        Some(before) => {
            let diff = LockDiff::of(&before, &now, registry.gaps().is_empty());
            preserve_unreadable(&mut now, &before, &diff, context);
            if now.has_same_tools(&before) {
                LockOutcome::Unchanged
            } else if request.check {
                LockOutcome::OutOfDate(diff)
            } else {
                now.schema = before.schema;
                LockOutcome::Updated(diff)
            }
        }
    };
    if matches!(outcome, LockOutcome::Created | LockOutcome::Updated(_)) {
        let text = now.text().map_err(|error| Error::unavailable(error.to_string()))?;
        replace_file(&path, &text).map_err(|error| Error::cannot_write(&file, &error))?;
    }
    Ok(LockReport { file, tools: now.tools.len(), outcome })
}

/// Preserves the lock entries of tools that can no longer be read completely.
fn preserve_unreadable(now: &mut ToolsLock, before: &ToolsLock, diff: &LockDiff, context: &Context<'_>) {
    let preserved = now.preserve_unknown(before, diff);
    if preserved > 0 {
        let tools = if preserved == 1 { "1 tool".to_owned() } else { format!("{preserved} tools") };
        let warning = format!("{tools} can no longer be read completely; the existing lock entries are preserved");
        context.notices.warn(&warning);
    }
}

pub struct DiffRequest {
    /// Eval files, folders or globs that may be stale; all eval files of the project if empty.
    pub paths: Vec<PathBuf>,
    /// Default: the project's lock.
    pub lock_file: Option<PathBuf>,
}

/// Compares the tools with the lock and finds the eval files that are stale because of the changes.
pub async fn diff(request: DiffRequest, context: &Context<'_>) -> Result<ToolsDiff, Error> {
    let registry = read_registry(context).await?;
    let path = lock_path(request.lock_file.as_ref(), &context.settings.layout);
    let lock = context.settings.display_path(&path);
    let before = read_lock(&path, &lock)?
        .ok_or_else(|| Error::invalid(format!("{lock} does not exist")).hint(Hint::WriteToolLock))?;
    if report_gaps(&registry, context) {
        return Err(Error::unavailable("cannot determine changes: a part of the tool registry is broken")
            .hint("fix the reported problems"));
    }
    let tools = LockDiff::of(&before, &ToolsLock::of(&registry), registry.gaps().is_empty());
    let mut diff = ToolsDiff { lock, tools, stale_files: Vec::new(), invalid_files: Vec::new() };
    for path in eval_paths(&request.paths, context)? {
        match parse_suite_file(&path, &read_bytes(&path)?) {
            Ok(file) => {
                let file = match file {
                    SuiteFile::Eval(file) => file,
                    SuiteFile::Rubric(file) => file.without_rubrics(),
                };
                let effects = effects(&file, &diff.tools, &registry);
                if !effects.is_empty() {
                    diff.stale_files.push(StaleFile { file: path.display_path, effects });
                }
            }
            Err(_) => diff.invalid_files.push(path.display_path),
        }
    }
    Ok(diff)
}

/// Reads the tool registry; an error if none is configured.
async fn read_registry(context: &Context<'_>) -> Result<Registry, Error> {
    let registry = context.require_tools().await?;
    if is_empty(&registry) {
        context.notices.warn("the tool registry has no tools");
    }
    Ok(registry)
}

/// Reports the gaps of the registry. Returns whether any part is broken.
fn report_gaps(registry: &Registry, context: &Context<'_>) -> bool {
    registry.gaps().iter().for_each(|gap| context.notices.gap(gap));
    registry.gaps().iter().any(|gap| gap.kind == GapKind::Broken)
}

/// Finds the eval files. Without paths, the result may be empty.
fn eval_paths(paths: &[PathBuf], context: &Context<'_>) -> Result<Vec<EvalPath>, Error> {
    let layout = &context.settings.layout;
    if paths.is_empty() && !layout.root.join("evals").is_dir() {
        return Ok(Vec::new());
    }
    match discover(paths, layout, &layout.current_dir) {
        Err(error) if paths.is_empty() && error.kind == karat_project::ErrorKind::NothingSelected => Ok(Vec::new()),
        result => Ok(result?),
    }
}

/// The tools to list; all if empty.
struct Selection<'s> {
    names: Vec<(&'s str, Pattern)>,
}

impl<'s> Selection<'s> {
    fn read(names: &'s [String]) -> Result<Self, Error> {
        let read = |name: &'s String| {
            // A name that is not a valid glob may still be the name of a tool.
            let pattern = Pattern::new(name).or_else(|_| Pattern::new(&Pattern::escape(name)));
            pattern
                .map(|pattern| (name.as_str(), pattern))
                .map_err(|error| Error::invalid(format!("invalid glob '{name}': {error}")))
        };
        Ok(Self { names: names.iter().map(read).collect::<Result<_, _>>()? })
    }

    fn matches(&self, tool: &Tool) -> bool {
        self.names.is_empty() || self.names.iter().any(|(name, pattern)| is_named(tool, name, pattern))
    }

    /// Returns an error if a name matches no tool: a misspelt name must not look like an empty registry.
    fn unmatched_name_error(&self, registry: &Registry) -> Option<Error> {
        let is_unknown =
            |(name, pattern): &&(&str, Pattern)| !registry.tools().iter().any(|tool| is_named(tool, name, pattern));
        let (name, _) = self.names.iter().find(is_unknown)?;
        let error = Error::nothing_selected(format!("no tool matches '{name}'"));
        Some(match nearest(name, &registry.names()) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error,
        })
    }
}

fn is_named(tool: &Tool, name: &str, pattern: &Pattern) -> bool {
    tool.name == name || pattern.matches(&tool.name)
}
