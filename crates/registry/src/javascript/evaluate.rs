//! What expressions are worth: constants, concatenations, members, spreads; nothing is run.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::modules::{Modules, Target};
use super::syntax::{Binding, BindingId, Declared, EnumMember, Expr, ExprKind, Imported, Item, Property, Specifier};
use super::text::Text;
use super::value::{Array, Located, ModuleId, Object, Place, Unknown, Value};

/// Deeper than constants name constants in any project.
const DEEPEST: usize = 3_000;

/// Longer than any description: a text that grows beyond it is left unknown.
pub(super) const LONGEST: usize = 1_000_000;

/// More than any list of tools has.
const MOST_ITEMS: usize = 100_000;

/// What is said of a variable whose value is changed.
pub(super) const CHANGED: &str = "is changed here";

/// More entries than spreads copy in any project.
const MOST_COPIED: usize = 1_000_000;

/// Evaluates expressions across the files of a project.
#[derive(Debug)]
pub(super) struct Evaluator {
    pub modules: Modules,
    /// Variables that were evaluated; none while that is under way.
    known: HashMap<(ModuleId, BindingId), Option<Located>>,
    pub(super) tables: HashMap<ModuleId, Rc<super::exports::ExportTable>>,
    depth: usize,
    /// How many functions were evaluated in the place of their calls.
    pub(super) applied: usize,
    /// Functions that are being evaluated, by address.
    pub(super) running: HashSet<usize>,
    /// How many entries were copied by spreads.
    copied: usize,
    /// Two exports of one name are being compared.
    pub(super) comparing: bool,
}

impl Evaluator {
    pub(super) fn new(modules: Modules) -> Self {
        Self {
            modules,
            known: HashMap::new(),
            tables: HashMap::new(),
            depth: 0,
            applied: 0,
            running: HashSet::new(),
            copied: 0,
            comparing: false,
        }
    }

    pub(super) fn evaluate(&mut self, module: ModuleId, expression: &Expr) -> Located {
        let place = Place { module, offset: expression.offset };
        if self.depth >= DEEPEST {
            return Located::unknown(place, "it is nested too deeply");
        }
        self.depth += 1;
        let value = self.value(module, expression, place);
        self.depth -= 1;
        value
    }

    fn value(&mut self, module: ModuleId, expression: &Expr, place: Place) -> Located {
        let value = match &expression.kind {
            ExprKind::Undefined => Value::Undefined,
            ExprKind::Null => Value::Null,
            ExprKind::Bool(value) => Value::Bool(*value),
            ExprKind::Number(number) => Value::Number(*number),
            ExprKind::BigInt => Value::BigInt,
            ExprKind::Text(text) => Value::Text(Rc::new(text.clone())),
            ExprKind::Regex { source } => Value::Regex(source.as_str().into()),
            ExprKind::Template { texts, holes } => return self.template(module, texts, holes, place),
            ExprKind::Name(binding) => return self.binding(module, *binding, place),
            ExprKind::Global(name) => Value::Global(name.as_str().into()),
            ExprKind::Array(items) => Value::Array(Rc::new(self.array(module, items))),
            ExprKind::Object(properties) => return self.object(module, properties).at(place),
            ExprKind::Member { object, key, optional } => {
                let object = self.evaluate(module, object);
                let key = self.evaluate(module, key);
                return self.member(&object, &key, *optional, place);
            }
            ExprKind::Call(call) => return self.call(module, call, place),
            ExprKind::Add(left, right) => {
                let left = self.evaluate(module, left);
                let right = self.evaluate(module, right);
                return add(&left, &right, place);
            }
            ExprKind::Minus(inner) => match self.evaluate(module, inner).value {
                Value::Number(number) => Value::Number(-number),
                _ => return unknown_primitive(place, "it is computed"),
            },
            ExprKind::Function(function) => Value::Function(module, function.clone()),
            ExprKind::Class => Value::Class,
            ExprKind::Opaque { why, primitive } => {
                return Unknown { place, why: why.as_str().into(), primitive: *primitive }.into();
            }
        };
        value.at(place)
    }

