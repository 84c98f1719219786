//! What a module does to its lists, dictionaries and tools after it made them.
//!
//! A literal says what a tool is only as long as nothing is written to it. What is written is followed back to where it
//! came from: through other names, loops, and functions of the module that are given it.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Comprehension, Expr, ExprCall, ExprContext, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::names::DEEPEST;

/// What of a tool is written to, as bits.
pub(super) type Parts = u8;
pub(super) const NAME: Parts = 1;
pub(super) const DESCRIPTION: Parts = 2;
pub(super) const SCHEMA: Parts = 4;
pub(super) const OTHER_FIELDS: Parts = 8;
/// A key that is none of a tool's; of a schema it may be one.
const FOREIGN: Parts = 16;
const ALL: Parts = 31;

/// A function, a class or the module, by where it begins.
pub(super) type ScopeId = usize;
pub(super) const MODULE: ScopeId = usize::MAX;

/// A name and whose it is.
pub(super) type Owned<'p> = (ScopeId, &'p str);

/// Methods that leave what a list or dictionary holds as it is.
const GROWING: [&str; 5] = ["append", "extend", "insert", "sort", "reverse"];
/// Methods that change what it holds.
const REWRITING: [&str; 7] = ["remove", "pop", "clear", "update", "setdefault", "popitem", "__setitem__"];
/// Functions whose result holds what they are given.
const PASSING: [&str; 9] = ["enumerate", "list", "tuple", "zip", "sorted", "reversed", "filter", "iter", "next"];

/// Returns what of a tool a key or attribute is.
fn part_of(key: &str) -> Option<Parts> {
    match key {
        "name" => Some(NAME),
        "description" | "__doc__" => Some(DESCRIPTION),
        "inputSchema"
        | "input_schema"
        | "parameters"
        | "params_json_schema"
        | "parameters_json_schema"
        | "args_schema"
        | "args"
        | "schema"
        | "properties"
        | "required" => Some(SCHEMA),
        "version"
        | "category"
        | "requiresConfirmation"
        | "requires_confirmation"
        | "status"
        | "triggerPhrases"
        | "trigger_phrases" => Some(OTHER_FIELDS),
        _ => None,
    }
}

/// Something flows from one name to another: what is done to `to` is done to `from`.
struct Flow<'p> {
    to: Owned<'p>,
    from: Owned<'p>,
    /// Only what is written to these parts of `to` reaches `from`.
    only: Option<Parts>,
    /// What it is of `from`, if that is known.
    via: Option<Parts>,
}

/// A function that the module declares.
struct Declared<'p> {
    id: ScopeId,
    function: &'p StmtFunctionDef,
    is_method: bool,
}

/// What happens in a module to what its names hold.
#[derive(Default)]
pub(super) struct Changes<'p> {
    written: HashMap<Owned<'p>, Parts>,
    /// Also what only grows.
    touched: HashSet<Owned<'p>>,
    bound: HashMap<ScopeId, HashSet<&'p str>>,
    classes: HashMap<&'p str, ScopeId>,
    declared: HashMap<&'p str, Vec<Declared<'p>>>,
    /// What is written to `module.member`, which may be another module's.
    pub(super) of_members: Vec<(&'p str, &'p str, Parts)>,
}

impl<'p> Changes<'p> {
    pub(super) fn of(body: &'p [Stmt]) -> Self {
        let mut changes = Self::default();
        let mut binder = Binder { changes: &mut changes, scope: MODULE, in_class: false, depth: 0 };
        for statement in body {
            binder.visit_stmt(statement);
        }
        let mut tracer = Tracer { changes: &mut changes, scopes: Vec::new(), flows: Vec::new(), depth: 0 };
        for statement in body {
            tracer.visit_stmt(statement);
        }
        let flows = std::mem::take(&mut tracer.flows);
        changes.spread(&flows);
        changes
    }

