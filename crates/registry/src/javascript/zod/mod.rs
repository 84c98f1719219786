//! zod's types as far as they matter for JSON Schema.
//!
//! The model follows what zod 4 does: wrappers keep what they wrap, refinements keep their metadata, and objects that
//! are made from objects lose theirs.

mod build;
mod intersect;
mod method;
mod render;

use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::value::{Array, Located, Place, Unknown, Value};

pub(super) use build::{build, of_shape};
pub(super) use method::method;
pub(super) use render::render;

/// The largest whole number that a double holds exactly.
pub(super) const SAFE: f64 = 9_007_199_254_740_991.0;

/// Tells whether a package is zod.
pub(super) fn is_zod(package: &str) -> bool {
    matches!(package, "zod" | "zod/v4" | "zod/v3")
}

/// A type, and what is said of it.
#[derive(Debug, Clone)]
pub(super) struct Zod {
    pub kind: Kind,
    /// Description, title, examples and the like.
    pub meta: Map<String, Json>,
    /// What of its metadata or checks is unknown.
    pub unknown: Vec<Unknown>,
    /// An object may leave the key out whose value this is.
    pub may_be_absent: bool,
    /// What comes out can differ from what goes in.
    pub transforms: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Text(TextChecks),
    Number(NumberChecks),
    /// One that is always written the same.
    Plain(Map<String, Json>),
    Enum(Vec<Json>),
    Literal(Vec<Json>),
    Array {
        element: Rc<Zod>,
        size: Range,
    },
    Object {
        shape: Vec<(String, Rc<Zod>)>,
        rest: Rest,
    },
    Tuple {
        items: Vec<Rc<Zod>>,
        rest: Option<Rc<Zod>>,
        size: Range,
    },
    Record {
        key: Rc<Zod>,
        value: Rc<Zod>,
        partial: bool,
    },
    Union {
        options: Vec<Rc<Zod>>,
        exclusive: bool,
    },
    Intersection(Rc<Zod>, Rc<Zod>),
    Wrapped {
        inner: Rc<Zod>,
        wrapper: Wrapper,
    },
    Unknown(Unknown),
}

