//! Reading sources: resolution across files, unknown values, and broken or hostile files.

use std::process::Command;

use karat_cases::registry::{Registry, ToolField};
use karat_registry::{RegistryError, read_path};
use rstest::rstest;
use serde_json::json;
use tempfile::TempDir;

fn project(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn read(folder: &TempDir, path: &str) -> Registry {
    read_path(&folder.path().join(path), folder.path()).unwrap()
}

/// Writes files and reads the first one.
fn module(files: &[(&str, &str)]) -> Registry {
    read(&project(files), files[0].0)
}

fn description<'r>(registry: &'r Registry, name: &str) -> Option<&'r str> {
    registry.tool(name).unwrap_or_else(|| panic!("{name} of {:?}", registry.names())).description.as_deref()
}

fn gaps(registry: &Registry) -> Vec<String> {
    registry.gaps().iter().map(|gap| format!("{:?} {} {}", gap.kind, gap.location, gap.message)).collect()
}

#[test]
fn does_not_execute_sources() {
    let folder = tempfile::tempdir().unwrap();
    let marker = folder.path().join("executed");
    let text = format!(
        "import pathlib\npathlib.Path({0:?}).touch()\n@tool\ndef f(x: int = pathlib.Path({0:?}).touch()):\n    '''D'''\n\
         TOOLS = [{{'name': 'g', 'description': open({0:?}, 'w').name, 'input_schema': {{}}}}]\n",
        marker.display().to_string()
    );
    std::fs::write(folder.path().join("m.py"), &text).unwrap();
    let registry = read(&folder, "m.py");
    assert_eq!(registry.names(), ["f", "g"]);
    assert!(registry.tool("g").unwrap().unknown(ToolField::Description).is_some());
    assert!(!marker.exists());
    // Running the module does create the marker.
    Command::new("python3").args(["-B", "m.py"]).current_dir(folder.path()).output().unwrap();
    assert!(marker.exists());
}

#[rstest]
#[case::concatenation("'It ' + \"works\"", Ok("It works"))]
#[case::constant("ONCE", Ok("once"))]
#[case::f_string("f'{ONCE} and {NUMBER}'", Ok("once and 4"))]
#[case::dedent("textwrap.dedent('''\n    a\n      b''').strip()", Ok("a\n  b"))]
#[case::join("' '.join(['a', ONCE])", Ok("a once"))]
#[case::imported("texts.HELP", Ok("Help"))]
#[case::returned("made()", Ok("made once"))]
#[case::with_argument("greeting('you')", Ok("Hello you"))]
#[case::format("'a {}'.format(1)", Err("is called at run time"))]
#[case::environment("os.environ['X']", Err("at run time"))]
#[case::twice("TWICE", Err("'TWICE' is assigned more than once"))]
#[case::changed("CHANGED", Err("'CHANGED' is assigned more than once"))]
#[case::ternary("'a' if X else 'b'", Err("it depends on a condition"))]
#[case::itself("LOOP", Err("is assigned more than once"))]
fn evaluates_python(#[case] expression: &str, #[case] expected: Result<&str, &str>) {
    let text = format!(
        "import os, textwrap\nfrom . import texts\nONCE = 'once'\nNUMBER = 4\nTWICE = 'a'\nTWICE = 'b'\nCHANGED = 'a'\n\
         CHANGED += 'b'\nLOOP = LOOP + 'x'\ndef made(): return 'made ' + ONCE\ndef greeting(name): return f'Hello {{name}}'\n\
         T = {{'name': 't', 'description': {expression}, 'input_schema': {{'type': 'object'}}}}\n"
    );
    let registry = module(&[("m.py", &text), ("texts.py", "HELP = 'Help'\n")]);
    let tool = registry.tool("t").unwrap();
    match expected {
        Ok(expected) => assert_eq!(tool.description.as_deref(), Some(expected), "{:?}", tool.description),
        Err(reason) => assert!(tool.description.unknown().unwrap().reason.contains(reason), "{:?}", tool.description),
    }
}

