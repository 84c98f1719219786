//! Looks through a module for whatever declares a tool.

use std::collections::HashSet;
use std::rc::Rc;

use karat_core::registry::{Gap, GapKind, Tool, ToolField, ToolPlace, Unknown};
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, ExprContext, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::changes::{DESCRIPTION, NAME, OTHER_FIELDS, Parts, SCHEMA, ScopeId};
use super::data::Hole;
use super::definition::is_tool;
use super::framework::is_tool_decorator;
use super::function::ToolFunction;
use super::names::DEEPEST;
use super::program::{Spot, spot};
use super::world::{Locals, Meaning, Scope, World};

/// A tool or a gap that a module declares.
#[derive(Clone)]
pub(super) struct Found {
    /// The module's name that it stands under, if any.
    pub(super) symbol: Option<String>,
    pub(super) spot: Spot,
    /// Only one of several branches declares it.
    pub(super) is_conditional: bool,
    pub(super) tool: Result<Tool, Gap>,
}

impl World<'_> {
    /// Returns the tools of a module, in the order of its text.
    pub(super) fn tools(&self, module: usize) -> Rc<Vec<Found>> {
        if let Some(found) = self.found.borrow().get(&module) {
            return Rc::clone(found);
        }
        let found = Rc::new(self.find_tools(module));
        self.found.borrow_mut().insert(module, Rc::clone(&found));
        found
    }

    fn find_tools(&self, module: usize) -> Vec<Found> {
        let mut finder = Finder {
            world: self,
            module,
            locals: None,
            scopes: Vec::new(),
            holders: Vec::new(),
            symbol: None,
            in_class: false,
            conditions: 0,
            depth: 0,
            remade: Vec::new(),
            is_cut: false,
            found: Vec::new(),
        };
        let body = self.source(module).body();
        for statement in body {
            finder.symbol = symbol_of(statement);
            finder.visit_stmt(statement);
        }
        for (class, parts) in std::mem::take(&mut finder.remade) {
            let place = self.program.place(class);
            for found in finder.found.iter_mut().filter(|found| found.spot == class) {
                if let Ok(tool) = &mut found.tool {
                    forget(tool, parts, &place, "the tool is made with another one");
                }
            }
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

/// Takes away what is known of parts that something is written to.
fn forget(tool: &mut Tool, parts: Parts, place: &ToolPlace, why: &str) {
    let mut forget = |field: ToolField| {
        tool.unknown.retain(|unknown| unknown.field != field);
        tool.unknown.push(Unknown { field, place: place.clone(), why: why.to_owned() });
    };
    if parts & DESCRIPTION != 0 {
        forget(ToolField::Description);
        tool.description = None;
    }
    if parts & SCHEMA != 0 {
        forget(ToolField::InputSchema);
        tool.input_schema = None;
    }
    if parts & OTHER_FIELDS != 0 {
        let fields = [
            ToolField::Version,
            ToolField::Category,
            ToolField::RequiresConfirmation,
            ToolField::Status,
            ToolField::TriggerPhrases,
        ];
        fields.into_iter().for_each(forget);
        (tool.version, tool.category, tool.status) = (None, None, None);
        tool.requires_confirmation = None;
        tool.trigger_phrases.clear();
    }
}

struct Finder<'w, 'p> {
    world: &'w World<'p>,
    module: usize,
    /// What the functions around bind.
    locals: Option<Rc<Locals>>,
    /// The functions and classes around, the innermost last; true for a class.
    scopes: Vec<(ScopeId, bool)>,
    /// The names that hold what is being looked at.
    holders: Vec<(ScopeId, String)>,
    symbol: Option<String>,
    /// The statement stands directly in a class.
    in_class: bool,
    conditions: usize,
    depth: usize,
    /// Classes of tools that are made with other texts than their own, and which.
    remade: Vec<(Spot, Parts)>,
    /// Something was too deep to be looked at.
    is_cut: bool,
    found: Vec<Found>,
}

impl Finder<'_, '_> {
    fn scope(&self) -> Scope<'_> {
        Scope { module: self.module, locals: self.locals.as_deref() }
    }

    fn add(&mut self, spot: Spot, tool: Result<Tool, Gap>) {
        let symbol = self.symbol.clone();
        self.found.push(Found { symbol, spot, is_conditional: self.conditions > 0, tool });
    }

    /// Adds a tool, without what is written to it after it was made.
    fn add_held(&mut self, at: Spot, mut made: Result<Tool, Gap>, holders: &[(ScopeId, String)]) {
        let changes = &self.world.names(self.module).changes;
        for (scope, name) in holders {
            let parts = changes.parts((*scope, name));
            let why = format!("'{name}' is changed after it was made");
            let place = self.world.program.place(at);
            let Ok(tool) = &mut made else { break };
            if parts & NAME != 0 {
                made = Err(self.world.nameless(&Hole { spot: at, why }));
                break;
            }
            forget(tool, parts, &place, &why);
        }
        self.add(at, made);
    }

    /// Takes note of the names that a statement gives its values to.
    fn hold(&mut self, statement: &Stmt) {
        let targets: Vec<&Expr> = match statement {
            Stmt::Assign(assign) => assign.targets.iter().collect(),
            Stmt::AnnAssign(assign) => vec![&assign.target],
            Stmt::AugAssign(assign) => vec![&assign.target],
            Stmt::For(each) => vec![&each.target],
            // `TOOLS.append({…})`
            Stmt::Expr(statement) => match &*statement.value {
                Expr::Call(call) => call.func.as_attribute_expr().map(|method| &*method.value).into_iter().collect(),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        for target in targets {
            self.hold_target(target, 0);
        }
    }

    fn hold_target(&mut self, target: &Expr, depth: usize) {
        match target {
            Expr::Name(name) => {
                let owner = self.world.names(self.module).changes.owner(&self.scopes, name.id.as_str());
                self.holders.push((owner, name.id.to_string()));
            }
            // `self.tools = […]`
            Expr::Attribute(member) if matches!(&*member.value, Expr::Name(name) if matches!(name.id.as_str(), "self" | "cls")) =>
            {
                let class = self.scopes.iter().rev().find(|(_, is_class)| *is_class).map(|(class, _)| *class);
                self.holders.extend(class.map(|class| (class, member.attr.to_string())));
            }
            Expr::Attribute(member) if depth < DEEPEST => self.hold_target(&member.value, depth + 1),
            Expr::Subscript(part) if depth < DEEPEST => self.hold_target(&part.value, depth + 1),
            Expr::Tuple(tuple) if depth < DEEPEST => {
                tuple.elts.iter().for_each(|item| self.hold_target(item, depth + 1));
            }
            Expr::List(list) if depth < DEEPEST => list.elts.iter().for_each(|item| self.hold_target(item, depth + 1)),
            _ => {}
        }
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
        if let (None, Expr::Call(call)) = (&made, expression) {
            self.registers(call);
        }
        let is_tool = made.is_some();
        if let Some(made) = made {
            let holders = self.holders.clone();
            self.add_held(at, made, &holders);
        }
        is_tool
    }

    /// Takes note of a call that makes a tool of something which only shows when it is run.
    fn registers(&mut self, call: &ExprCall) {
        let scope = self.scope();
        let first = call.arguments.args.first();
        let is_function = |given: &Expr| match self.world.meaning(scope, given) {
            Meaning::Function { module, function } => {
                self.world.tool_decorators(Scope::of_module(module), &function.decorator_list).is_empty()
            }
            _ => false,
        };
        let name = self.world.last_name(scope, &call.func).unwrap_or_default();
        let what = match (&*call.func, name.as_str()) {
            // `server.tool(name="x")(function)`
            (Expr::Call(inner), _) if is_tool_decorator(self.world, scope, &inner.func) => Some("a call"),
            (_, "as_tool" | "pydantic_function_tool") => Some("a call"),
            (_, "add_tool") if first.is_some_and(|first| is_function(first) || first.is_attribute_expr()) => {
                Some("a call")
            }
            _ if first.is_some_and(is_function) && is_tool_decorator(self.world, scope, &call.func) => Some("a call"),
            _ => {
                let tools = call.arguments.find_keyword("tools").and_then(|tools| tools.value.as_list_expr());
                tools.is_some_and(|tools| tools.elts.iter().any(is_function)).then_some("a list of functions")
            }
        };
        let mut remade = None;
        let what = what.or_else(|| {
            let Meaning::Class { module, class } = self.world.meaning(scope, &call.func) else { return None };
            let changes = [("name", NAME), ("description", DESCRIPTION), ("args_schema", SCHEMA)];
            let given = changes.iter().filter(|(key, _)| call.arguments.find_keyword(key).is_some());
            let parts = given.fold(0, |parts, (_, part)| parts | part);
            let is_tool = parts != 0 && self.world.tool_class(Scope::of_module(module), class).is_some();
            if is_tool && module == self.module && parts & NAME == 0 {
                remade = Some((spot(module, class.name.start()), parts));
                return None;
            }
            is_tool.then_some("a class with other texts")
        });
        self.remade.extend(remade);
        if let Some(what) = what {
            let hole = Hole { spot: spot(self.module, call.start()), why: format!("{what} makes it") };
            let gap = self.world.nameless(&hole);
            self.add(hole.spot, Err(gap));
        }
    }

    fn dictionary(&self, expression: &Expr) -> Option<Result<Tool, Gap>> {
        // What cannot be a tool is not worth a closer look: dictionaries may stand in each other many times.
        let may_be_name = |key: Option<&Expr>| match key {
            Some(Expr::StringLiteral(key)) => matches!(key.value.to_str(), "name" | "function"),
            _ => true,
        };
        if let Expr::Dict(dict) = expression
            && !dict.items.iter().any(|item| may_be_name(item.key.as_ref()))
        {
            return None;
        }
        let datum = self.world.evaluate(self.scope(), expression);
        is_tool(&datum, self.is_called_tool()).then(|| self.world.dictionary(&datum))
    }

    fn function(&mut self, function: &StmtFunctionDef) {
        for (decorator, before) in self.world.tool_decorators(self.scope(), &function.decorator_list) {
            let tool = ToolFunction { scope: self.scope(), function, is_method: self.in_class };
            let made = self.world.decorated(&tool, decorator, before);
            let owner = self.world.names(self.module).changes.owner(&self.scopes, function.name.as_str());
            let holders = [(owner, function.name.to_string())];
            let outermost =
                function.decorator_list.iter().find(|other| std::ptr::eq(&raw const other.expression, decorator));
            let at = outermost.map_or(function.name.start(), Ranged::start);
            self.add_held(spot(self.module, at), made, &holders);
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
        let held = self.holders.len();
        self.hold(statement);
        match statement {
            Stmt::FunctionDef(function) => {
                self.in_class = was_in_class;
                self.function(function);
                self.in_class = false;
                let mut names = function.parameters.iter().map(|parameter| parameter.name().to_string()).collect();
                let mut own = BoundNames { names: &mut names, depth: self.depth };
                function.body.iter().for_each(|statement| own.visit_stmt(statement));
                let outer = self.locals.take();
                self.locals = Some(Rc::new(Locals { names, outer: outer.clone() }));
                self.scopes.push((function.name.start().to_usize(), false));
                self.go_deeper(|finder| function.body.iter().for_each(|statement| finder.visit_stmt(statement)));
                self.scopes.pop();
                self.locals = outer;
            }
            Stmt::ClassDef(class) => {
                if let Some(tool) = self.world.tool_class(self.scope(), class) {
                    self.add(spot(self.module, class.name.start()), tool);
                }
                self.scopes.push((class.name.start().to_usize(), true));
                self.go_deeper(|finder| {
                    for statement in &class.body {
                        finder.in_class = true;
                        finder.visit_stmt(statement);
                    }
                });
                self.scopes.pop();
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
        self.holders.truncate(held);
    }

    fn visit_expr(&mut self, expression: &'s Expr) {
        if self.declares(expression) {
            return;
        }
        let given = match expression {
            Expr::Call(call) => self.world.names(self.module).changes.parameters_of(call),
            _ => Vec::new(),
        };
        let held = self.holders.len();
        self.holders.extend(given.into_iter().map(|((scope, name), _)| (scope, name.to_owned())));
        self.go_deeper(|finder| walk_expr(finder, expression));
        self.holders.truncate(held);
    }

    fn visit_annotation(&mut self, _annotation: &'s Expr) {}
}

/// Collects the names that a function binds.
struct BoundNames<'l> {
    names: &'l mut HashSet<String>,
    depth: usize,
}

impl<'s> Visitor<'s> for BoundNames<'_> {
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
