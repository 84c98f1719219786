//! Tool lists as JSON, in the formats of karat, `OpenAI`, Anthropic and MCP's `tools/list`.

use karat_cases::registry::{Gap, GapKind, Registry, Tool, ToolLocation};
use karat_json::{Position, locate_values, parse, type_name};
use serde_json::{Map, Value};

use crate::field_map::field_map_schema;

/// Why a tool list could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    #[error("{0}")]
    File(String),
    #[error(
        "cannot read tools from {path}: expected a tool list (.json), a Python file (.py), a TypeScript or JavaScript \
         file (.ts, .js, …), or a folder of them"
    )]
    UnsupportedFile { path: String },
    #[error("the folder {path} has no source files to read tools from (.py, .ts, .js, …)")]
    EmptyFolder { path: String },
    #[error("no tools found in {}", list_files(.files))]
    NoTools { files: Vec<String> },
    #[error("not valid JSON: {message}{}", at(*.position))]
    Syntax { message: String, position: Option<Position> },
    #[error("expected a list of tools or an object with 'tools', found {0}")]
    NotAToolList(&'static str),
    #[error("tool number {number} {problem}{}", at(*.position))]
    Tool { number: usize, problem: String, position: Option<Position> },
}

/// Lists the first few files.
fn list_files(files: &[String]) -> String {
    const MAX_LISTED_FILES: usize = 5;
    let named = files.iter().take(MAX_LISTED_FILES).cloned().collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(MAX_LISTED_FILES) {
        0 => named,
        more => format!("{named} and {more} more files"),
    }
}

fn at(position: Option<Position>) -> String {
    position.map(|Position { line, column }| format!(" (line {line}, column {column})")).unwrap_or_default()
}

/// Parses a list of tools in any supported format. Unknown keys are ignored.
///
/// `source` names the text in tool locations: a file, or the command that printed it.
pub fn read_json(text: &str, source: &str) -> Result<Registry, RegistryError> {
    let value = parse(text).map_err(|error| {
        let position = Some(Position::of(text, error.offset));
        RegistryError::Syntax { message: error.message, position }
    })?;
    let (list, pointer) = tool_list(&value).ok_or(RegistryError::NotAToolList(type_name(&value)))?;
    let locations = locations(text, source, list, pointer);
    let mut registry = Registry::default();
    for (index, (entry, (location, description_location))) in list.iter().zip(locations).enumerate() {
        let position = location.position;
        let fails = |problem: String| RegistryError::Tool { number: index + 1, problem, position };
        if let Some(kind) = provider_tool_type(entry) {
            let message = format!("'{kind}' is a built-in tool of the provider, without a name or a schema");
            registry.add_gap(Gap { kind: GapKind::Unknown, location, message });
            continue;
        }
        let mut tool = read_tool(entry).map_err(fails)?;
        tool.description_location = description_location.filter(|_| tool.description.get().is_some());
        tool.location = Some(location);
        registry.add(tool).map_err(|first| fails(format!("has the same name as an earlier tool: '{}'", first.name)))?;
    }
    Ok(registry)
}

/// Returns the type of an entry for a built-in tool of the model's provider, such as
/// `{"type": "web_search_preview"}`.
fn provider_tool_type(entry: &Value) -> Option<&str> {
    let is_named = entry.get("name").is_some() || entry.get("function").is_some();
    entry.get("type")?.as_str().filter(|kind| *kind != "function" && !is_named)
}

/// Finds the list: at the top level, under `tools`, or in the response of an MCP server.
fn tool_list(value: &Value) -> Option<(&Vec<Value>, &'static str)> {
    ["", "/tools", "/result/tools"].into_iter().find_map(|pointer| Some((value.pointer(pointer)?.as_array()?, pointer)))
}

