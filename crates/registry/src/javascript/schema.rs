//! The schema of a tool's arguments: written as JSON Schema, or with zod.

use serde_json::{Map, Number, Value as Json};

use super::evaluate::why_not;
use super::size::is_too_large;
use super::value::{Located, Object, Unknown, Value};
use super::zod::{self, Rest};

/// Returns a tool's schema as JSON; what is unknown of it allows everything, and is listed.
pub(super) fn whole_schema(located: &Located, unknown: &mut Vec<Unknown>) -> Option<Json> {
    if is_too_large(located) {
        unknown.push(Unknown { place: located.place, why: "the schema is too large".into(), primitive: false });
        return Some(Json::Object(Map::new()));
    }
    schema(located, unknown)
}

fn schema(located: &Located, unknown: &mut Vec<Unknown>) -> Option<Json> {
    match &located.value {
        Value::Undefined | Value::Null => None,
        Value::Bool(value) => Some((*value).into()),
        Value::Zod(zod) => Some(zod::render(zod, unknown).into()),
        Value::Object(object) if is_shape(object) => {
            Some(zod::render(&zod::of_shape(object, Rest::Strip), unknown).into())
        }
        Value::Object(object) => Some(schema_object(object, false, unknown).into()),
        _ => {
            unknown.push(why_not(located, "it is no schema that karat can read"));
            Some(Json::Object(Map::new()))
        }
    }
}

/// Tells whether an object holds fields of zod and no JSON Schema.
fn is_shape(object: &Object) -> bool {
    object.entries().iter().any(|(_, field)| matches!(field.value, Value::Zod(_)))
}

/// Keywords whose value maps names to schemas.
const MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Keywords whose value is a schema.
const SCHEMAS: [&str; 10] = [
    "items",
    "additionalProperties",
    "additionalItems",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "propertyNames",
    "if",
    "then",
    "else",
];

/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];

/// Writes an object of JSON Schema, or a map from names to schemas.
fn schema_object(object: &Object, is_map: bool, unknown: &mut Vec<Unknown>) -> Map<String, Json> {
    unknown.extend(object.open.clone());
    let mut json = Map::new();
    for (key, value) in object.entries() {
        let is_schema = is_map || SCHEMAS.contains(&key);
        let written = match &value.value {
            _ if is_schema => schema(value, unknown),
            Value::Object(inner) if MAPS.contains(&key) => Some(schema_object(inner, true, unknown).into()),
            Value::Array(items) if LISTS.contains(&key) => {
                unknown.extend(items.open.clone());
                Some(items.items.iter().filter_map(|item| schema(item, unknown)).collect::<Vec<_>>().into())
            }
            _ => plain_json(value).unwrap_or_else(|why| {
                // Without the keyword everything is allowed that it would forbid.
                unknown.push(why);
                None
            }),
        };
        if let Some(written) = written {
            json.insert(key.to_owned(), written);
        }
    }
    json
}

/// Returns a value as `JSON.stringify` writes it; none for what it leaves out.
pub(super) fn whole_json(located: &Located) -> Result<Option<Json>, Unknown> {
    if is_too_large(located) {
        return Err(Unknown { place: located.place, why: "it is too large".into(), primitive: false });
    }
    plain_json(located)
}

fn plain_json(located: &Located) -> Result<Option<Json>, Unknown> {
    let known = match &located.value {
        Value::Undefined | Value::Function(..) | Value::Class => return Ok(None),
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => json_number(*number),
        Value::Text(text) => match text.to_text() {
            Some(text) => text.into(),
            None => return Err(why_not(located, "it holds half of a character")),
        },
        Value::Array(array) => {
            if let Some(unknown) = &array.open {
                return Err(unknown.clone());
            }
            let items: Result<Vec<Json>, Unknown> =
                array.items.iter().map(|item| Ok(plain_json(item)?.unwrap_or(Json::Null))).collect();
            items?.into()
        }
        Value::Object(object) => {
            if let Some(unknown) = &object.open {
                return Err(unknown.clone());
            }
            let mut json = Map::new();
            for (key, value) in object.entries() {
                if let Some(value) = plain_json(value)? {
                    json.insert(key.to_owned(), value);
                }
            }
            json.into()
        }
        // An object that says itself how it becomes JSON, or that has nothing to say.
        _ => return Err(why_not(located, "it is nothing that karat can write as JSON")),
    };
    Ok(Some(known))
}

/// Returns a number as JSON: whole ones without a fraction, and null for what JSON has no number for.
pub(super) fn json_number(number: f64) -> Json {
    if number.fract() == 0.0 && number.abs() <= zod::SAFE {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and fits")]
        return Json::from(number as i64);
    }
    Number::from_f64(number).map_or(Json::Null, Json::Number)
}