/// What an object does with keys that it does not name.
#[derive(Debug, Clone)]
pub(super) enum Rest {
    Strip,
    Strict,
    Any(Rc<Zod>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wrapper {
    Optional,
    Nullable,
    NonOptional,
    Readonly,
    Default(Json),
    Catch(Json),
    /// A default that goes in, and is then handled like anything else.
    Prefault(Json),
    /// What comes out is something else; what goes in is not.
    Transform,
    /// What goes in is changed first.
    Preprocess,
    /// Another type checks what comes out.
    Pipe {
        transforming: bool,
    },
    Lazy,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Range {
    pub least: Option<f64>,
    pub most: Option<f64>,
}

impl Range {
    /// Allows nothing below a number, if that is narrower.
    pub(super) fn at_least(&mut self, number: f64) {
        self.least = Some(self.least.map_or(number, |least| least.max(number)));
    }

    pub(super) fn at_most(&mut self, number: f64) {
        self.most = Some(self.most.map_or(number, |most| most.min(number)));
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct TextChecks {
    pub size: Range,
    /// As zod names it; the last one counts.
    pub format: Option<String>,
    /// The format also takes what JSON Schema's format of the name does not.
    pub lax: bool,
    pub encoding: Option<String>,
    pub patterns: Vec<String>,
    /// How many formats it has, each with a pattern of zod's own.
    pub formats: usize,
}

impl TextChecks {
    /// Tells whether zod writes several patterns, of which some are its own.
    pub(super) fn is_mixed(&self) -> bool {
        self.formats > 0 && self.formats + self.patterns.len() > 1
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct NumberChecks {
    pub inclusive: Range,
    pub exclusive: Range,
    pub is_int: bool,
    pub divisors: Vec<f64>,
}

impl Zod {
    pub(super) fn new(kind: Kind) -> Self {
        let (may_be_absent, transforms) = (kind.may_be_absent(), kind.transforms());
        Self { kind, meta: Map::new(), unknown: Vec::new(), may_be_absent, transforms }
    }

    pub(super) fn unknown(unknown: Unknown) -> Self {
        Self::new(Kind::Unknown(unknown))
    }

    pub(super) fn wrapped(inner: &Rc<Zod>, wrapper: Wrapper) -> Self {
        Self::new(Kind::Wrapped { inner: Rc::clone(inner), wrapper })
    }

    /// Tells whether an object must have the key whose value this is.
    ///
    /// zod asks for what catches or preprocesses itself, and not for what wraps such a type.
    pub(super) fn is_required(&self) -> bool {
        match &self.kind {
            Kind::Wrapped { inner, wrapper: Wrapper::Catch(_) | Wrapper::Preprocess } => inner.is_required(),
            _ => !self.may_be_absent,
        }
    }

    /// Returns the same type with other checks: its metadata stays.
    pub(super) fn with(&self, kind: Kind) -> Self {
        Self { meta: self.meta.clone(), unknown: self.unknown.clone(), ..Self::new(kind) }
    }

    pub(super) fn into_value(self, place: Place) -> Located {
        Value::Zod(Rc::new(self)).at(place)
    }

    /// Returns what a property of the type is worth.
    pub(super) fn member(&self, key: &str, place: Place) -> Located {
        let texts = |values: &[Json]| -> Vec<Located> {
            values.iter().filter_map(Json::as_str).map(|text| Value::text(text).at(place)).collect()
        };
        match (&self.kind, key) {
            (Kind::Object { shape, .. }, "shape") => {
                let entries = shape.iter().map(|(key, field)| (key.clone(), Value::Zod(Rc::clone(field)).at(place)));
                Value::Object(Rc::new(entries.collect())).at(place)
            }
            (Kind::Array { element, .. }, "element") => Value::Zod(Rc::clone(element)).at(place),
            (Kind::Enum(values), "options") if values.iter().all(Json::is_string) => {
                Value::Array(Rc::new(Array { items: texts(values), open: None })).at(place)
            }
            (Kind::Enum(values), "enum" | "Enum" | "Values") if values.iter().all(Json::is_string) => {
                let entries = texts(values).into_iter().filter_map(|text| Some((text.to_text()?, text)));
                Value::Object(Rc::new(entries.collect())).at(place)
            }
            _ => Located::unknown(place, format!("'{key}' of a zod type is known only at run time")),
        }
    }
}

impl Kind {
    fn may_be_absent(&self) -> bool {
        match self {
            Kind::Wrapped { inner, wrapper } => match wrapper {
                Wrapper::Optional
                | Wrapper::Default(_)
                | Wrapper::Prefault(_)
                | Wrapper::Catch(_)
                | Wrapper::Preprocess => true,
                Wrapper::NonOptional => false,
                _ => inner.may_be_absent,
            },
            Kind::Union { options, .. } => options.iter().any(|option| option.may_be_absent),
            Kind::Intersection(left, right) => left.may_be_absent && right.may_be_absent,
            _ => false,
        }
    }

    fn transforms(&self) -> bool {
        match self {
            Kind::Wrapped { inner, wrapper } => match wrapper {
                Wrapper::Transform | Wrapper::Preprocess => true,
                Wrapper::Pipe { transforming } => *transforming || inner.transforms,
                _ => inner.transforms,
            },
            Kind::Array { element, .. } => element.transforms,
            Kind::Object { shape, .. } => shape.iter().any(|(_, field)| field.transforms),
            Kind::Tuple { items, rest, .. } => items.iter().chain(rest).any(|item| item.transforms),
            Kind::Record { key, value, .. } => key.transforms || value.transforms,
            Kind::Union { options, .. } => options.iter().any(|option| option.transforms),
            Kind::Intersection(left, right) => left.transforms || right.transforms,
            _ => false,
        }
    }
}