/// Returns the location of each tool and of its description.
fn locations(text: &str, source: &str, list: &[Value], pointer: &str) -> Vec<(ToolLocation, Option<ToolLocation>)> {
    let pointers: Vec<String> = list
        .iter()
        .enumerate()
        .flat_map(|(index, entry)| {
            let inner = if entry.get("function").is_some_and(Value::is_object) { "/function" } else { "" };
            [format!("{pointer}/{index}"), format!("{pointer}/{index}{inner}/description")]
        })
        .collect();
    let location = |position: Option<Position>| ToolLocation { source: source.to_owned(), position };
    let positions = locate_values(text, &pointers);
    positions.chunks(2).map(|pair| (location(pair[0]), pair[1].map(|position| location(Some(position))))).collect()
}

fn read_tool(entry: &Value) -> Result<Tool, String> {
    let outer = entry.as_object().ok_or_else(|| format!("is {}, not an object", type_name(entry)))?;
    // `OpenAI`'s chat format wraps the definition.
    let tool = match outer.get("function") {
        Some(Value::Object(function)) => function,
        _ => outer,
    };
    let name = text(tool, "name")?.filter(|name| !name.is_empty()).ok_or("has no 'name'")?;
    let in_tool = |problem: String| format!("('{name}') {problem}");
    let input_schema = ["inputSchema", "input_schema", "parameters", "schema"]
        .iter()
        .find_map(|key| tool.get(*key))
        .filter(|schema| !schema.is_null());
    if let Some(schema) = input_schema.filter(|schema| !schema.is_object() && !schema.is_boolean()) {
        return Err(in_tool(format!("has a schema that is {}, not an object", type_name(schema))));
    }
    Ok(Tool {
        description: text(tool, "description").map_err(in_tool)?.into(),
        version: text(tool, "version").map_err(in_tool)?.into(),
        category: text(tool, "category").map_err(in_tool)?.into(),
        requires_confirmation: confirmation(tool).map_err(in_tool)?.into(),
        status: text(tool, "status").map_err(in_tool)?.into(),
        trigger_phrases: Some(phrases(tool).map_err(in_tool)?).filter(|phrases| !phrases.is_empty()).into(),
        input_schema: input_schema.map(|schema| field_map_schema(schema).unwrap_or_else(|| schema.clone())).into(),
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

fn confirmation(tool: &Map<String, Value>) -> Result<Option<bool>, String> {
    let entry = ["requiresConfirmation", "requires_confirmation"].iter().find_map(|key| tool.get_key_value(*key));
    match entry {
        None | Some((_, Value::Null)) => Ok(None),
        Some((_, Value::Bool(flag))) => Ok(Some(*flag)),
        Some((key, other)) => Err(format!("has a '{key}' that is {}, not true or false", type_name(other))),
    }
}

fn phrases(tool: &Map<String, Value>) -> Result<Vec<String>, String> {
    let Some((key, value)) = ["triggerPhrases", "trigger_phrases"].iter().find_map(|key| tool.get_key_value(*key))
    else {
        return Ok(Vec::new());
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(list) => {
            let phrase = |phrase: &Value| {
                let error = || format!("has a '{key}' that holds {}, not only strings", type_name(phrase));
                phrase.as_str().map(str::to_owned).ok_or_else(error)
            };
            list.iter().map(phrase).collect()
        }
        other => Err(format!("has a '{key}' that is {}, not a list of strings", type_name(other))),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use karat_cases::registry::Known;

    use super::*;

    #[rstest]
    #[case::ours(json!([{"name": "t", "description": "d", "version": "1.0.0", "inputSchema": {"type": "object"}}]))]
    #[case::openai_chat(json!([{"type": "function", "function": {"name": "t", "description": "d", "version": "1.0.0", "parameters": {"type": "object"}}}]))]
    #[case::openai_responses(json!({"tools": [{"type": "function", "name": "t", "description": "d", "version": "1.0.0", "parameters": {"type": "object"}, "strict": true}]}))]
    #[case::anthropic(json!([{"name": "t", "description": "d", "version": "1.0.0", "input_schema": {"type": "object"}}]))]
    #[case::mcp(json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "t", "title": "T", "description": "d", "version": "1.0.0", "inputSchema": {"type": "object"}}]}}))]
    fn reads_every_format(#[case] list: Value) {
        let registry = read_json(&list.to_string(), "tools.json").expect("a valid list");
        let expected = Tool {
            name: "t".to_owned(),
            description: Known::from(Some("d".to_owned())),
            version: Known::from(Some("1.0.0".to_owned())),
            input_schema: Known::from(Some(json!({"type": "object"}))),
            ..Tool::default()
        };
        let [tool] = registry.tools() else { panic!("one tool") };
        let location = tool.location.as_ref().and_then(|location| location.position).expect("a position");
        let text = list.to_string();
        assert!(text[location.column - 1..].starts_with('{'), "{location:?}");
        let description =
            tool.description_location.as_ref().and_then(|location| location.position).expect("a position");
        assert!(text[description.column - 1..].starts_with("\"d\""), "{description:?}");
        assert_eq!(Tool { location: None, description_location: None, ..tool.clone() }, expected);
    }

    #[rstest]
    #[case("{", "not valid JSON: EOF while parsing an object (line 1, column 2)")]
    #[case("[\n  {]", "not valid JSON: key must be a string (line 2, column 4)")]
    #[case("{}", "expected a list of tools or an object with 'tools', found an object")]
    #[case("[{}]", "tool number 1 has no 'name' (line 1, column 2)")]
    #[case(r#"[{"name": 1}]"#, "tool number 1 has a 'name' that is a number, not a string (line 1, column 2)")]
    #[case(
        r#"[{"name": "a"}, {"name": "a"}]"#,
        "tool number 2 has the same name as an earlier tool: 'a' (line 1, column 17)"
    )]
    #[case(
        r#"[{"name": "a", "parameters": []}]"#,
        "tool number 1 ('a') has a schema that is an array, not an object (line 1, column 2)"
    )]
    fn rejects_invalid_lists(#[case] text: &str, #[case] message: &str) {
        assert_eq!(read_json(text, "tools.json").expect_err("invalid").to_string(), message);
    }

    #[test]
    fn built_in_provider_tools_are_gaps() {
        let text = r#"[{"type": "web_search_preview"}, {"type": "function", "name": "a"}]"#;
        let registry = read_json(text, "t.json").expect("a valid list");
        assert_eq!(registry.names(), ["a"]);
        let [gap] = registry.gaps() else { panic!("one gap") };
        assert_eq!((gap.kind, gap.location.to_string().as_str()), (GapKind::Unknown, "t.json:1:2"));
        assert!(gap.message.contains("web_search_preview"), "{}", gap.message);
    }

    #[test]
    fn reads_the_extra_fields_of_karats_format() {
        let text = r#"[{"name": "a", "category": "write", "status": "deprecated", "triggerPhrases": ["do it"], "requiresConfirmation": true},
            {"name": "b", "trigger_phrases": ["x", "y"], "requires_confirmation": false},
            {"name": "c", "requiresConfirmation": null}]"#;
        let registry = read_json(text, "t.json").expect("a valid list");
        let [a, b, c] = registry.tools() else { panic!("three tools") };
        let confirmations = [a, b, c].map(|tool| tool.requires_confirmation.get().copied());
        assert_eq!(confirmations, [Some(true), Some(false), None]);
        assert_eq!((a.category.as_deref(), a.status.as_deref()), (Some("write"), Some("deprecated")));
        assert_eq!((a.trigger_phrases().len(), b.trigger_phrases().len()), (1, 2));
        assert_eq!(b.location.as_ref().map(ToString::to_string).as_deref(), Some("t.json:2:13"));
        let error = read_json(r#"[{"name": "a", "triggerPhrases": ["x", 1]}]"#, "t.json").expect_err("a number");
        let message =
            "tool number 1 ('a') has a 'triggerPhrases' that holds a number, not only strings (line 1, column 2)";
        assert_eq!(error.to_string(), message);
        let error = read_json(r#"[{"name": "a", "requiresConfirmation": "yes"}]"#, "t.json").expect_err("a text");
        let message =
            "tool number 1 ('a') has a 'requiresConfirmation' that is a string, not true or false (line 1, column 2)";
        assert_eq!(error.to_string(), message);
    }
}
