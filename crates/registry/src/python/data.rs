//! Values that a source writes down, with the parts that are not known.

use serde_json::{Map, Number, Value};

use super::program::Spot;

/// Values larger than this, in bytes, are taken as unknown: a few lines can double a text many times.
pub(super) const LARGEST: usize = 4 << 20;

/// Why they are.
pub(super) const TOO_LARGE: &str = "it is larger than karat reads";

/// What a part costs beside its text.
const PART: usize = 64;

/// A part that shows only when the source is run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hole {
    pub(super) spot: Spot,
    pub(super) why: String,
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Datum {
    pub(super) spot: Spot,
    pub(super) data: Data,
    /// Roughly how much it is.
    pub(super) size: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Data {
    Unknown(Hole),
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    /// The items, and where there may be more.
    List(Vec<Datum>, Option<Hole>),
    /// The entries in their order, and where there may be more.
    Dict(Vec<(String, Datum)>, Option<Hole>),
}

impl Datum {
    pub(super) fn new(spot: Spot, data: Data) -> Self {
        let size = PART
            + match &data {
                Data::Text(text) => text.len(),
                Data::List(items, _) => items.iter().map(|item| item.size).sum(),
                Data::Dict(entries, _) => entries.iter().map(|(key, entry)| key.len() + entry.size).sum(),
                _ => 0,
            };
        if size > LARGEST {
            return Self::unknown(spot, TOO_LARGE);
        }
        Self { spot, data, size }
    }

    pub(super) fn unknown(spot: Spot, why: impl Into<String>) -> Self {
        Self { spot, data: Data::Unknown(Hole { spot, why: why.into() }), size: 1 }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn is_mutable(&self) -> bool {
        matches!(self.data, Data::List(..) | Data::Dict(..))
    }

    /// Returns an entry; what a dictionary may have beside the known ones makes all that is missing unknown.
    pub(super) fn entry(&self, key: &str) -> Option<Datum> {
        match &self.data {
            Data::Dict(entries, rest) => match (entries.iter().rfind(|(name, _)| name == key), rest) {
                (Some((_, entry)), _) => Some(entry.clone()),
                (None, Some(hole)) => Some(Self::unknown(hole.spot, hole.why.clone())),
                (None, None) => None,
            },
            _ => None,
        }
    }

    /// Returns the value if all of it is known.
    pub(super) fn json(&self) -> Result<Value, &Hole> {
        match &self.data {
            Data::Unknown(hole) | Data::List(_, Some(hole)) | Data::Dict(_, Some(hole)) => Err(hole),
            Data::Null => Ok(Value::Null),
            Data::Bool(bool) => Ok(Value::Bool(*bool)),
            Data::Number(number) => Ok(Value::Number(number.clone())),
            Data::Text(text) => Ok(Value::String(text.clone())),
            Data::List(items, None) => items.iter().map(Self::json).collect::<Result<_, _>>().map(Value::Array),
            Data::Dict(entries, None) => {
                let pairs = entries.iter().map(|(key, entry)| Ok((key.clone(), entry.json()?)));
                pairs.collect::<Result<_, _>>().map(Value::Object)
            }
        }
    }

    /// Returns a JSON Schema of which unknown parts allow everything, and takes note of those.
    pub(super) fn schema(&self, holes: &mut Vec<Hole>) -> Option<Value> {
        match &self.data {
            Data::Dict(entries, rest) => {
                holes.extend(rest.clone());
                let pairs = entries.iter().filter_map(|(key, entry)| Some((key.clone(), keyword(key, entry, holes)?)));
                Some(Value::Object(pairs.collect()))
            }
            Data::Bool(allows) => Some(Value::Bool(*allows)),
            Data::Unknown(hole) => {
                holes.push(hole.clone());
                None
            }
            _ => None,
        }
    }
}

/// Returns what a keyword of a schema says; none when too little is known for it to hold.
fn keyword(key: &str, entry: &Datum, holes: &mut Vec<Hole>) -> Option<Value> {
    match (key, &entry.data) {
        (
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
            Data::Dict(entries, rest),
        ) => {
            holes.extend(rest.clone());
            let everything = || Value::Object(Map::new());
            let pairs =
                entries.iter().map(|(name, schema)| (name.clone(), schema.schema(holes).unwrap_or_else(everything)));
            Some(Value::Object(pairs.collect()))
        }
        ("items" | "additionalProperties" | "contains" | "propertyNames" | "additionalItems", Data::Dict(..)) => {
            entry.schema(holes)
        }
        ("anyOf" | "allOf" | "prefixItems", Data::List(items, None)) => {
            let everything = || Value::Object(Map::new());
            Some(Value::Array(items.iter().map(|item| item.schema(holes).unwrap_or_else(everything)).collect()))
        }
        ("required", Data::List(items, rest)) => {
            holes.extend(rest.clone());
            let known = items.iter().filter_map(|item| item.json().map_err(|hole| holes.push(hole.clone())).ok());
            Some(Value::Array(known.collect()))
        }
        _ => entry.json().map_err(|hole| holes.push(hole.clone())).ok(),
    }
}
