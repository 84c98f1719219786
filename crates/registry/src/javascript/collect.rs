//! The tools among what modules export and register.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

use karat_core::registry::{Gap, GapKind, Registry, ToolPlace};

use super::call::BUILDERS;
use super::definition::{has_function, has_marks, has_schema, unwrapped};
use super::evaluate::{Evaluator, why_not};
use super::gathered::Gathered;
use super::modules::Target;
use super::positional::{as_fields, positional};
use super::syntax::{ExprKind, Registration};
use super::value::{Array, Built, Located, ModuleId, Object, Place, Unknown, Value};
use super::zod;

/// Deeper than anybody groups tools.
const DEEPEST: usize = 16;

/// Gathers tools into a registry.
pub(super) struct Collector {
    evaluator: Evaluator,
    registry: Registry,
    gathered: Gathered,
    /// How often a tool was met, those that were read before included.
    recognised: usize,
    namespaces: HashSet<ModuleId>,
    followed: HashSet<ModuleId>,
    gaps: Vec<Gap>,
    /// Lists and objects that were gone through, by address; they are kept, so that no address is used again.
    containers: HashMap<usize, Value>,
}

impl Collector {
    pub(super) fn new(evaluator: Evaluator) -> Self {
        Self {
            evaluator,
            registry: Registry::default(),
            gathered: Gathered::default(),
            recognised: 0,
            namespaces: HashSet::new(),
            followed: HashSet::new(),
            gaps: Vec::new(),
            containers: HashMap::new(),
        }
    }

    /// Reads all that a file exports and registers; one that cannot be read has become a gap.
    pub(super) fn file(&mut self, path: &Path) {
        let Some(module) = self.evaluator.modules.load(path) else { return };
        let before = (self.recognised, self.gaps.len(), self.evaluator.modules.gaps.len());
        self.namespace(module, 0);
        self.registrations(module);
        if before == (self.recognised, self.gaps.len(), self.evaluator.modules.gaps.len()) {
            let source = self.evaluator.modules.get(module).shown.clone();
            let what = "there is no tool in it that karat can see".to_owned();
            self.gaps.push(Gap { kind: GapKind::Unknown, place: ToolPlace { source, position: None }, what });
        }
    }

    /// Returns the registry, with what is wrong with the files before what is unknown of them.
    pub(super) fn finish(mut self) -> Registry {
        let mut gaps = std::mem::take(&mut self.evaluator.modules.gaps);
        gaps.append(&mut self.gaps);
        self.gathered.finish(&self.evaluator.modules, &mut self.registry, &mut gaps);
        gaps.sort_by(|left, right| left.place.cmp(&right.place).then_with(|| left.what.cmp(&right.what)));
        gaps.dedup();
        for gap in gaps {
            self.registry.add_gap(gap);
        }
        self.registry
    }

    fn namespace(&mut self, module: ModuleId, depth: usize) {
        if !self.namespaces.insert(module) {
            return;
        }
        let table = self.evaluator.table(module);
        for exported in &table.names {
            let value = self.evaluator.exported(exported);
            self.value(&exported.name, &value, true, depth);
        }
        for unknown in &table.open {
            self.gap(unknown);
        }
        let file = self.evaluator.modules.get(module);
        if let Some(whole) = &file.commonjs {
            let whole = self.evaluator.evaluate(module, whole);
            self.value("default", &whole, true, depth);
        }
    }

    /// Takes the tools out of a value that has a name: as an export, or as a property of one.
    fn value(&mut self, name: &str, located: &Located, is_export: bool, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        match &located.value {
            Value::Built(built) => self.built(name, built, located.place, is_export),
            Value::Object(object) => {
                if let Some((inner, place)) = unwrapped(object) {
                    self.named(inner, "name", place);
                } else if let Some(tools) = tools_of_agent(object) {
                    self.value("tools", tools, false, depth + 1);
                } else if is_tool(object) {
                    self.named(object, "name", located.place);
                } else {
                    self.container(name, object, is_export, depth);
                }
            }
            Value::Array(array) => self.list(name, array, is_export, depth),
            Value::Function(_, function) if is_export && function.makes_tool => {
                let why = format!("'{name}' is a function that makes a tool, which karat does not run");
                self.gap(&Unknown { place: located.place, why: why.into(), primitive: false });
            }
            Value::Namespace(module) => self.namespace(*module, depth + 1),
            Value::Package(package, path) if is_export => {
                let is_builder = path.last().is_some_and(|name| BUILDERS.contains(&name.as_str()));
                if !zod::is_zod(package) && !is_builder {
                    self.gap(&why_not(located, ""));
                }
            }
            Value::Unknown(unknown) if !unknown.primitive => self.gap(unknown),
            _ => {}
        }
    }