    fn template(&mut self, module: ModuleId, texts: &[Text], holes: &[Expr], place: Place) -> Located {
        let mut whole = Text::default();
        for (index, text) in texts.iter().enumerate() {
            whole.push(text);
            let Some(hole) = holes.get(index) else { continue };
            let value = self.evaluate(module, hole);
            match value.value.to_js_text() {
                Some(text) => whole.push(&text),
                None => return not_text(&value, place),
            }
        }
        limited(whole, place)
    }

    pub(super) fn array(&mut self, module: ModuleId, items: &[Item]) -> Array {
        let mut array = Array::default();
        for item in items {
            match item {
                Item::Value(value) => array.items.push(self.evaluate(module, value)),
                Item::Hole => {
                    let place = Place { module, offset: 0 };
                    array.items.push(Value::Undefined.at(place));
                }
                Item::Spread(value) => {
                    let value = self.evaluate(module, value);
                    if let Value::Array(inner) = &value.value {
                        if array.items.len() + inner.items.len() > MOST_ITEMS || !self.may_copy(&value) {
                            let why = "the list is too long".into();
                            array.open = Some(Unknown { place: value.place, why, primitive: false });
                            break;
                        }
                        array.items.extend(inner.items.iter().cloned());
                        array.open = array.open.or_else(|| inner.open.clone());
                    } else {
                        let why = why_not(&value, "it is no list that karat can read");
                        array.open = array.open.or(Some(why));
                    }
                }
            }
        }
        array
    }

    fn object(&mut self, module: ModuleId, properties: &[Property]) -> Value {
        let mut object = Object::default();
        for property in properties {
            match property {
                Property::Value { key, value } => {
                    let key = self.evaluate(module, key);
                    let value = self.evaluate(module, value);
                    match key.value.to_js_text().and_then(|text| text.to_text()) {
                        Some(key) => object.set(key, value),
                        None => object.open(&why_not(&key, "it is no name that karat can read")),
                    }
                }
                Property::Spread(value) => {
                    let value = self.evaluate(module, value);
                    self.spread(&mut object, &value);
                }
            }
        }
        Value::Object(Rc::new(object))
    }

    pub(super) fn spread(&mut self, object: &mut Object, value: &Located) {
        if !self.may_copy(value) {
            let why = "too much is copied before it".into();
            return object.open(&Unknown { place: value.place, why, primitive: false });
        }
        let inner = match &value.value {
            Value::Object(inner) => Rc::clone(inner),
            Value::Namespace(module) => Rc::new(self.namespace_object(*module)),
            Value::Array(array) if array.open.is_none() => {
                for (index, item) in array.items.iter().enumerate() {
                    object.set(index.to_string(), item.clone());
                }
                return;
            }
            Value::Undefined | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Function(..) | Value::Class => {
                return;
            }
            _ => return object.open(&why_not(value, "it is no object that karat can read")),
        };
        if let Some(unknown) = &inner.open {
            object.open(unknown);
        }
        for (key, value) in inner.entries() {
            object.set(key.to_owned(), value.clone());
        }
    }

    /// Notes that the entries of a list or an object are copied; tells whether that is still bearable.
    ///
    /// A line that copies all that the line before it has costs as much as all of them.
    fn may_copy(&mut self, value: &Located) -> bool {
        self.copied += match &value.value {
            Value::Array(array) => array.items.len(),
            Value::Object(object) => object.len(),
            _ => 0,
        };
        self.copied <= MOST_COPIED
    }

    fn binding(&mut self, module: ModuleId, id: BindingId, place: Place) -> Located {
        let file = self.modules.get(module);
        let Some(binding) = file.bindings.get(id.0 as usize) else {
            return Located::unknown(place, "it is known only at run time");
        };
        if binding.hoisted.is_some_and(|declared| place.offset < declared) {
            return Located::unknown(place, format!("'{}' is used before it is declared", binding.name));
        }
        match self.known.get(&(module, id)) {
            Some(Some(value)) => return used(value.clone(), place),
            Some(None) => return Located::unknown(place, format!("'{}' is defined by itself", binding.name)),
            None => {}
        }
        self.known.insert((module, id), None);
        let value = self.declared(module, binding, place);
        self.known.insert((module, id), Some(value.clone()));
        used(value, place)
    }