#[rstest]
#[case::template("`It ${ONCE}`", Ok("It once"))]
#[case::member("TEXTS.deep.a", Ok("A"))]
#[case::enumeration("Names.A", Ok("a"))]
#[case::imported("HELP", Ok("Help"))]
#[case::json("data.help", Ok("From JSON"))]
#[case::join("['a', 'b'].join(' ')", Ok("a b"))]
#[case::returned("made()", Ok("made once"))]
#[case::environment("process.env.X ?? 'x'", Err("it depends on a condition"))]
#[case::call("i18n('x')", Err("'i18n(…)' is called at run time"))]
#[case::changed("changed", Err("'changed' is assigned more than once"))]
fn evaluates_typescript(#[case] expression: &str, #[case] expected: Result<&str, &str>) {
    let text = format!(
        "import {{ HELP }} from './texts.js';\nimport data from './data.json';\nconst ONCE = 'once' as const;\n\
         const TEXTS = {{ deep: {{ a: 'A' }} }};\nenum Names {{ A = 'a' }}\nlet changed = 'a';\nchanged = 'b';\n\
         const made = () => 'made ' + ONCE;\nexport const t = {{ name: 't', description: {expression}, parameters: {{}} }};\n"
    );
    let data = "{\"help\": \"From JSON\"}";
    let registry = module(&[("m.ts", &text), ("texts.ts", "export const HELP = 'Help';\n"), ("data.json", data)]);
    let tool = registry.tool("t").unwrap();
    match expected {
        Ok(expected) => assert_eq!(tool.description.as_deref(), Some(expected), "{:?}", tool.description),
        Err(reason) => assert!(tool.description.unknown().unwrap().reason.contains(reason), "{:?}", tool.description),
    }
}

#[test]
fn reports_syntax_errors_and_reads_other_files() {
    let folder = project(&[
        ("tools/good.py", "@tool\ndef look(x: int): 'Looks.'\n"),
        ("tools/bad.py", "@tool\ndef broken(:\n    pass\n"),
        ("tools/bad.ts", "export const a = {;\n"),
        ("tools/latin.py", ""),
        ("tools/test_good.py", "@tool\ndef fake(): 'd'\n"),
        ("tools/a.test.ts", "server.tool('fake', 'd', async () => null);\n"),
        ("tools/node_modules/x/index.js", "server.tool('fake', 'd', async () => null);\n"),
        ("tools/deep/more.ts", "server.tool('more', 'More.', async () => null);\n"),
    ]);
    std::fs::write(folder.path().join("tools/latin.py"), b"X = '\xe9'\n").unwrap();
    let registry = read(&folder, "tools");
    let mut names = registry.names();
    names.sort_unstable();
    assert_eq!(names, ["look", "more"]);
    let gaps = gaps(&registry);
    assert_eq!(gaps.len(), 3, "{gaps:?}");
    assert!(gaps.iter().any(|gap| gap.starts_with("Broken tools/bad.py:2:12 syntax error: ")), "{gaps:?}");
    assert!(gaps.iter().any(|gap| gap.starts_with("Broken tools/bad.ts:1:19 syntax error: ")), "{gaps:?}");
    assert!(gaps.iter().any(|gap| gap == "Broken tools/latin.py it is not valid UTF-8"), "{gaps:?}");
}

#[test]
fn a_python_file_includes_imported_tools() {
    let registry = module(&[
        (
            "app/tools.py",
            "from .texts import HELP, make\nfrom . import weather\nfrom more.sums import add, NUMBER as n\nfrom stars import *\n\
             import texts2\nTOOLS = [{'name': 'own', 'description': HELP + texts2.MORE + f'{n}' + STAR, 'input_schema': {}}]\n",
        ),
        ("app/__init__.py", ""),
        ("app/texts.py", "from .deep import HELP\n@tool\ndef unused(): 'Not imported.'\ndef make(): ...\n"),
        ("app/deep.py", "HELP = 'It' \"'s \"\n"),
        ("app/weather.py", "@tool\ndef rain(): 'Rains.'\n"),
        ("app/texts2.py", "MORE = 'here '\n"),
        ("more/__init__.py", ""),
        ("more/sums.py", "NUMBER = 4\n@tool\ndef add(a: int): 'Adds.'\n@tool\ndef other(): 'Other.'\n"),
        ("stars.py", "STAR = '*'\n@tool\ndef shine(): 'Shines.'\n"),
    ]);
    let mut names = registry.names();
    names.sort_unstable();
    assert_eq!(names, ["add", "own", "rain", "shine"]);
    assert_eq!(description(&registry, "own"), Some("It's here 4*"));
    assert_eq!(registry.tool("rain").unwrap().location.as_ref().unwrap().to_string(), "app/weather.py:2:5");
    assert_eq!(gaps(&registry), [""; 0]);
}

