//! Reads tools from Python, TypeScript and JavaScript sources, which are parsed and never run.
//!
//! Both languages become the same [`syntax`]; [`evaluate`] finds out what names and expressions stand for, and
//! `find_python` and `find_javascript` know the forms in which libraries let people define tools. Names, descriptions and
//! parameters are read as far as they are ordinary: a type that is not allows everything. Unknown is only what is really
//! made at run time.

mod annotation;
mod docstring;
mod evaluate;
mod find_javascript;
mod find_python;
mod found;
mod griffe;
mod imports;
mod javascript;
mod json_module;
mod json_schema;
mod keys;
mod library;
mod members;
mod nesting;
mod pins;
mod positional;
mod project;
mod python;
mod python_class;
mod reached;
mod syntax;
mod text;
mod unreadable;
mod uses;
mod values;
mod zod;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use karat_core::registry::{Gap, GapKind, Registry, Tool, ToolPlace};

use self::found::{Findings, Found};
use self::project::{ModuleId, Project, STACK_BYTES};
use self::reached::Reached;
use self::syntax::Language;
use crate::files::shown;
use crate::json::RegistryError;

/// Reads the tools that files define, in their order; places are named relative to `base`.
///
/// Of a single file, the tools that it imports count too.
pub(crate) fn read_sources(paths: &[PathBuf], base: &Path) -> Result<Registry, RegistryError> {
    std::thread::scope(|scope| {
        let read = || read(paths, base);
        let started = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, read);
        let thread = started.map_err(|error| RegistryError::File(format!("cannot start a thread: {error}")))?;
        thread.join().map_err(|_| RegistryError::File("the reader failed; please report this".to_owned()))
    })
}

fn read(paths: &[PathBuf], base: &Path) -> Registry {
    let mut project = Project::load(paths, base);
    let is_single = paths.len() == 1 && project.entries == 1;
    let modules = if is_single { 0..project.modules.len() } else { 0..project.entries };
    let mut findings = find(&project, modules.clone());
    if !findings.nameless.is_empty() {
        project.add_importers(&project.find_importers(findings.nameless.iter().copied()), base);
        findings = find(&project, modules);
    }
    if is_single {
        project.hidden_tools(0, &mut findings);
    }
    findings.settle();
    let mut gaps: Vec<Gap> = project.gaps.clone();
    if project.is_exhausted() {
        let place = ToolPlace { source: shown(paths.first().map_or(base, PathBuf::as_path), base), position: None };
        let what = "there is too much to read at once; name the file or folder of the tools".to_owned();
        gaps.push(Gap { kind: GapKind::Broken, place, what });
    }
    let mut missing = project.missing.clone();
    if is_single {
        let reached = Reached::from(&project, &findings.handlers);
        findings.tools.retain(|found| reached.has(found, &findings.servers));
        findings.gaps.retain(|(origin, _)| reached.whole.contains(&origin.0));
        missing.retain(|(module, _)| reached.whole.contains(module));
    } else {
        missing.retain(|(module, _)| *module < project.entries);
    }
    findings.drop_bases(&project);
    gaps.extend(missing.into_iter().map(|(_, gap)| gap));
    gaps.extend(findings.gaps.into_iter().map(|(_, gap)| gap));
    let mut tools = findings.tools;
    tools.sort_by_key(|found| found.origin);
    collect(tools, gaps)
}

/// Finds the tools of some modules; the others only say more of them.
fn find(project: &Project, modules: Range<ModuleId>) -> Findings {
    let mut findings = Findings::default();
    let keys = project.keys();
    for module in modules {
        match project.module(module).language {
            Language::Python => project.find_in_python(module, &mut findings),
            Language::JavaScript => project.find_in_javascript(module, &keys, &mut findings),
        }
    }
    findings
}

fn collect(tools: Vec<Found>, gaps: Vec<Gap>) -> Registry {
    let mut registry = Registry::default();
    let known =
        |tool: &Tool| usize::from(tool.description.get().is_some()) + usize::from(tool.input_schema.get().is_some());
    // Of several places the one that says more defines the tool; the others mention it.
    let mut most: HashMap<String, usize> = HashMap::new();
    for Found { tool, .. } in &tools {
        let most = most.entry(tool.name.clone()).or_default();
        *most = known(tool).max(*most);
    }
    for Found { tool, .. } in tools.into_iter().filter(|found| known(&found.tool) == most[&found.tool.name]) {
        let (name, place) = (tool.name.clone(), tool.place.clone());
        let facts = (tool.description.clone(), tool.input_schema.clone());
        if let (Err(first), Some(place)) = (registry.add(tool), place) {
            if (&first.description, &first.input_schema) == (&facts.0, &facts.1) {
                continue;
            }
            let at = first.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
            let what = format!("another tool has the name '{name}' too{at}; this one is left out");
            registry.add_gap(Gap { kind: GapKind::Broken, place, what });
        }
    }
    for gap in gaps {
        registry.add_gap(gap);
    }
    registry
}