    /// Follows what is written back to where it came from.
    fn spread(&mut self, flows: &[Flow<'p>]) {
        let mut by_target: HashMap<Owned<'p>, Vec<&Flow<'p>>> = HashMap::new();
        for flow in flows {
            by_target.entry(flow.to).or_default().push(flow);
        }
        let mut open: Vec<Owned<'p>> = self.written.keys().copied().collect();
        while let Some(to) = open.pop() {
            let parts = self.written.get(&to).copied().unwrap_or_default();
            for flow in by_target.get(&to).into_iter().flatten() {
                let reached = match flow.only {
                    Some(only) if parts & only == 0 => continue,
                    Some(_) => ALL,
                    None => parts,
                };
                let reached = flow.via.unwrap_or(reached);
                let known = self.written.entry(flow.from).or_default();
                if *known | reached != *known {
                    *known |= reached;
                    open.push(flow.from);
                }
            }
        }
    }

    /// Returns what is written to the value of a name.
    pub(super) fn parts(&self, name: Owned<'_>) -> Parts {
        self.written.get(&name).copied().unwrap_or_default()
    }

    /// Tells whether a list or dictionary may hold something else than it was made with.
    pub(super) fn is_touched(&self, name: Owned<'_>) -> bool {
        self.touched.contains(&name) || self.written.contains_key(&name)
    }

    /// Takes note of something that another module does.
    pub(super) fn write(&mut self, name: &'p str, parts: Parts) {
        *self.written.entry((MODULE, name)).or_default() |= parts;
    }

    /// Returns what is written to names of the module itself.
    pub(super) fn module_writes(&self) -> Vec<(&'p str, Parts)> {
        let of_module = self.written.iter().filter(|((scope, _), _)| *scope == MODULE);
        of_module.map(|((_, name), parts)| (*name, *parts)).collect()
    }

    /// Returns whose a name is that is used within functions and classes, the innermost last.
    pub(super) fn owner(&self, scopes: &[(ScopeId, bool)], name: &str) -> ScopeId {
        let binds = |id: ScopeId| self.bound.get(&id).is_some_and(|bound| bound.contains(name));
        let is_seen = |(depth, (_, is_class)): &(usize, &(ScopeId, bool))| !is_class || *depth == 0;
        let seen = scopes.iter().rev().enumerate().filter(is_seen).map(|(_, (id, _))| *id);
        seen.into_iter().find(|id| binds(*id)).unwrap_or(MODULE)
    }

    /// Returns the parameters of the module's own functions that a call may give its arguments to.
    pub(super) fn parameters_of<'c>(&self, call: &'c ExprCall) -> Vec<(Owned<'p>, &'c Expr)> {
        let (name, is_attribute) = match &*call.func {
            Expr::Name(name) => (name.id.as_str(), false),
            Expr::Attribute(method) => (method.attr.as_str(), true),
            _ => return Vec::new(),
        };
        let mut given = Vec::new();
        for Declared { id, function, is_method } in self.declared.get(name).into_iter().flatten() {
            if *is_method != is_attribute {
                continue;
            }
            let parameters: Vec<&'p str> =
                function.parameters.iter_non_variadic_params().map(|parameter| parameter.name().as_str()).collect();
            let rest = function.parameters.vararg.as_ref().map(|parameter| parameter.name.as_str());
            for (index, argument) in call.arguments.args.iter().enumerate() {
                let name = parameters.get(index + usize::from(*is_method)).copied().or(rest);
                given.extend(name.map(|name| ((*id, name), argument)));
            }
            for keyword in &call.arguments.keywords {
                let name = keyword.arg.as_ref().map(ruff_python_ast::Identifier::as_str);
                let name = name.and_then(|name| parameters.iter().find(|parameter| **parameter == name));
                given.extend(name.map(|name| ((*id, *name), &keyword.value)));
            }
        }
        given
    }
}

/// Collects which scope binds which names.
struct Binder<'c, 'p> {
    changes: &'c mut Changes<'p>,
    scope: ScopeId,
    in_class: bool,
    depth: usize,
}

impl<'p> Binder<'_, 'p> {
    fn bind(&mut self, name: &'p str) {
        self.changes.bound.entry(self.scope).or_default().insert(name);
    }

    fn within(&mut self, id: ScopeId, is_class: bool, body: &'p [Stmt]) {
        let outer = (self.scope, self.in_class);
        (self.scope, self.in_class) = (id, is_class);
        if self.depth < DEEPEST {
            self.depth += 1;
            for statement in body {
                self.visit_stmt(statement);
            }
            self.depth -= 1;
        }
        (self.scope, self.in_class) = outer;
    }
}