#[test]
fn a_typescript_file_includes_re_exported_and_registered_tools() {
    let registry = module(&[
        (
            "index.ts",
            "export * from './weather.js';\nexport { search } from './search';\nexport * from './gone';\n\
             import { registerNotes } from '@/notes';\nregisterNotes(server);\n",
        ),
        ("weather.ts", "export const w = { name: 'weather', description: 'W', parameters: {} };\n"),
        (
            "search.ts",
            "export const search = defineTool({ name: 'search', description: 'S', schema: {} });\n\
             export const other = defineTool({ name: 'other', description: 'O', schema: {} });\n",
        ),
        ("src/notes.ts", "export function registerNotes(server) { server.tool('note', 'N', async () => null); }\n"),
        ("tsconfig.json", "{ \"compilerOptions\": { \"paths\": { \"@/*\": [\"./src/*\"] } } }"),
    ]);
    let mut names = registry.names();
    names.sort_unstable();
    assert_eq!(names, ["note", "search", "weather"]);
    assert_eq!(gaps(&registry), ["Broken index.ts no file found for './gone'"]);
}

#[test]
fn ignores_missing_files_that_cannot_define_tools() {
    let tool = "import { z } from '../vendor';\n\
                export const look = defineTool({ name: 'look', description: 'Looks.', schema: { at: z.string() } });\n";
    let folder = project(&[
        ("src/tools/look.ts", tool),
        ("src/vendor.ts", "export { z } from 'zod';\nexport * as Bundle from './generated/bundle.js';\n"),
        ("src/main.ts", "export * from './tools/look';\nexport * from './generated/tools';\n"),
    ]);
    for path in ["src/tools/look.ts", "src/tools"] {
        let registry = read(&folder, path);
        assert_eq!((registry.names(), gaps(&registry)), (vec!["look"], vec![]), "{path}");
    }
    let registry = read(&folder, "src/main.ts");
    assert_eq!(gaps(&registry), ["Broken src/main.ts no file found for './generated/tools'"]);
}

#[test]
fn a_single_file_excludes_imports_used_only_inside_tools() {
    let registry = module(&[
        (
            "app/tools/clicks.py",
            "from __future__ import annotations\nfrom app.manager import get_manager\nfrom app.log import emit, Level\n\
             from . import shared\n\
             async def click(selector: str) -> Level:\n    emit(shared.TEXT)\n    return get_manager().click(selector)\n\
             def register_click(agent):\n    @agent.tool\n    async def browser_click(context: RunContext, selector: str):\n        \
             'Clicks.'\n        from app import tools\n        return await click(selector)\n",
        ),
        ("app/__init__.py", ""),
        ("app/tools/__init__.py", "from app.tools.files import register_files\n"),
        ("app/tools/shared.py", "TEXT = 'x'\n@tool\ndef shared_tool(x: int):\n    'Shared.'\n"),
        (
            "app/tools/files.py",
            "def register_files(agent):\n    @agent.tool\n    def read_file(c: RunContext, x: str):\n        'Reads.'\n",
        ),
        ("app/log.py", "from app.tools import register_files\nclass Level: ...\ndef emit(x): register_files(x)\n"),
        ("app/manager.py", "from app.log import emit\ndef get_manager(): emit(1)\n"),
    ]);
    assert_eq!(registry.names(), ["browser_click"]);
}

#[test]
fn an_entry_file_includes_modules_that_register_at_its_server() {
    let registry = module(&[
        (
            "main.py",
            "from app import mcp\nfrom tools import weather, news as _news\nimport tools.sums\nimport stocks\n\
             @mcp.tool()\ndef own(x: int):\n    'Own.'\n    return weather.helper(x)\n\
             def main():\n    from late import register\n    register(mcp)\n    mcp.run()\nstocks.register(mcp)\n",
        ),
        ("app.py", "from fastmcp import FastMCP\nmcp = FastMCP('x')\n@mcp.tool()\ndef base(x: int):\n    'Base.'\n"),
        ("tools/__init__.py", ""),
        ("tools/weather.py", "from app import mcp\ndef helper(x): ...\n@mcp.tool()\ndef rain(x: int):\n    'Rains.'\n"),
        ("tools/news.py", "from app import mcp\n@mcp.tool()\ndef headlines(x: int):\n    'News.'\n"),
        ("tools/sums.py", "from app import mcp\n@mcp.tool()\ndef add(x: int):\n    'Adds.'\n"),
        ("late.py", "def register(mcp):\n    @mcp.tool()\n    def late(x: int):\n        'Late.'\n"),
        ("stocks.py", "def register(mcp):\n    @mcp.tool()\n    def price(x: int):\n        'Price.'\n"),
    ]);
    let mut names = registry.names();
    names.sort_unstable();
    assert_eq!(names, ["add", "base", "headlines", "late", "own", "price", "rain"]);
}

