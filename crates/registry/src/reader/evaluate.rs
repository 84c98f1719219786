//! What an expression is worth, as far as that shows without running it: literals, constants, concatenation, simple
//! templates, and imports within the project.

use std::rc::Rc;

use karat_core::registry::ToolPlace;
use serde_json::{Map, Value};

use super::project::{ModuleId, Project, submodule};
use super::syntax::{
    Call, ClassId, Definition, Entry, Export, Expr, FunctionId, Imported, Kind, Language, Module, Owner, ParameterKind,
    ScopeId, Statement,
};
use super::text::{clean_doc, dedent};

/// How many names, members and calls are followed one after the other.
const MAX_STEPS: usize = 60;

/// Longer texts are not descriptions.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// An expression and where its names are looked up.
#[derive(Clone)]
pub(crate) struct Located<'p> {
    pub(crate) module: ModuleId,
    pub(crate) scope: ScopeId,
    pub(crate) expr: &'p Expr,
    frame: Option<Rc<Frame<'p>>>,
}

/// What a function's parameters are in one call of it.
struct Frame<'p> {
    module: ModuleId,
    function: FunctionId,
    arguments: Vec<(&'p str, Located<'p>)>,
    parent: Option<Rc<Frame<'p>>>,
}

/// What an expression means.
#[derive(Clone)]
pub(crate) enum Meaning<'p> {
    /// A literal, a call, or anything else that is not a name.
    Expr(Located<'p>),
    Function(ModuleId, FunctionId),
    Class(ModuleId, ClassId),
    Module(ModuleId),
    /// Something of a package or of the language, by its dotted name.
    Foreign(String),
    Unknown(Why),
}

/// Why a value is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) place: ToolPlace,
    /// A lower-case fragment.
    pub(crate) why: String,
}

impl<'p> Located<'p> {
    pub(crate) fn new(module: ModuleId, scope: ScopeId, expr: &'p Expr) -> Self {
        Self { module, scope, expr, frame: None }
    }

    /// Returns another expression of the same scope.
    pub(crate) fn with(&self, expr: &'p Expr) -> Self {
        Self { expr, ..self.clone() }
    }

    pub(crate) fn call(&self) -> Option<&'p Call> {
        match &self.expr.kind {
            Kind::Call(call) => Some(call),
            _ => None,
        }
    }
}