impl<'p> Visitor<'p> for Binder<'_, 'p> {
    fn visit_stmt(&mut self, statement: &'p Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                self.bind(function.name.as_str());
                let id = function.name.start().to_usize();
                let declared = Declared { id, function, is_method: self.in_class };
                self.changes.declared.entry(function.name.as_str()).or_default().push(declared);
                let bound = self.changes.bound.entry(id).or_default();
                bound.extend(function.parameters.iter().map(|parameter| parameter.name().as_str()));
                self.within(id, false, &function.body);
            }
            Stmt::ClassDef(class) => {
                self.bind(class.name.as_str());
                self.changes.classes.insert(class.name.as_str(), class.name.start().to_usize());
                self.within(class.name.start().to_usize(), true, &class.body);
            }
            _ if self.depth < DEEPEST => {
                self.depth += 1;
                walk_stmt(self, statement);
                self.depth -= 1;
            }
            _ => {}
        }
        if let Stmt::Global(global) = statement {
            // What stands below is the module's.
            for name in &global.names {
                if let Some(bound) = self.changes.bound.get_mut(&self.scope) {
                    bound.remove(name.as_str());
                }
            }
        }
    }

    fn visit_expr(&mut self, expression: &'p Expr) {
        if let Expr::Name(name) = expression
            && name.ctx != ExprContext::Load
        {
            self.bind(name.id.as_str());
        }
        if self.depth < DEEPEST {
            self.depth += 1;
            walk_expr(self, expression);
            self.depth -= 1;
        }
    }
}

/// Collects what is written, and what flows where.
struct Tracer<'c, 'p> {
    changes: &'c mut Changes<'p>,
    scopes: Vec<(ScopeId, bool)>,
    flows: Vec<Flow<'p>>,
    depth: usize,
}

/// A name with what is taken of its value: `TOOLS[0]["description"]`
struct Chain<'p> {
    root: &'p str,
    /// The attribute next to the root.
    first: Option<&'p str>,
    /// A tool's part that the chain goes through.
    part: Option<Parts>,
    /// The last link is a text.
    ends_in_text: bool,
    is_bare: bool,
}

fn chain(expression: &Expr) -> Option<Chain<'_>> {
    let mut links: Vec<Option<&str>> = Vec::new();
    let mut rest = expression;
    let mut first = None;
    let root = loop {
        first = None.or(match rest {
            Expr::Attribute(link) => Some(link.attr.as_str()),
            Expr::Name(_) => first,
            _ => None,
        });
        rest = match rest {
            Expr::Subscript(link) => {
                links.push(link.slice.as_string_literal_expr().map(|text| text.value.to_str()));
                &link.value
            }
            Expr::Attribute(link) => {
                links.push(Some(link.attr.as_str()));
                &link.value
            }
            // `T.get("input_schema")`, `TOOLS.values()`
            Expr::Call(call) => {
                let method = call.func.as_attribute_expr()?;
                match method.attr.as_str() {
                    "values" | "items" => links.push(None),
                    "get" | "setdefault" | "pop" => {
                        let key = call.arguments.args.first()?;
                        links.push(key.as_string_literal_expr().map(|text| text.value.to_str()));
                    }
                    _ => return None,
                }
                &method.value
            }
            Expr::Name(name) => break name.id.as_str(),
            _ => return None,
        };
    };
    let part = links.iter().rev().flatten().find_map(|key| part_of(key));
    let ends_in_text = links.first().is_some_and(Option::is_some);
    Some(Chain { root, first, part, ends_in_text, is_bare: links.is_empty() })
}

/// Returns what `T.update(…)` sets.
fn updated(call: &ExprCall) -> Parts {
    let of_key = |key: &str| part_of(key).unwrap_or(FOREIGN);
    let named = call.arguments.keywords.iter().map(|keyword| keyword.arg.as_ref().map_or(ALL, |key| of_key(key)));
    let given = call.arguments.args.iter().map(|argument| match argument {
        Expr::Dict(dict) => dict.items.iter().fold(0, |parts, item| {
            let key = item.key.as_ref().and_then(|key| key.as_string_literal_expr());
            parts | key.map_or(ALL, |key| of_key(key.value.to_str()))
        }),
        _ => ALL,
    });
    named.chain(given).fold(0, |parts, more| parts | more)
}