#[test]
fn importing_files_name_tools() {
    let factory = |name: &str| {
        format!(
            "export const {name} = ({{ email }}) => tool({{ description: '{name}', inputSchema: z.object({{}}), execute }});\n"
        )
    };
    let tools = ["createRuleTool", "unusedTool", "twiceTool"].map(factory).concat();
    let weather = "export const weatherTool = tool({ description: 'W', inputSchema: z.object({}), execute });\n\
        export const clockTool = tool({ description: 'C', inputSchema: z.object({}), execute });\n";
    let head = "import { tool } from 'ai';\nimport { z } from 'zod';\n";
    let folder = project(&[
        ("package.json", "{}"),
        ("src/tools/rules.ts", &format!("{head}{tools}")),
        ("src/tools/weather.ts", &format!("{head}{weather}")),
        (
            "src/chat.ts",
            "import { createRuleTool, twiceTool } from './tools/rules';\nimport { weatherTool } from './tools/weather';\n\
             const allTools = { createRule: createRuleTool(options), ...(x ? { one: twiceTool(options) } : {}), weather: weatherTool };\n",
        ),
        (
            "src/other.ts",
            "import { twiceTool } from './tools/rules';\nconst tools = {};\nrun({ tools: { two: twiceTool(options) } });\n",
        ),
        ("src/broken.ts", "import { createRuleTool } from './tools/rules';\nconst = 1;\n"),
        (
            "src/chat.test.ts",
            "import { createRuleTool } from './tools/rules';\nrun({ tools: { test: createRuleTool({}) } });\n",
        ),
    ]);
    let registry = read(&folder, "src/tools");
    assert_eq!(registry.names(), ["createRule", "weather", "clockTool"]);
    let gaps = gaps(&registry);
    assert_eq!(gaps.len(), 2, "{gaps:?}");
    assert!(gaps[0].contains("without a name; read the file that adds it to 'tools' instead"), "{gaps:?}");
    assert!(gaps[1].contains("('one' in src/chat.ts, 'two' in src/other.ts); read one of them instead"), "{gaps:?}");
    assert_eq!(read(&folder, "src/tools/rules.ts").names(), ["createRule"]);
}

#[test]
fn mastra_agents_name_their_tools() {
    let tool = |name: &str| {
        format!(
            "export const {name} = createTool({{ id: 'id-of-{name}', description: 'D', inputSchema: z.object({{}}), execute }});\n"
        )
    };
    let head = "import { createTool } from '@mastra/core/tools';\nimport { z } from 'zod';\n";
    let agent = "import { Agent } from '@mastra/core/agent';\nimport { a, b } from '../tools';\n";
    let folder = project(&[
        ("package.json", "{}"),
        ("src/tools/index.ts", &format!("{head}{}{}{}", tool("a"), tool("b"), tool("c"))),
        (
            "src/agents/first.ts",
            &format!("{agent}export const first = new Agent({{ name: 'x', tools: {{ a, look: b }} }});\n"),
        ),
        (
            "src/agents/second.ts",
            &format!("{agent}export const second = new Agent({{ name: 'y', tools: {{ see: a, look: b }} }});\n"),
        ),
    ]);
    assert_eq!(read(&folder, "src/tools").names(), ["id-of-a", "look", "id-of-c"]);
    assert_eq!(read(&folder, "src/agents/first.ts").names(), ["a", "look"]);
}

#[test]
fn reports_duplicate_tool_names() {
    let registry = module(&[("m.py", "@tool\ndef a(): 'One.'\n@tool(name='a')\ndef b(): 'Two.'\n")]);
    assert_eq!(description(&registry, "a"), Some("One."));
    assert_eq!(
        gaps(&registry),
        ["Broken m.py:4:5 a tool named 'a' is already defined (m.py:2:5); this one is ignored"]
    );
    let same = module(&[("m.py", "@tool\ndef a(): 'One.'\n@tool(name='a')\ndef b(): 'One.'\n")]);
    assert_eq!(gaps(&same), [""; 0]);
}

