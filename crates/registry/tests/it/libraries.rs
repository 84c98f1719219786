//! What is read of a Python module is what its library offers to a model at run time: names, descriptions with white
//! space folded, parameters and the required ones.

use std::path::Path;
use std::process::Command;

use karat_registry::read_path;
use karat_testkit::tools::TestTool;
use rstest::rstest;
use serde_json::Value;

fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Returns the parameters of a schema and the required ones.
fn parameters(schema: &Value) -> (Vec<String>, Vec<String>) {
    let properties = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    (sorted(properties), sorted(required))
}

#[rstest]
#[case::official_mcp("official_mcp", &[])]
#[case::langchain("langchain_tools", &[])]
// In strict mode every parameter is required.
#[case::agents("agents_tools", &["required"])]
#[case::anthropic("anthropic_tools", &[])]
#[case::pydantic_ai("pydantic_ai_tools", &[])]
#[case::fastmcp("fastmcp_tools", &[])]
#[ignore = "needs the Python tool libraries"]
fn reads_what_the_library_offers(#[case] name: &str, #[case] differences: &[&str]) {
    let python = TestTool::ToolLibraries.command();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/python");
    let dump = Command::new(&python[0])
        .args(["-B", "-W", "ignore", "dump.py", ".", name])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let run: Value = serde_json::from_slice(&dump.stdout).unwrap();
    let offered = run["tools"].as_array().unwrap();
    let registry = read_path(&folder.join(format!("{name}.py")), &folder).unwrap();
    let expected = sorted(offered.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
    assert_eq!(sorted(registry.names().into_iter().map(str::to_owned)), expected, "{:?}", registry.gaps());
    let mut wrong = Vec::new();
    for offered in offered {
        let name = offered["name"].as_str().unwrap();
        let tool = registry.tool(name).unwrap();
        let description = offered["description"].as_str().map(fold).filter(|text| !text.is_empty());
        if tool.description.as_deref().map(fold) != description {
            wrong.push(format!("{name}: {:?} instead of {description:?}", tool.description));
        }
        let (properties, required) = parameters(&offered["inputSchema"]);
        let (read_properties, read_required) = parameters(tool.input_schema.get().unwrap_or(&Value::Null));
        let is_required = differences.contains(&"required") || read_required == required;
        if read_properties != properties || !is_required {
            wrong.push(format!("{name}: {read_properties:?} {read_required:?} instead of {properties:?} {required:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