impl<'p> Tracer<'_, 'p> {
    /// Returns whose value a chain is part of: a name, or a name of the class around for `self.name`.
    fn owned(&self, chain: &Chain<'p>) -> Owned<'p> {
        let around = self.scopes.iter().rev().find(|(_, is_class)| *is_class);
        match (chain.root, chain.first, around) {
            ("self" | "cls", Some(first), Some((class, _))) => (*class, first),
            (root, Some(first), _) if self.changes.classes.contains_key(root) => (self.changes.classes[root], first),
            _ => (self.changes.owner(&self.scopes, chain.root), chain.root),
        }
    }

    fn write(&mut self, owned: Owned<'p>, parts: Parts) {
        *self.changes.written.entry(owned).or_default() |= parts;
    }

    /// Takes note of `TOOLS[0]["description"] = …`.
    fn writes(&mut self, target: &'p Expr) {
        let Some(chain) = chain(target).filter(|chain| !chain.is_bare) else { return };
        let owned = self.owned(&chain);
        // `self.tools = …` binds a name, as it were.
        if owned.1 != chain.root && target.as_attribute_expr().is_some_and(|target| target.value.is_name_expr()) {
            return self.write(owned, FOREIGN);
        }
        let parts = chain.part.unwrap_or(if chain.ends_in_text { FOREIGN } else { ALL });
        self.write(owned, parts);
        if let (MODULE, Some(first)) = (owned.0, chain.first) {
            self.changes.of_members.push((chain.root, first, parts));
        }
    }

    fn method(&mut self, call: &'p ExprCall, object: &'p Expr, method: &str) {
        let Some(chain) = chain(object) else { return };
        let owned = self.owned(&chain);
        if GROWING.contains(&method) {
            match chain.part {
                None => {
                    self.changes.touched.insert(owned);
                    for argument in &call.arguments.args {
                        self.flows_from(owned, argument, None, 0);
                    }
                }
                // What grows is a part of a tool: `T["input_schema"]["required"].append("q")`
                Some(part) => self.write(owned, part),
            }
            return;
        }
        let keys = match method {
            "update" => updated(call),
            "pop" | "setdefault" => call
                .arguments
                .args
                .first()
                .and_then(|key| key.as_string_literal_expr())
                .map_or(ALL, |key| part_of(key.value.to_str()).unwrap_or(FOREIGN)),
            _ => ALL,
        };
        self.write(owned, chain.part.unwrap_or(keys));
    }

    /// Takes note that a name now holds what an expression holds.
    fn flows_from(&mut self, to: Owned<'p>, expression: &'p Expr, only: Option<Parts>, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        if let Some(chain) = chain(expression) {
            let from = self.owned(&chain);
            if from != to {
                self.flows.push(Flow { to, from, only, via: chain.part });
            }
            return;
        }
        match expression {
            Expr::List(list) => list.elts.iter().for_each(|item| self.flows_from(to, item, only, depth + 1)),
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|item| self.flows_from(to, item, only, depth + 1)),
            Expr::Dict(dict) => {
                for item in &dict.items {
                    // What is spread is copied.
                    let Some(key) = &item.key else { continue };
                    let part = key.as_string_literal_expr().and_then(|key| part_of(key.value.to_str()));
                    self.flows_from(to, &item.value, only.or(part), depth + 1);
                }
            }
            Expr::Starred(starred) => self.flows_from(to, &starred.value, only, depth + 1),
            Expr::Await(awaited) => self.flows_from(to, &awaited.value, only, depth + 1),
            Expr::Named(named) => self.flows_from(to, &named.value, only, depth + 1),
            Expr::If(choice) => {
                self.flows_from(to, &choice.body, only, depth + 1);
                self.flows_from(to, &choice.orelse, only, depth + 1);
            }
            Expr::BoolOp(choice) => choice.values.iter().for_each(|item| self.flows_from(to, item, only, depth + 1)),
            Expr::BinOp(sum) => {
                self.flows_from(to, &sum.left, only, depth + 1);
                self.flows_from(to, &sum.right, only, depth + 1);
            }
            Expr::ListComp(list) => self.flows_from(to, &list.elt, only, depth + 1),
            Expr::Generator(list) => self.flows_from(to, &list.elt, only, depth + 1),
            Expr::DictComp(dict) => self.flows_from(to, &dict.value, only, depth + 1),
            Expr::Call(call) if call.func.as_name_expr().is_some_and(|name| PASSING.contains(&name.id.as_str())) => {
                call.arguments.args.iter().for_each(|item| self.flows_from(to, item, only, depth + 1));
            }
            _ => {}
        }
    }

    fn binds(&mut self, target: &'p Expr, value: &'p Expr, depth: usize) {
        match target {
            Expr::Name(name) => {
                let to = (self.changes.owner(&self.scopes, name.id.as_str()), name.id.as_str());
                self.flows_from(to, value, None, 0);
            }
            Expr::Attribute(_) | Expr::Subscript(_) => {
                if let Some(chain) = chain(target) {
                    let to = self.owned(&chain);
                    self.flows_from(to, value, None, 0);
                }
            }
            Expr::Tuple(tuple) if depth < DEEPEST => {
                tuple.elts.iter().for_each(|item| self.binds(item, value, depth + 1));
            }
            Expr::List(list) if depth < DEEPEST => list.elts.iter().for_each(|item| self.binds(item, value, depth + 1)),
            Expr::Starred(starred) if depth < DEEPEST => self.binds(&starred.value, value, depth + 1),
            _ => {}
        }
    }

    /// Takes note of what the module's own functions are given.
    fn gives(&mut self, call: &'p ExprCall) {
        for (to, argument) in self.changes.parameters_of(call) {
            self.flows_from(to, argument, None, 0);
        }
    }

    fn within(&mut self, id: ScopeId, is_class: bool, body: &'p [Stmt]) {
        if self.depth < DEEPEST {
            self.depth += 1;
            self.scopes.push((id, is_class));
            for statement in body {
                self.visit_stmt(statement);
            }
            self.scopes.pop();
            self.depth -= 1;
        }
    }
}