    /// Notes a list or an object; tells whether it was not noted yet.
    fn is_new(&mut self, address: usize, value: impl FnOnce() -> Value) -> bool {
        match self.containers.entry(address) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert(value());
                true
            }
        }
    }

    fn list(&mut self, name: &str, array: &Rc<Array>, is_export: bool, depth: usize) {
        if !self.is_new(Rc::as_ptr(array).addr(), || Value::Array(Rc::clone(array))) {
            return;
        }
        let holds_tools = array.items.iter().any(looks_like_tool) || is_toolish(name);
        let is_unknown = is_export && array.items.iter().all(is_made);
        for item in &array.items {
            match &item.value {
                // A list without tools may hold anything, and what is unknown in it is nobody's concern.
                Value::Unknown(_) if !holds_tools && !is_unknown => {}
                Value::Package(..) if holds_tools => self.value(name, item, true, depth + 1),
                Value::Built(built) if !built.object.has(built.name_key) && built.object.open.is_none() => {
                    self.recognised += 1;
                    self.gathered.add_listed(item.place);
                }
                _ => self.value(name, item, false, depth + 1),
            }
        }
        if let Some(unknown) = &array.open
            && (holds_tools || is_unknown && !unknown.primitive)
        {
            self.gap(unknown);
        }
    }

    /// Reads an object of tools, in which keys are names.
    fn container(&mut self, name: &str, object: &Rc<Object>, is_export: bool, depth: usize) {
        if !self.is_new(Rc::as_ptr(object).addr(), || Value::Object(Rc::clone(object))) {
            return;
        }
        let holds_tools = object.entries().iter().any(|(_, value)| looks_like_tool(value)) || is_toolish(name);
        let is_unknown = is_export && object.values().all(is_made);
        for (key, value) in object.entries() {
            match &value.value {
                Value::Object(inner) if !inner.has("name") && is_nameless_tool(inner, holds_tools) => {
                    self.recognised += 1;
                    self.gathered.add_keyed(key.to_owned(), Rc::clone(inner), value.place);
                }
                Value::Unknown(_) if !holds_tools && !is_unknown => {}
                Value::Package(..) if holds_tools => self.value(key, value, true, depth + 1),
                _ => self.value(key, value, false, depth + 1),
            }
        }
        if let Some(unknown) = &object.open
            && (holds_tools || is_unknown && !unknown.primitive)
        {
            self.gap(unknown);
        }
    }

    fn built(&mut self, name: &str, built: &Built, place: Place, is_export: bool) {
        let has_name = built.object.has(built.name_key) || built.object.open.is_some();
        if has_name {
            self.named(&built.object, built.name_key, place);
        } else if name == "default" {
            let why = "the tool has no name of its own, and a default export gives it none";
            self.gap(&Unknown { place, why: why.into(), primitive: false });
        } else {
            self.recognised += 1;
            let (name, object) = (name.to_owned(), Rc::clone(&built.object));
            if is_export {
                self.gathered.add_exported(name, object, place);
            } else {
                self.gathered.add_keyed(name, object, place);
            }
        }
    }

    /// Reads a definition that says its name.
    fn named(&mut self, object: &Rc<Object>, key: &str, place: Place) {
        let Some(value) = object.read(key) else { return };
        match value.to_text() {
            Some(name) if !name.is_empty() => self.tool(name, object, place),
            Some(_) => self.gap(&Unknown { place, why: "the tool's name is empty".into(), primitive: false }),
            None => {
                let unknown = why_not(&value, "it is no text that karat can read");
                let why = format!("the tool's name is not known: {}", unknown.why);
                self.gap(&Unknown { why: why.into(), ..unknown });
            }
        }
    }

    fn tool(&mut self, name: String, object: &Rc<Object>, place: Place) {
        self.recognised += 1;
        self.gathered.add(name, Rc::clone(object), place);
    }

    fn gap(&mut self, unknown: &Unknown) {
        let place = self.evaluator.modules.place(unknown.place);
        self.gaps.push(Gap { kind: GapKind::Unknown, place, what: unknown.why.to_string() });
    }

    /// Reads the calls that give a server its tools, also in modules whose functions are called.
    fn registrations(&mut self, module: ModuleId) {
        if !self.followed.insert(module) {
            return;
        }
        let file = self.evaluator.modules.get(module);
        for registration in &file.registrations {
            self.registration(module, registration);
        }
        for listing in &file.listings {
            let answer = self.evaluator.evaluate(module, listing);
            let tools = match &answer.value {
                Value::Object(answer) => answer.read("tools"),
                _ => None,
            };
            match tools {
                Some(tools) if matches!(tools.value, Value::Array(_) | Value::Unknown(_) | Value::Package(..)) => {
                    self.value("tools", &tools, true, 0);
                }
                _ => self.gap(&why_not(&answer, "the tools are listed by a function, which karat does not run")),
            }
        }
        for specifier in &file.followed {
            if let Target::Module(target) = self.evaluator.modules.follow(module, specifier) {
                self.registrations(target);
            }
        }
    }

    fn registration(&mut self, module: ModuleId, registration: &Registration) {
        let expression = &registration.call;
        let ExprKind::Call(call) = &expression.kind else { return };
        let ExprKind::Member { key, .. } = &call.callee.kind else { return };
        let place = Place { module, offset: expression.offset };
        let method = self.evaluator.evaluate(module, key).to_text().unwrap_or_default();
        let arguments = self.evaluator.arguments(module, call);
        let ends_with_function = arguments.len() > 1
            && arguments.last().is_some_and(|last| match (&last.value, arguments[0].to_text()) {
                (Value::Function(..), _) | (Value::Package(..) | Value::Global(_), Some(_)) => true,
                // A handler that is made by something, which is as good as any.
                (Value::Unknown(unknown), Some(_)) => !unknown.primitive,
                _ => false,
            });
        let changed = registration.changed.map(|offset| Unknown {
            place: Place { module, offset },
            why: "the tool is changed here".into(),
            primitive: false,
        });
        match (method.as_str(), arguments.as_slice()) {
            ("addTool" | "registerTool", [only]) => match &only.value {
                Value::Object(_) | Value::Built(_) | Value::Unknown(_) | Value::Package(..) => {
                    self.value("default", only, true, 0);
                }
                _ => {}
            },
            ("registerTool" | "registerToolTask", [name, config, ..]) => {
                let mut object = match &config.value {
                    Value::Object(config) => config.as_ref().clone(),
                    // Other servers have methods of this name too.
                    Value::Unknown(_) | Value::Package(..) | Value::Global(_) => {
                        let mut object = Object::default();
                        object.open(&why_not(config, ""));
                        object
                    }
                    _ => return,
                };
                if let Some(schema) = object.get("inputSchema").map(as_fields) {
                    object.set("inputSchema".to_owned(), schema);
                }
                self.registered(object, name, changed.as_ref(), place);
            }
            // Many things have a method `tool`; those of servers take a name, and a handler at the end.
            ("tool", [name, ..]) if ends_with_function => {
                if let Value::Text(_) | Value::Unknown(_) | Value::Package(..) = name.value {
                    self.registered(positional(&arguments), name, changed.as_ref(), place);
                }
            }
            _ => {}
        }
    }

    fn registered(&mut self, mut object: Object, name: &Located, changed: Option<&Unknown>, place: Place) {
        if let Some(changed) = changed {
            object.open(changed);
        }
        object.set("name".to_owned(), name.clone());
        self.named(&Rc::new(object), "name", place);
    }
}

