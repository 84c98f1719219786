//! Calls whose result is certain: identity functions, builders of tools, zod, and a few of JavaScript's own.

use std::rc::Rc;
use std::sync::Arc;

use super::evaluate::{Evaluator, LONGEST, add, limited, why_not};
use super::positional::positional;
use super::syntax::{Call, ExprKind, Function, Item, Specifier};
use super::text::Text;
use super::value::{Array, Built, Located, ModuleId, Object, Place, Unknown, Value};
use super::zod;

/// What makes a tool of a definition, in the packages that people use.
pub(super) const BUILDERS: [&str; 9] = [
    "tool",
    "defineTool",
    "createTool",
    "dynamicTool",
    "betaTool",
    "betaZodTool",
    "DynamicStructuredTool",
    "DynamicTool",
    "FunctionTool",
];

/// More calls than sources of tools have.
const MOST_APPLIED: usize = 100_000;

/// Functions that wrap a schema and change nothing of it.
const SCHEMA_WRAPPERS: [&str; 2] = ["jsonSchema", "zodSchema"];

impl Evaluator {
    pub(super) fn call(&mut self, module: ModuleId, call: &Call, place: Place) -> Located {
        if let ExprKind::Member { object, key, optional } = &call.callee.kind {
            let object = self.evaluate(module, object);
            let key = self.evaluate(module, key);
            let method = key.to_text().unwrap_or_default();
            let done = match &object.value {
                Value::Text(text) => {
                    let arguments = self.arguments(module, call);
                    text_method(text, &method, &arguments, place)
                }
                Value::Array(array) => {
                    let arguments = self.arguments(module, call);
                    array_method(array, &method, &arguments, place)
                }
                Value::Zod(inner) => {
                    let arguments = self.arguments(module, call);
                    Some(zod::method(self, inner, &method, &arguments, place))
                }
                _ => {
                    let callee = self.member(&object, &key, *optional, place);
                    return self.apply(module, &callee, call, place);
                }
            };
            return done.unwrap_or_else(|| made_by(call, place));
        }
        let callee = self.evaluate(module, &call.callee);
        self.apply(module, &callee, call, place)
    }

    fn apply(&mut self, module: ModuleId, callee: &Located, call: &Call, place: Place) -> Located {
        match &callee.value {
            Value::Function(_, function) if function.is_identity && !call.is_new => {
                match self.arguments(module, call).into_iter().next() {
                    Some(argument) => argument,
                    None => Value::Undefined.at(place),
                }
            }
            Value::Function(home, function) if !call.is_new => {
                self.returned(*home, function, place).unwrap_or_else(|| made_by(call, place))
            }
            Value::Package(package, path) if zod::is_zod(package) => {
                let arguments = self.arguments(module, call);
                zod::build(self, path, &arguments, place)
            }
            Value::Package(_, path) => {
                let name = match path.last().map(String::as_str) {
                    // A default export has the name that the file gives it.
                    Some("default") | None => call.written.as_str(),
                    Some(name) => name,
                };
                self.package_call(module, name, call, place)
            }
            Value::Global(path) if path.as_ref() == "require" => match self.arguments(module, call).as_slice() {
                [specifier] => match specifier.to_text() {
                    Some(text) => self.required(module, &Specifier { text, offset: specifier.place.offset }),
                    None => made_by(call, place),
                },
                _ => made_by(call, place),
            },
            Value::Global(path) if BUILDERS.contains(&path.as_ref()) => self.package_call(module, path, call, place),
            Value::Global(path) => {
                let arguments = self.arguments(module, call);
                self.global_call(path, &arguments, place).unwrap_or_else(|| made_by(call, place))
            }
            // What it is called on is changed, which says more than that it is called.
            Value::Unknown(unknown) if unknown.why.ends_with(super::evaluate::CHANGED) => unknown.clone().into(),
            _ => made_by(call, place),
        }
    }

    /// Returns what a function returns, where it does nothing else.
    pub(super) fn returned(&mut self, home: ModuleId, function: &Arc<Function>, place: Place) -> Option<Located> {
        let returned = function.returns.as_ref()?;
        // Functions that call functions are evaluated again for each call, which can become much.
        if self.applied >= MOST_APPLIED {
            return None;
        }
        self.applied += 1;
        let address = Arc::as_ptr(function).addr();
        if !self.running.insert(address) {
            return Some(Located::unknown(place, "it is recursive"));
        }
        let value = self.evaluate(home, returned);
        self.running.remove(&address);
        Some(value)
    }

