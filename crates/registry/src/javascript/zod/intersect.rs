//! Intersections of objects, which zod writes as the one object that they are together.

use serde_json::{Map, Value as Json, json};

/// Keywords of which it is clear how they meet.
const KEYWORDS: [&str; 4] = ["type", "properties", "required", "additionalProperties"];

/// Writes what must hold together.
pub(super) fn fold(members: Vec<Json>) -> Map<String, Json> {
    let union = members.iter().position(|member| union_keyword(member).is_some());
    let folded = match union {
        None => fold_objects(&members),
        Some(at) => distribute(&members, at),
    };
    folded.unwrap_or_else(|| {
        let mut json = Map::new();
        json.insert("allOf".to_owned(), Json::Array(members));
        json
    })
}

fn union_keyword(member: &Json) -> Option<&'static str> {
    ["oneOf", "anyOf"].into_iter().find(|keyword| member.get(keyword).is_some_and(Json::is_array))
}

/// Lets each branch of a union meet all others.
fn distribute(members: &[Json], at: usize) -> Option<Map<String, Json>> {
    let keyword = union_keyword(&members[at])?;
    let union = members[at].as_object().filter(|union| union.len() == 1)?;
    let rest = || members.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, member)| member.clone());
    let branch = |branch: &Json| {
        let all: Vec<Json> = rest().chain([branch.clone()]).collect();
        fold_objects(&all).map(Json::Object)
    };
    let branches: Option<Vec<Json>> = union.get(keyword)?.as_array()?.iter().map(branch).collect();
    let mut json = Map::new();
    json.insert(keyword.to_owned(), branches?.into());
    Some(json)
}

fn fold_objects(members: &[Json]) -> Option<Map<String, Json>> {
    let mut objects = Vec::with_capacity(members.len());
    for member in members {
        let object = member.as_object()?;
        let is_plain = object.get("type") == Some(&json!("object"));
        if !is_plain || !object.keys().all(|key| KEYWORDS.contains(&key.as_str())) {
            return None;
        }
        objects.push(object);
    }
    let mut properties = Map::new();
    let mut required: Vec<Json> = Vec::new();
    for object in &objects {
        let own = object.get("properties").and_then(Json::as_object);
        for key in own.into_iter().flat_map(Map::keys) {
            if properties.contains_key(key) {
                continue;
            }
            let mut parts: Vec<Json> = Vec::new();
            for other in &objects {
                let declared = other.get("properties").and_then(|properties| properties.get(key));
                if let Some(part) = declared.or_else(|| constraint(other))
                    && !parts.contains(part)
                {
                    parts.push(part.clone());
                }
            }
            let met = if parts.len() == 1 {
                parts.remove(0)
            } else {
                fold_objects(&parts).map_or_else(|| json!({"allOf": parts}), Json::Object)
            };
            properties.insert(key.clone(), met);
        }
        for key in object.get("required").and_then(Json::as_array).into_iter().flatten() {
            if !required.contains(key) {
                required.push(key.clone());
            }
        }
    }
    let mut json = Map::new();
    json.insert("type".to_owned(), "object".into());
    json.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        json.insert("required".to_owned(), required.into());
    }
    if objects.iter().all(|object| object.get("additionalProperties") == Some(&Json::Bool(false))) {
        json.insert("additionalProperties".to_owned(), false.into());
        return Some(json);
    }
    let mut constraints: Vec<Json> = Vec::new();
    for found in objects.iter().filter_map(|object| constraint(object)) {
        if !constraints.contains(found) {
            constraints.push(found.clone());
        }
    }
    match constraints.len() {
        0 => {}
        1 => {
            json.insert("additionalProperties".to_owned(), constraints.remove(0));
        }
        _ => {
            json.insert("additionalProperties".to_owned(), json!({"allOf": constraints}));
        }
    }
    Some(json)
}

/// Returns what an object demands of keys that it does not name.
fn constraint(object: &Map<String, Json>) -> Option<&Json> {
    object.get("additionalProperties").filter(|rest| rest.as_object().is_some_and(|rest| !rest.is_empty()))
}
