//! Translates a question's accepted answers into an eval case and a tool registry.
//!
//! BFCL's rules for Python, and the equivalent assertions:
//!
//! | BFCL | here |
//! |---|---|
//! | as many calls as accepted answers, each of which matches a different answer, in any order | `calls` with `match: "anyOrder"` |
//! | required parameters are present, none is unknown, all have the right type (integers are also floats) | `toolArgsValid` over a registry with the question's schemas |
//! | a number, boolean or list of numbers is an accepted one | `where` with `oneOf` |
//! | a string is an accepted one, ignoring case and <code> ,./-_*^</code>, with `'` equal to `"` | `where` with `matches` and an equivalent pattern |
//! | the same for strings in a list, and for the members of an object in any order | `matches` over the argument's JSON |
//! | `""` among the accepted values: the parameter may be omitted | `optional: true` |
//! | only `""` is accepted, for a parameter that is not a string | `notExists` |
//!
//! Only one thing is lost: a whole number written as `5.0` passes where an integer is expected, since JSON and JSON
//! Schema do not distinguish these.

use karat_cases::registry::{Registry, Tool};
use karat_json::pointer_key;
use karat_json::text::text_form;
use serde_json::{Map, Value, json};

/// The accepted values of each parameter of one call.
type Answer = Map<String, Value>;

/// Returns an eval file with one case that expects what the question accepts.
pub(super) fn eval_file(question: &Value) -> Value {
    let entry = |accepted: &Value| {
        let (tool, answer) = only_member(accepted);
        let schema = &question["tools"][tool];
        let params = object(&schema["params"]).keys();
        let conditions: Vec<Value> = params.map(|name| Param { name, schema, answer }.condition()).collect();
        json!({"tool": tool, "where": conditions})
    };
    let list: Vec<Value> = list(&question["accepted"]).iter().map(entry).collect();
    eval_file_of(&question["id"], &json!({"calls": {"match": "anyOrder", "list": list}, "toolArgsValid": true}))
}

/// Returns an eval file with one case that expects exactly these calls, in any order.
pub(super) fn eval_file_of_calls(id: &Value, calls: &Value) -> Value {
    let entry = |call: &Value| {
        let (tool, params) = only_member(call);
        json!({"tool": tool, "params": params})
    };
    let list: Vec<Value> = list(calls).iter().map(entry).collect();
    eval_file_of(id, &json!({"calls": {"match": "anyOrder", "list": list}}))
}

fn eval_file_of(id: &Value, expect: &Value) -> Value {
    json!([{"id": id, "input": {"message": id}, "expect": expect}])
}

/// Returns the tools of the accepted answers.
pub(super) fn registry(question: &Value) -> Registry {
    let tool = |(name, schema): (&String, &Value)| {
        let params = object(&schema["params"]).iter();
        let properties: Map<String, Value> =
            params.map(|(param, types)| (param.clone(), json_schema(question, name, param, types))).collect();
        let input_schema = json!({
            "type": "object",
            "properties": properties,
            "required": schema["required"],
            "additionalProperties": false,
        });
        Tool { name: name.clone(), input_schema: Some(input_schema).into(), ..Tool::default() }
    };
    Registry::from_tools(object(&question["tools"]).iter().map(tool))
}

/// Returns the JSON Schema of a parameter, or an empty one if an accepted value has another type.
fn json_schema(question: &Value, tool: &str, param: &str, types: &Value) -> Value {
    let mut schema = json!({"type": type_in_schema(types)});
    if let Some(items) = types.get("items") {
        schema["items"] = json!({"type": type_in_schema(items)});
    }
    let answers = list(&question["accepted"]).iter().map(only_member).filter(|(name, _)| *name == tool);
    let mut accepted = answers.filter_map(|(_, answer)| answer.get(param)).flat_map(list);
    let is_other = |value: &Value| schema["type"] != type_of(value) && !(schema["type"] == "number" && value.is_i64());
    if accepted.any(|value| value != "" && is_other(value)) { json!({}) } else { schema }
}

