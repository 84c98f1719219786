//! Tool definitions of each library, written as its users write them.

use std::collections::BTreeMap;
use std::path::Path;

use karat_cases::registry::Registry;
use karat_registry::read_path;
use rstest::rstest;
use serde_json::{Value, json};

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/forms")
}

/// Returns the description (whitespace folded), parameters and required parameters of each tool.
fn facts(registry: &Registry) -> BTreeMap<String, Value> {
    let fold = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let facts = registry.tools().iter().map(|tool| {
        let unknowns: Vec<String> =
            tool.unknowns().map(|(field, unknown)| format!("{field:?}: {}", unknown.reason)).collect();
        assert!(unknowns.is_empty(), "{}: {unknowns:?}", tool.name);
        let schema = tool.input_schema.get().cloned().unwrap_or_default();
        let parameters: Vec<&String> =
            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
        let fact = json!({
            "description": tool.description.as_deref().map(fold),
            "parameters": parameters,
            "required": schema["required"].as_array().cloned().unwrap_or_default(),
        });
        (tool.name.clone(), fact)
    });
    facts.collect()
}

#[rstest]
#[case("adk_travel.py")]
#[case("ai_sdk.ts")]
#[case("ai_sdk_chat.ts")]
#[case("api_lists.ts")]
#[case("called_decorators.py")]
#[case("fastmcp_app.py")]
#[case("field_maps.ts")]
#[case("langchain_toolkit.py")]
#[case("langchain_tools.py")]
#[case("mastra_weather.ts")]
#[case("mcp_database.py")]
#[case("mcp_issues.ts")]
#[case("mcp_lowlevel.py")]
#[case("mcp_lowlevel_ts.ts")]
#[case("mcp_lowlevel_zod3.ts")]
#[case("mcp_quickstart.py")]
#[case("mcp_quickstart_ts.ts")]
#[case("openai_agents.py")]
#[case("openai_agents_airline.py")]
#[case("own_classes.py")]
#[case("own_registry.py")]
#[case("own_wrappers.ts")]
#[case("plain_functions.py")]
#[case("plain_functions_chat.py")]
#[case("pydantic_ai_bank.py")]
#[case("pydantic_ai_tools.py")]
#[case("semantic_kernel_lights.py")]
#[case("semantic_kernel_menu.py")]
#[case("smolagents_search.py")]
#[case("smolagents_tools.py")]
#[case("strands_restaurant.py")]
#[case("strands_tools.py")]
#[case("weather_quickstart.py")]
#[case("weather_quickstart_tool.ts")]
#[case("weather_quickstart_ts.ts")]
#[case("wrappers.ts")]
#[case("zod3_forms.ts")]
#[case("zod4_forms.ts")]
#[case("handlers.py")]
#[case("docstrings.py")]
#[case("factories.ts")]
#[case("computed.ts")]
#[case("decorated_classes.py")]
fn reads_every_tool(#[case] file: &str) {
    let path = folder().join(file);
    let expected = std::fs::read_to_string(path.with_extension("json")).unwrap();
    let expected: BTreeMap<String, Value> = serde_json::from_str(&expected).unwrap();
    let registry = read_path(&path, &folder()).unwrap();
    let actual = facts(&registry);
    for (name, fact) in &expected {
        assert_eq!(actual.get(name), Some(fact), "{name}: {:?}", registry.gaps());
    }
    assert_eq!(actual.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
}

#[test]
fn reads_a_folder() {
    let registry = read_path(&folder(), &folder()).unwrap();
    assert!(registry.tools().len() > 100, "{}", registry.tools().len());
}

#[test]
fn reports_names_computed_at_run_time() {
    let registry = read_path(&folder().join("wrappers.ts"), &folder()).unwrap();
    let gaps: Vec<String> = registry.gaps().iter().map(|gap| format!("{}: {}", gap.location, gap.message)).collect();
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert!(
        gaps[0].starts_with("wrappers.ts:16:") && gaps[0].contains("cannot determine the name of a tool"),
        "{gaps:?}"
    );
    assert!(gaps[0].ends_with("export the tools with 'karat tools export-script'"), "{gaps:?}");
}
