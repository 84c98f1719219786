//! A type as the JSON Schema of what goes in, as zod 4 writes it with `z.toJSONSchema(type, {io: 'input'})`.

use serde_json::{Map, Value as Json, json};

use super::intersect::fold;
use super::{Kind, NumberChecks, Range, Rest, TextChecks, Wrapper, Zod};
use crate::javascript::schema::json_number;
use crate::javascript::value::Unknown;

/// Writes a type; what is unknown of it allows everything, and is listed.
pub(in crate::javascript) fn render(zod: &Zod, unknown: &mut Vec<Unknown>) -> Map<String, Json> {
    unknown.extend(zod.unknown.iter().cloned());
    let mut json = Map::new();
    let mut own = Map::new();
    match &zod.kind {
        Kind::Text(checks) => own = text(checks),
        Kind::Number(checks) => own = number(checks),
        Kind::Plain(map) => own.clone_from(map),
        Kind::Enum(values) => own = listed(values, "enum"),
        Kind::Literal(values) => own = literal(values),
        Kind::Array { element, size } => {
            own.insert("type".to_owned(), "array".into());
            own.insert("items".to_owned(), render(element, unknown).into());
            sizes(&mut own, *size, "minItems", "maxItems");
        }
        Kind::Object { shape, rest } => {
            let properties: Map<String, Json> =
                shape.iter().map(|(key, field)| (key.clone(), render(field, unknown).into())).collect();
            let required: Vec<Json> =
                shape.iter().filter(|(_, field)| field.is_required()).map(|(key, _)| key.as_str().into()).collect();
            own.insert("type".to_owned(), "object".into());
            own.insert("properties".to_owned(), properties.into());
            if !required.is_empty() {
                own.insert("required".to_owned(), required.into());
            }
            match rest {
                Rest::Strip => None,
                Rest::Strict => own.insert("additionalProperties".to_owned(), false.into()),
                Rest::Any(rest) => own.insert("additionalProperties".to_owned(), render(rest, unknown).into()),
            };
        }
        Kind::Tuple { items, rest, size } => {
            let least = items.iter().rposition(|item| item.is_required()).map_or(0, |last| last + 1);
            let prefix: Vec<Json> = items.iter().map(|item| render(item, unknown).into()).collect();
            own.insert("type".to_owned(), "array".into());
            own.insert("prefixItems".to_owned(), prefix.into());
            own.insert("items".to_owned(), rest.as_ref().map_or(false.into(), |rest| render(rest, unknown).into()));
            if least > 0 {
                own.insert("minItems".to_owned(), least.into());
            }
            if rest.is_none() {
                own.insert("maxItems".to_owned(), items.len().into());
            }
            sizes(&mut own, *size, "minItems", "maxItems");
        }
        Kind::Record { key, value, partial } => {
            own.insert("type".to_owned(), "object".into());
            own.insert("propertyNames".to_owned(), render(key, unknown).into());
            own.insert("additionalProperties".to_owned(), render(value, unknown).into());
            if let Kind::Enum(values) | Kind::Literal(values) = &key.kind
                && !partial
                && value.is_required()
                && !values.is_empty()
            {
                own.insert("required".to_owned(), values.clone().into());
            }
        }
        Kind::Union { options, exclusive } => {
            let options: Vec<Json> = options.iter().map(|option| render(option, unknown).into()).collect();
            own.insert(if *exclusive { "oneOf" } else { "anyOf" }.to_owned(), options.into());
        }
        Kind::Intersection(left, right) => {
            let members = [left, right].into_iter().flat_map(|member| flat(render(member, unknown))).collect();
            own = fold(members);
        }
        Kind::Wrapped { inner, wrapper } => {
            let inner = render(inner, unknown);
            match wrapper {
                Wrapper::Nullable => {
                    own.insert("anyOf".to_owned(), json!([inner, {"type": "null"}]));
                }
                Wrapper::Default(value) | Wrapper::Catch(value) => {
                    own.insert("default".to_owned(), value.clone());
                    json = inner;
                }
                Wrapper::Readonly => {
                    own.insert("readOnly".to_owned(), true.into());
                    json = inner;
                }
                _ => json = inner,
            }
        }
        Kind::Unknown(why) => unknown.push(why.clone()),
    }
    own.extend(zod.meta.clone());
    if zod.transforms {
        // They speak of what comes out.
        own.shift_remove("default");
        own.shift_remove("examples");
    }
    if let Kind::Wrapped { wrapper: Wrapper::Prefault(value), .. } = &zod.kind {
        own.entry("default").or_insert_with(|| value.clone());
    }
    json.extend(own);
    compact(&mut json);
    json
}