#[test]
fn converts_types_to_schemas() {
    let text = "from typing import *\nfrom numpy import ndarray\nfrom pydantic import BaseModel\n\
        class City(BaseModel):\n    name: str\n    zip: str | None = None\n\
        @tool\ndef f(a: str, b: list[int], c: City, d: ndarray, e: Literal['x', 'y'] = 'x', *, g: Optional[float] = None, **more):\n    'F.'\n";
    let registry = module(&[("m.py", text)]);
    let expected = json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "array", "items": {"type": "integer"}},
            "c": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "zip": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
                },
                "required": ["name"],
            },
            "d": {},
            "e": {"enum": ["x", "y"], "default": "x"},
            "g": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": null},
        },
        "required": ["a", "b", "c", "d"],
    });
    assert_eq!(registry.tool("f").unwrap().input_schema.get(), Some(&expected));
}

#[test]
fn reads_field_maps() {
    let text = "export const t = { name: 't', description: 'd', schema: { city: { type: 'string' }, days: { type: 'number', optional: true } } };";
    let map = json!([{"name": "t", "description": "d", "schema": {"city": {"type": "string"}, "days": {"type": "number", "optional": true}}}]);
    let expected = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "number"}},
        "required": ["city"],
        "additionalProperties": false,
    });
    for registry in [module(&[("m.ts", text)]), module(&[("tools.json", &map.to_string())])] {
        assert_eq!(registry.tool("t").unwrap().input_schema.get(), Some(&expected));
    }
}

#[test]
fn rejects_sources_without_tools() {
    let folder = project(&[("a.py", "X = 1\n"), ("b.ts", "export const x = 1;\n"), ("empty/readme.md", "")]);
    let error = |path: &str| read_path(&folder.path().join(path), folder.path()).unwrap_err();
    assert!(matches!(error("a.py"), RegistryError::NoTools { .. }));
    assert_eq!(error("").to_string(), "no tools found in a.py, b.ts");
    assert_eq!(
        error("empty").to_string(),
        "the folder empty has no source files to read tools from (.py, .ts, .js, …)"
    );
}

fn chain(first: &str, count: usize, line: impl Fn(usize) -> String) -> String {
    (1..=count).fold(first.to_owned(), |text, number| text + &line(number))
}

