//! Looks through a module for whatever declares a tool.

use std::collections::HashSet;

use karat_core::registry::{Gap, GapKind, Tool};
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprContext, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::definition::is_tool;
use super::function::ToolFunction;
use super::names::DEEPEST;
use super::program::{Spot, spot};
use super::world::{Meaning, Scope, World};

/// A tool or a gap that a module declares.
pub(super) struct Found {
    /// The module's name that it stands under, if any.
    pub(super) symbol: Option<String>,
    pub(super) spot: Spot,
    /// Only one of several branches declares it.
    pub(super) is_conditional: bool,
    pub(super) tool: Result<Tool, Gap>,
}

impl World<'_> {
    /// Finds the tools of a module, in the order of its text.
    pub(super) fn tools(&self, module: usize) -> Vec<Found> {
        let mut finder = Finder {
            world: self,
            module,
            locals: None,
            symbol: None,
            in_class: false,
            conditions: 0,
            depth: 0,
            is_cut: false,
            found: Vec::new(),
        };
        let body = self.source(module).body();
        for statement in body {
            finder.symbol = symbol_of(statement);
            finder.visit_stmt(statement);
        }
        if finder.is_cut {
            let what = "a part is nested too deeply to be read".to_owned();
            let mut place = self.source(module).place(0);
            place.position = None;
            let gap = Gap { kind: GapKind::Unknown, place, what };
            let spot = Spot { module, offset: usize::MAX };
            finder.found.push(Found { symbol: None, spot, is_conditional: false, tool: Err(gap) });
        }
        finder.found
    }
}

