//! What names mean, across the modules of a project.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use ruff_python_ast::{Expr, StmtClassDef, StmtFunctionDef};

use super::changes::Parts;
use super::data::Datum;
use super::find::Found;
use super::names::{Binding, Names};
use super::program::{Program, Source};

/// How many steps a name is followed: re-exports may go in circles.
const MOST_STEPS: usize = 40;

/// What an expression refers to.
#[derive(Debug, Clone)]
pub(super) enum Meaning<'p> {
    /// A value that is assigned once, by the name it has in its module.
    Value {
        module: usize,
        name: &'p str,
        value: &'p Expr,
    },
    Function {
        module: usize,
        function: &'p StmtFunctionDef,
    },
    Class {
        module: usize,
        class: &'p StmtClassDef,
    },
    /// An attribute of a class of the project.
    ClassMember {
        module: usize,
        class: &'p StmtClassDef,
        member: String,
    },
    /// An attribute of a value of the project: `server.tool`
    ValueMember {
        module: usize,
        value: &'p Expr,
    },
    Module(usize),
    /// Something of another package, with its full name.
    External(String),
    /// A name that nothing binds: one of the language's own.
    Builtin(String),
    Unclear,
}

/// Where an expression stands.
#[derive(Clone, Copy)]
pub(super) struct Scope<'s> {
    pub(super) module: usize,
    /// Names that mean something else here than in the module.
    pub(super) locals: Option<&'s Locals>,
}

/// The names that a function binds, and the functions around it.
#[derive(Debug, Default)]
pub(super) struct Locals {
    pub(super) names: HashSet<String>,
    pub(super) outer: Option<Rc<Locals>>,
}

impl Locals {
    fn binds(&self, name: &str) -> bool {
        std::iter::successors(Some(self), |locals| locals.outer.as_deref()).any(|locals| locals.names.contains(name))
    }
}

impl Scope<'_> {
    pub(super) fn of_module(module: usize) -> Self {
        Self { module, locals: None }
    }

    pub(super) fn is_local(self, name: &str) -> bool {
        self.locals.is_some_and(|locals| locals.binds(name))
    }
}

/// The modules with what their names mean.
pub(super) struct World<'p> {
    pub(super) program: &'p Program,
    names: Vec<Names<'p>>,
    /// What named values are; none while that is being found out.
    /// The tools of modules that were looked through.
    pub(super) found: RefCell<HashMap<usize, Rc<Vec<Found>>>>,
    pub(super) known: RefCell<HashMap<(usize, &'p str), Option<Datum>>>,
}

