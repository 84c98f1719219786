//! What an expression is worth, as far as that shows without running it.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use karat_core::text::number_text;
use serde_json::Number;

use super::syntax::Function;
use super::text::Text;
use super::zod::Zod;

/// Stands for a file that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ModuleId(pub u32);

/// Where something begins: a file and an offset in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    pub module: ModuleId,
    pub offset: u32,
}

/// A value with the place where it is written, which may be far from where it is used.
#[derive(Debug, Clone)]
pub(super) struct Located {
    pub value: Value,
    pub place: Place,
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    BigInt,
    Text(Rc<Text>),
    Regex(Rc<str>),
    Array(Rc<Array>),
    Object(Rc<Object>),
    Function(ModuleId, Arc<Function>),
    Class,
    /// Everything that a file of the project exports.
    Namespace(ModuleId),
    /// Something of a package: its name, and the path to it from the package's exports.
    Package(Rc<str>, Rc<[String]>),
    /// Something that JavaScript has everywhere, by its path: `Object.freeze`.
    Global(Rc<str>),
    Zod(Rc<Zod>),
    /// What a known builder makes of a definition.
    Built(Rc<Built>),
    Unknown(Unknown),
}

/// Why a value does not show.
#[derive(Debug, Clone)]
pub(super) struct Unknown {
    pub place: Place,
    /// A lower-case fragment.
    pub why: Rc<str>,
    /// It can only be a text, a number or the like, and never a tool.
    pub primitive: bool,
}

/// A definition that went through a builder like `tool(…)`.
#[derive(Debug)]
pub(super) struct Built {
    pub object: Rc<Object>,
    /// The key that holds the name.
    pub name_key: &'static str,
}

#[derive(Debug, Default)]
pub(super) struct Array {
    pub items: Vec<Located>,
    /// There may be more items, and it is unknown where.
    pub open: Option<Unknown>,
}

/// So many keys are worth an index.
const MANY: usize = 32;

/// The own properties of an object.
#[derive(Debug, Default, Clone)]
pub(super) struct Object {
    entries: Vec<(String, Located)>,
    /// Where the keys are, once they are many.
    index: HashMap<String, usize>,
    /// There may be more properties.
    pub open: Option<Unknown>,
}

impl Object {
    pub(super) fn get(&self, key: &str) -> Option<&Located> {
        self.position(key).map(|at| &self.entries[at].1)
    }

    fn position(&self, key: &str) -> Option<usize> {
        if self.index.is_empty() {
            return self.entries.iter().position(|(name, _)| name == key);
        }
        self.index.get(key).copied()
    }

    /// Returns a property; unknown where the object may have it, and none where it has not.
    pub(super) fn read(&self, key: &str) -> Option<Located> {
        let open = || self.open.clone().map(Located::from);
        self.get(key).cloned().or_else(open)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Located> {
        self.entries.iter().map(|(_, value)| value)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Sets a property, which keeps its position if it is there already.
    pub(super) fn set(&mut self, key: String, value: Located) {
        if let Some(at) = self.position(&key) {
            self.entries[at].1 = value;
            return;
        }
        if !self.index.is_empty() {
            self.index.insert(key.clone(), self.entries.len());
        }
        self.entries.push((key, value));
        if self.entries.len() == MANY {
            self.index = self.entries.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
        }
    }

    /// Says that any property may be there from now on, with any value.
    pub(super) fn open(&mut self, unknown: &Unknown) {
        for (_, value) in &mut self.entries {
            *value = unknown.clone().into();
        }
        self.open = Some(unknown.clone());
    }

    /// Returns the properties in the order that JavaScript gives them: small whole numbers first.
    pub(super) fn entries(&self) -> Vec<(&str, &Located)> {
        let mut entries: Vec<(&str, &Located)> =
            self.entries.iter().map(|(key, value)| (key.as_str(), value)).collect();
        entries.sort_by_key(|(key, _)| array_index(key).map_or((1, 0), |index| (0, index)));
        entries
    }
}

impl FromIterator<(String, Located)> for Object {
    fn from_iter<T: IntoIterator<Item = (String, Located)>>(entries: T) -> Self {
        let mut object = Self::default();
        for (key, value) in entries {
            object.set(key, value);
        }
        object
    }
}

fn array_index(key: &str) -> Option<u32> {
    let index: u32 = key.parse().ok().filter(|&index| index < u32::MAX)?;
    (index.to_string() == key).then_some(index)
}

impl Value {
    pub(super) fn at(self, place: Place) -> Located {
        Located { value: self, place }
    }

    pub(super) fn text(text: &str) -> Self {
        Value::Text(Rc::new(text.into()))
    }

    /// Returns the text that `String(value)` gives for a primitive value.
    pub(super) fn to_js_text(&self) -> Option<Text> {
        Some(match self {
            Value::Undefined => "undefined".into(),
            Value::Null => "null".into(),
            Value::Bool(value) => if *value { "true" } else { "false" }.into(),
            Value::Number(number) => Text::from(js_number(*number).as_str()),
            Value::Text(text) => text.as_ref().clone(),
            _ => return None,
        })
    }
}

/// Returns `String(number)`.
pub(super) fn js_number(number: f64) -> String {
    match Number::from_f64(number) {
        Some(number) => number_text(&number),
        None if number.is_nan() => "NaN".to_owned(),
        None if number > 0.0 => "Infinity".to_owned(),
        None => "-Infinity".to_owned(),
    }
}

impl Located {
    pub(super) fn unknown(place: Place, why: impl Into<Rc<str>>) -> Self {
        Unknown { place, why: why.into(), primitive: false }.into()
    }

    /// Returns the text, if it is one that Rust can hold.
    pub(super) fn to_text(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) => text.to_text(),
            _ => None,
        }
    }

    /// Returns why the value is not known here, be it that karat does not know it or that it only shows at run time.
    pub(super) fn as_unknown(&self) -> Option<Unknown> {
        let unknown = |why: String, primitive: bool| Unknown { place: self.place, why: why.into(), primitive };
        match &self.value {
            Value::Unknown(unknown) => Some(unknown.clone()),
            Value::Global(path) => {
                Some(unknown(format!("'{path}' is known only at run time"), path.starts_with("process.env")))
            }
            Value::Package(package, path) => {
                let name = path.last().map_or("it", String::as_str);
                Some(unknown(format!("'{name}' comes from the package '{package}', which karat does not read"), false))
            }
            _ => None,
        }
    }
}

impl From<Unknown> for Located {
    fn from(unknown: Unknown) -> Self {
        let place = unknown.place;
        Value::Unknown(unknown).at(place)
    }
}
