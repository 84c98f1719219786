//! JSON Schema constraints that the types do not express, so that editors reject what the parser rejects.

use schemars::{Schema, json_schema};
use serde_json::{Value, json};

use super::{NO_TOOL, ParamCheck, Tier};

const POINTER_PATTERN: &str = "^(/|$)";

/// Returns the schema of a named tier or null.
pub(super) fn named_tier(_: &mut schemars::SchemaGenerator) -> Schema {
    let mut names: Vec<Value> = Tier::NAMED.map(Tier::name).map(Value::from).to_vec();
    names.push(Value::Null);
    json_schema!({ "enum": names })
}

pub(super) fn envelope(schema: &mut Schema) {
    if let Some(link) = schema.pointer_mut("/properties/$schema") {
        disallow_null(link);
    }
}

pub(super) fn approval(schema: &mut Schema) {
    disallow_nulls(schema);
}

pub(super) fn injection(schema: &mut Schema) {
    extend(schema, "/properties/tool", tool_name());
    extend(schema, "/properties/into", json!({ "pattern": POINTER_PATTERN }));
}

pub(super) fn simulated_user(schema: &mut Schema) {
    disallow_nulls(schema);
}

pub(super) fn turn(schema: &mut Schema) {
    disallow_nulls(schema);
    let has_state = json!({ "anyOf": [{ "required": ["state"] }, { "required": ["stateUnchanged"] }] });
    extend(schema, "/properties/expect", json!({ "not": has_state }));
}

/// A case needs `expect`, or a turn with it.
pub(super) fn eval_case(schema: &mut Schema) {
    case(schema);
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|key| key != "expect");
    }
    let expecting_turn =
        json!({ "required": ["turns"], "properties": { "turns": { "contains": { "required": ["expect"] } } } });
    extend(schema, "", json!({ "anyOf": [{ "required": ["expect"] }, expecting_turn] }));
    extend(schema, "", json!({ "dependentRequired": { "onTurnFailure": ["turns"] } }));
    let one = ["input", "turns", "user"].map(|key| json!({ "required": [key] }));
    extend(schema, "", json!({ "oneOf": one }));
}

pub(super) fn rubric_case(schema: &mut Schema) {
    case(schema);
}

fn case(schema: &mut Schema) {
    disallow_nulls(schema);
    extend(schema, "", json!({ "oneOf": [{ "required": ["input"] }, { "required": ["turns"] }] }));
    let table = json!({
        "description": "A table: the case runs once per row, and `{{row:key}}` stands for a value of the row. The id \
            becomes `ID#NAME`, with the row's `name` or its number from 1.",
        "anyOf": [
            {
                "type": "array",
                "minItems": 1,
                "items": { "type": "object", "properties": { "name": { "type": ["string", "number", "null"] } } },
            },
            {
                "type": "object",
                "properties": {
                    "file": {
                        "description": "A .csv or .jsonl file, relative to this file.",
                        "type": "string",
                        "pattern": r".\.([cC][sS][vV]|[jJ][sS][oO][nN][lL])$",
                    },
                },
                "required": ["file"],
                "additionalProperties": false,
            },
        ],
    });
    extend(schema, "/properties", json!({ "each": table }));
}

pub(super) fn expectation(schema: &mut Schema) {
    disallow_nulls(schema);
    for list in ["/properties/toolsCalled/items", "/properties/toolsNotCalled/items"] {
        extend(schema, list, json!({ "minLength": 1, "not": { "const": NO_TOOL } }));
    }
    let alone = json!({ "if": { "contains": { "const": NO_TOOL } }, "then": { "maxItems": 1 } });
    extend(schema, "/properties/toolsAcceptable/items", alone);
    extend(schema, "/properties/toolsAcceptable/items/items", json!({ "minLength": 1 }));
    extend(schema, "/properties/toolOrder/items", json!({ "not": { "contains": { "enum": ["", NO_TOOL] } } }));
    extend(schema, "", json!({ "dependentRequired": { "toolsCalledMatch": ["toolsCalled"] } }));
    let has_json = json!({ "anyOf": [{ "required": ["responseJson"] }, { "required": ["responseJsonSchema"] }] });
    extend(schema, "", json!({ "if": { "required": ["responseJsonFrom"] }, "then": has_json }));
    allow_row_tokens(schema);
}

/// Allows a `{{row:…}}` token in place of any value.
fn allow_row_tokens(schema: &mut Schema) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (_, property) in properties.into_iter().flatten() {
        let Some(members) = property.as_object_mut() else { continue };
        let description = members.shift_remove("description");
        let typed = Value::Object(std::mem::take(members));
        members.extend(description.map(|text| ("description".to_owned(), text)));
        let token = json!({ "type": "string", "pattern": r"^\{\{row:[^}]+\}\}$" });
        members.insert("anyOf".to_owned(), json!([typed, token]));
    }
}

