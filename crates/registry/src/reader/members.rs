//! Resolves members of objects, modules, classes and instances, and the results of calls.

use std::collections::HashSet;
use std::rc::Rc;

use super::evaluate::{Frame, LocatedExpr, MAX_STEPS, PLACEHOLDER, ResolvedValue};
use super::project::{ModuleId, Project};
use super::syntax::{Call, ClassId, Definition, Expr, FunctionId, Kind, Language, Owner, ParameterKind, Statement};

/// A class, or an instance of it with the call that created it.
#[derive(Clone)]
pub(super) struct Receiver<'p> {
    pub(super) module: ModuleId,
    pub(super) class: ClassId,
    call: Option<LocatedExpr<'p>>,
}

/// Decorators that do not change what a function returns.
const PLAIN_DECORATORS: [&str; 6] = ["classmethod", "staticmethod", "property", "override", "cache", "lru_cache"];

impl Project {
    pub(super) fn resolve_member<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        object: &'p Expr,
        name: &str,
        steps: usize,
    ) -> ResolvedValue<'p> {
        let unknown = || {
            let dotted = located.expr.dotted().filter(|dotted| !dotted.starts_with('{'));
            let dotted = dotted.unwrap_or_else(|| format!("….{name}"));
            ResolvedValue::Unknown(self.unknown_reason(located, format!("'{dotted}' is known only at run time")))
        };
        let object = located.with(object);
        let resolved = self.resolve_at(&object, steps + 1);
        if let Some(receiver) = self.receiver_of(&object, &resolved, steps + 1) {
            return self.attribute_of(&receiver, name, steps).unwrap_or_else(unknown);
        }
        match resolved {
            ResolvedValue::Module(module) => self.resolve_export(module, name, steps + 1).unwrap_or_else(unknown),
            ResolvedValue::Foreign(dotted) => ResolvedValue::Foreign(format!("{dotted}.{name}")),
            ResolvedValue::Expr(located) => match (&located.expr.kind, name) {
                (Kind::Object(_) | Kind::ObjectRest(..), _) => match self.entry(&located, name) {
                    Some(value) => self.resolve_at(&value, steps + 1),
                    None => unknown(),
                },
                (Kind::Call(_), "shape") => {
                    self.zod_shape(&located).map_or_else(unknown, |shape| self.resolve_at(&shape, steps + 1))
                }
                // `Enum.MEMBER.value`
                (Kind::Text(_) | Kind::Number(_), "value") => ResolvedValue::Expr(located),
                _ => unknown(),
            },
            ResolvedValue::Unknown(reason) => ResolvedValue::Unknown(reason),
            ResolvedValue::Function(module, function) => {
                match self.function_member_values(module, function, &object, name).as_slice() {
                    [only] => self.resolve_at(only, steps + 1),
                    _ => unknown(),
                }
            }
            ResolvedValue::Class(..) => unknown(),
        }
    }

    /// Returns the values assigned to a member of a function in its module: `search.config = { … }`.
    fn function_member_values<'p>(
        &'p self,
        module: ModuleId,
        function: FunctionId,
        object: &LocatedExpr<'p>,
        name: &str,
    ) -> Vec<LocatedExpr<'p>> {
        let source = self.module(module);
        let names = [Some(source.functions[function].name.as_str()), object.expr.last_name()];
        let is_own_object =
            |object: &Expr| matches!(&object.kind, Kind::Name(own) if names.contains(&Some(own.as_str())));
        let statements = source.scopes[0].statements.iter();
        let set = statements.filter_map(|statement| match statement {
            Statement::SetMember { object, name: set, value } if set == name && is_own_object(object) => {
                Some(LocatedExpr::new(module, 0, value))
            }
            _ => None,
        });
        set.collect()
    }

    pub(super) fn resolve_index<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        object: &'p Expr,
        key: &'p Expr,
        steps: usize,
    ) -> ResolvedValue<'p> {
        let resolved = self.resolve_at(&located.with(object), steps + 1);
        let value = match (&resolved, &key.kind) {
            (ResolvedValue::Expr(resolved), Kind::Number(number)) => {
                let at = number.as_u64().and_then(|at| usize::try_from(at).ok());
                at.and_then(|at| self.items(resolved)?.get(at).cloned())
            }
            (ResolvedValue::Expr(resolved), _) => {
                self.text(&located.with(key)).ok().and_then(|key| self.entry(resolved, &key))
            }
            // A type such as `List[str]`.
            (ResolvedValue::Foreign(_), _) => return ResolvedValue::Expr(located.clone()),
            _ => None,
        };
        match value {
            Some(value) => self.resolve_at(&value, steps + 1),
            None => ResolvedValue::Unknown(self.unknown_reason(located, "it is looked up at run time")),
        }
    }

    /// Returns the value of `self`, `cls` or `this`: the object that the method is called on, or the enclosing class.
    pub(super) fn receiver<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<Receiver<'p>> {
        let mut frame = located.frame.as_ref();
        while let Some(current) = frame {
            if let Some(receiver) = &current.receiver {
                return Some(receiver.clone());
            }
            frame = current.parent.as_ref();
        }
        let module = self.module(located.module);
        let mut scope = Some(located.scope);
        while let Some(id) = scope {
            if let Owner::Class(class) = module.scopes[id].owner {
                return Some(Receiver { module: located.module, class, call: None });
            }
            scope = module.scopes[id].parent;
        }
        None
    }

    /// Returns the class or instance that an expression resolves to.
    fn receiver_of<'p>(
        &'p self,
        object: &LocatedExpr<'p>,
        resolved: &ResolvedValue<'p>,
        steps: usize,
    ) -> Option<Receiver<'p>> {
        if matches!(&object.expr.kind, Kind::Name(name) if is_receiver(name)) {
            return self.receiver(object);
        }
        match resolved {
            ResolvedValue::Class(module, class) => Some(Receiver { module: *module, class: *class, call: None }),
            ResolvedValue::Expr(located) => {
                // Only one call of a chain is followed.
                let callee = &located.call().filter(|call| call.callee.dotted().is_some())?.callee;
                match self.resolve_at(&located.with(callee), steps + 1) {
                    ResolvedValue::Class(module, class) => {
                        Some(Receiver { module, class, call: Some(located.clone()) })
                    }
                    _ => None,
                }
            }
            // A parameter has the class of its annotation, unless a derived class may be passed.
            ResolvedValue::Unknown(_) => match self.resolve_at(&self.parameter_annotation(object)?, steps + 1) {
                ResolvedValue::Class(module, class) if !self.is_derived_from(module, class) => {
                    Some(Receiver { module, class, call: None })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether another class of the project derives from this one.
    fn is_derived_from(&self, module: ModuleId, class: ClassId) -> bool {
        let is_base = |home: ModuleId, scope: usize, base: &Expr| {
            base.last_name() == Some(self.module(module).classes[class].name.as_str())
                && !matches!(
                    self.resolve(&LocatedExpr::new(home, scope, base)),
                    ResolvedValue::Class(other, id) if (other, id) != (module, class)
                )
        };
        self.modules.iter().enumerate().any(|(home, source)| {
            source.classes.iter().any(|derived| {
                let scope = source.scopes[derived.scope].parent.unwrap_or(0);
                derived.bases.iter().any(|base| is_base(home, scope, base))
            })
        })
    }

    /// Resolves an attribute of a class: set by its constructor, defined in its body, or inherited.
    pub(crate) fn attribute<'p>(&'p self, module: ModuleId, class: ClassId, name: &str) -> Option<ResolvedValue<'p>> {
        self.attribute_of(&Receiver { module, class, call: None }, name, 0)
    }

    fn attribute_of<'p>(&'p self, receiver: &Receiver<'p>, name: &str, steps: usize) -> Option<ResolvedValue<'p>> {
        let class = (receiver.module, receiver.class);
        self.attribute_at(receiver, class, receiver.call.as_ref(), name, steps, &mut HashSet::new())
    }

    /// Resolves an attribute in one of the receiver's ancestors; `call` is the call of its constructor.
    fn attribute_at<'p>(
        &'p self,
        receiver: &Receiver<'p>,
        (module, class): (ModuleId, ClassId),
        call: Option<&LocatedExpr<'p>>,
        name: &str,
        steps: usize,
        visited: &mut HashSet<(ModuleId, ClassId)>,
    ) -> Option<ResolvedValue<'p>> {
        if steps > MAX_STEPS || !visited.insert((module, class)) || !self.take_step() {
            return None;
        }
        let definition = &self.module(module).classes[class];
        let constructor = self.constructor(module, class);
        let frame = match constructor {
            Some(id) => self.frame(module, id, call, Some(receiver), true),
            None => {
                Frame { module, function: None, arguments: Vec::new(), receiver: Some(receiver.clone()), parent: None }
            }
        };
        let frame = Some(Rc::new(frame));
        if let Some(constructor) = constructor {
            let scope = self.module(module).functions[constructor].scope;
            let set = self.constructor_assignments(module, scope, name);
            if let [value] = set.as_slice() {
                return Some(
                    self.resolve_at(&LocatedExpr { frame, ..LocatedExpr::new(module, scope, value) }, steps + 1),
                );
            }
            if !set.is_empty() {
                let reason = format!("'{name}' is assigned more than once");
                return Some(ResolvedValue::Unknown(
                    self.unknown_reason(&LocatedExpr::new(module, scope, set[0]), reason),
                ));
            }
        } else if let Some((call, argument)) = call.and_then(|call| Some((call, call.call()?.named(name)?))) {
            // A data class or a model takes its fields from the call.
            return Some(self.resolve_at(&call.with(argument), steps + 1));
        }
        let inside = LocatedExpr { frame: frame.clone(), ..LocatedExpr::new(module, definition.scope, PLACEHOLDER) };
        match self.resolve_in_scope(&inside, definition.scope, name, steps + 1) {
            Some(ResolvedValue::Function(home, function))
                if self.module(home).functions[function].is_decorated_with("property") =>
            {
                return self.resolve_return(home, function, None, Some(receiver), steps + 1);
            }
            Some(resolved) => return Some(resolved),
            None => {}
        }
        let outside = self.module(module).scopes[definition.scope].parent.unwrap_or(0);
        let super_call = self.super_call(module, class).map(|call| LocatedExpr { frame, ..call });
        definition.bases.iter().find_map(|base| {
            let ResolvedValue::Class(home, base) = self.resolve_at(&LocatedExpr::new(module, outside, base), steps + 1)
            else {
                return None;
            };
            let call = if constructor.is_some() { super_call.as_ref() } else { call };
            self.attribute_at(receiver, (home, base), call, name, steps + 1, visited)
        })
    }

    /// Resolves the first of these fields that a class has: an attribute, or a getter without parameters (`name`,
    /// `get_name`, `getName`). `call` creates an instance of the class.
    pub(crate) fn class_field<'p>(
        &'p self,
        module: ModuleId,
        class: ClassId,
        call: Option<&LocatedExpr<'p>>,
        keys: &[&str],
    ) -> Option<ResolvedValue<'p>> {
        let receiver = Receiver { module, class, call: call.cloned() };
        let value = |name: &str| match self.attribute_of(&receiver, name, 0)? {
            ResolvedValue::Function(home, function) => {
                let is_plain = self.module(home).functions[function]
                    .parameters
                    .iter()
                    .all(|parameter| is_receiver(&parameter.name));
                is_plain.then(|| self.resolve_return(home, function, None, Some(&receiver), 0))?
            }
            ResolvedValue::Expr(LocatedExpr { expr: Expr { kind: Kind::Null, .. }, .. }) => None,
            resolved => Some(resolved),
        };
        keys.iter().find_map(|key| {
            let mut letters = key.chars();
            let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
            value(key).or_else(|| value(&format!("get_{key}"))).or_else(|| value(&format!("get{capital}")))
        })
    }

    /// Returns the call of the base class's constructor, with the arguments of the call that creates an instance.
    pub(crate) fn super_call_in<'p>(
        &'p self,
        module: ModuleId,
        class: ClassId,
        call: Option<&LocatedExpr<'p>>,
    ) -> Option<LocatedExpr<'p>> {
        let receiver = Receiver { module, class, call: call.cloned() };
        let frame = self.frame(module, self.constructor(module, class)?, call, Some(&receiver), true);
        Some(LocatedExpr { frame: Some(Rc::new(frame)), ..self.super_call(module, class)? })
    }

    fn constructor(&self, module: ModuleId, class: ClassId) -> Option<FunctionId> {
        let name = if self.module(module).language == Language::Python { "__init__" } else { "constructor" };
        self.method(module, class, name).map(|(_, id)| id)
    }

    /// Returns a method of a class by name.
    pub(crate) fn method(&self, module: ModuleId, class: ClassId, name: &str) -> Option<(ModuleId, FunctionId)> {
        let definition = &self.module(module).classes[class];
        self.module(module).scopes[definition.scope].statements.iter().find_map(|statement| match statement {
            Statement::Define { name: defined, defined: Definition::Function(id) } if defined == name => {
                Some((module, *id))
            }
            _ => None,
        })
    }

    /// Returns the call of the base class's constructor: `super().__init__(…)`, `super(…)`.
    pub(crate) fn super_call(&self, module: ModuleId, class: ClassId) -> Option<LocatedExpr<'_>> {
        let scope = self.module(module).functions[self.constructor(module, class)?].scope;
        self.module(module).scopes[scope].statements.iter().find_map(|statement| {
            let Statement::Expression(expr) = statement else { return None };
            let Kind::Call(call) = &expr.kind else { return None };
            let is_super = match &call.callee.kind {
                Kind::Name(name) => name == "super",
                Kind::Member(_, name) => name == "__init__",
                _ => false,
            };
            is_super.then(|| LocatedExpr::new(module, scope, expr))
        })
    }

    /// Returns the values that a constructor assigns to an attribute: `self.name = …`.
    fn constructor_assignments(&self, module: ModuleId, scope: usize, name: &str) -> Vec<&Expr> {
        let statements = self.module(module).scopes[scope].statements.iter();
        let set = statements.filter_map(|statement| match statement {
            Statement::SetMember { object, name: set, value } if set == name => {
                matches!(&object.kind, Kind::Name(own) if is_receiver(own)).then_some(value)
            }
            _ => None,
        });
        set.collect()
    }

    /// Resolves a call of a function of the project with one `return`, or of a function that returns its argument.
    pub(super) fn resolve_call<'p>(
        &'p self,
        located: &LocatedExpr<'p>,
        call: &'p Call,
        steps: usize,
    ) -> ResolvedValue<'p> {
        let itself = || ResolvedValue::Expr(located.clone());
        match self.resolve_at(&located.with(&call.callee), steps + 1) {
            ResolvedValue::Function(module, function) => {
                let is_method = self.module(module).functions[function].class.is_some();
                let receiver = match &call.callee.kind {
                    Kind::Member(object, _) if is_method => {
                        let object = located.with(object);
                        self.receiver_of(&object, &self.resolve_at(&object, steps + 1), steps + 1)
                    }
                    _ => None,
                };
                if is_method && receiver.is_none() {
                    return itself();
                }
                self.resolve_return(module, function, Some(located), receiver.as_ref(), steps).unwrap_or_else(itself)
            }
            ResolvedValue::Foreign(name) => match (name.as_str(), call.arguments.as_slice()) {
                ("Object.freeze" | "Object.seal" | "typing.cast" | "structuredClone" | "copy.deepcopy", arguments) => {
                    match arguments.last() {
                        Some(last) => self.resolve_at(&located.with(last), steps + 1),
                        None => itself(),
                    }
                }
                _ => itself(),
            },
            _ => itself(),
        }
    }

    /// Returns the result of a call of the project's functions and methods, if it can be resolved.
    pub(crate) fn resolve_call_result<'p>(&'p self, located: &LocatedExpr<'p>) -> Option<LocatedExpr<'p>> {
        // `make()`, `module.make()` and `Maker().make()`; longer chains are library calls.
        let callee = &located.call()?.callee;
        let is_short = callee.dotted().is_some()
            || matches!(&callee.kind, Kind::Member(object, _) if matches!(&object.kind, Kind::Call(call) if call.callee.dotted().is_some()));
        if !is_short {
            return None;
        }
        self.resolve_expr(located).filter(|resolved| !std::ptr::eq(resolved.expr, located.expr))
    }

    /// Resolves the return value of a function in a call. Returns `None` with several `return`s or if a decorator
    /// changes it.
    fn resolve_return<'p>(
        &'p self,
        module: ModuleId,
        function: FunctionId,
        call: Option<&LocatedExpr<'p>>,
        receiver: Option<&Receiver<'p>>,
        steps: usize,
    ) -> Option<ResolvedValue<'p>> {
        let definition = &self.module(module).functions[function];
        let is_plain = |decorator: &Expr| decorator.last_name().is_some_and(|name| PLAIN_DECORATORS.contains(&name));
        if !definition.decorators.iter().all(is_plain) {
            return None;
        }
        let returns = self.module(module).returns(function);
        let [(scope, value)] = returns.as_slice() else { return None };
        let frame = Some(Rc::new(self.frame(module, function, call, receiver, false)));
        Some(self.resolve_at(&LocatedExpr { module, scope: *scope, expr: value, frame }, steps + 1))
    }

    /// Binds the parameters of a function to the arguments of a call or to their defaults.
    fn frame<'p>(
        &'p self,
        module: ModuleId,
        function: FunctionId,
        call: Option<&LocatedExpr<'p>>,
        receiver: Option<&Receiver<'p>>,
        is_constructor: bool,
    ) -> Frame<'p> {
        let definition = &self.module(module).functions[function];
        let located_call = call.and_then(|located| Some((located, located.call()?)));
        // Python passes the receiver first, except in `Base.__init__(self, …)`.
        let passes_itself = located_call.is_some_and(|(_, call)| {
            is_constructor
                && matches!(&call.callee.kind, Kind::Member(object, _) if !matches!(object.kind, Kind::Call(_)))
                && call.callee.last_name() == Some("__init__")
        });
        let has_receiver = self.module(module).language == Language::Python
            && definition.class.is_some()
            && !definition.is_decorated_with("staticmethod");
        let skipped = usize::from(has_receiver && !passes_itself);
        let mut arguments: Vec<(&'p str, LocatedExpr<'p>)> = Vec::new();
        let parameters = definition.parameters.iter().filter(|parameter| parameter.kind != ParameterKind::Rest);
        for (number, parameter) in parameters.enumerate() {
            let value = located_call.and_then(|(located, call)| {
                let argument = call.named(&parameter.name).or_else(|| {
                    let argument = number.checked_sub(skipped).and_then(|number| call.arguments.get(number));
                    argument.filter(|argument| !matches!(argument.kind, Kind::Spread(_)))
                });
                argument.map(|argument| located.with(argument))
            });
            let default =
                || parameter.default.as_ref().map(|default| LocatedExpr::new(module, definition.scope, default));
            if let Some(value) = value.or_else(default) {
                arguments.push((&parameter.name, value));
            }
        }
        let parent = call.and_then(|call| call.frame.clone());
        Frame { module, function: Some(function), arguments, receiver: receiver.cloned(), parent }
    }
}

pub(super) fn is_receiver(name: &str) -> bool {
    ["self", "cls", "this"].contains(&name)
}