fn type_in_schema(types: &Value) -> &str {
    match types["type"].as_str().expect("type name") {
        "dict" => "object",
        "float" => "number",
        same => same,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A parameter of an accepted answer.
struct Param<'q> {
    name: &'q str,
    schema: &'q Value,
    answer: &'q Answer,
}

impl Param<'_> {
    fn accepted(&self) -> impl Iterator<Item = &Value> {
        self.answer.get(self.name).into_iter().flat_map(list)
    }

    /// Whether the answer allows the parameter to be omitted, and the schema does not require it.
    fn is_optional(&self) -> bool {
        let required = list(&self.schema["required"]).iter().any(|name| name == self.name);
        !required && self.accepted().any(|value| value == "")
    }

    fn condition(&self) -> Value {
        let is_text = self.schema["params"][self.name]["type"] == "string";
        let accepted: Vec<&Value> = self.accepted().filter(|value| is_text || *value != "").collect();
        let mut condition = json!({"path": format!("/{}", pointer_key(self.name))});
        if accepted.is_empty() {
            condition["assertion"] = json!("notExists");
            return condition;
        }
        if accepted.iter().any(|value| contains_text(value)) {
            let patterns: Vec<String> = accepted.iter().map(|value| pattern(value)).collect();
            condition["assertion"] = json!("matches");
            condition["value"] = json!(format!("^(?:{})$", patterns.join("|")));
        } else {
            condition["assertion"] = json!("oneOf");
            condition["value"] = json!(accepted);
        }
        if self.is_optional() {
            condition["optional"] = json!(true);
        }
        condition
    }
}

/// Whether a value contains a string, which is compared loosely.
fn contains_text(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Object(_) => true,
        Value::Array(items) => items.iter().any(contains_text),
        _ => false,
    }
}

/// Characters that BFCL ignores in strings.
const IGNORED: &str = "[ ,./\\-_*^]*";

/// Returns a pattern for an argument's text form: a string itself, anything else as JSON.
fn pattern(value: &Value) -> String {
    match value {
        Value::String(text) => text_pattern(text, r#"['"]"#),
        other => json_pattern(other),
    }
}

fn json_pattern(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", text_pattern(text, r#"(?:'|\\")"#)),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json_pattern).collect();
            format!(r"\[{}\]", items.join(","))
        }
        Value::Object(members) => object_pattern(members),
        scalar => escape(&text_form(scalar)),
    }
}

/// Returns a pattern for an object with accepted members in any order, including all required ones.
fn object_pattern(members: &Map<String, Value>) -> String {
    let required = members.iter().filter(|(_, values)| !list(values).iter().any(|value| value == ""));
    let present: Vec<String> = required.map(|(key, _)| format!(r"(?=\{{[^{{}}]*{}:)", key_pattern(key))).collect();
    let member = |(key, values): (&String, &Value)| {
        let values: Vec<String> = list(values).iter().map(json_pattern).collect();
        format!("{}:(?:{})", key_pattern(key), values.join("|"))
    };
    let members = members.iter().map(member).collect::<Vec<_>>().join("|");
    format!(r"{}\{{(?:{members})(?:,(?:{members}))*\}}", present.concat())
}

fn key_pattern(key: &str) -> String {
    format!("\"{}\"", escape(key))
}

/// Returns a pattern for a string that ignores case and the characters that BFCL ignores.
fn text_pattern(text: &str, quote: &str) -> String {
    let letters = text.chars().filter(|letter| !" ,./-_*^".contains(*letter)).map(|letter| match letter {
        '\'' | '"' => quote.to_owned(),
        letter if letter.is_alphabetic() => format!("[{}{}]", letter.to_lowercase(), letter.to_uppercase()),
        other => escape(&other.to_string()),
    });
    std::iter::once(String::new()).chain(letters).map(|letter| letter + IGNORED).collect()
}

fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if r"\^$.*+?()[]{}|/".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("object")
}

/// Returns the name and the arguments of a call, which is an object with one member.
pub(super) fn only_member(call: &Value) -> (&str, &Map<String, Value>) {
    let (name, arguments) = object(call).iter().next().expect("call name");
    (name, object(arguments))
}
