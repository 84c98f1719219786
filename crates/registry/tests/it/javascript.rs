//! Tools in TypeScript and JavaScript sources: what is read is what a run would give.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use karat_core::registry::{GapKind, Registry, Tool};
use karat_registry::read_path;
use karat_testkit::tools::TestTool;
use serde_json::Value;
use tempfile::TempDir;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/javascript")
}

/// Runs a barrel for real, and returns what its tools say then.
fn at_run_time(barrel: &Path) -> Option<BTreeMap<String, Value>> {
    let esbuild = TestTool::Esbuild.command()?.remove(0);
    let modules = Path::new(&esbuild).ancestors().nth(3).unwrap();
    let packages = fixtures().join("packages");
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle.mjs");
    let alias = |name: &str, path: &Path| format!("--alias:{name}={}", path.display());
    let mut command = Command::new(&esbuild);
    command.arg(fixtures().join("dump.mjs")).arg(format!("--outfile={}", bundle.display()));
    command.args(["--bundle", "--platform=node", "--format=esm", "--log-level=warning"]).env("NODE_PATH", modules);
    command.arg(alias("barrel", barrel)).arg(alias("ai", &packages.join("ai.js")));
    command.arg(alias("@langchain/core/tools", &packages.join("langchain.js")));
    command.arg(alias("@mastra/core/tools", &packages.join("mastra.js")));
    command.arg(alias("@modelcontextprotocol/sdk/server/mcp.js", &packages.join("mcp.js")));
    run(&mut command);
    Some(serde_json::from_slice(&run(Command::new("node").arg(&bundle))).unwrap())
}

fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn project(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn read(files: &[(&str, &str)]) -> Registry {
    let folder = project(files);
    read_path(&folder.path().join(files[0].0), folder.path()).unwrap()
}

/// Shows what is not known, as a person would be told it.
fn unknown(registry: &Registry) -> String {
    let fields = registry.tools().iter().flat_map(|tool| {
        let line = |unknown: &karat_core::registry::Unknown| {
            format!("{}: {} at {}: {}", tool.name, unknown.field.name(), unknown.place, unknown.why)
        };
        tool.unknown.iter().map(line).collect::<Vec<_>>()
    });
    let gaps = registry.gaps().iter().map(|gap| format!("{:?} at {}: {}", gap.kind, gap.place, gap.what));
    fields.chain(gaps).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_barrel_reads_as_it_runs() {
    let barrel = fixtures().join("barrel/tools.exports.ts");
    let registry = read_path(&barrel, &fixtures()).unwrap();
    assert_eq!(unknown(&registry), "", "everything in this barrel is certain");
    let Some(expected) = at_run_time(&barrel) else { return };
    let mut names: Vec<&str> = registry.names();
    names.sort_unstable();
    assert_eq!(names, expected.keys().map(String::as_str).collect::<Vec<_>>());
    assert!(names.len() >= 30, "{}", names.len());
    for tool in registry.tools() {
        let expected = &expected[&tool.name];
        assert_eq!(tool.description.as_deref(), expected["description"].as_str(), "{}", tool.name);
        assert_eq!(tool.description_hash().as_deref(), expected["descriptionHash"].as_str(), "{}", tool.name);
        assert_eq!(tool.input_schema.as_ref().unwrap_or(&Value::Null), &expected["schema"], "{}", tool.name);
        assert_eq!(tool.schema_hash().as_deref(), expected["schemaHash"].as_str(), "{}", tool.name);
        assert_eq!(tool.version.as_deref(), expected["version"].as_str(), "{}", tool.name);
        assert_eq!(tool.category.as_deref(), expected["category"].as_str(), "{}", tool.name);
        assert_eq!(tool.status.as_deref(), expected["status"].as_str(), "{}", tool.name);
        let phrases: Vec<&str> =
            expected["triggerPhrases"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        assert_eq!(tool.trigger_phrases, phrases, "{}", tool.name);
    }
}

#[test]
fn places_are_where_the_definitions_are() {
    let registry = read_path(&fixtures().join("barrel/tools.exports.ts"), &fixtures()).unwrap();
    let places = |name: &str| {
        let tool: &Tool = registry.tool(name).unwrap();
        let place = |place: &Option<karat_core::registry::ToolPlace>| place.as_ref().unwrap().to_string();
        (place(&tool.place), place(&tool.description_place))
    };
    assert_eq!(places("get_weather"), ("barrel/weather.tool.ts:12:27".into(), "barrel/weather.tool.ts:14:16".into()));
    assert_eq!(places("search_web"), ("barrel/search.tool.ts:10:33".into(), "barrel/search.tool.ts:12:10".into()));
    assert_eq!(places("roll_dice"), ("barrel/tools.exports.ts:51:32".into(), "barrel/tools.exports.ts:53:16".into()));
    assert_eq!(places("mcp_echo"), ("barrel/server.ts:15:3".into(), "barrel/server.ts:15:21".into()));
}
