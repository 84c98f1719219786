//! The JSON Schema of drafts.
//!
//! Strict structured output needs every key to be required and no others to be allowed, so a model writes null for what
//! a case leaves out. The schema has only the keys that the kinds of cases use.

use karat_cases::{CallSelector, Difficulty, NO_TOOL, ParamCheck, ToolsCalledMatch};
use serde_json::{Map, Value, json};

use crate::{Brief, Purpose, Slot};

use super::kind::Kind;

/// Providers limit the number of enum values in a schema.
const MAX_ENUM_NAMES: usize = 200;

/// Keys whose empty list asserts nothing.
const OMITTED_IF_EMPTY: [&str; 5] =
    ["toolsNotCalled", "toolParams", "responseContains", "responseContainsAny", "responseNotContains"];

/// Returns the JSON Schema of an answer with these cases.
pub(super) fn answer_schema(brief: &Brief, slots: &[&Slot], kinds: &[Kind]) -> Value {
    let ids: Vec<&str> = slots.iter().map(|slot| slot.id.as_str()).collect();
    let difficulties: Vec<&str> = kinds.iter().filter_map(|kind| kind.difficulty()).map(Difficulty::name).collect();
    let mut case = vec![("id", json!({"type": "string", "enum": ids})), ("description", json!({"type": "string"}))];
    if !difficulties.is_empty() {
        let is_optional = kinds.contains(&Kind::Golden);
        case.push(("difficulty", enum_schema(&difficulties, is_optional)));
    }
    case.push(("input", object([("message", json!({"type": "string"}))])));
    case.push(("expect", expectation(slots, kinds)));
    let mut schema = object([("cases", json!({"type": "array", "items": object(case)}))]);
    let names = brief.registry.names();
    schema["$defs"] = json!({"tool": names_schema(&names, &[]), "toolOrNone": names_schema(&names, &[NO_TOOL])});
    schema
}

/// Makes the keys optional that a case does not need.
pub(super) fn with_optional_keys(mut schema: Value) -> Value {
    const REQUIRED: [&str; 7] = ["cases", "input", "expect", "message", "tool", "paramName", "assertion"];
    match &mut schema {
        Value::Object(members) => {
            if let Some(Value::Array(required)) = members.get_mut("required") {
                required.retain(|key| key.as_str().is_some_and(|key| REQUIRED.contains(&key)));
            }
            members.values_mut().for_each(|member| *member = with_optional_keys(member.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = with_optional_keys(item.take())),
        _ => {}
    }
    schema
}

fn expectation(slots: &[&Slot], kinds: &[Kind]) -> Value {
    let has = |kind: Kind| kinds.contains(&kind);
    let has_confirmation = slots.iter().any(|slot| slot.purpose == Purpose::Confirmation);
    let calls = has(Kind::Golden) || has(Kind::Straightforward);
    let tool = json!({"$ref": "#/$defs/tool"});
    let mut fields = Vec::new();
    if calls || has(Kind::Edge) {
        // Required if all cases need it.
        let is_optional = has_confirmation || has(Kind::Ambiguous) || has(Kind::Edge);
        fields.push(("toolsCalled", list(&tool, is_optional)));
    }
    if has(Kind::Straightforward) {
        fields.push((
            "toolsCalledMatch",
            enum_schema(&[ToolsCalledMatch::NAMES[ToolsCalledMatch::AnyOrder as usize]], true),
        ));
    }
    if has(Kind::Ambiguous) || has(Kind::Edge) {
        let set = list(&json!({"$ref": "#/$defs/toolOrNone"}), false);
        fields.push(("toolsAcceptable", list(&set, calls || has(Kind::Edge))));
    }
    if has_confirmation || has(Kind::Ambiguous) || has(Kind::Edge) {
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

/// The assertions on arguments that a model may draft.
const DRAFTED_CHECKS: [ParamCheck; 6] = [
    ParamCheck::Equals,
    ParamCheck::Contains,
    ParamCheck::OneOf,
    ParamCheck::Exists,
    ParamCheck::NotExists,
    ParamCheck::Matches,
];

fn param_assertion(tool: &Value) -> Value {
    let scalars = [json!({"type": "string"}), json!({"type": "number"}), json!({"type": "boolean"})];
    let several = list(&json!({"anyOf": scalars}), false);
    let choices: Vec<Value> = scalars.into_iter().chain([several, json!({"type": "null"})]).collect();
    object([
        ("tool", tool.clone()),
        ("paramName", json!({"type": "string"})),
        ("assertion", enum_schema(&DRAFTED_CHECKS.map(ParamCheck::name), false)),
        ("value", json!({"anyOf": choices})),
        ("call", enum_schema(&CallSelector::NAMES, true)),
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

fn enum_schema(values: &[&str], is_optional: bool) -> Value {
    if !is_optional {
        return json!({"type": "string", "enum": values});
    }
    let all: Vec<Option<&str>> = values.iter().copied().map(Some).chain([None]).collect();
    json!({"type": ["string", "null"], "enum": all})
}

fn names_schema(names: &[&str], more: &[&str]) -> Value {
    if names.len() > MAX_ENUM_NAMES {
        return json!({"type": "string"});
    }
    let all: Vec<&str> = names.iter().chain(more).copied().collect();
    enum_schema(&all, false)
}

/// Removes the nulls and empty lists that an answer has only because every key is required, and orders known keys as in
/// the schema. Unknown keys are kept, so that they are reported.
pub(crate) fn normalize_answer(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            let mut normalized = Map::new();
            for (key, schema) in properties {
                let Some(mut member) = members.shift_remove(key) else { continue };
                let is_left_out = member.is_null() && allows_null(schema)
                    || OMITTED_IF_EMPTY.contains(&key.as_str()) && member.as_array().is_some_and(Vec::is_empty);
                if !is_left_out {
                    normalize_answer(&mut member, schema);
                    normalized.insert(key.clone(), member);
                }
            }
            normalized.append(members);
            *members = normalized;
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    normalize_answer(item, schema);
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
