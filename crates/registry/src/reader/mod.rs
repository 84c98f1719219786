//! Reads tools from Python, TypeScript and JavaScript sources by static analysis; nothing is executed.
//!
//! Sources are lowered to a common [`syntax`]; [`evaluate`] resolves names and expressions, and `find_python` and
//! `find_javascript` recognise how libraries define tools. Types that are not supported become schemas that allow any
//! value. Names, descriptions and schemas that are computed at run time are unknown.

mod annotation;
mod discovery;
mod docstring;
mod evaluate;
mod find_javascript;
mod find_python;
mod griffe;
mod imports;
mod javascript;
mod json_module;
mod json_schema;
mod keys;
mod library;
mod members;
mod nesting;
mod parse_error;
mod positional;
mod project;
mod python;
mod python_class;
mod reachable;
mod requirements;
mod syntax;
mod text;
mod uses;
mod values;
mod zod;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use karat_cases::registry::{Gap, GapKind, Registry, Tool, ToolLocation};

use self::discovery::{Discovery, FoundTool};
use self::project::{ModuleId, Project, STACK_BYTES};
use self::reachable::Reachable;
use self::syntax::Language;
use crate::files::display_path;
use crate::json::RegistryError;

/// Reads the tools that files define, in source order; locations are relative to `base`.
///
/// For a single file, the tools that it imports are included.
pub(crate) fn read_sources(paths: &[PathBuf], base: &Path) -> Result<Registry, RegistryError> {
    std::thread::scope(|scope| {
        let read = || read(paths, base);
        let started = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, read);
        let thread = started.map_err(|error| RegistryError::File(format!("cannot start a thread: {error}")))?;
        thread.join().map_err(|_| RegistryError::File("internal error in the reader; please report it".to_owned()))
    })
}

fn read(paths: &[PathBuf], base: &Path) -> Registry {
    let mut project = Project::load(paths, base);
    let is_single = paths.len() == 1 && project.entry_count == 1;
    let modules = if is_single { 0..project.modules.len() } else { 0..project.entry_count };
    let mut discovery = find(&project, modules.clone());
    if !discovery.unnamed_modules.is_empty() {
        project.add_importers(&project.find_importers(discovery.unnamed_modules.iter().copied()), base);
        discovery = find(&project, modules);
    }
    if is_single {
        project.report_hidden_tools(0, &mut discovery);
    }
    discovery.resolve_templates();
    let mut gaps: Vec<Gap> = project.gaps.clone();
    if project.is_exhausted() {
        let location =
            ToolLocation { source: display_path(paths.first().map_or(base, PathBuf::as_path), base), position: None };
        let message = "the project is too large to analyse; name the file or folder that defines the tools".to_owned();
        gaps.push(Gap { kind: GapKind::Broken, location, message });
    }
    let mut missing = project.missing.clone();
    if is_single {
        let reachable = Reachable::compute(&project, &discovery.handlers);
        discovery.tools.retain(|candidate| reachable.contains(candidate, &discovery.servers));
        discovery.gaps.retain(|(origin, _)| reachable.modules.contains(&origin.0));
        missing.retain(|(module, _)| reachable.modules.contains(module));
    } else {
        missing.retain(|(module, _)| *module < project.entry_count);
    }
    discovery.drop_bases(&project);
    gaps.extend(missing.into_iter().map(|(_, gap)| gap));
    gaps.extend(discovery.gaps.into_iter().map(|(_, gap)| gap));
    let mut tools = discovery.tools;
    tools.sort_by_key(|candidate| candidate.origin);
    collect(tools, gaps)
}

/// Finds the tools of some modules; the other modules are used to resolve names.
fn find(project: &Project, modules: Range<ModuleId>) -> Discovery {
    let mut discovery = Discovery::default();
    let keys = project.keys();
    for module in modules {
        match project.module(module).language {
            Language::Python => project.find_python_tools(module, &mut discovery),
            Language::JavaScript => project.find_javascript_tools(module, &keys, &mut discovery),
        }
    }
    discovery
}

fn collect(tools: Vec<FoundTool>, gaps: Vec<Gap>) -> Registry {
    let mut registry = Registry::default();
    let completeness =
        |tool: &Tool| usize::from(tool.description.get().is_some()) + usize::from(tool.input_schema.get().is_some());
    // If a tool appears in several places, the most complete definition is used.
    let mut most_complete: HashMap<String, usize> = HashMap::new();
    for FoundTool { tool, .. } in &tools {
        let most = most_complete.entry(tool.name.clone()).or_default();
        *most = completeness(tool).max(*most);
    }
    for FoundTool { tool, .. } in
        tools.into_iter().filter(|candidate| completeness(&candidate.tool) == most_complete[&candidate.tool.name])
    {
        let (name, location) = (tool.name.clone(), tool.location.clone());
        let facts = (tool.description.clone(), tool.input_schema.clone());
        if let (Err(first), Some(location)) = (registry.add(tool), location) {
            if (&first.description, &first.input_schema) == (&facts.0, &facts.1) {
                continue;
            }
            let at = first.location.as_ref().map_or_else(String::new, |location| format!(" ({location})"));
            let message = format!("a tool named '{name}' is already defined{at}; this one is ignored");
            registry.add_gap(Gap { kind: GapKind::Broken, location, message });
        }
    }
    for gap in gaps {
        registry.add_gap(gap);
    }
    registry
}