fn symbol_of(statement: &Stmt) -> Option<String> {
    match statement {
        Stmt::FunctionDef(function) => Some(function.name.to_string()),
        Stmt::ClassDef(class) => Some(class.name.to_string()),
        Stmt::Assign(assign) => match &assign.targets[..] {
            [Expr::Name(name)] => Some(name.id.to_string()),
            _ => None,
        },
        Stmt::AnnAssign(assign) => match &*assign.target {
            Expr::Name(name) => Some(name.id.to_string()),
            _ => None,
        },
        Stmt::AugAssign(assign) => match &*assign.target {
            Expr::Name(name) => Some(name.id.to_string()),
            _ => None,
        },
        // `TOOLS.append({…})`
        Stmt::Expr(statement) => match &*statement.value {
            Expr::Call(call) => match &*call.func {
                Expr::Attribute(method) => match &*method.value {
                    Expr::Name(name) => Some(name.id.to_string()),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

struct Finder<'w, 'p> {
    world: &'w World<'p>,
    module: usize,
    /// What the functions around bind.
    locals: Option<HashSet<String>>,
    symbol: Option<String>,
    /// The statement stands directly in a class.
    in_class: bool,
    conditions: usize,
    depth: usize,
    /// Something was too deep to be looked at.
    is_cut: bool,
    found: Vec<Found>,
}

impl Finder<'_, '_> {
    fn scope(&self) -> Scope<'_> {
        Scope { module: self.module, locals: self.locals.as_ref() }
    }

    fn add(&mut self, spot: Spot, tool: Result<Tool, Gap>) {
        let symbol = self.symbol.clone();
        self.found.push(Found { symbol, spot, is_conditional: self.conditions > 0, tool });
    }

    fn is_called_tool(&self) -> bool {
        self.symbol.as_ref().is_some_and(|symbol| symbol.to_lowercase().contains("tool"))
    }

    /// Reads what an expression declares; true when there is nothing more to find in it.
    fn declares(&mut self, expression: &Expr) -> bool {
        let at = spot(self.module, expression.start());
        let made = match expression {
            Expr::Call(call) => {
                if let Some(tool) = self.world.constructed(self.scope(), call) {
                    Some(tool)
                } else {
                    let is_dict = matches!(self.world.meaning(self.scope(), &call.func), Meaning::Builtin(name) if name == "dict");
                    is_dict.then(|| self.dictionary(expression)).flatten()
                }
            }
            Expr::Dict(dict) if !dict.items.is_empty() => self.dictionary(expression),
            _ => None,
        };
        let is_tool = made.is_some();
        if let Some(made) = made {
            self.add(at, made);
        }
        is_tool
    }

    fn dictionary(&self, expression: &Expr) -> Option<Result<Tool, Gap>> {
        let datum = self.world.evaluate(self.scope(), expression);
        is_tool(&datum, self.is_called_tool()).then(|| self.world.dictionary(&datum))
    }

    fn function(&mut self, function: &StmtFunctionDef) {
        if let Some(decorator) = self.world.tool_decorator(self.scope(), &function.decorator_list) {
            let tool = ToolFunction { scope: self.scope(), function, is_method: self.in_class };
            let made = self.world.decorated(&tool, decorator);
            self.add(spot(self.module, function.name.start()), made);
        }
    }

    fn go_deeper(&mut self, walk: impl FnOnce(&mut Self)) {
        if self.depth >= DEEPEST {
            self.is_cut = true;
            return;
        }
        self.depth += 1;
        walk(self);
        self.depth -= 1;
    }
}

impl<'s> Visitor<'s> for Finder<'_, '_> {
    fn visit_stmt(&mut self, statement: &'s Stmt) {
        let was_in_class = std::mem::take(&mut self.in_class);
        match statement {
            Stmt::FunctionDef(function) => {
                self.in_class = was_in_class;
                self.function(function);
                self.in_class = false;
                let mut locals = self.locals.clone().unwrap_or_default();
                locals.extend(function.parameters.iter().map(|parameter| parameter.name().to_string()));
                let mut own = Locals { names: &mut locals, depth: self.depth };
                function.body.iter().for_each(|statement| own.visit_stmt(statement));
                let outer = self.locals.replace(locals);
                self.go_deeper(|finder| function.body.iter().for_each(|statement| finder.visit_stmt(statement)));
                self.locals = outer;
            }
            Stmt::ClassDef(class) => {
                if let Some(tool) = self.world.tool_class(self.scope(), class) {
                    self.add(spot(self.module, class.name.start()), tool);
                }
                self.go_deeper(|finder| {
                    for statement in &class.body {
                        finder.in_class = true;
                        finder.visit_stmt(statement);
                    }
                });
            }
            Stmt::If(_) | Stmt::For(_) | Stmt::While(_) | Stmt::Try(_) | Stmt::Match(_) => {
                self.conditions += 1;
                self.in_class = was_in_class;
                self.go_deeper(|finder| walk_stmt(finder, statement));
                self.conditions -= 1;
            }
            _ => self.go_deeper(|finder| walk_stmt(finder, statement)),
        }
        self.in_class = was_in_class;
    }

    fn visit_expr(&mut self, expression: &'s Expr) {
        if !self.declares(expression) {
            self.go_deeper(|finder| walk_expr(finder, expression));
        }
    }

    fn visit_annotation(&mut self, _annotation: &'s Expr) {}
}

/// Collects the names that a function binds.
struct Locals<'l> {
    names: &'l mut HashSet<String>,
    depth: usize,
}

impl<'s> Visitor<'s> for Locals<'_> {
    fn visit_stmt(&mut self, statement: &'s Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.names.insert(function.name.to_string());
                return;
            }
            Stmt::ClassDef(class) => {
                self.names.insert(class.name.to_string());
                return;
            }
            Stmt::Import(import) => self.names.extend(import.names.iter().map(|name| {
                name.asname.as_ref().map_or_else(
                    || name.name.split('.').next().unwrap_or_default().to_owned(),
                    std::string::ToString::to_string,
                )
            })),
            Stmt::ImportFrom(import) => self
                .names
                .extend(import.names.iter().map(|name| name.asname.as_ref().unwrap_or(&name.name).to_string())),
            _ => {}
        }
        if self.depth < DEEPEST {
            self.depth += 1;
            walk_stmt(self, statement);
            self.depth -= 1;
        }
    }

    fn visit_expr(&mut self, expression: &'s Expr) {
        if let Expr::Name(name) = expression
            && name.ctx != ExprContext::Load
        {
            self.names.insert(name.id.to_string());
        }
        if self.depth < DEEPEST {
            self.depth += 1;
            walk_expr(self, expression);
            self.depth -= 1;
        }
    }
}