pub(super) fn param_assertion(schema: &mut Schema) {
    extend(schema, "/properties/tool", tool_name());
    predicate(schema);
}

pub(super) fn calls(schema: &mut Schema) {
    disallow_nulls(schema);
    let some_call = json!({ "anyOf": [
        { "required": ["list"] }, { "required": ["anyOf"] }, { "required": ["forbidden"] },
    ] });
    extend(schema, "", some_call);
    extend(schema, "", json!({ "not": { "required": ["list", "anyOf"] } }));
    let open_match = json!({ "properties": { "match": { "enum": ["inOrder", "includes"] } }, "required": ["match"] });
    let filled = json!({ "minItems": 1 });
    let rules = [
        json!({ "if": open_match, "then": { "properties": { "list": filled, "anyOf": { "items": filled } } } }),
        json!({ "if": { "required": ["match"] }, "then": { "anyOf": [{ "required": ["list"] }, { "required": ["anyOf"] }] } }),
    ];
    extend(schema, "", json!({ "allOf": rules }));
}

pub(super) fn expected_call(schema: &mut Schema) {
    disallow_nulls(schema);
    extend(schema, "/properties/tool", tool_name());
    extend(schema, "/properties/ignore/items", json!({ "pattern": POINTER_PATTERN }));
}

pub(super) fn state_predicate(schema: &mut Schema) {
    extend(schema, "/properties/source", json!({ "minLength": 1 }));
    predicate(schema);
}

pub(super) fn unchanged_state(schema: &mut Schema) {
    extend(schema, "/properties/source", json!({ "minLength": 1 }));
    extend(schema, "/properties/except/items", json!({ "pattern": POINTER_PATTERN }));
}

fn tool_name() -> Value {
    json!({ "minLength": 1, "not": { "const": NO_TOOL } })
}

/// Constrains the members that all conditions on values have.
pub(super) fn predicate(schema: &mut Schema) {
    let valued: Vec<&str> = ParamCheck::NAMES
        .into_iter()
        .filter(|name| ParamCheck::from_name(name).is_some_and(ParamCheck::needs_value))
        .collect();
    let when =
        |assertion: Value, then: Value| json!({ "if": { "properties": { "assertion": assertion } }, "then": then });
    let token = json!({ "type": "string", "pattern": r"^\{\{(seed|snapshot|row):[^}]+\}\}$" });
    let list = json!({ "anyOf": [{ "type": "array", "minItems": 1 }, token] });
    let number = json!({ "anyOf": [{ "type": "number" }, token] });
    let count = json!({ "anyOf": [{ "type": "integer", "minimum": 0 }, token] });
    let numeric: Vec<&str> = ParamCheck::NAMES
        .into_iter()
        .filter(|name| ParamCheck::from_name(name).is_some_and(ParamCheck::is_numeric))
        .collect();
    extend(schema, "/properties/path", json!({ "pattern": POINTER_PATTERN }));
    if let Some(tolerance) = schema.pointer_mut("/properties/tolerance") {
        disallow_null(tolerance);
    }
    extend(schema, "/properties/tolerance", json!({ "minimum": 0 }));
    let rules = [
        when(json!({ "enum": valued }), json!({ "required": ["value"] })),
        when(json!({ "const": "oneOf" }), json!({ "properties": { "value": list } })),
        when(json!({ "const": "matches" }), json!({ "properties": { "value": { "type": "string" } } })),
        when(json!({ "enum": numeric }), json!({ "properties": { "value": number } })),
        when(json!({ "const": "hasLength" }), json!({ "properties": { "value": count } })),
        json!({
            "if": { "properties": { "assertion": { "const": "closeTo" } } },
            "then": { "required": ["tolerance"] },
            "else": { "properties": { "tolerance": false } },
        }),
    ];
    extend(schema, "", json!({ "allOf": rules }));
}

/// Disallows null for optional members, which may be absent instead.
fn disallow_nulls(schema: &mut Schema) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flatten().for_each(|(_, property)| disallow_null(property));
}

fn disallow_null(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            property.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = property.get_mut("anyOf") {
        choices.retain(|choice| *choice != json!({ "type": "null" }));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            property.remove("anyOf");
            property.extend(only);
        }
    }
}

fn extend(schema: &mut Schema, pointer: &str, members: Value) {
    let target = match pointer {
        "" => schema.as_object_mut(),
        _ => schema.pointer_mut(pointer).and_then(Value::as_object_mut),
    };
    if let (Some(target), Value::Object(members)) = (target, members) {
        target.extend(members);
    }
}
