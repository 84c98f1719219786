//! Tool lists as JSON: our own shape, `OpenAI`'s, Anthropic's, and MCP's `tools/list`.

use karat_core::registry::{Registry, Tool};
use karat_core::source::{SyntaxError, parse, type_name};
use serde_json::{Map, Value};

/// Why a tool list could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("{0}")]
    File(String),
    #[error("not JSON: {}", .0.message)]
    Syntax(SyntaxError),
    #[error("expected a list of tools or an object with 'tools', found {0}")]
    NoList(&'static str),
    #[error("tool number {number} {what}")]
    Tool { number: usize, what: String },
}

/// Reads a list of tools in any of the known shapes; keys that say nothing to karat are passed over.
pub fn read_json(text: &str) -> Result<Registry, RegistryError> {
    let value = parse(text).map_err(RegistryError::Syntax)?;
    let list = tool_list(&value).ok_or(RegistryError::NoList(type_name(&value)))?;
    let mut registry = Registry::default();
    for (index, entry) in list.iter().enumerate() {
        let number = index + 1;
        let tool = read_tool(entry).map_err(|what| RegistryError::Tool { number, what })?;
        registry.add(tool).map_err(|first| {
            let what = format!("has the name '{}', which another tool has too", first.name);
            RegistryError::Tool { number, what }
        })?;
    }
    Ok(registry)
}

/// Finds the list: bare, under `tools`, or in the answer of an MCP server.
fn tool_list(value: &Value) -> Option<&Vec<Value>> {
    ["", "/tools", "/result/tools"].iter().find_map(|pointer| value.pointer(pointer)?.as_array())
}

fn read_tool(entry: &Value) -> Result<Tool, String> {
    let outer = entry.as_object().ok_or_else(|| format!("is {}, not an object", type_name(entry)))?;
    // `OpenAI`'s chat shape wraps the definition.
    let tool = match outer.get("function") {
        Some(Value::Object(function)) => function,
        _ => outer,
    };
    let name = text(tool, "name")?.filter(|name| !name.is_empty()).ok_or("has no 'name'")?;
    let in_tool = |what: String| format!("('{name}') {what}");
    let input_schema = ["inputSchema", "input_schema", "parameters", "schema"]
        .iter()
        .find_map(|key| tool.get(*key))
        .filter(|schema| !schema.is_null());
    if let Some(schema) = input_schema.filter(|schema| !schema.is_object() && !schema.is_boolean()) {
        return Err(in_tool(format!("has a schema that is {}, not an object", type_name(schema))));
    }
    Ok(Tool {
        description: text(tool, "description").map_err(in_tool)?,
        version: text(tool, "version").map_err(in_tool)?,
        input_schema: input_schema.cloned(),
        name,
        ..Tool::default()
    })
}

fn text(tool: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match tool.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(format!("has a '{key}' that is {}, not a string", type_name(other))),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::ours(json!([{"name": "t", "description": "d", "version": "1.0.0", "inputSchema": {"type": "object"}}]))]
    #[case::openai_chat(json!([{"type": "function", "function": {"name": "t", "description": "d", "version": "1.0.0", "parameters": {"type": "object"}}}]))]
    #[case::openai_responses(json!({"tools": [{"type": "function", "name": "t", "description": "d", "version": "1.0.0", "parameters": {"type": "object"}, "strict": true}]}))]
    #[case::anthropic(json!([{"name": "t", "description": "d", "version": "1.0.0", "input_schema": {"type": "object"}}]))]
    #[case::mcp(json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "t", "title": "T", "description": "d", "version": "1.0.0", "inputSchema": {"type": "object"}}]}}))]
    fn every_shape_gives_the_same_tool(#[case] shape: Value) {
        let registry = read_json(&shape.to_string()).expect("reads");
        let expected = Tool {
            name: "t".to_owned(),
            description: Some("d".to_owned()),
            version: Some("1.0.0".to_owned()),
            input_schema: Some(json!({"type": "object"})),
            ..Tool::default()
        };
        assert_eq!(registry.tools(), [expected]);
    }

    #[rstest]
    #[case("{", "not JSON: EOF while parsing an object")]
    #[case("{}", "expected a list of tools or an object with 'tools', found an object")]
    #[case("[{}]", "tool number 1 has no 'name'")]
    #[case(r#"[{"name": 1}]"#, "tool number 1 has a 'name' that is a number, not a string")]
    #[case(r#"[{"name": "a"}, {"name": "a"}]"#, "tool number 2 has the name 'a', which another tool has too")]
    #[case(r#"[{"name": "a", "parameters": []}]"#, "tool number 1 ('a') has a schema that is an array, not an object")]
    fn what_is_wrong_is_said(#[case] text: &str, #[case] message: &str) {
        assert_eq!(read_json(text).expect_err("invalid").to_string(), message);
    }
}