impl<'p> World<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        let names = program.sources.iter().map(|source| Names::of(source.body())).collect();
        let mut world = Self { program, names, found: RefCell::default(), known: RefCell::default() };
        for (module, name, parts) in world.writes_elsewhere() {
            world.names[module].changes.write(name, parts);
        }
        world
    }

    /// Returns what modules write to what they import from each other.
    fn writes_elsewhere(&self) -> Vec<(usize, &'p str, Parts)> {
        let mut writes = Vec::new();
        for (module, names) in self.names.iter().enumerate() {
            let own = names.changes.module_writes().into_iter();
            let own = own.map(|(name, parts)| (self.lookup_name(module, name), parts));
            let members = names.changes.of_members.iter().filter_map(|(root, member, parts)| {
                match self.lookup_name(module, root) {
                    Meaning::Module(home) => Some((self.lookup_member(home, member, MOST_STEPS), *parts)),
                    _ => None,
                }
            });
            for (meaning, parts) in own.chain(members) {
                match meaning {
                    Meaning::Value { module: home, name, .. } if home != module => writes.push((home, name, parts)),
                    Meaning::Function { module: home, function } if home != module => {
                        writes.push((home, function.name.as_str(), parts));
                    }
                    _ => {}
                }
            }
        }
        writes
    }

    pub(super) fn source(&self, module: usize) -> &'p Source {
        &self.program.sources[module]
    }

    pub(super) fn names(&self, module: usize) -> &Names<'p> {
        &self.names[module]
    }

    /// Returns what a name or a dotted name refers to.
    pub(super) fn meaning(&self, scope: Scope<'_>, expression: &Expr) -> Meaning<'p> {
        self.follow(scope, expression, MOST_STEPS)
    }

    fn follow(&self, scope: Scope<'_>, expression: &Expr, steps: usize) -> Meaning<'p> {
        let Some(steps) = steps.checked_sub(1) else {
            return Meaning::Unclear;
        };
        match expression {
            Expr::Name(name) if scope.is_local(name.id.as_str()) => Meaning::Unclear,
            Expr::Name(name) => self.lookup(scope.module, name.id.as_str(), steps),
            Expr::Attribute(attribute) => {
                let member = attribute.attr.as_str();
                match self.follow(scope, &attribute.value, steps) {
                    Meaning::External(dotted) => Meaning::External(format!("{dotted}.{member}")),
                    Meaning::Module(module) => self.lookup_member(module, member, steps),
                    Meaning::Class { module, class } => {
                        Meaning::ClassMember { module, class, member: member.to_owned() }
                    }
                    Meaning::Value { module, value, .. } => Meaning::ValueMember { module, value },
                    _ => Meaning::Unclear,
                }
            }
            _ => Meaning::Unclear,
        }
    }

    /// Returns the last part of a dotted name; of what is imported, the part that it has at home.
    pub(super) fn last_name(&self, scope: Scope<'_>, expression: &Expr) -> Option<String> {
        if let Meaning::External(dotted) = self.meaning(scope, expression) {
            return dotted.rsplit('.').next().map(str::to_owned);
        }
        match expression {
            Expr::Name(name) => Some(name.id.to_string()),
            Expr::Attribute(attribute) => Some(attribute.attr.to_string()),
            _ => None,
        }
    }

    /// Returns what a module's name refers to.
    pub(super) fn lookup_name(&self, module: usize, name: &str) -> Meaning<'p> {
        self.lookup(module, name, MOST_STEPS)
    }

    fn lookup(&self, module: usize, name: &str, steps: usize) -> Meaning<'p> {
        let Some(steps) = steps.checked_sub(1) else {
            return Meaning::Unclear;
        };
        if self.names[module].before_stars.contains(name) && self.is_in_stars(module, name, steps) {
            return Meaning::Unclear;
        }
        match self.names[module].get(name) {
            Some(Binding::Value(value)) => {
                // The binding's own name lives as long as the source.
                let name = self.names[module].name(name).unwrap_or_default();
                Meaning::Value { module, name, value }
            }
            Some(Binding::Function(function)) => Meaning::Function { module, function },
            Some(Binding::Class(class)) => Meaning::Class { module, class },
            Some(Binding::Module { dotted }) => match self.program.module(module, 0, dotted) {
                Some(found) => Meaning::Module(found),
                None => Meaning::External(dotted.to_owned()),
            },
            Some(Binding::Member { level, module: from, original }) => {
                self.imported(module, level, from, original, steps)
            }
            Some(Binding::Unclear) => Meaning::Unclear,
            None => self.through_stars(module, name, steps),
        }
    }

    pub(super) fn imported_member(&self, module: usize, level: u32, from: &str, original: &str) -> Meaning<'p> {
        self.imported(module, level, from, original, MOST_STEPS)
    }

    fn imported(&self, module: usize, level: u32, from: &str, original: &str, steps: usize) -> Meaning<'p> {
        if let Some(found) = self.program.module(module, level, from)
            && self.names[found].get(original).is_some()
        {
            return self.lookup(found, original, steps);
        }
        let dotted = if from.is_empty() { original.to_owned() } else { format!("{from}.{original}") };
        match self.program.module(module, level, &dotted) {
            Some(found) => Meaning::Module(found),
            None if level == 0 => Meaning::External(dotted),
            None => Meaning::Unclear,
        }
    }

    /// Looks a name up that may come with all the names of another module.
    fn through_stars(&self, module: usize, name: &str, steps: usize) -> Meaning<'p> {
        let stars = &self.names[module].stars;
        let mut is_open = false;
        for (level, from) in stars.iter().rev() {
            match self.program.module(module, *level, from) {
                Some(found) if found != module => match self.lookup(found, name, steps) {
                    Meaning::Builtin(_) => {}
                    meaning => return meaning,
                },
                _ => is_open = true,
            }
        }
        if is_open { Meaning::Unclear } else { Meaning::Builtin(name.to_owned()) }
    }

    /// Tells whether a name may also come with all the names of a module of the project.
    fn is_in_stars(&self, module: usize, name: &str, steps: usize) -> bool {
        self.names[module].stars.iter().any(|(level, from)| {
            let home = self.program.module(module, *level, from).filter(|home| *home != module);
            home.is_some_and(|home| !matches!(self.lookup(home, name, steps), Meaning::Builtin(_)))
        })
    }

    fn lookup_member(&self, module: usize, member: &str, steps: usize) -> Meaning<'p> {
        match self.lookup(module, member, steps) {
            Meaning::Builtin(_) => Meaning::Unclear,
            meaning => meaning,
        }
    }
}