    fn declared(&mut self, module: ModuleId, binding: &Binding, used: Place) -> Located {
        let name = &binding.name;
        if let Some(offset) = binding.reassigned {
            let why = format!("'{name}' gets another value here");
            return Located::unknown(Place { module, offset }, why);
        }
        let value = match &binding.declared {
            Declared::Value(expression) => self.evaluate(module, expression),
            Declared::Import { imported, specifier } => self.import(module, imported, specifier),
            Declared::Enum(members, offset) => {
                let object = self.enum_object(module, members, None);
                Value::Object(Rc::new(object)).at(Place { module, offset: *offset })
            }
            Declared::EnumMember(of, name) => {
                let file = self.modules.get(module);
                let Some(Declared::Enum(members, _)) = file.bindings.get(of.0 as usize).map(|of| &of.declared) else {
                    return Located::unknown(used, "it is known only at run time");
                };
                let object = self.enum_object(module, members, Some(name));
                object.read(name).unwrap_or_else(|| Located::unknown(used, "it is known only at run time"))
            }
            Declared::Opaque(what, offset) => {
                let primitive = *what == "is a type";
                Unknown { place: Place { module, offset: *offset }, why: format!("'{name}' {what}").into(), primitive }
                    .into()
            }
        };
        changed(module, binding, value)
    }

    pub(super) fn import(&mut self, module: ModuleId, imported: &Imported, specifier: &Specifier) -> Located {
        let place = Place { module, offset: specifier.offset };
        match self.modules.follow(module, specifier) {
            Target::Module(target) => match imported {
                Imported::Namespace => Value::Namespace(target).at(place),
                Imported::Name(name) => self.export(target, name).unwrap_or_else(|| {
                    let why = format!("'{}' exports no '{name}'", self.modules.get(target).shown);
                    self.modules.broken(place, why.clone());
                    Unknown { place, why: why.into(), primitive: true }.into()
                }),
            },
            Target::Package => {
                let path: Vec<String> = match imported {
                    Imported::Name(name) => vec![name.clone()],
                    Imported::Namespace => Vec::new(),
                };
                Value::Package(specifier.text.as_str().into(), path.into()).at(place)
            }
            Target::Nothing => {
                Unknown { place, why: format!("'{}' cannot be read", specifier.text).into(), primitive: true }.into()
            }
        }
    }

    /// Returns an enum as the object that it is at run time; up to a member, where that is asked for.
    fn enum_object(&mut self, module: ModuleId, members: &[EnumMember], up_to: Option<&str>) -> Object {
        let mut object = Object::default();
        let mut next = Some(0.0);
        for member in members {
            let place = Place { module, offset: member.offset };
            let value = match (&member.initializer, next) {
                (Some(initializer), _) => self.evaluate(module, initializer),
                (None, Some(number)) => Value::Number(number).at(place),
                (None, None) => Located::unknown(place, "it is computed"),
            };
            next = if let Value::Number(number) = value.value { Some(number + 1.0) } else { None };
            let Some(name) = member.name.as_ref().and_then(Text::to_text) else {
                object.open(&Unknown { place, why: "its name is computed".into(), primitive: true });
                continue;
            };
            let is_last = up_to == Some(name.as_str());
            let number = matches!(value.value, Value::Number(_)).then(|| value.value.to_js_text()).flatten();
            // The name is set before the way back from the number to it.
            object.set(name.clone(), value);
            if let Some(number) = number {
                object.set(number.to_string(), Value::text(&name).at(place));
            }
            if is_last {
                break;
            }
        }
        object
    }