#[rstest]
#[case::parentheses("py", format!("X = {}1{}\n", "(".repeat(20_000), ")".repeat(20_000)))]
#[case::dictionaries("py", format!("TOOLS = {}1{}\n", "{'a': ".repeat(5_000), "}".repeat(5_000)))]
#[case::sum("py", format!("X = {}'a'\n", "'a' + ".repeat(100_000)))]
#[case::attributes("py", format!("X = a{}\n", ".b".repeat(100_000)))]
#[case::unions("py", format!("@tool\ndef g(x: {}int): 'd'\n", "int | ".repeat(50_000)))]
#[case::classes("py", chain("class M0(BaseModel): pass\n", 3_000, |n| format!("class M{n}(M{0}):\n    x: 'M{0}'\n", n - 1)))]
#[case::unary("py", format!("X = {}1\n", "-".repeat(50_000)))]
#[case::doubling("py", chain("X0 = 'aaaaaaaa'\n", 59, |n| format!("X{n} = X{0} + X{0}\n", n - 1)) + "T = {'name': 't', 'description': X59, 'input_schema': {}}\n")]
#[case::doubling_lists("py", chain("X0 = ['a']\n", 59, |n| format!("X{n} = [X{0}, X{0}]\n", n - 1)) + "T = {'name': 't', 'description': 'd', 'input_schema': {'enum': X59}}\n")]
#[case::doubling_types("py", chain("T0 = int\n", 39, |n| format!("T{n} = Union[T{0}, list[T{0}]]\n", n - 1)) + "@tool\ndef g(x: T39): 'd'\n")]
#[case::diamonds("py", chain("class A0(BaseModel): pass\nclass B0(BaseModel): pass\n", 40, |n| format!("class A{n}(A{0}, B{0}): pass\nclass B{n}(A{0}, B{0}): pass\n", n - 1)) + "@tool\ndef g(x: A28): 'd'\n")]
#[case::text_bomb("py", chain("Y0 = 'aaaaaaaa'\n", 18, |n| format!("Y{n} = Y{0} + Y{0}\n", n - 1)) + &format!("Z = {{'name': 'z', 'description': ''.join([{}]), 'input_schema': {{}}}}\n", "Y18, ".repeat(4_000)))]
#[case::circle("py", "A = B\nB = A\nfrom m import A as C\nclass K(K): pass\nT = {'name': A, 'description': C, 'input_schema': K}\n".to_owned())]
#[case::recursive_calls("py", "def f(x): return f(f(x))\nT = {'name': 't', 'description': f('a'), 'input_schema': {}}\n".to_owned())]
#[case::nul("py", "X = 1\u{0}\n".to_owned())]
#[case::brackets("ts", format!("const x = {}1{};\n", "[".repeat(20_000), "]".repeat(20_000)))]
#[case::markup("tsx", format!("const x = {}{};\n", "<a>".repeat(30_000), "</a>".repeat(30_000)))]
#[case::script_sum("ts", format!("export const t = {{ name: 't', description: {}'a', parameters: {{}} }};\n", "'a' + ".repeat(50_000)))]
#[case::zod_chain("ts", format!("import {{ z }} from 'zod';\nserver.tool('t', 'd', {{ a: z.string(){} }}, f);\n", ".optional()".repeat(20_000)))]
#[case::zod_recursion("ts", "import { z } from 'zod';\nfunction node() { return z.object({ left: node(), right: node() }) }\nserver.tool('t', 'd', node(), f);\n".to_owned())]
#[case::script_circle("ts", "export * from './m';\nexport const a = b, b = a;\nserver.tool(a, b, {}, f);\n".to_owned())]
fn hostile_sources_are_read_in_bounded_time(#[case] extension: &str, #[case] text: String) {
    let folder = project(&[(&format!("m.{extension}"), &text)]);
    let start = std::time::Instant::now();
    let _ = read_path(&folder.path().join(format!("m.{extension}")), folder.path());
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn a_single_file_includes_only_what_it_uses() {
    let registry = module(&[
        (
            "account.ts",
            "import { hash, schema } from './util';\nimport { registerAll } from './register';\n\
             server.tool('own', 'Own.', { id: schema }, async () => hash(1));\nregisterAll(server);\n",
        ),
        (
            "util.ts",
            "import { z } from 'zod';\nimport { others } from './others';\nexport const schema = z.string();\n\
             export function hash(x) { return x }\nexport function all() { return others }\n",
        ),
        ("others.ts", "export const others = [{ name: 'other', description: 'Other.', inputSchema: {} }];\n"),
        (
            "register.ts",
            "import { used } from './used';\nconst list = [used];\n\
             export function registerAll(server) { for (const one of list) server.addTool(one) }\n",
        ),
        ("used.ts", "export const used = { name: 'used', description: 'Used.', inputSchema: {} };\n"),
    ]);
    assert_eq!(registry.names(), ["own", "used"]);
}

#[test]
fn distinguishes_a_package_from_a_file_of_the_same_name() {
    let tool = |name: &str| format!("@tool\ndef {name}(a: str):\n    \"\"\"Does it.\"\"\"\n");
    let main = format!("from semantic_kernel import Kernel\nfrom langchain_core.tools import tool\n{}", tool("own"));
    let registry = module(&[("main.py", main.as_str()), ("semantic_kernel.py", tool("stray").as_str())]);
    assert_eq!(registry.names(), ["own"]);
}

#[test]
fn instances_of_a_tool_class_take_their_name_from_the_call() {
    let registry = module(&[(
        "m.py",
        "from crewai.tools import BaseTool\n\
         class Search(BaseTool):\n    def __init__(self, name, topic='docs'):\n        \
         super().__init__(name=name, description=f'Searches {topic}.')\n    def _run(self, query: str): ...\n\
         tools = [Search('search_docs'), Search(name='search_web', topic='the web')]\n",
    )]);
    assert_eq!(description(&registry, "search_docs"), Some("Searches docs."));
    assert_eq!(description(&registry, "search_web"), Some("Searches the web."));
    assert_eq!((registry.names().len(), gaps(&registry)), (2, vec![]));
}

#[test]
fn reports_decorated_classes_that_cannot_be_read() {
    let registry =
        module(&[("m.py", "@tool\nclass Search:\n    def go(self): ...\n@tool\ndef f(x: int):\n    'F.'\n")]);
    assert_eq!(registry.names(), ["f"]);
    let gaps = gaps(&registry);
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert!(gaps[0].contains("m.py:1:2 ") && gaps[0].contains("the decorator's effect on the class"), "{gaps:?}");
}

#[test]
fn reads_attributes_assigned_before_registration() {
    let registry = module(&[(
        "m.py",
        "from pydantic_ai import Agent\nagent = Agent('test')\n\
         def register(agent, name, signature):\n    def wrapper(x: int):\n        'Wraps.'\n    \
         wrapper.__name__ = name\n    agent.tool_plain(wrapper)\n\
         def first(x: int):\n    'Before.'\nfirst.__name__ = 'renamed'\nfirst.__doc__ = 'After.'\nagent.tool_plain(first)\n\
         def second(x: int):\n    'Second.'\nsecond.__signature__ = make()\nagent.tool_plain(second)\n\
         @agent.tool_plain\ndef third(x: int):\n    'Third.'\nthird.__name__ = 'too_late'\n",
    )]);
    assert_eq!(registry.names(), ["renamed", "second", "third"]);
    assert_eq!(description(&registry, "renamed"), Some("After."));
    assert!(registry.tool("second").unwrap().unknown(ToolField::InputSchema).is_some());
    let gaps = gaps(&registry);
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert!(gaps[0].contains("m.py:6:24 cannot determine the name of a tool: 'name' is a parameter"), "{gaps:?}");
}

#[test]
fn prefers_the_most_complete_definition() {
    let registry = module(&[(
        "m.ts",
        "const shownTools = [{ name: 'search', description: 'Searches.' }];\n\
         export const tools = [{ name: 'search', description: 'Searches the web.', inputSchema: { type: 'object', properties: { q: {} } } }];\n",
    )]);
    assert_eq!(description(&registry, "search"), Some("Searches the web."));
    assert_eq!(gaps(&registry), [""; 0]);
}

#[test]
fn excludes_objects_that_are_spread_into_tools() {
    let folder = project(&[
        (
            "tools/skills.ts",
            "export const SKILLS_META: Tool = { name: 'skills', description: 'Reads a skill.', parameters: { type: 'object' }, run };\n\
             export const skillsTool = async (): Promise<Tool> => {\n  const skills = await load();\n  \
             return { ...SKILLS_META, description: `Reads one of ${skills}.` };\n};\n",
        ),
        (
            "tools/search.ts",
            "const base = { name: 'search', description: 'Searches.', parameters: { type: 'object' } };\n\
             export const web = { ...base, name: 'search_web' };\nexport const docs = { ...base, name: 'search_docs' };\n",
        ),
        (
            "tools/both.ts",
            "const plain = { name: 'plain', description: 'Plain.', parameters: { type: 'object' } };\n\
             export const all = [plain, { ...plain, name: 'other' }];\n",
        ),
        ("tools/index.ts", "import { SKILLS_META } from './skills';\nexport const shown = [SKILLS_META];\n"),
    ]);
    let registry = read(&folder, "tools");
    let mut names = registry.names();
    names.sort_unstable();
    assert_eq!(names, ["other", "plain", "search_docs", "search_web", "skills"]);
    assert!(registry.tool("skills").unwrap().unknown(ToolField::Description).is_some());
    assert_eq!(gaps(&registry), [""; 0]);
}

#[test]
fn reports_forwarded_tools_only_if_nothing_else_is_found() {
    let passes = "def convert(tools):\n    return [{'name': tool.name, 'description': tool.text, 'input_schema': tool.schema} for tool in tools]\n";
    let registry = module(&[("m.py", passes)]);
    assert!(gaps(&registry)[0].contains("cannot determine the name of a tool"), "{:?}", gaps(&registry));
    let tool = "@tool\ndef f(x: int):\n    '''D'''\n";
    assert_eq!(gaps(&module(&[("m.py", &format!("{passes}{tool}"))])), [""; 0]);
}

#[test]
fn excludes_tests_and_dependencies_of_a_folder() {
    let tool =
        |name: &str| format!("export const {name} = {{ name: '{name}', description: 'D.', inputSchema: {{}} }};\n");
    let folder = project(&[
        ("src/a.ts", &tool("a")),
        ("src/a.vitest.ts", &tool("b")),
        ("src/test/helpers.ts", &tool("c")),
        ("src/node_modules/x/index.js", &tool("d")),
    ]);
    assert_eq!(read(&folder, "src").names(), ["a"]);
}
