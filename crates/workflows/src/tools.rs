//! What is known of the agent's tools, the lock of them, and what changed since.

use std::path::PathBuf;

use glob::Pattern;
use karat_core::case::SuiteFile;
use karat_core::registry::{GapKind, Registry, Tool};
use karat_json::nearest;
use karat_project::{EvalPath, discover, lock_path, parse_suite_file, read_bytes, read_lock, replace_file};
use karat_tools::lock::{LockDiff, StaleFile, ToolsDiff, ToolsLock, effects};
use karat_tools::tool_list::ToolList;

use crate::context::Context;
use crate::context::tools::{is_empty, list_tools};
use crate::error::Error;
use crate::hint::Hint;

/// Lists the tools of these names or globs; without any, all.
pub async fn list(names: &[String], context: &Context<'_>) -> Result<ToolList, Error> {
    let registry = read_registry(context).await?;
    let selection = Selection::read(names)?;
    if let Some(error) = selection.without_match(&registry) {
        report_gaps(&registry, context);
        return Err(error);
    }
    Ok(ToolList::of(&registry, |tool| selection.holds(tool), context.settings.tokenizer))
}

pub struct LockRequest {
    /// Write nothing.
    pub check: bool,
    /// Else the project's own.
    pub lock_file: Option<PathBuf>,
}

/// What came of locking the tools.
#[derive(Debug)]
pub struct Locked {
    /// The lock's file.
    pub file: String,
    /// How many tools there are.
    pub tools: usize,
    pub outcome: LockOutcome,
}

#[derive(Debug, PartialEq, Eq)]
pub enum LockOutcome {
    Created,
    Updated(LockDiff),
    Unchanged,
    /// There is no lock, and this is a check.
    Missing,
    /// The lock would be updated, but this is a check.
    OutOfDate(LockDiff),
}

/// Writes the tools' hashes and versions to the lock.
pub async fn lock(request: LockRequest, context: &Context<'_>) -> Result<Locked, Error> {
    let registry = read_registry(context).await?;
    let path = lock_path(request.lock_file.as_ref(), &context.settings.layout);
    let file = context.settings.shown(&path);
    if report_gaps(&registry, context) {
        return Err(Error::unavailable(format!("{file} is left as it is: a part of the tool registry is broken"))
            .hint("fix what the warnings name, so that the lock holds all tools"));
    }
    let before = read_lock(&path, &file)?;
    let mut now = ToolsLock::of(&registry);
    if is_empty(&registry) && before.as_ref().is_some_and(|before| !before.tools.is_empty()) {
        return Err(Error::invalid(format!("{file} is left as it is: the tool registry has no tools"))
            .hint("if that is right, remove the lock"));
    }
    let outcome = match before {
        None if request.check => LockOutcome::Missing,
        None => LockOutcome::Created,
        Some(before) => {
            let diff = LockDiff::of(&before, &now, registry.gaps().is_empty());
            keep_hidden(&mut now, &before, &diff, context);
            if now.locks_the_same(&before) {
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
        replace_file(&path, &text).map_err(|error| Error::unavailable(format!("cannot write {file}: {error}")))?;
    }
    Ok(Locked { file, tools: now.tools.len(), outcome })
}

/// Keeps what was locked of tools that cannot be read wholly now.
fn keep_hidden(now: &mut ToolsLock, before: &ToolsLock, diff: &LockDiff, context: &Context<'_>) {
    let kept = now.keep_hidden(before, diff);
    if kept > 0 {
        let tools = if kept == 1 { "1 tool is".to_owned() } else { format!("{kept} tools are") };
        context.notices.warn(&format!("{tools} not wholly known any more; what was locked of them is kept"));
    }
}

pub struct DiffRequest {
    /// Eval files, folders or globs that may be stale; without any, all of the project.
    pub paths: Vec<PathBuf>,
    /// Else the project's own.
    pub lock_file: Option<PathBuf>,
}

/// Compares the tools with their lock, and finds the eval files that the changes make stale.
pub async fn diff(request: DiffRequest, context: &Context<'_>) -> Result<ToolsDiff, Error> {
    let registry = read_registry(context).await?;
    let path = lock_path(request.lock_file.as_ref(), &context.settings.layout);
    let lock = context.settings.shown(&path);
    let before = read_lock(&path, &lock)?
        .ok_or_else(|| Error::invalid(format!("there is no {lock} to compare with")).hint(Hint::WriteToolLock))?;
    if report_gaps(&registry, context) {
        return Err(Error::unavailable("a part of the tool registry is broken, so what changed is not known")
            .hint("fix what the warnings name"));
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
                    diff.stale_files.push(StaleFile { file: path.shown, effects });
                }
            }
            Err(_) => diff.invalid_files.push(path.shown),
        }
    }
    Ok(diff)
}