/// Returns the members of an intersection that says nothing else.
fn flat(json: Map<String, Json>) -> Vec<Json> {
    match json.get("allOf") {
        Some(Json::Array(members)) if json.len() == 1 => members.clone(),
        _ => vec![Json::Object(json)],
    }
}

fn text(checks: &TextChecks) -> Map<String, Json> {
    let mut json = Map::new();
    json.insert("type".to_owned(), "string".into());
    sizes(&mut json, checks.size, "minLength", "maxLength");
    let format = match checks.format.as_deref() {
        Some("guid") => Some("uuid"),
        Some("url") => Some("uri"),
        Some("datetime") => Some("date-time"),
        Some("regex" | "time") | None => None,
        Some(other) => Some(other),
    };
    if let Some(format) = format.filter(|_| !checks.lax) {
        json.insert("format".to_owned(), format.into());
    }
    if let Some(encoding) = &checks.encoding {
        json.insert("contentEncoding".to_owned(), encoding.as_str().into());
    }
    match checks.patterns.as_slice() {
        [] => {}
        [only] => {
            json.insert("pattern".to_owned(), only.as_str().into());
        }
        several => {
            let all: Vec<Json> = several.iter().map(|pattern| json!({"pattern": pattern})).collect();
            json.insert("allOf".to_owned(), all.into());
        }
    }
    json
}

fn number(checks: &NumberChecks) -> Map<String, Json> {
    let mut json = Map::new();
    json.insert("type".to_owned(), if checks.is_int { "integer" } else { "number" }.into());
    let (inclusive, exclusive) = (checks.inclusive, checks.exclusive);
    // Of two bounds the narrower one is said.
    match (exclusive.least, inclusive.least) {
        (Some(bound), other) if other.is_none_or(|other| bound >= other) => {
            json.insert("exclusiveMinimum".to_owned(), json_number(bound));
        }
        (_, Some(bound)) => {
            json.insert("minimum".to_owned(), json_number(bound));
        }
        _ => {}
    }
    match (exclusive.most, inclusive.most) {
        (Some(bound), other) if other.is_none_or(|other| bound <= other) => {
            json.insert("exclusiveMaximum".to_owned(), json_number(bound));
        }
        (_, Some(bound)) => {
            json.insert("maximum".to_owned(), json_number(bound));
        }
        _ => {}
    }
    if let Some((first, more)) = checks.divisors.split_first() {
        json.insert("multipleOf".to_owned(), json_number(*first));
        if !more.is_empty() {
            let all: Vec<Json> = more.iter().map(|divisor| json!({"multipleOf": json_number(*divisor)})).collect();
            json.insert("allOf".to_owned(), all.into());
        }
    }
    json
}

fn sizes(json: &mut Map<String, Json>, size: Range, least: &str, most: &str) {
    if let Some(number) = size.least {
        json.insert(least.to_owned(), json_number(number));
    }
    if let Some(number) = size.most {
        json.insert(most.to_owned(), json_number(number));
    }
}

fn literal(values: &[Json]) -> Map<String, Json> {
    match values {
        [only] => {
            let mut json = Map::new();
            json.insert("type".to_owned(), kind_of(only).into());
            json.insert("const".to_owned(), only.clone());
            json
        }
        several => listed(several, "enum"),
    }
}

/// Writes a choice of values, with their type if they are all of one.
fn listed(values: &[Json], keyword: &str) -> Map<String, Json> {
    let mut json = Map::new();
    let Some(first) = values.first() else {
        json.insert("not".to_owned(), json!({}));
        return json;
    };
    if values.iter().all(|value| kind_of(value) == kind_of(first)) {
        json.insert("type".to_owned(), kind_of(first).into());
    }
    json.insert(keyword.to_owned(), values.to_vec().into());
    json
}

fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) | Json::Object(_) => "object",
    }
}

/// Writes a choice between bare types as one list of types.
fn compact(json: &mut Map<String, Json>) {
    if json.contains_key("type") {
        return;
    }
    let Some(Json::Array(options)) = json.get("anyOf") else { return };
    let mut types: Vec<Json> = Vec::new();
    for option in options {
        let Some(kind) = option.as_object().filter(|option| option.len() == 1).and_then(|option| option.get("type"))
        else {
            return;
        };
        let kinds = match kind {
            Json::Array(kinds) => kinds.clone(),
            kind => vec![kind.clone()],
        };
        for kind in kinds {
            if !types.contains(&kind) {
                types.push(kind);
            }
        }
    }
    if types.is_empty() {
        return;
    }
    json.shift_remove("anyOf");
    let kind = if types.len() == 1 { types.remove(0) } else { Json::Array(types) };
    json.insert("type".to_owned(), kind);
}
