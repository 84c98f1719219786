//! Turns a question's accepted answers into an eval case and the agent's tool registry.
//!
//! BFCL's rules for Python, and how each is said in assertions that a person could have written:
//!
//! | BFCL | here |
//! |---|---|
//! | as many calls as accepted answers, of the right functions, parallel ones in any order | `toolsCalled` with `toolsCalledMatch: "anyOrder"` |
//! | required parameters are there, no unknown ones, each of its type (a whole number is a float, too) | `toolArgsValid` over a registry with the question's schemas |
//! | a number, truth value or list of numbers is one of those accepted | `oneOf` |
//! | a text is one of those accepted, without regard to case and to <code> ,./-_*^</code>, with `'` as `"` | `matches` with a pattern that allows this |
//! | the same for texts in a list, and for the members of an object in any order | `matches` over the argument's JSON |
//! | `""` among the accepted values: the parameter may be left out | `optional: true` |
//! | nothing but `""` is accepted of what is no text | `notExists` |
//! | each parallel call fits an accepted answer of its own | for each parameter: in `all` calls one of the values that any answer accepts, and for each answer `any` call with a value that it accepts |
//!
//! Only the last row loses something: assertions are about one parameter, so values that are all right but swapped
//! between two parallel calls would pass. So would a whole number written as `5.0` where an integer is due, since JSON
//! and JSON Schema do not tell these apart.

use karat_core::registry::{Registry, Tool};
use karat_json::text::text_form;
use serde_json::{Map, Value, json};

/// The accepted values of each parameter of one call.
type Answer = Map<String, Value>;

/// Returns an eval file with one case that expects what the question accepts.
pub(super) fn eval_file(question: &Value) -> Value {
    let answers: Vec<(&str, &Answer)> = list(&question["accepted"]).iter().map(only_member).collect();
    let names: Vec<&str> = answers.iter().map(|(name, _)| *name).collect();
    let params: Vec<Value> = object(&question["tools"])
        .iter()
        .flat_map(|(tool, schema)| {
            let own: Vec<&Answer> =
                answers.iter().filter(|(name, _)| name == tool).map(|(_, answer)| *answer).collect();
            object(&schema["params"])
                .keys()
                .flat_map(|name| Param { tool, name, schema, answers: &own }.assertions())
                .collect::<Vec<_>>()
        })
        .collect();
    let expect = json!({
        "toolsCalled": names,
        "toolsCalledMatch": "anyOrder",
        "toolParams": params,
        "toolArgsValid": true,
    });
    json!([{"id": question["id"], "input": {"message": question["id"]}, "expect": expect}])
}

/// Returns the tools that the accepted answers name, as the agent would offer them.
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
    Registry::of(object(&question["tools"]).iter().map(tool))
}

/// Returns a parameter's type as JSON Schema says it; any type where an accepted value is of another one.
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
    match types["type"].as_str().expect("the fixture names a type") {
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

/// A parameter of a tool with all answers that call the tool.
struct Param<'q> {
    tool: &'q str,
    name: &'q str,
    schema: &'q Value,
    answers: &'q [&'q Answer],
}

impl Param<'_> {
    fn assertions(&self) -> Vec<Value> {
        let all = self.answers.iter().flat_map(|answer| self.accepted(answer)).collect();
        let may_be_absent = self.answers.iter().any(|answer| self.is_optional(answer));
        if self.answers.len() == 1 {
            return vec![self.assertion(all, may_be_absent, "first")];
        }
        let mut assertions = vec![self.assertion(all, may_be_absent, "all")];
        for answer in self.answers.iter().filter(|answer| !self.is_optional(answer)) {
            let one = self.assertion(self.accepted(answer).collect(), false, "any");
            if !assertions.contains(&one) {
                assertions.push(one);
            }
        }
        assertions
    }

    fn accepted<'a>(&self, answer: &'a Answer) -> impl Iterator<Item = &'a Value> {
        answer.get(self.name).into_iter().flat_map(list)
    }

    /// Tells whether an answer may leave the parameter out: the schema must not ask for it either.
    fn is_optional(&self, answer: &Answer) -> bool {
        let required = list(&self.schema["required"]).iter().any(|name| name == self.name);
        !required && self.accepted(answer).any(|value| value == "")
    }

    fn assertion(&self, accepted: Vec<&Value>, optional: bool, call: &str) -> Value {
        let is_text = self.schema["params"][self.name]["type"] == "string";
        let accepted: Vec<&Value> = accepted.into_iter().filter(|value| is_text || *value != "").collect();
        let mut assertion = json!({"tool": self.tool, "paramName": self.name, "call": call});
        if accepted.is_empty() {
            assertion["assertion"] = json!("notExists");
            return assertion;
        }
        if accepted.iter().any(|value| holds_text(value)) {
            let ways: Vec<String> = accepted.iter().map(|value| loose(value)).collect();
            assertion["assertion"] = json!("matches");
            assertion["value"] = json!(format!("^(?:{})$", ways.join("|")));
        } else {
            assertion["assertion"] = json!("oneOf");
            assertion["value"] = json!(accepted);
        }
        if optional {
            assertion["optional"] = json!(true);
        }
        assertion
    }
}

/// Tells whether a value is compared more loosely than by its text.
fn holds_text(value: &Value) -> bool {
    match value {
        Value::String(_) | Value::Object(_) => true,
        Value::Array(items) => items.iter().any(holds_text),
        _ => false,
    }
}

/// What BFCL takes out of texts before it compares them.
const IGNORED: &str = "[ ,./\\-_*^]*";

/// Returns a pattern for an argument as it is compared: a text itself, anything else as JSON.
fn loose(value: &Value) -> String {
    match value {
        Value::String(text) => loose_text(text, r#"['"]"#),
        other => loose_json(other),
    }
}

fn loose_json(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", loose_text(text, r#"(?:'|\\")"#)),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(loose_json).collect();
            format!(r"\[{}\]", items.join(","))
        }
        Value::Object(members) => loose_object(members),
        scalar => escape(&text_form(scalar)),
    }
}

/// Returns a pattern for an object whose members are all accepted, in any order, and of which none is missing that must
/// be there.
fn loose_object(members: &Map<String, Value>) -> String {
    let needed = members.iter().filter(|(_, values)| !list(values).iter().any(|value| value == ""));
    let present: Vec<String> = needed.map(|(key, _)| format!(r"(?=\{{[^{{}}]*{}:)", loose_key(key))).collect();
    let member = |(key, values): (&String, &Value)| {
        let values: Vec<String> = list(values).iter().map(loose_json).collect();
        format!("{}:(?:{})", loose_key(key), values.join("|"))
    };
    let members = members.iter().map(member).collect::<Vec<_>>().join("|");
    format!(r"{}\{{(?:{members})(?:,(?:{members}))*\}}", present.concat())
}

fn loose_key(key: &str) -> String {
    format!("\"{}\"", escape(key))
}

/// Returns a pattern for a text without regard to case and to what BFCL ignores.
fn loose_text(text: &str, quote: &str) -> String {
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
    value.as_object().expect("the fixture holds an object here")
}

/// Returns the name and the arguments of a call, which is an object with one member.
pub(super) fn only_member(call: &Value) -> (&str, &Map<String, Value>) {
    let (name, arguments) = object(call).iter().next().expect("a call has a name");
    (name, object(arguments))
}
