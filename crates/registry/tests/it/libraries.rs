//! Compares tools read from sources with those that the library presents to a model at run time: names, descriptions
//! (whitespace folded), parameters and required parameters. The latter come from the script of
//! `karat tools export-script`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use karat_cases::registry::{Registry, Tool};
use karat_registry::{ScriptLanguage, export_script, read_json, read_path};
use karat_testkit::tools::TestTool;
use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Returns the parameters and the required parameters of a tool.
fn parameters(tool: &Tool) -> (Vec<String>, Vec<String>) {
    let schema = tool.input_schema.get().unwrap_or(&Value::Null);
    let properties = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    (sorted(properties), sorted(required))
}

fn assert_same(read: &Registry, offered: &Registry, differences: &[&str]) {
    let names = |registry: &Registry| sorted(registry.names().into_iter().map(str::to_owned));
    assert_eq!(names(read), names(offered), "{:?}", read.gaps());
    assert!(offered.tools().len() >= 3, "{:?}", offered.names());
    let mut mismatches = Vec::new();
    for offered in offered.tools() {
        let name = &offered.name;
        let tool = read.tool(name).unwrap();
        let unknowns: Vec<String> =
            tool.unknowns().map(|(field, unknown)| format!("{field:?}: {}", unknown.reason)).collect();
        if !unknowns.is_empty() {
            mismatches.push(format!("{name}: unknown {unknowns:?}"));
        }
        let description = |tool: &Tool| tool.description.as_deref().map(fold).filter(|text| !text.is_empty());
        if description(tool) != description(offered) {
            mismatches.push(format!("{name}: {:?} instead of {:?}", description(tool), description(offered)));
        }
        let ((properties, required), (read_properties, read_required)) = (parameters(offered), parameters(tool));
        let is_required = differences.contains(&"required") || read_required == required;
        if read_properties != properties || !is_required {
            mismatches
                .push(format!("{name}: {read_properties:?} {read_required:?} instead of {properties:?} {required:?}"));
        }
    }
    assert!(mismatches.is_empty(), "{mismatches:#?}");
}

fn modules(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(language)
}

fn python() -> Command {
    let mut command = Command::new(&TestTool::ToolLibraries.command()[0]);
    command.args(["-B", "-W", "ignore"]);
    command
}

fn node() -> Command {
    Command::new(&TestTool::NodeToolLibraries.command()[0])
}

/// Runs an export script in a folder.
fn export(mut interpreter: Command, language: ScriptLanguage, folder: &Path, arguments: &[&str]) -> Output {
    let scripts = tempfile::tempdir().unwrap();
    // Node needs the extension; Python ignores it.
    let script = scripts.path().join("export.mjs");
    std::fs::write(&script, export_script(language)).unwrap();
    interpreter.arg(script).args(arguments).current_dir(folder).output().unwrap()
}

fn offered(output: &Output) -> Registry {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    read_json(&String::from_utf8_lossy(&output.stdout), "export").unwrap()
}

/// Copies the modules to a folder with the packages of a test tool.
fn with_packages(packages: TestTool) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(modules("node")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    let path = PathBuf::from(&packages.command()[0]);
    let packages = path.ancestors().find(|folder| folder.ends_with("node_modules")).unwrap();
    std::os::unix::fs::symlink(packages, folder.path().join("node_modules")).unwrap();
    folder
}

#[rstest]
#[case::official_mcp("official_mcp", &[])]
#[case::low_level_mcp("lowlevel_mcp", &[])]
#[case::fastmcp("fastmcp_tools", &[])]
#[case::langchain("langchain_tools", &[])]
// In strict mode every parameter is required.
#[case::agents("agents_tools", &["required"])]
#[case::anthropic("anthropic_tools", &[])]
#[case::pydantic_ai("pydantic_ai_tools", &[])]
#[case::smolagents("smolagents_tools", &[])]
#[case::json("json_tools", &[])]
#[ignore = "needs the Python tool libraries"]
fn matches_the_python_library(#[case] name: &str, #[case] differences: &[&str]) {
    let folder = modules("python");
    let file = format!("{name}.py");
    let offered = offered(&export(python(), ScriptLanguage::Python, &folder, &[&file]));
    assert_same(&read_path(&folder.join(&file), &folder).unwrap(), &offered, differences);
}

#[rstest]
#[case::mcp(TestTool::NodeToolLibraries, "mcp_server", &[])]
#[case::low_level_mcp(TestTool::NodeToolLibraries, "mcp_lowlevel", &["createServer()"])]
#[case::ai_sdk(TestTool::NodeToolLibraries, "ai_tools", &[])]
#[case::mastra(TestTool::NodeToolLibraries, "mastra_tools", &[])]
#[case::langchain(TestTool::NodeToolLibraries, "langchain_tools", &[])]
#[case::agents(TestTool::NodeToolLibraries, "openai_agents_tools", &[])]
#[case::json(TestTool::NodeToolLibraries, "json_tools", &[])]
#[case::mcp_with_zod_3(TestTool::Zod3Libraries, "mcp_zod3", &[])]
#[case::converted_zod_3(TestTool::Zod3Libraries, "lowlevel_zod3", &[])]
#[ignore = "needs the Node tool libraries"]
fn matches_the_node_library(#[case] packages: TestTool, #[case] name: &str, #[case] export_name: &[&str]) {
    let folder = with_packages(packages);
    let file = format!("{name}.ts");
    let arguments: Vec<&str> = [file.as_str()].into_iter().chain(export_name.iter().copied()).collect();
    let offered = offered(&export(node(), ScriptLanguage::Node, folder.path(), &arguments));
    assert_same(&read_path(&folder.path().join(&file), folder.path()).unwrap(), &offered, &[]);
}

#[rstest]
#[case::nothing("export const x = 1;", "no tools found in m.mjs")]
#[case::import("import 'no-such-package';", "Cannot find package 'no-such-package'")]
#[case::throws("throw new Error('not today');", "not today")]
#[ignore = "needs the Node tool libraries"]
fn reports_failed_exports(#[case] text: &str, #[case] message: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("m.mjs"), text).unwrap();
    let output = export(node(), ScriptLanguage::Node, folder.path(), &["m.mjs"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{stderr}");
    assert!(stderr.contains(message), "{stderr}");
}
