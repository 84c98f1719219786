//! Selects the evaluator of a file.

use std::collections::BTreeSet;

use ruff_python_ast::visitor::source_order::{SourceOrderVisitor, walk_stmt};
use ruff_python_ast::{ModModule, Stmt, StmtClassDef, StmtFunctionDef};

use super::error::AdoptError;
use super::framework::{Evaluator, Framework, base_names, imported_frameworks};
use super::scopes::Names;

/// The evaluator, and the functions that it is inside of.
pub(super) struct Selected<'a> {
    pub(super) evaluator: Evaluator<'a>,
    pub(super) stmt: &'a Stmt,
    /// From the outermost.
    pub(super) outer: Vec<&'a StmtFunctionDef>,
}

impl<'a> Selected<'a> {
    /// Returns the imports of the functions around the evaluator.
    pub(super) fn outer_imports(&self) -> impl Iterator<Item = &'a Stmt> {
        self.outer.iter().flat_map(|function| imports_of(function))
    }

    /// Returns what the evaluator uses of the functions around it, beside their imports, as obstacles.
    pub(super) fn closure(&self) -> Vec<String> {
        let free = Names::of_statement(self.stmt).uses;
        let mut used = Vec::new();
        for function in &self.outer {
            let local = Names::of_function(function);
            let own = free.iter().filter(|name| local.binds.contains(*name) && !local.imports.contains(*name));
            let obstacle =
                |name: &&str| format!("it is a closure: it uses '{name}' of the function '{}'", function.name);
            used.extend(own.map(obstacle));
        }
        used
    }
}

/// Selects the evaluator with a name, or the only one. Those inside of functions count if there is no other.
pub(super) fn select<'a>(module: &'a ModModule, name: Option<&str>) -> Result<Selected<'a>, AdoptError> {
    let file = File { body: &module.body, imported: imported_frameworks(&module.body) };
    let top_level: Vec<Definition<'a>> =
        module.body.iter().map(|stmt| Definition { stmt, outer: Vec::new() }).collect();
    let inner = Definition::inside_functions(&module.body);
    if let Some(name) = name {
        let is_named = |definition: &&Definition<'a>| definition_name(definition.stmt) == Some(name);
        let mut inner = inner.iter().filter(is_named);
        // The last definition of a name counts.
        let definition = match top_level.iter().rfind(is_named) {
            Some(definition) => definition,
            None => match (inner.next(), inner.next()) {
                (Some(definition), None) => definition,
                (Some(_), Some(_)) => {
                    return Err(AdoptError::Invalid(format!("several functions '{name}' inside of functions")));
                }
                (None, _) => return Err(AdoptError::Unknown(name.to_owned())),
            },
        };
        return file.recognise(definition, true).ok_or_else(|| {
            file.foreign_base(definition.stmt).unwrap_or_else(|| AdoptError::NoneFound { functions: Vec::new() })
        });
    }
    for definitions in [&top_level, &inner] {
        let mut found: Vec<Selected<'a>> =
            definitions.iter().filter_map(|definition| file.recognise(definition, false)).collect();
        match found.len() {
            0 => {}
            1 => return Ok(found.remove(0)),
            _ => {
                let names = found.iter().map(|selected| selected.evaluator.name().to_owned()).collect();
                return Err(AdoptError::Several(names));
            }
        }
    }
    let functions: Vec<Selected<'a>> =
        top_level.iter().filter_map(|definition| file.recognise(definition, true)).collect();
    let foreign_base = || module.body.iter().find_map(|stmt| file.foreign_base(stmt));
    Err(functions.is_empty().then(foreign_base).flatten().unwrap_or_else(|| AdoptError::NoneFound {
        functions: functions.iter().map(|found| found.evaluator.name().to_owned()).collect(),
    }))
}

struct File<'a> {
    body: &'a [Stmt],
    imported: BTreeSet<Framework>,
}

impl<'a> File<'a> {
    fn recognise(&self, definition: &Definition<'a>, is_named: bool) -> Option<Selected<'a>> {
        let Definition { stmt, outer } = definition;
        let mut imported = self.imported.clone();
        imported.extend(outer.iter().flat_map(|function| imported_frameworks(imports_of(function))));
        let evaluator = Evaluator::recognise(stmt, self.body, &imported, is_named)?;
        Some(Selected { evaluator, stmt, outer: outer.clone() })
    }

    /// Says that the base class of a metric, scorer or evaluator is in another file.
    fn foreign_base(&self, stmt: &Stmt) -> Option<AdoptError> {
        let class = stmt.as_class_def_stmt()?;
        let is_scorer = |base: &&str| ["Metric", "Scorer", "Evaluator"].iter().any(|end| base.ends_with(end));
        let base = base_names(class).find(is_scorer).or_else(|| base_names(class).next())?;
        let imports = self.body.iter().filter_map(Stmt::as_import_from_stmt);
        let module =
            imports.filter(|import| import.names.iter().any(|alias| alias.name == *base)).find_map(|import| {
                let dots = ".".repeat(usize::try_from(import.level).unwrap_or_default());
                import.module.as_ref().map(|module| format!("{dots}{module}"))
            })?;
        let is_metric = is_scorer(&base) || scores(class);
        is_metric.then(|| AdoptError::ForeignBase { class: class.name.to_string(), base: base.to_owned(), module })
    }
}

/// Whether a class may be an evaluator, from its methods.
fn scores(class: &StmtClassDef) -> bool {
    let methods = class.body.iter().filter_map(Stmt::as_function_def_stmt);
    methods.into_iter().any(|method| ["measure", "_evaluate", "evaluate", "score"].contains(&method.name.as_str()))
}

/// A function or class, and the functions that it is inside of.
struct Definition<'a> {
    stmt: &'a Stmt,
    outer: Vec<&'a StmtFunctionDef>,
}

impl<'a> Definition<'a> {
    fn inside_functions(body: &'a [Stmt]) -> Vec<Self> {
        let mut inner = Inner::default();
        inner.visit_body(body);
        inner.found
    }
}

/// Collects the functions and classes inside of functions.
#[derive(Default)]
struct Inner<'a> {
    outer: Vec<&'a StmtFunctionDef>,
    found: Vec<Definition<'a>>,
}

impl<'a> SourceOrderVisitor<'a> for Inner<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if definition_name(stmt).is_some() && !self.outer.is_empty() {
            self.found.push(Definition { stmt, outer: self.outer.clone() });
        }
        match stmt {
            Stmt::FunctionDef(function) => {
                self.outer.push(function);
                walk_stmt(self, stmt);
                self.outer.pop();
            }
            // Methods are not evaluators.
            Stmt::ClassDef(_) => {}
            _ => walk_stmt(self, stmt),
        }
    }
}

/// Returns the import statements of a function's body.
fn imports_of(function: &StmtFunctionDef) -> impl Iterator<Item = &Stmt> {
    function.body.iter().filter(|stmt| matches!(stmt, Stmt::Import(_) | Stmt::ImportFrom(_)))
}

fn definition_name(stmt: &Stmt) -> Option<&str> {
    match stmt {
        Stmt::FunctionDef(function) => Some(function.name.as_str()),
        Stmt::ClassDef(class) => Some(class.name.as_str()),
        _ => None,
    }
}