fn is_tool(object: &Object) -> bool {
    let has_name = match object.get("name") {
        Some(name) => matches!(name.value, Value::Text(_)) || name.as_unknown().is_some(),
        None => object.open.is_some(),
    };
    has_name && has_marks(object)
}

/// Returns the tools of what has some and is none itself: an agent, a toolkit.
fn tools_of_agent(object: &Object) -> Option<&Located> {
    let tools = object.get("tools")?;
    let holds = match &tools.value {
        Value::Array(array) => array.items.iter().any(looks_like_tool),
        Value::Object(tools) => tools.values().any(looks_like_tool),
        _ => false,
    };
    (holds && object.has("name") && !has_schema(object) && !has_function(object)).then_some(tools)
}

/// Tells whether a value is made by something that karat does not run.
fn is_made(value: &Located) -> bool {
    matches!(&value.value, Value::Unknown(unknown) if !unknown.primitive)
}

/// Tells whether an object is a tool whose name is its key.
fn is_nameless_tool(object: &Object, among_tools: bool) -> bool {
    has_schema(object) && (has_function(object) || among_tools && object.has("description"))
}

fn looks_like_tool(value: &Located) -> bool {
    match &value.value {
        Value::Built(_) => true,
        Value::Object(object) => is_tool(object) || unwrapped(object).is_some() || is_nameless_tool(object, false),
        _ => false,
    }
}

/// Tells whether a name says that it stands for tools.
fn is_toolish(name: &str) -> bool {
    name == "default" || name.to_lowercase().contains("tool")
}
