//! The JSON Schema of drafts.
//!
//! Providers that hold a model to a schema want every key to be required and no others to be allowed, so a model writes
//! null for what a case leaves out. Only what the tier uses is in the schema.

use karat_core::case::{CallSelector, Difficulty, NO_TOOL, ParamCheck, ToolsCalledMatch};
use serde_json::{Map, Value, json};

use crate::{Brief, Purpose, Slot};

use super::kind::Kind;

/// Providers limit the number of words in a schema.
const MAX_NAMES: usize = 200;

/// Where an empty list asserts nothing.
const NOTHING_IF_EMPTY: [&str; 5] =
    ["toolsNotCalled", "toolParams", "responseContains", "responseContainsAny", "responseNotContains"];

/// Returns the JSON Schema of an answer with these cases.
pub(super) fn answer_schema(brief: &Brief, slots: &[&Slot], kinds: &[Kind]) -> Value {
    let ids: Vec<&str> = slots.iter().map(|slot| slot.id.as_str()).collect();
    let difficulties: Vec<&str> = kinds.iter().filter_map(|kind| kind.difficulty()).map(Difficulty::name).collect();
    let mut case = vec![("id", json!({"type": "string", "enum": ids})), ("description", json!({"type": "string"}))];
    if !difficulties.is_empty() {
        let is_optional = kinds.contains(&Kind::Golden);
        case.push(("difficulty", words(&difficulties, is_optional)));
    }
    case.push(("input", object([("message", json!({"type": "string"}))])));
    case.push(("expect", expectation(slots, kinds)));
    let mut schema = object([("cases", json!({"type": "array", "items": object(case)}))]);
    let names = brief.registry.names();
    schema["$defs"] = json!({"tool": names_schema(&names, &[]), "toolOrNone": names_schema(&names, &[NO_TOOL])});
    schema
}

/// Returns the schema without the keys that only a model has to write: what a case does not need may be left out.
pub(super) fn relaxed(mut schema: Value) -> Value {
    const NEEDED: [&str; 7] = ["cases", "input", "expect", "message", "tool", "paramName", "assertion"];
    match &mut schema {
        Value::Object(members) => {
            if let Some(Value::Array(required)) = members.get_mut("required") {
                required.retain(|key| key.as_str().is_some_and(|key| NEEDED.contains(&key)));
            }
            members.values_mut().for_each(|member| *member = relaxed(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = relaxed(item.take())),
        _ => {}
    }
    schema
}

fn expectation(slots: &[&Slot], kinds: &[Kind]) -> Value {
    let has = |kind: Kind| kinds.contains(&kind);
    let asks_first = slots.iter().any(|slot| slot.purpose == Purpose::AsksFirst);
    let calls = has(Kind::Golden) || has(Kind::Straightforward);
    let tool = json!({"$ref": "#/$defs/tool"});
    let mut fields = Vec::new();
    if calls || has(Kind::Edge) {
        // Nothing is null that all cases need.
        let is_optional = asks_first || has(Kind::Ambiguous) || has(Kind::Edge);
        fields.push(("toolsCalled", list(&tool, is_optional)));
    }
    if has(Kind::Straightforward) {
        fields.push(("toolsCalledMatch", words(&[ToolsCalledMatch::NAMES[ToolsCalledMatch::AnyOrder as usize]], true)));
    }
    if has(Kind::Ambiguous) || has(Kind::Edge) {
        let set = list(&json!({"$ref": "#/$defs/toolOrNone"}), false);
        fields.push(("toolsAcceptable", list(&set, calls || has(Kind::Edge))));
    }
    if asks_first || has(Kind::Ambiguous) || has(Kind::Edge) {
        fields.push(("toolsNotCalled", list(&tool, true)));
    }
    let text = json!({"type": "string"});
    fields.extend([
        ("toolParams", list(&param_assertion(&tool), true)),
        ("noToolErrors", json!({"type": ["boolean", "null"]})),
        ("responseNonEmpty", json!({"type": ["boolean", "null"]})),
        ("responseContains", list(&text, true)),
        ("responseContainsAny", list(&list(&text, false), true)),
        ("responseNotContains", list(&text, true)),
        ("maxLatencyMs", json!({"type": ["number", "null"]})),
    ]);
    object(fields)
}

fn param_assertion(tool: &Value) -> Value {
    let scalars = [json!({"type": "string"}), json!({"type": "number"}), json!({"type": "boolean"})];
    let several = list(&json!({"anyOf": scalars}), false);
    let choices: Vec<Value> = scalars.into_iter().chain([several, json!({"type": "null"})]).collect();
    object([
        ("tool", tool.clone()),
        ("paramName", json!({"type": "string"})),
        ("assertion", words(&ParamCheck::NAMES, false)),
        ("value", json!({"anyOf": choices})),
        ("call", words(&CallSelector::NAMES, true)),
        ("optional", json!({"type": ["boolean", "null"]})),
    ])
}

fn object<'k>(properties: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
    let properties: Map<String, Value> = properties.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let keys: Vec<&String> = properties.keys().collect();
    json!({"type": "object", "required": keys, "properties": properties, "additionalProperties": false})
}

fn list(items: &Value, is_optional: bool) -> Value {
    let types = if is_optional { json!(["array", "null"]) } else { json!("array") };
    json!({"type": types, "items": items})
}

fn words(words: &[&str], is_optional: bool) -> Value {
    if !is_optional {
        return json!({"type": "string", "enum": words});
    }
    let all: Vec<Option<&str>> = words.iter().copied().map(Some).chain([None]).collect();
    json!({"type": ["string", "null"], "enum": all})
}

fn names_schema(names: &[&str], more: &[&str]) -> Value {
    if names.len() > MAX_NAMES {
        return json!({"type": "string"});
    }
    let all: Vec<&str> = names.iter().chain(more).copied().collect();
    words(&all, false)
}

/// Takes out of an answer what it only says because the schema asks for every key, and puts the known keys into the
/// schema's order. What the schema does not know stays, to be complained of.
pub(crate) fn tidy(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            let mut tidied = Map::new();
            for (key, schema) in properties {
                let Some(mut member) = members.shift_remove(key) else { continue };
                let is_left_out = member.is_null() && allows_null(schema)
                    || NOTHING_IF_EMPTY.contains(&key.as_str()) && member.as_array().is_some_and(Vec::is_empty);
                if !is_left_out {
                    tidy(&mut member, schema);
                    tidied.insert(key.clone(), member);
                }
            }
            tidied.append(members);
            *members = tidied;
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    tidy(item, schema);
                }
            }
        }
        _ => {}
    }
}

fn allows_null(schema: &Value) -> bool {
    let is_null = |value: &Value| value == "null";
    schema["type"].as_array().is_some_and(|types| types.iter().any(is_null))
        || schema["anyOf"].as_array().is_some_and(|choices| choices.iter().any(|choice| is_null(&choice["type"])))
}
