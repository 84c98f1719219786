//! Tools in TypeScript and JavaScript sources: what is read is what a run would give.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use karat_core::registry::{GapKind, Registry, Tool};
use karat_registry::{McpServers, read_path};
use karat_testkit::tools::TestTool;
use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{LIMIT, stdio};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/javascript")
}

/// Runs a barrel for real, and returns what its tools say then.
fn at_run_time(barrel: &Path) -> BTreeMap<String, Value> {
    let esbuild = TestTool::Esbuild.command().remove(0);
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
    serde_json::from_slice(&run(Command::new("node").arg(&bundle))).unwrap()
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

pub(crate) fn read(files: &[(&str, &str)]) -> Registry {
    let folder = project(files);
    read_path(&folder.path().join(files[0].0), folder.path()).unwrap()
}

/// Shows what is not known, as a person would be told it.
pub(crate) fn unknown(registry: &Registry) -> String {
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
#[ignore = "needs esbuild"]
fn a_barrel_reads_as_it_runs() {
    let barrel = fixtures().join("barrel/tools.exports.ts");
    let registry = read_path(&barrel, &fixtures()).unwrap();
    assert_eq!(unknown(&registry), "", "everything in this barrel is certain");
    let expected = at_run_time(&barrel);
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
        assert_eq!(tool.requires_confirmation, expected["requiresConfirmation"].as_bool(), "{}", tool.name);
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

/// Real servers, read and asked: what they register is what they list.
#[rstest]
#[ignore = "needs server-filesystem"]
#[case::filesystem(TestTool::ServerFilesystem, "index.js", 14)]
#[ignore = "needs server-everything"]
#[case::everything(TestTool::ServerEverything, "server/index.js", 19)]
#[tokio::test]
async fn a_server_reads_as_it_answers(#[case] server: TestTool, #[case] file: &str, #[case] tools: usize) {
    let mut command = server.command();
    let folder = Path::new(&command[1]).parent().unwrap().to_owned();
    if server == TestTool::ServerFilesystem {
        command.push(std::env::temp_dir().to_string_lossy().into_owned());
    }
    let read = read_path(&folder.join(file), &folder).unwrap();
    assert_eq!(read.tools().len(), tools, "{:?}", read.names());
    let servers = McpServers::connect(vec![stdio("server", &command)], LIMIT).await.unwrap();
    // Some tools are there only for clients that can do something for them.
    assert!(!servers.registry().tools().is_empty());
    for listed in servers.registry().tools() {
        let found = read.tool(&listed.name).unwrap();
        assert_eq!(found.description_hash(), listed.description_hash(), "{}", listed.name);
        assert_eq!(fields(found), fields(listed), "{}", listed.name);
    }
}

fn fields(tool: &Tool) -> Vec<&String> {
    let schema = tool.input_schema.as_ref().unwrap();
    schema["properties"].as_object().unwrap().keys().collect()
}

#[test]
fn what_shows_only_at_run_time_is_unknown_with_its_place() {
    let registry = read(&[
        (
            "tools.exports.ts",
            r"import { z } from 'zod';
import { tool } from 'ai';
import { dedent } from 'dedent';
import { base, LIMIT } from 'our-package';
import { makeTool } from './make';
export { packaged } from 'other-package';
export * from 'star-package';

export const environment = { name: 'environment', description: process.env.DESCRIPTION, run() {} };
export const conditional = { name: 'conditional', description: Math.random() > 0.5 ? 'a' : 'b', run() {} };
export const tagged = { name: 'tagged', description: dedent`text`, run() {} };
export const holed = { name: 'holed', description: `Limit: ${LIMIT}`, run() {} };
let text = 'first';
text += ' second';
export const reassigned = { name: 'reassigned', description: text, run() {} };
export const getter = { name: 'getter', get description() { return 'x'; }, run() {} };
export const spread = { description: 'before', ...base, name: 'spread', version: '1' };
export const assigned = { name: 'assigned', description: 'old', version: '1', run() {} };
assigned.description = 'new';
export const cyclic = { name: 'cyclic', description: one, run() {} };
const one = two + '!';
const two = one + '?';
export const halved = { name: 'halved', description: '\ud83d', run() {} };
export const phrases = { name: 'phrases', description: 'd', triggerPhrases: ['known', LIMIT], run() {} };
export const schemas = {
  name: 'schemas',
  description: 'Parts of the schema are unknown',
  schema: z.object({
    known: z.string(),
    date: z.date(),
    custom: z.custom<string>(),
    bounded: z.string().max(LIMIT),
    foreign: base.optional(),
    described: z.string().describe(process.env.X!),
  }),
};
export const json = {
  name: 'json',
  description: 'So are parts of this one',
  parameters: { type: 'object', properties: { a: base, b: { type: 'string', enum: LIMIT } }, required: ['a'] },
};
export const dynamic = tool({ description: 'd', inputSchema: base });
export const made = makeTool('made');
export const nameless = { name: LIMIT, description: 'd' };
export const chosen = process.env.A ? environment : getter;
export const instance = new Weather();
export const tools = [environment, makeTool('listed'), ...base];
export default tool({ description: 'nobody knows its name', inputSchema: z.object({}) });
",
        ),
        ("make.ts", "export const makeTool = (name: string) => ({ name, description: 'made' });\n"),
    ]);
    insta::assert_snapshot!(unknown(&registry), @"
    environment: description at tools.exports.ts:9:64: 'process.env.DESCRIPTION' is known only at run time
    conditional: description at tools.exports.ts:10:64: it depends on a condition
    tagged: description at tools.exports.ts:11:54: it is made by the tag 'dedent', which karat does not run
    holed: description at tools.exports.ts:12:62: 'LIMIT' comes from the package 'our-package', which karat does not read
    reassigned: description at tools.exports.ts:14:1: 'text' gets another value here
    getter: description at tools.exports.ts:16:41: it is a getter, which karat does not run
    spread: description at tools.exports.ts:17:51: 'base' comes from the package 'our-package', which karat does not read
    spread: input schema at tools.exports.ts:17:51: 'base' comes from the package 'our-package', which karat does not read
    spread: category at tools.exports.ts:17:51: 'base' comes from the package 'our-package', which karat does not read
    spread: need for confirmation at tools.exports.ts:17:51: 'base' comes from the package 'our-package', which karat does not read
    spread: status at tools.exports.ts:17:51: 'base' comes from the package 'our-package', which karat does not read
    spread: trigger phrases at tools.exports.ts:17:51: 'base' comes from the package 'our-package', which karat does not read
    assigned: description at tools.exports.ts:19:1: 'assigned' is changed here
    cyclic: description at tools.exports.ts:22:13: 'one' is defined by itself
    halved: description at tools.exports.ts:23:54: it holds half of a character
    phrases: trigger phrases at tools.exports.ts:24:87: 'LIMIT' comes from the package 'our-package', which karat does not read
    schemas: input schema at tools.exports.ts:30:11: 'z.date()' has no JSON Schema
    schemas: input schema at tools.exports.ts:31:13: 'z.custom()' has no JSON Schema
    schemas: input schema at tools.exports.ts:32:29: 'LIMIT' comes from the package 'our-package', which karat does not read
    schemas: input schema at tools.exports.ts:33:14: it is made by 'base.optional(…)', which karat does not run
    schemas: input schema at tools.exports.ts:34:36: 'process.env.X' is known only at run time
    json: input schema at tools.exports.ts:40:50: 'base' comes from the package 'our-package', which karat does not read
    json: input schema at tools.exports.ts:40:83: 'LIMIT' comes from the package 'our-package', which karat does not read
    dynamic: input schema at tools.exports.ts:42:62: 'base' comes from the package 'our-package', which karat does not read
    Unknown at tools.exports.ts:6:26: 'packaged' comes from the package 'other-package', which karat does not read
    Unknown at tools.exports.ts:7:15: everything comes from the package 'star-package', which karat does not read
    Unknown at tools.exports.ts:43:21: it is made by 'makeTool(…)', which karat does not run
    Unknown at tools.exports.ts:44:33: the tool's name is not known: 'LIMIT' comes from the package 'our-package', which karat does not read
    Unknown at tools.exports.ts:45:23: it depends on a condition
    Unknown at tools.exports.ts:46:25: it is made by 'new Weather(…)', which karat does not run
    Unknown at tools.exports.ts:47:36: it is made by 'makeTool(…)', which karat does not run
    Unknown at tools.exports.ts:47:59: 'base' comes from the package 'our-package', which karat does not read
    Unknown at tools.exports.ts:48:16: the tool has no name of its own, and a default export gives it none
    ");
    let schema = |name: &str| registry.tool(name).unwrap().input_schema.as_ref().unwrap().to_string();
    insta::assert_snapshot!(schema("schemas"), @r#"{"type":"object","properties":{"known":{"type":"string"},"date":{},"custom":{},"bounded":{},"foreign":{},"described":{"type":"string"}},"required":["known","date","custom","bounded","foreign","described"]}"#);
    insta::assert_snapshot!(schema("json"), @r#"{"type":"object","properties":{"a":{},"b":{"type":"string"}},"required":["a"]}"#);
    assert_eq!(registry.tool("schemas").unwrap().schema_hash(), None);
    assert_eq!(registry.tool("assigned").unwrap().version.as_deref(), Some("1"), "the rest is as it was");
}

#[test]
fn a_file_with_a_syntax_error_costs_its_own_tools_only() {
    let registry = read(&[
        (
            "tools.exports.ts",
            "export * from './good';\nexport * from './bad';\nexport { x } from './none';\nexport { y } from './good';\n",
        ),
        ("good.ts", "export const good = { name: 'good', description: 'd' };\n"),
        ("bad.ts", "export const bad = {\n  name: 'bad',\n  description: 'it's wrong',\n};\n"),
    ]);
    assert_eq!(registry.names(), ["good"]);
    insta::assert_snapshot!(unknown(&registry), @"
    Broken at bad.ts:3:20: the syntax is wrong: expected `,` or `}` but found `Identifier`
    Broken at tools.exports.ts:3:19: there is no module './none'
    Broken at tools.exports.ts:4:19: 'good.ts' exports no 'y'
    ");
    assert!(registry.gaps().iter().all(|gap| gap.kind == GapKind::Broken));
}

#[test]
fn one_definition_is_one_tool_and_one_name_is_one_tools() {
    let registry = read(&[
        (
            "index.js",
            "import { a } from './a.js';\nexport { a, a as b };\nexport default a;\nexport const all = [a];\nexport * as ns from './a.js';\nexport const other = { name: 'a', description: 'another' };\n",
        ),
        ("a.js", "export const a = { name: 'a', description: 'first' };\n"),
    ]);
    assert_eq!(registry.names(), ["a"]);
    assert_eq!(registry.tools()[0].description.as_deref(), Some("first"));
    insta::assert_snapshot!(unknown(&registry), @"Broken at index.js:6:22: the name 'a' is taken by the tool at a.js:1:18");
}

#[test]
fn a_folder_gives_the_tools_of_its_tool_files() {
    let tool = |name: &str| format!("export default {{ name: '{name}', description: 'd' }};\n");
    let text = tool("b") + "export const c = { name: 'c', description: 'd' };\n";
    let folder = project(&[
        ("tools/b.tool.ts", &text),
        ("tools/a.tool.mjs", &tool("a")),
        ("tools/deep/er/d.tool.tsx", &tool("d")),
        ("tools/e.tool.cjs", "module.exports = { name: 'e', description: 'd' };\n"),
        ("tools/not-a-tool.ts", &tool("no")),
        ("tools/node_modules/x/x.tool.ts", &tool("no")),
        ("tools/.cache/x.tool.ts", &tool("no")),
        ("tools/broken.tool.ts", "export default {"),
        ("empty/readme.md", ""),
    ]);
    let registry = read_path(&folder.path().join("tools"), folder.path()).unwrap();
    assert_eq!(registry.names(), ["a", "b", "c", "d", "e"]);
    insta::assert_snapshot!(unknown(&registry), @"Broken at tools/broken.tool.ts:1:17: the syntax is wrong: expected `}` but found `EOF`");
    let error = read_path(&folder.path().join("empty"), folder.path()).unwrap_err();
    assert!(error.to_string().contains("nothing to read tools from"), "{error}");
    let missing = read_path(&folder.path().join("none.ts"), folder.path()).unwrap_err();
    assert!(missing.to_string().contains("No such file"), "{missing}");
}

#[test]
fn a_file_without_tools_says_so() {
    let registry = read(&[("t.ts", "export const limit = 5;\nexport type { T } from './t';\n")]);
    insta::assert_snapshot!(unknown(&registry), @"Unknown at t.ts: there is no tool in it that karat can see");
}

#[test]
fn a_server_in_several_files_has_the_tools_of_all() {
    let registry = read(&[
        (
            "server.ts",
            "import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';\nimport { setUp } from './weather.js';\n\
             import { format } from './none.js';\nimport './effects.js';\nconst server = new McpServer({});\n\
             setUp(server);\nformat('x');\nfor (const name of ['a', 'b']) server.registerTool(name, { description: 'd' }, f);\n",
        ),
        (
            "weather.ts",
            "import { z } from 'zod';\nexport function setUp(server: any) {\n  \
             server.registerTool('weather', { description: 'Weather', inputSchema: {} }, async () => {});\n}\n",
        ),
        (
            "effects.ts",
            "registry.addTool({ name: 'added', description: 'd' });\nregistry.registerTool(one);\nconst one = { name: 'one', run() {} };\n",
        ),
    ]);
    assert_eq!(registry.names(), ["weather", "added", "one"]);
    let schema = registry.tool("weather").unwrap().input_schema.clone().unwrap();
    assert_eq!(schema, serde_json::json!({"type": "object", "properties": {}}));
    insta::assert_snapshot!(unknown(&registry), @"Unknown at server.ts:8:12: the tool's name is not known: 'name' is the variable of a loop");
}

#[test]
fn nothing_is_ever_run() {
    let folder = tempfile::tempdir().unwrap();
    let proof = folder.path().join("proof");
    let write = format!("require('node:fs').writeFileSync({:?}, 'run')", proof.to_str().unwrap());
    let source = format!(
        "{write};\n(() => {{ {write} }})();\nconst tag = () => {{ {write}; return ''; }};\n\
         export const a = {{ name: 'a', description: tag`x`, get version() {{ {write}; return '1'; }} }};\n\
         export const d = {{ name: 'd', [(() => {{ {write}; return 'status'; }})()]: 'x', description: 'd' }};\n\
         export default new (class {{ constructor() {{ {write} }} static {{ {write} }} }})();\n\
         export const b = {{ name: 'b', description: String({{ toString() {{ {write} }} }}) }};\n\
         enum E {{ A = ({write}, 1) }}\nexport const c = {{ name: 'c', description: 'x' + E.A }};\n"
    );
    let barrel = folder.path().join("tools.exports.ts");
    std::fs::write(&barrel, &source).unwrap();
    let registry = read_path(&barrel, folder.path()).unwrap();
    assert!(!proof.exists());
    assert_eq!(registry.names(), ["a", "b", "c"], "the key in d may well be its name");
    for tool in registry.tools() {
        assert_eq!(tool.description, None, "{tool:?}");
    }
}