impl<'p> Visitor<'p> for Tracer<'_, 'p> {
    fn visit_stmt(&mut self, statement: &'p Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                function.decorator_list.iter().for_each(|decorator| self.visit_expr(&decorator.expression));
                return self.within(function.name.start().to_usize(), false, &function.body);
            }
            Stmt::ClassDef(class) => return self.within(class.name.start().to_usize(), true, &class.body),
            Stmt::Assign(assign) => assign.targets.iter().for_each(|target| self.binds(target, &assign.value, 0)),
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.binds(&assign.target, value, 0);
                }
            }
            Stmt::AugAssign(assign) => {
                self.binds(&assign.target, &assign.value, 0);
                if let Expr::Name(name) = &*assign.target {
                    self.changes.touched.insert((self.changes.owner(&self.scopes, name.id.as_str()), name.id.as_str()));
                }
            }
            Stmt::For(each) => self.binds(&each.target, &each.iter, 0),
            _ => {}
        }
        if self.depth < DEEPEST {
            self.depth += 1;
            walk_stmt(self, statement);
            self.depth -= 1;
        }
    }

    fn visit_expr(&mut self, expression: &'p Expr) {
        match expression {
            Expr::Subscript(target) if target.ctx != ExprContext::Load => self.writes(expression),
            Expr::Attribute(target) if target.ctx != ExprContext::Load => self.writes(expression),
            Expr::Call(call) => {
                self.gives(call);
                match &*call.func {
                    Expr::Attribute(method)
                        if GROWING.contains(&method.attr.as_str()) || REWRITING.contains(&method.attr.as_str()) =>
                    {
                        self.method(call, &method.value, method.attr.as_str());
                    }
                    // `setattr(t, "description", …)`
                    Expr::Name(name) if name.id.as_str() == "setattr" => {
                        if let Some(chain) = call.arguments.args.first().and_then(chain) {
                            let owned = self.owned(&chain);
                            self.write(owned, ALL);
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        if self.depth < DEEPEST {
            self.depth += 1;
            walk_expr(self, expression);
            self.depth -= 1;
        }
    }

    fn visit_comprehension(&mut self, comprehension: &'p Comprehension) {
        self.binds(&comprehension.target, &comprehension.iter, 0);
        ruff_python_ast::visitor::walk_comprehension(self, comprehension);
    }
}