    /// Evaluates the arguments of a call; what is spread into them is unknown from there on.
    pub(super) fn arguments(&mut self, module: ModuleId, call: &Call) -> Vec<Located> {
        let mut arguments = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            match argument {
                Item::Value(value) => arguments.push(self.evaluate(module, value)),
                Item::Hole => {}
                Item::Spread(value) => {
                    let value = self.evaluate(module, value);
                    match &value.value {
                        Value::Array(array) if array.open.is_none() => arguments.extend(array.items.iter().cloned()),
                        _ => {
                            arguments.push(why_not(&value, "it is spread into the arguments").into());
                            break;
                        }
                    }
                }
            }
        }
        arguments
    }

    fn package_call(&mut self, module: ModuleId, name: &str, call: &Call, place: Place) -> Located {
        let arguments = self.arguments(module, call);
        if SCHEMA_WRAPPERS.contains(&name) {
            return arguments.into_iter().next().unwrap_or_else(|| Value::Undefined.at(place));
        }
        if !BUILDERS.contains(&name) {
            return made_by(call, place);
        }
        let built = |object: Rc<Object>| {
            let name_key = if name == "createTool" && object.has("id") { "id" } else { "name" };
            Value::Built(Rc::new(Built { object, name_key })).at(place)
        };
        // `tool(function, {…})` of LangChain; all others take the definition first.
        let definition = arguments.iter().take(2).find_map(|argument| match &argument.value {
            Value::Object(object) => Some(Rc::clone(object)),
            _ => None,
        });
        match (arguments.first(), definition) {
            (Some(Located { value: Value::Text(_), .. }), _) => built(Rc::new(positional(&arguments))),
            (_, Some(object)) => built(object),
            (Some(first), None) => {
                let last = arguments.get(1).unwrap_or(first);
                why_not(last, "its definition is no object that karat can read").into()
            }
            (None, None) => made_by(call, place),
        }
    }

    fn global_call(&mut self, path: &str, arguments: &[Located], place: Place) -> Option<Located> {
        let first = arguments.first();
        match path {
            "Object.freeze" | "Object.seal" | "Object.preventExtensions" | "structuredClone" => first.cloned(),
            "Object.assign" => {
                let mut object = Object::default();
                for argument in arguments {
                    self.spread(&mut object, argument);
                }
                Some(Value::Object(Rc::new(object)).at(place))
            }
            "Object.values" | "Object.keys" => {
                let object = match &first?.value {
                    Value::Object(object) => Rc::clone(object),
                    Value::Namespace(module) => Rc::new(self.namespace_object(*module)),
                    _ => return Some(why_not(first?, "it is no object that karat can read").into()),
                };
                let item = |(key, value): (&str, &Located)| match path {
                    "Object.keys" => Value::text(key).at(value.place),
                    _ => value.clone(),
                };
                let items = object.entries().into_iter().map(item).collect();
                Some(Value::Array(Rc::new(Array { items, open: object.open.clone() })).at(place))
            }
            "String" => {
                let first = first?;
                Some(add(&Value::text("").at(place), first, place))
            }
            _ => None,
        }
    }
}

/// Says that a call would have to be run.
fn made_by(call: &Call, place: Place) -> Located {
    let new = if call.is_new { "new " } else { "" };
    let why = format!("it is made by '{new}{}(…)', which karat does not run", call.written);
    Unknown { place, why: why.into(), primitive: false }.into()
}

fn text_method(text: &Rc<Text>, method: &str, arguments: &[Located], place: Place) -> Option<Located> {
    let changed = match (method, arguments) {
        ("trim", _) => text.trimmed(true, true),
        ("trimStart" | "trimLeft", _) => text.trimmed(true, false),
        ("trimEnd" | "trimRight", _) => text.trimmed(false, true),
        ("toString" | "valueOf", _) => text.as_ref().clone(),
        ("concat", parts) => {
            let mut whole = text.as_ref().clone();
            for part in parts {
                whole.push(&part.value.to_js_text()?);
            }
            whole
        }
        ("repeat", [Located { value: Value::Number(times), .. }]) => {
            let times = whole_number(*times)?;
            if times.saturating_mul(text.len().max(1)) > LONGEST {
                return None;
            }
            text.repeat(times)
        }
        _ => return None,
    };
    Some(limited(changed, place))
}

fn array_method(array: &Rc<Array>, method: &str, arguments: &[Located], place: Place) -> Option<Located> {
    match method {
        "join" if array.open.is_none() => {
            let separator = match arguments.first().map(|first| &first.value) {
                None | Some(Value::Undefined) => Text::from(","),
                Some(value) => value.to_js_text()?,
            };
            let mut whole = Text::default();
            for (index, item) in array.items.iter().enumerate() {
                if index > 0 {
                    whole.push(&separator);
                }
                // Nothing stands for what is not there.
                if matches!(item.value, Value::Undefined | Value::Null) {
                    continue;
                }
                let Some(text) = item.value.to_js_text() else {
                    let unknown = why_not(item, "it is put together from something that is no text");
                    return Some(Unknown { primitive: true, ..unknown }.into());
                };
                whole.push(&text);
            }
            Some(limited(whole, place))
        }
        "concat" => {
            let mut items = array.items.clone();
            let mut open = array.open.clone();
            for argument in arguments {
                match &argument.value {
                    Value::Array(other) => {
                        items.extend(other.items.iter().cloned());
                        open = open.or_else(|| other.open.clone());
                    }
                    Value::Unknown(unknown) => open = open.or_else(|| Some(unknown.clone())),
                    _ => items.push(argument.clone()),
                }
            }
            Some(Value::Array(Rc::new(Array { items, open })).at(place))
        }
        _ => None,
    }
}

/// Returns a number that counts something.
pub(super) fn whole_number(number: f64) -> Option<usize> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole and small")]
    (number >= 0.0 && number.fract() == 0.0 && number < 1e9).then_some(number as usize)
}