    pub(super) fn member(&mut self, object: &Located, key: &Located, optional: bool, place: Place) -> Located {
        let Some(key_text) = key.value.to_js_text().and_then(|text| text.to_text()) else {
            return why_not(key, "it is no name that karat can read").into();
        };
        match &object.value {
            Value::Object(inner) => inner.read(&key_text).unwrap_or_else(|| absent(&key_text, place)),
            Value::Built(built) => built.object.read(&key_text).unwrap_or_else(|| absent(&key_text, place)),
            Value::Array(array) if array.open.is_none() => match key_text.as_str() {
                "length" => {
                    let length = u32::try_from(array.items.len()).unwrap_or(u32::MAX);
                    Value::Number(f64::from(length)).at(place)
                }
                index => match index.parse::<usize>().ok().and_then(|index| array.items.get(index)) {
                    Some(item) => item.clone(),
                    None => Located::unknown(place, "it is known only at run time"),
                },
            },
            Value::Namespace(module) => self.export(*module, &key_text).unwrap_or_else(|| Value::Undefined.at(place)),
            Value::Package(package, path) => {
                let path: Vec<String> = path.iter().cloned().chain([key_text]).collect();
                Value::Package(Rc::clone(package), path.into()).at(place)
            }
            Value::Global(path) => match format!("{path}.{key_text}").as_str() {
                "Number.MAX_SAFE_INTEGER" => Value::Number(super::zod::SAFE).at(place),
                "Number.MIN_SAFE_INTEGER" => Value::Number(-super::zod::SAFE).at(place),
                path => Value::Global(path.into()).at(place),
            },
            Value::Zod(zod) => zod.member(&key_text, place),
            Value::Undefined | Value::Null if optional => Value::Undefined.at(place),
            _ => why_not(object, "it is known only at run time").into(),
        }
    }
}

/// Names that every object has something under, its own properties aside.
const INHERITED: [&str; 12] = [
    "constructor",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "valueOf",
    "__proto__",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
];

/// Returns what a property is worth that an object has not got itself.
fn absent(key: &str, place: Place) -> Located {
    if INHERITED.contains(&key) {
        return Located::unknown(place, format!("'{key}' is known only at run time"));
    }
    Value::Undefined.at(place)
}

/// Gives what comes from elsewhere the place where it is used, since it is written nowhere in the project.
fn used(value: Located, place: Place) -> Located {
    match value.value {
        Value::Package(..) | Value::Namespace(_) => Located { place, ..value },
        _ => value,
    }
}

/// Puts what is changed later out of sight, since it may be changed before or after it is read.
fn changed(module: ModuleId, binding: &Binding, value: Located) -> Located {
    let Some(first) = binding.changes.first() else { return value };
    let unknown = |offset: u32| Unknown {
        place: Place { module, offset },
        why: format!("'{}' {CHANGED}", binding.name).into(),
        primitive: false,
    };
    match &value.value {
        Value::Object(object) if binding.changes.iter().all(|change| change.key.is_some()) => {
            let mut object = object.as_ref().clone();
            for change in &binding.changes {
                if let Some(key) = &change.key {
                    object.set(key.clone(), unknown(change.offset).into());
                }
            }
            Value::Object(Rc::new(object)).at(value.place)
        }
        Value::Object(_) | Value::Array(_) | Value::Built(_) => unknown(first.offset).into(),
        _ => value,
    }
}

/// Adds as JavaScript does: as texts if one of them is a text, else as numbers.
pub(super) fn add(left: &Located, right: &Located, place: Place) -> Located {
    if let (Value::Number(left), Value::Number(right)) = (&left.value, &right.value) {
        return Value::Number(left + right).at(place);
    }
    let has_text = matches!(left.value, Value::Text(_)) || matches!(right.value, Value::Text(_));
    match (left.value.to_js_text(), right.value.to_js_text()) {
        (Some(mut whole), Some(right)) if has_text => {
            whole.push(&right);
            limited(whole, place)
        }
        (Some(_), Some(_)) => unknown_primitive(place, "it is computed"),
        (None, _) => not_text(left, place),
        (_, None) => not_text(right, place),
    }
}

pub(super) fn limited(text: Text, place: Place) -> Located {
    if text.len() > LONGEST {
        return unknown_primitive(place, "the text is too long");
    }
    Value::Text(Rc::new(text)).at(place)
}

/// Says of a part of a text that it is not known.
fn not_text(part: &Located, place: Place) -> Located {
    let unknown = part.as_unknown().map_or_else(
        || Unknown { place, why: "it is put together from something that is no text".into(), primitive: true },
        |unknown| Unknown { primitive: true, ..unknown },
    );
    unknown.into()
}

fn unknown_primitive(place: Place, why: &str) -> Located {
    Unknown { place, why: why.into(), primitive: true }.into()
}

/// Returns why a value is of no use: because it is unknown, or as `otherwise` says.
pub(super) fn why_not(value: &Located, otherwise: &str) -> Unknown {
    value.as_unknown().unwrap_or_else(|| Unknown { place: value.place, why: otherwise.into(), primitive: false })
}