impl Project {
    pub(crate) fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id]
    }

    pub(crate) fn place(&self, located: &Located<'_>) -> ToolPlace {
        self.module(located.module).place(located.expr.at)
    }

    pub(crate) fn why(&self, located: &Located<'_>, why: impl Into<String>) -> Why {
        Why { place: self.place(located), why: why.into() }
    }

    /// Follows names, members and constants to what they stand for.
    pub(crate) fn meaning<'p>(&'p self, located: &Located<'p>) -> Meaning<'p> {
        self.follow(located, 0)
    }

    /// Returns the expression behind names; none where they mean something else or nothing that is known.
    pub(crate) fn resolve<'p>(&'p self, located: &Located<'p>) -> Option<Located<'p>> {
        match self.meaning(located) {
            Meaning::Expr(located) => Some(located),
            _ => None,
        }
    }

    /// Returns the dotted name of what comes from a package, such as `mcp.server.fastmcp.FastMCP`.
    pub(crate) fn foreign_name<'p>(&'p self, located: &Located<'p>) -> Option<String> {
        match self.meaning(located) {
            Meaning::Foreign(name) => Some(name),
            _ => None,
        }
    }

    fn follow<'p>(&'p self, located: &Located<'p>, steps: usize) -> Meaning<'p> {
        if steps > MAX_STEPS || !self.step() {
            return Meaning::Unknown(self.why(located, "it is defined through too many others"));
        }
        match &located.expr.kind {
            Kind::Name(name) => self.name(located, name, steps),
            Kind::Member(object, name) => self.member(located, object, name, steps),
            Kind::Index(object, key) => self.index(located, object, key, steps),
            Kind::Function(id) => Meaning::Function(located.module, *id),
            Kind::Class(id) => Meaning::Class(located.module, *id),
            Kind::Call(call) => self.called(located, call, steps),
            _ => Meaning::Expr(located.clone()),
        }
    }

    fn name<'p>(&'p self, located: &Located<'p>, name: &str, steps: usize) -> Meaning<'p> {
        let module = self.module(located.module);
        let mut scope = Some(located.scope);
        let mut is_innermost = true;
        while let Some(id) = scope {
            let current = &module.scopes[id];
            scope = current.parent;
            // A class's names are not seen by its methods.
            let is_hidden = matches!(current.owner, Owner::Class(_)) && !is_innermost;
            is_innermost = false;
            if is_hidden {
                continue;
            }
            if let Some(meaning) = self.bound(located, id, name, steps) {
                return meaning;
            }
            if let Owner::Function(function) = current.owner
                && let Some(meaning) = self.parameter(located, function, name, steps)
            {
                return meaning;
            }
        }
        self.star_import(located, name, steps).unwrap_or_else(|| Meaning::Foreign(name.to_owned()))
    }

    /// Returns what a scope itself binds a name to.
    fn bound<'p>(&'p self, located: &Located<'p>, scope: ScopeId, name: &str, steps: usize) -> Option<Meaning<'p>> {
        let here = |expr: &'p Expr| Located { scope, expr, ..located.clone() };
        let mut found: Vec<Meaning<'p>> = Vec::new();
        let (mut assigned, mut rebound) = (0, false);
        for statement in &self.module(located.module).scopes[scope].statements {
            match statement {
                Statement::Assign { name: bound, value: Some(value), .. } if bound == name => {
                    assigned += 1;
                    // `x = x or y` and the like would never end.
                    let mut is_own = false;
                    value.walk(&mut |inner| is_own |= matches!(&inner.kind, Kind::Name(own) if own == name));
                    if is_own {
                        rebound = true;
                    } else {
                        found.push(self.follow(&here(value), steps + 1));
                    }
                }
                Statement::Rebind { name: bound } if bound == name => rebound = true,
                Statement::Define { name: bound, defined } if bound == name => {
                    // A later definition replaces an earlier one.
                    found.retain(|meaning| !matches!(meaning, Meaning::Function(..) | Meaning::Class(..)));
                    found.push(match defined {
                        Definition::Function(id) => Meaning::Function(located.module, *id),
                        Definition::Class(id) => Meaning::Class(located.module, *id),
                    });
                }
                Statement::Import(import) if import.local.as_deref() == Some(name) => {
                    let meaning = self.import(located.module, import.level, &import.from, &import.what, name, steps);
                    found.push(meaning);
                }
                _ => {}
            }
        }
        if found.is_empty() && !rebound {
            return None;
        }
        // `try: import a … except ImportError: a = None`.
        if found.len() > 1 {
            found.retain(|meaning| {
                !matches!(meaning, Meaning::Expr(Located { expr: Expr { kind: Kind::Null, .. }, .. }))
            });
        }
        if rebound || (assigned > 1 && found.len() > 1) {
            return Some(Meaning::Unknown(self.why(located, format!("'{name}' gets several values"))));
        }
        found.into_iter().next()
    }

    fn parameter<'p>(
        &'p self,
        located: &Located<'p>,
        function: FunctionId,
        name: &str,
        steps: usize,
    ) -> Option<Meaning<'p>> {
        let definition = &self.module(located.module).functions[function];
        // `self` and `this` are looked up by the member.
        definition.parameters.iter().find(|parameter| parameter.name == name)?;
        let mut frame = located.frame.as_ref();
        while let Some(current) = frame {
            if current.module == located.module && current.function == function {
                let argument = current.arguments.iter().find(|(parameter, _)| *parameter == name);
                if let Some((_, argument)) = argument {
                    return Some(self.follow(argument, steps + 1));
                }
            }
            frame = current.parent.as_ref();
        }
        Some(Meaning::Unknown(self.why(located, format!("'{name}' is a parameter"))))
    }

    fn star_import<'p>(&'p self, located: &Located<'p>, name: &str, steps: usize) -> Option<Meaning<'p>> {
        let statements = &self.module(located.module).scopes[0].statements;
        statements.iter().find_map(|statement| match statement {
            Statement::Import(import) if import.what == Imported::All => {
                let home = self.imported(located.module, import.level, &import.from)?;
                self.exported(home, name, steps + 1)
            }
            _ => None,
        })
    }

    fn import<'p>(
        &'p self,
        module: ModuleId,
        level: u32,
        from: &str,
        what: &Imported,
        local: &str,
        steps: usize,
    ) -> Meaning<'p> {
        let home = self.imported(module, level, from);
        let is_python = self.module(module).language == Language::Python;
        match (what, home) {
            // `import a.b` binds `a`.
            (Imported::Module, _) if is_python && from.starts_with(&format!("{local}.")) => {
                Meaning::Foreign(local.to_owned())
            }
            (Imported::Module, Some(home)) => Meaning::Module(home),
            (Imported::Name(name), home) => {
                if let Some(meaning) = home.and_then(|home| self.exported(home, name, steps + 1)) {
                    return meaning;
                }
                let module = self.imported(module, level, &submodule(from, name)).filter(|_| is_python);
                module.map_or_else(|| Meaning::Foreign(format!("{from}.{name}")), Meaning::Module)
            }
            (Imported::Module | Imported::All, _) => Meaning::Foreign(from.to_owned()),
        }
    }

    /// Returns what a module has under a name.
    pub(crate) fn exported<'p>(&'p self, id: ModuleId, name: &str, steps: usize) -> Option<Meaning<'p>> {
        if steps > MAX_STEPS {
            return None;
        }
        let module = self.module(id);
        if module.language == Language::Python {
            // Any expression will do: only the module and the scope count.
            let anywhere = Located::new(id, 0, ANYWHERE);
            let bound = self.bound(&anywhere, 0, name, steps);
            return bound.or_else(|| self.star_import(&anywhere, name, steps));
        }
        for export in &module.exports {
            match export {
                Export::Local { name: exported, value } if exported == name => {
                    return Some(self.follow(&Located::new(id, 0, value), steps + 1));
                }
                Export::From { name: exported, imported, specifier } if exported == name => {
                    return Some(self.import(id, 0, specifier, imported, name, steps + 1));
                }
                _ => {}
            }
        }
        module.exports.iter().find_map(|export| match export {
            Export::All { specifier } => self.exported(self.imported(id, 0, specifier)?, name, steps + 1),
            _ => None,
        })
    }

    fn member<'p>(&'p self, located: &Located<'p>, object: &'p Expr, name: &str, steps: usize) -> Meaning<'p> {
        let unknown = || {
            let shown = located.expr.dotted().unwrap_or_else(|| format!("….{name}"));
            Meaning::Unknown(self.why(located, format!("'{shown}' is known only at run time")))
        };
        if matches!(&object.kind, Kind::Name(own) if ["self", "this", "cls"].contains(&own.as_str())) {
            let class = self.enclosing_class(located);
            let attribute = class.and_then(|class| self.attribute(located.module, class, name, steps));
            return attribute.unwrap_or_else(unknown);
        }
        match self.follow(&located.with(object), steps + 1) {
            Meaning::Module(module) => self.exported(module, name, steps + 1).unwrap_or_else(unknown),
            Meaning::Class(module, class) => self.attribute(module, class, name, steps).unwrap_or_else(unknown),
            Meaning::Foreign(dotted) => Meaning::Foreign(format!("{dotted}.{name}")),
            Meaning::Expr(found) => match (&found.expr.kind, name) {
                (Kind::Object(_), _) => match self.entry(&found, name) {
                    Some(value) => self.follow(&value, steps + 1),
                    None => unknown(),
                },
                // The value of an enum's member.
                (Kind::Text(_) | Kind::Number(_), "value") => Meaning::Expr(found),
                _ => unknown(),
            },
            Meaning::Unknown(why) => Meaning::Unknown(why),
            Meaning::Function(..) => unknown(),
        }
    }

    fn enclosing_class(&self, located: &Located<'_>) -> Option<ClassId> {
        let module = self.module(located.module);
        let mut scope = Some(located.scope);
        while let Some(id) = scope {
            if let Owner::Class(class) = module.scopes[id].owner {
                return Some(class);
            }
            scope = module.scopes[id].parent;
        }
        None
    }

    /// Returns an attribute of a class: its own, one that its constructor sets, or one of a base class.
    pub(crate) fn attribute<'p>(
        &'p self,
        module: ModuleId,
        class: ClassId,
        name: &str,
        steps: usize,
    ) -> Option<Meaning<'p>> {
        if steps > MAX_STEPS {
            return None;
        }
        let definition = &self.module(module).classes[class];
        let anywhere = Located::new(module, definition.scope, ANYWHERE);
        match self.bound(&anywhere, definition.scope, name, steps + 1) {
            Some(Meaning::Function(home, function))
                if self.module(home).functions[function].is_decorated_with("property") =>
            {
                let returns = self.module(home).returns(function);
                let [(scope, value)] = returns.as_slice() else { return None };
                return Some(self.follow(&Located::new(home, *scope, value), steps + 1));
            }
            Some(meaning) => return Some(meaning),
            None => {}
        }
        let set = self.set_by_constructor(module, class, name);
        if let [value] = set.as_slice() {
            return Some(self.follow(value, steps + 1));
        }
        definition.bases.iter().find_map(|base| {
            let base = Located::new(module, self.module(module).scopes[definition.scope].parent.unwrap_or(0), base);
            match self.follow(&base, steps + 1) {
                Meaning::Class(home, base) => self.attribute(home, base, name, steps + 1),
                _ => None,
            }
        })
    }

    /// Returns the values that a constructor sets an attribute to: `self.name = …`.
    fn set_by_constructor<'p>(&'p self, module: ModuleId, class: ClassId, name: &str) -> Vec<Located<'p>> {
        let definition = &self.module(module).classes[class];
        let statements = &self.module(module).scopes[definition.scope].statements;
        let constructor = statements.iter().find_map(|statement| match statement {
            Statement::Define { name, defined: Definition::Function(id) } if is_constructor(name) => Some(*id),
            _ => None,
        });
        let Some(constructor) = constructor else { return Vec::new() };
        let scope = self.module(module).functions[constructor].scope;
        let set = self.module(module).scopes[scope].statements.iter().filter_map(|statement| match statement {
            Statement::SetMember { object, name: set, value } if set == name => {
                let is_self = matches!(&object.kind, Kind::Name(own) if own == "self" || own == "this");
                is_self.then(|| Located::new(module, scope, value))
            }
            _ => None,
        });
        set.collect()
    }

    fn index<'p>(&'p self, located: &Located<'p>, object: &'p Expr, key: &'p Expr, steps: usize) -> Meaning<'p> {
        let found = self.follow(&located.with(object), steps + 1);
        let value = match (&found, &key.kind) {
            (Meaning::Expr(found), Kind::Number(number)) => {
                let at = number.as_u64().and_then(|at| usize::try_from(at).ok());
                at.and_then(|at| self.items(found)?.get(at).cloned())
            }
            (Meaning::Expr(found), _) => self.text(&located.with(key)).ok().and_then(|key| self.entry(found, &key)),
            // `List[str]` and the like are types.
            (Meaning::Foreign(_), _) => return Meaning::Expr(located.clone()),
            _ => None,
        };
        match value {
            Some(value) => self.follow(&value, steps + 1),
            None => Meaning::Unknown(self.why(located, "it is looked up at run time")),
        }
    }

    /// Follows a call of a function of the project that returns one thing, and calls that return what they get.
    fn called<'p>(&'p self, located: &Located<'p>, call: &'p Call, steps: usize) -> Meaning<'p> {
        let itself = || Meaning::Expr(located.clone());
        match self.follow(&located.with(&call.callee), steps + 1) {
            Meaning::Function(module, function) => {
                let definition = &self.module(module).functions[function];
                let returns = self.module(module).returns(function);
                let [(scope, value)] = returns.as_slice() else { return itself() };
                if !definition.decorators.is_empty() || definition.class.is_some() {
                    return itself();
                }
                let mut arguments: Vec<(&str, Located<'p>)> = Vec::new();
                let plain = definition.parameters.iter().filter(|one| one.kind == ParameterKind::Plain);
                for (number, parameter) in plain.enumerate() {
                    let given = call.named(&parameter.name).or_else(|| {
                        call.arguments.get(number).filter(|argument| !matches!(argument.kind, Kind::Spread(_)))
                    });
                    match (given, &parameter.default) {
                        (Some(given), _) => arguments.push((&parameter.name, located.with(given))),
                        (None, Some(default)) => {
                            arguments.push((&parameter.name, Located::new(module, definition.scope, default)));
                        }
                        (None, None) => {}
                    }
                }
                let frame = Frame { module, function, arguments, parent: located.frame.clone() };
                let returned = Located { module, scope: *scope, expr: value, frame: Some(Rc::new(frame)) };
                self.follow(&returned, steps + 1)
            }
            Meaning::Foreign(name) => match (name.as_str(), call.arguments.as_slice()) {
                ("Object.freeze" | "Object.seal" | "typing.cast" | "structuredClone" | "copy.deepcopy", arguments) => {
                    match arguments.last() {
                        Some(last) => self.follow(&located.with(last), steps + 1),
                        None => itself(),
                    }
                }
                _ => itself(),
            },
            _ => itself(),
        }
    }

    /// Returns the items of a list, spreads included; none where it is not a list or a spread is not known.
    pub(crate) fn items<'p>(&'p self, located: &Located<'p>) -> Option<Vec<Located<'p>>> {
        let found = self.resolve(located)?;
        match &found.expr.kind {
            Kind::List(items) => {
                let mut all = Vec::new();
                for item in items {
                    match &item.kind {
                        Kind::Spread(inner) => all.extend(self.items(&found.with(inner))?),
                        _ => all.push(found.with(item)),
                    }
                }
                Some(all)
            }
            Kind::Add(left, right) => {
                let mut all = self.items(&found.with(left))?;
                all.extend(self.items(&found.with(right))?);
                Some(all)
            }
            Kind::Call(call) => match (call.callee.last_name(), call.arguments.as_slice()) {
                (Some("list" | "tuple" | "set" | "frozenset" | "sorted"), [only]) => self.items(&found.with(only)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the entries of an object in their order; the flag tells whether there may be more.
    pub(crate) fn entries<'p>(&'p self, located: &Located<'p>) -> Option<Entries<'p>> {
        let found = self.resolve(located)?;
        let mut entries = Entries::default();
        match &found.expr.kind {
            Kind::Object(written) => {
                for entry in written {
                    match entry {
                        Entry::Value { key, value } => match self.text(&found.with(key)) {
                            Ok(name) => entries.set(name, key.at, found.with(value)),
                            Err(_) => entries.is_open = true,
                        },
                        Entry::Spread(inner) => self.spread(&found.with(inner), &mut entries),
                    }
                }
            }
            // `{**a, **b}` as `a | b`, `dict(a=1)`, `Object.assign({}, a, b)`.
            Kind::Or(left, right) => {
                self.spread(&found.with(left), &mut entries);
                self.spread(&found.with(right), &mut entries);
            }
            Kind::Call(call) => match call.callee.dotted().as_deref() {
                Some("dict") => {
                    call.arguments.iter().for_each(|argument| self.spread(&found.with(argument), &mut entries));
                    for (name, value) in &call.named {
                        entries.set(name.clone(), value.at, found.with(value));
                    }
                }
                Some("Object.assign") => {
                    call.arguments.iter().for_each(|argument| self.spread(&found.with(argument), &mut entries));
                }
                _ => return None,
            },
            _ => return None,
        }
        Some(entries)
    }

    fn spread<'p>(&'p self, located: &Located<'p>, entries: &mut Entries<'p>) {
        let inner = match &located.expr.kind {
            Kind::Spread(inner) => located.with(inner),
            _ => located.clone(),
        };
        match self.entries(&inner) {
            Some(inner) => {
                entries.is_open |= inner.is_open;
                for (name, at, value) in inner.list {
                    entries.set(name, at, value);
                }
            }
            None => entries.is_open = true,
        }
    }

    /// Returns one entry of an object.
    pub(crate) fn entry<'p>(&'p self, located: &Located<'p>, name: &str) -> Option<Located<'p>> {
        self.entries(located)?.get(name).cloned()
    }

    /// Returns a text, or why it is not known.
    pub(crate) fn text<'p>(&'p self, located: &Located<'p>) -> Result<String, Why> {
        let text = self.joined(located, 0)?;
        if text.len() > MAX_TEXT_BYTES {
            return Err(self.why(located, "it is too long"));
        }
        Ok(text)
    }

    fn joined<'p>(&'p self, located: &Located<'p>, steps: usize) -> Result<String, Why> {
        if steps > MAX_STEPS || !self.step() {
            return Err(self.why(located, "it is joined of too many parts"));
        }
        let found = match self.meaning(located) {
            Meaning::Expr(found) => found,
            Meaning::Unknown(why) => return Err(why),
            Meaning::Foreign(name) => {
                return Err(self.why(located, format!("'{name}' is known only at run time")));
            }
            Meaning::Function(..) | Meaning::Class(..) | Meaning::Module(_) => {
                return Err(self.why(located, "it is not a text"));
            }
        };
        match &found.expr.kind {
            Kind::Text(text) => Ok(text.clone()),
            Kind::Number(number) if steps > 0 => Ok(number.to_string()),
            Kind::Template(parts) => self.concatenated(&found, parts.iter(), steps),
            Kind::Add(..) => {
                // A sum of many texts is a chain to the left.
                let mut parts = Vec::new();
                let mut rest = found.expr;
                while let Kind::Add(left, right) = &rest.kind {
                    parts.push(&**right);
                    rest = left;
                }
                parts.push(rest);
                self.concatenated(&found, parts.into_iter().rev(), steps)
            }
            Kind::Either(left, right) => {
                let (left, right) =
                    (self.joined(&found.with(left), steps + 1)?, self.joined(&found.with(right), steps + 1)?);
                if left == right { Ok(left) } else { Err(self.why(&found, "it depends on a condition")) }
            }
            Kind::Call(call) => self.text_call(&found, call, steps),
            Kind::Or(..) => Err(self.why(&found, "it depends on a condition")),
            _ => Err(self.why(&found, "it is computed at run time")),
        }
    }

    fn concatenated<'p>(
        &'p self,
        found: &Located<'p>,
        parts: impl Iterator<Item = &'p Expr>,
        steps: usize,
    ) -> Result<String, Why> {
        let mut text = String::new();
        for part in parts {
            text += &self.joined(&found.with(part), steps + 1)?;
            if text.len() > MAX_TEXT_BYTES {
                return Err(self.why(found, "it is too long"));
            }
        }
        Ok(text)
    }

    /// Evaluates the calls that only change white space or join texts.
    fn text_call<'p>(&'p self, found: &Located<'p>, call: &'p Call, steps: usize) -> Result<String, Why> {
        let unknown = || {
            let name = call.callee.dotted().unwrap_or_else(|| "a function".to_owned());
            self.why(found, format!("'{name}(…)' is called at run time"))
        };
        let first = || call.arguments.first().map(|argument| found.with(argument)).ok_or_else(unknown);
        if let Kind::Member(object, method) = &call.callee.kind {
            let object = found.with(object);
            let is_plain = call.arguments.is_empty() && call.named.is_empty();
            return match method.as_str() {
                "strip" | "trim" if is_plain => Ok(self.joined(&object, steps + 1)?.trim().to_owned()),
                "lstrip" | "trimStart" if is_plain => Ok(self.joined(&object, steps + 1)?.trim_start().to_owned()),
                "rstrip" | "trimEnd" if is_plain => Ok(self.joined(&object, steps + 1)?.trim_end().to_owned()),
                "lower" | "toLowerCase" if is_plain => Ok(self.joined(&object, steps + 1)?.to_lowercase()),
                "upper" | "toUpperCase" if is_plain => Ok(self.joined(&object, steps + 1)?.to_uppercase()),
                "toString" if is_plain => self.joined(&object, steps + 1),
                "dedent" | "cleandoc" => self.white_space(method, &first()?, steps),
                "join" => {
                    // `", ".join(list)` in Python, `list.join(", ")` in JavaScript.
                    let is_python = self.module(found.module).language == Language::Python;
                    let separator = if is_python { Some(object.clone()) } else { first().ok() };
                    let items = if is_python { first()? } else { object };
                    let separator =
                        separator.map_or(Ok(",".to_owned()), |separator| self.joined(&separator, steps + 1))?;
                    let items = self.items(&items).ok_or_else(unknown)?;
                    let mut text = String::new();
                    for (number, item) in items.iter().enumerate() {
                        if number > 0 {
                            text += &separator;
                        }
                        text += &self.joined(item, steps + 1)?;
                        if text.len() > MAX_TEXT_BYTES {
                            return Err(self.why(found, "it is too long"));
                        }
                    }
                    Ok(text)
                }
                "concat" if self.module(found.module).language == Language::JavaScript => {
                    let mut text = self.joined(&object, steps + 1)?;
                    for argument in &call.arguments {
                        text += &self.joined(&found.with(argument), steps + 1)?;
                    }
                    Ok(text)
                }
                _ => Err(unknown()),
            };
        }
        match call.callee.last_name() {
            Some(name @ ("dedent" | "cleandoc" | "outdent" | "stripIndent" | "oneLine")) => {
                self.white_space(name, &first()?, steps)
            }
            Some("str" | "String") => self.joined(&first()?, steps + 1),
            _ => Err(unknown()),
        }
    }

    fn white_space<'p>(&'p self, name: &str, text: &Located<'p>, steps: usize) -> Result<String, Why> {
        let text = self.joined(text, steps + 1)?;
        Ok(match name {
            "dedent" => dedent(&text),
            "oneLine" => text.split_whitespace().collect::<Vec<_>>().join(" "),
            _ => clean_doc(&text),
        })
    }

    pub(crate) fn boolean<'p>(&'p self, located: &Located<'p>) -> Option<bool> {
        match &self.resolve(located)?.expr.kind {
            Kind::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns a value as JSON, or none where a part of it is not known.
    pub(crate) fn json<'p>(&'p self, located: &Located<'p>) -> Option<Value> {
        self.json_at(located, 0)
    }

    fn json_at<'p>(&'p self, located: &Located<'p>, steps: usize) -> Option<Value> {
        if steps > MAX_STEPS || !self.step() {
            return None;
        }
        let found = self.resolve(located)?;
        match &found.expr.kind {
            Kind::Null => Some(Value::Null),
            Kind::Bool(value) => Some(Value::Bool(*value)),
            Kind::Number(number) => Some(Value::Number(number.clone())),
            Kind::List(_) => {
                let items = self.items(&found)?;
                items.iter().map(|item| self.json_at(item, steps + 1)).collect::<Option<Vec<_>>>().map(Value::Array)
            }
            Kind::Object(_) | Kind::Or(..) => {
                let entries = self.entries(&found)?;
                if entries.is_open {
                    return None;
                }
                let mut members = Map::new();
                for (name, _, value) in &entries.list {
                    members.insert(name.clone(), self.json_at(value, steps + 1)?);
                }
                Some(Value::Object(members))
            }
            _ => self.text(&found).ok().map(Value::String),
        }
    }
}

/// Entries of an object.
#[derive(Default, Clone)]
pub(crate) struct Entries<'p> {
    /// Names, where each is written, and values.
    pub(crate) list: Vec<(String, u32, Located<'p>)>,
    /// There are entries whose names are not known.
    pub(crate) is_open: bool,
}

impl<'p> Entries<'p> {
    pub(crate) fn get(&self, name: &str) -> Option<&Located<'p>> {
        self.list.iter().find(|(known, ..)| known == name).map(|(.., value)| value)
    }

    /// Returns the first of these entries that is there.
    pub(crate) fn any(&self, names: &[&str]) -> Option<&Located<'p>> {
        names.iter().find_map(|name| self.get(name))
    }

    fn set(&mut self, name: String, at: u32, value: Located<'p>) {
        match self.list.iter_mut().find(|(known, ..)| *known == name) {
            Some(known) => *known = (name, at, value),
            None => self.list.push((name, at, value)),
        }
    }
}

fn is_constructor(name: &str) -> bool {
    name == "__init__" || name == "constructor"
}

/// Stands in where only the module and the scope count.
static ANYWHERE: &Expr = &Expr { at: 0, kind: Kind::Null };