/// Reads the tools, which must be configured.
async fn read_registry(context: &Context<'_>) -> Result<Registry, Error> {
    let settings = &context.settings;
    let registry = list_tools(settings, context.notices).await?.ok_or_else(|| {
        let default = settings.shown(&settings.tool_registry.path);
        Error::invalid("nothing says what the agent's tools are")
            .hint(format!("the default, {default}, is not there"))
            .hint("name a source with --tool-registry-path, or as 'toolRegistryPath' in karat.json: docs/tools.md lists the kinds")
    })?;
    if is_empty(&registry) {
        context.notices.warn("the tool registry has no tools");
    }
    Ok(registry)
}

/// Reports what could not be read, and tells whether any of it is broken.
fn report_gaps(registry: &Registry, context: &Context<'_>) -> bool {
    registry.gaps().iter().for_each(|gap| context.notices.gap(gap));
    registry.gaps().iter().any(|gap| gap.kind == GapKind::Broken)
}

/// Finds the eval files; where no path is named, there may be none.
fn eval_paths(paths: &[PathBuf], context: &Context<'_>) -> Result<Vec<EvalPath>, Error> {
    let layout = &context.settings.layout;
    if paths.is_empty() && !layout.root.join("evals").is_dir() {
        return Ok(Vec::new());
    }
    match discover(paths, layout, &layout.here) {
        Err(error) if paths.is_empty() && error.kind == karat_project::ErrorKind::NothingSelected => Ok(Vec::new()),
        found => Ok(found?),
    }
}

/// The tools to list; without a name, all.
struct Selection<'s> {
    names: Vec<(&'s str, Pattern)>,
}

impl<'s> Selection<'s> {
    fn read(names: &'s [String]) -> Result<Self, Error> {
        let read = |name: &'s String| {
            // A name that is not a glob can still be a tool's.
            let pattern = Pattern::new(name).or_else(|_| Pattern::new(&Pattern::escape(name)));
            pattern
                .map(|pattern| (name.as_str(), pattern))
                .map_err(|error| Error::invalid(format!("'{name}' is not a glob: {error}")))
        };
        Ok(Self { names: names.iter().map(read).collect::<Result<_, _>>()? })
    }

    fn holds(&self, tool: &Tool) -> bool {
        self.names.is_empty() || self.names.iter().any(|(name, pattern)| is_named(tool, name, pattern))
    }

    /// Returns an error for a name that no tool has: a misspelt one must not look like an empty registry.
    fn without_match(&self, registry: &Registry) -> Option<Error> {
        let is_unknown =
            |(name, pattern): &&(&str, Pattern)| !registry.tools().iter().any(|tool| is_named(tool, name, pattern));
        let (name, _) = self.names.iter().find(is_unknown)?;
        let error = Error::nothing_selected(format!("no tool of the registry is '{name}'"));
        Some(match nearest(name, &registry.names()) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None => error,
        })
    }
}

fn is_named(tool: &Tool, name: &str, pattern: &Pattern) -> bool {
    tool.name == name || pattern.matches(&tool.name)
}
