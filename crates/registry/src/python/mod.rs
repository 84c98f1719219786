//! Tools of Python modules, read with a parser: nothing of a module is ever run.
//!
//! A tool is a function with a decorator of one of the usual libraries, a dictionary in one of the usual shapes, a call
//! of a tool's constructor, or a class that is a tool. What shows only when the module is run is unknown, with its
//! place.

mod annotation;
mod changes;
mod data;
mod definition;
mod evaluate;
mod find;
mod framework;
mod function;
mod injected;
mod model;
mod names;
mod program;
mod text;
mod version;
mod world;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use karat_core::registry::{Gap, GapKind, Registry, Tool, ToolField, Unknown};

use ruff_python_ast::Expr;

use find::Found;
use framework::Framework;
use names::Binding;
use program::{Imported, Program, Spot};
use world::{Meaning, Scope, World};

/// Reads the tools of some modules; with one of a single file, also those that it imports from modules of the project.
pub(crate) fn read_modules(files: &[PathBuf], base: &Path) -> Registry {
    let program = Program::load(files, base);
    let world = World::new(&program);
    let mut collected = Collected::default();
    for module in 0..files.len().min(program.sources.len()) {
        collected.extend(&world.tools(module), |_| true);
        if files.len() == 1 {
            collect_imported(&world, module, &mut collected, &mut BTreeSet::from([module]));
        }
    }
    let mut gaps = program.gaps.clone();
    gaps.append(&mut collected.gaps);
    collected.into_registry(gaps)
}

/// Adds the tools that a module takes from others of the project: those it imports by name, and all of a module that
/// it imports as a whole, which registers them.
fn collect_imported(world: &World<'_>, module: usize, collected: &mut Collected, seen: &mut BTreeSet<usize>) {
    let names = world.names(module);
    for (name, _) in names.imported().into_iter().filter(|(_, binding)| !matches!(binding, Binding::Unclear)) {
        let (home, symbol) = match world.lookup_name(module, name) {
            Meaning::Module(home) => (home, None),
            Meaning::Value { module, name, .. } => (module, Some(name.to_owned())),
            Meaning::Function { module, function } => (module, Some(function.name.to_string())),
            Meaning::Class { module, class } => (module, Some(class.name.to_string())),
            _ => continue,
        };
        if home != module {
            let is_meant = |found: &Found| symbol.is_none() || found.symbol == symbol;
            collected.extend(&world.tools(home), is_meant);
        }
        // A server brings all that is registered with it: in its own module, and in those that it imports.
        if let Meaning::Value { module: home, value, .. } = world.lookup_name(module, name)
            && is_server(world, home, value)
            && seen.insert(home)
        {
            collected.extend(&world.tools(home), |_| true);
            collect_imported(world, home, collected, seen);
        }
    }
    // Also what is imported by its full name, in a function, or under a condition.
    for import in world.source(module).all_imports() {
        match import {
            Imported::Module(dotted) => {
                if let Some(home) = world.program.module(module, 0, dotted).filter(|home| *home != module) {
                    collected.extend(&world.tools(home), |_| true);
                }
            }
            Imported::Member { level, from, original } => {
                let (home, symbol) = match world.imported_member(module, level, from, original) {
                    Meaning::Module(home) => (home, None),
                    Meaning::Value { module, .. }
                    | Meaning::Function { module, .. }
                    | Meaning::Class { module, .. } => (module, Some(original)),
                    _ => continue,
                };
                if home != module {
                    let is_meant = |found: &Found| symbol.is_none() || found.symbol.as_deref() == symbol;
                    collected.extend(&world.tools(home), is_meant);
                }
            }
        }
    }
    for (level, from) in &names.stars {
        if let Some(home) = world.program.module(module, *level, from).filter(|home| *home != module) {
            collected.extend(&world.tools(home), |_| true);
        }
    }
}

/// Tells whether a value is a server that tools are registered with.
fn is_server(world: &World<'_>, module: usize, value: &Expr) -> bool {
    let Expr::Call(call) = value else { return false };
    let meaning = world.meaning(Scope::of_module(module), &call.func);
    Framework::of_meaning(world, &meaning) != Framework::Other
}

/// The tools so far.
#[derive(Default)]
struct Collected {
    tools: Vec<(Tool, Spot, bool)>,
    by_name: HashMap<String, usize>,
    seen: BTreeSet<Spot>,
    gaps: Vec<Gap>,
}

impl Collected {
    fn extend(&mut self, found: &[Found], is_meant: impl Fn(&Found) -> bool) {
        for found in found.iter().filter(|found| is_meant(found)).cloned() {
            if !self.seen.insert(found.spot) {
                continue;
            }
            match found.tool {
                Err(gap) => self.gaps.push(gap),
                Ok(tool) => self.add(tool, found.spot, found.is_conditional),
            }
        }
    }

    fn add(&mut self, tool: Tool, spot: Spot, is_conditional: bool) {
        let Some(&first) = self.by_name.get(&tool.name) else {
            self.by_name.insert(tool.name.clone(), self.tools.len());
            self.tools.push((tool, spot, is_conditional));
            return;
        };
        let (first, _, was_conditional) = &mut self.tools[first];
        let Some(place) = tool.place else {
            return;
        };
        if is_conditional || *was_conditional {
            // Only one of them is there, and which one shows when the module is run.
            let why = format!("the tool is declared in another way at {place}");
            first.unknown.push(Unknown { field: ToolField::Description, place: place.clone(), why: why.clone() });
            first.unknown.push(Unknown { field: ToolField::InputSchema, place, why });
            (first.description, first.input_schema) = (None, None);
            return;
        }
        let is_same = tool.unknown.is_empty()
            && first.unknown.is_empty()
            && (&tool.description, &tool.input_schema) == (&first.description, &first.input_schema);
        if is_same {
            return;
        }
        let other = first.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
        let what = format!("another tool has the name '{}' too{other}", tool.name);
        // Which of them a model gets to see is anybody's guess.
        for field in [ToolField::Description, ToolField::InputSchema] {
            first.unknown.retain(|unknown| unknown.field != field);
            first.unknown.push(Unknown {
                field,
                place: place.clone(),
                why: format!("the tool is declared again at {place}"),
            });
        }
        (first.description, first.input_schema) = (None, None);
        self.gaps.push(Gap { kind: GapKind::Broken, place, what });
    }

    fn into_registry(self, gaps: Vec<Gap>) -> Registry {
        let mut registry = Registry::of(self.tools.into_iter().map(|(tool, ..)| tool));
        for gap in gaps {
            registry.add_gap(gap);
        }
        registry
    }
}
