//! Python modules: what is read of them is what their libraries offer to a model.

use std::path::Path;
use std::process::Command;

use karat_core::registry::{GapKind, Registry, Tool, ToolField};
use karat_registry::read_path;
use karat_testkit::tools::TestTool;
use rstest::rstest;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Writes files and returns their folder.
pub(crate) fn project(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

pub(crate) fn read(folder: &TempDir, path: &str) -> Registry {
    read_path(&folder.path().join(path), folder.path()).unwrap()
}

/// Reads a single module.
pub(crate) fn module(text: &str) -> Registry {
    read(&project(&[("m.py", text)]), "m.py")
}

pub(crate) fn description(registry: &Registry, name: &str) -> Option<String> {
    registry.tool(name).unwrap_or_else(|| panic!("{name} of {:?}", registry.names())).description.clone()
}

pub(crate) fn unknown(registry: &Registry, name: &str, field: ToolField) -> Option<String> {
    let unknown = registry.tool(name).unwrap().unknown(field)?;
    Some(format!("{} {}", unknown.place, unknown.why))
}

pub(crate) fn gaps(registry: &Registry) -> Vec<String> {
    registry.gaps().iter().map(|gap| format!("{:?} {} {}", gap.kind, gap.place, gap.what)).collect()
}

/// Takes away the titles that pydantic makes of names; karat writes none.
fn without_titles(schema: &Value) -> Value {
    match schema {
        Value::Object(object) => {
            let is_title = |key: &str, value: &Value| key == "title" && value.is_string();
            let kept = object.iter().filter(|(key, value)| !is_title(key, value));
            Value::Object(kept.map(|(key, value)| (key.clone(), without_titles(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_titles).collect()),
        other => other.clone(),
    }
}

fn library_module(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/python").join(format!("{name}.py"));
    std::fs::read_to_string(path).unwrap()
}

/// What is not known of the modules is named here, so that neither more nor less of them is.
#[rstest]
#[case::official_mcp("official_mcp", &[], &[])]
#[case::langchain("langchain_tools", &["parsed"], &["parsed"])]
#[case::agents("agents_tools", &["sections"], &["sections"])]
#[case::anthropic("anthropic_tools", &["sections"], &["sections"])]
#[case::pydantic_ai("pydantic_ai_tools", &["sections"], &["sections"])]
#[case::fastmcp("fastmcp_tools", &["sections"], &["sections"])]
#[ignore = "needs the Python tool libraries"]
fn what_a_library_offers_is_what_is_read(#[case] name: &str, #[case] descriptions: &[&str], #[case] schemas: &[&str]) {
    let python = TestTool::ToolLibraries.command();
    let file = format!("{name}.py");
    let folder = project(&[(&file, &library_module(name)), ("dump.py", &library_module("dump"))]);
    let dump = Command::new(&python[0])
        .args(["-B", "-W", "ignore", "dump.py", ".", name])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let run: Value = serde_json::from_slice(&dump.stdout).unwrap();
    std::fs::write(folder.path().join(".python-version"), run["python"].as_str().unwrap()).unwrap();

    let registry = read(&folder, &file);
    assert_eq!(gaps(&registry), [""; 0]);
    let names: Vec<&str> = run["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let mut read_names = registry.names();
    read_names.sort_unstable();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(read_names, sorted);
    for offered in run["tools"].as_array().unwrap() {
        let name = offered["name"].as_str().unwrap();
        let tool = registry.tool(name).unwrap();
        assert_eq!(tool.unknown(ToolField::Description).is_some(), descriptions.contains(&name), "{tool:#?}");
        assert_eq!(tool.unknown(ToolField::InputSchema).is_some(), schemas.contains(&name), "{tool:#?}");
        if !descriptions.contains(&name) {
            let offered = Tool { description: offered["description"].as_str().map(str::to_owned), ..Tool::default() };
            assert_eq!(tool.description, offered.description, "{name}");
            assert_eq!(tool.description_hash(), offered.description_hash(), "{name}");
        }
        if !schemas.contains(&name) {
            let schema = without_titles(&offered["inputSchema"]);
            assert_eq!(tool.input_schema.as_ref(), Some(&schema), "{name}");
        }
    }
}

#[test]
fn nothing_is_executed() {
    let folder = tempfile::tempdir().unwrap();
    let trap = folder.path().join("executed");
    let text = format!(
        "import pathlib\npathlib.Path({0:?}).touch()\n@tool\ndef f(x: int = pathlib.Path({0:?}).touch()):\n    '''D'''\n\
         TOOLS = [{{'name': 'g', 'description': open({0:?}, 'w').name, 'input_schema': {{}}}}]\n",
        trap.display().to_string()
    );
    std::fs::write(folder.path().join("m.py"), &text).unwrap();
    let registry = read(&folder, "m.py");
    assert_eq!(registry.names(), ["f", "g"]);
    assert!(registry.tool("g").unwrap().unknown(ToolField::Description).is_some());
    assert!(!trap.exists());
    // The trap is a trap.
    Command::new("python3").args(["-B", "m.py"]).current_dir(folder.path()).output().unwrap();
    assert!(trap.exists());
}

const SHAPES: &str = r#"
from textwrap import dedent
import textwrap as tw
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
NAME = "anthropic"
COMMON = {"version": "1.2.0", "category": "read"}
TOOLS = [
    {"name": NAME, "description": ("It's "
        'one ' f"{NAME} tool"), "input_schema": SCHEMA},
    {"type": "function", "function": {"name": "openai", "description": """Line one
line two""", "parameters": {**SCHEMA, "required": ["q"]}}},
    {**COMMON, "name": "spread", "description": tw.dedent("""
        Dedented
          text
    """).strip(), "inputSchema": dict(SCHEMA, additionalProperties=False)},
    {"name": "ours", "description": " ".join(["a", "b"]), "trigger_phrases": ["do it"], "status": "active", "requires_confirmation": True},
]
SINGLE = {"type": "function", "name": "responses", "description": b"bytes", "parameters": None}
AUTHOR = {"name": "Jane", "description": "wrote this"}
PAYLOAD = {"name": "x", "parameters": [1, 2]}
"#;

#[test]
fn dictionaries_in_every_shape() {
    let registry = module(SHAPES);
    assert_eq!(registry.names(), ["anthropic", "openai", "spread", "ours", "responses"]);
    assert_eq!(description(&registry, "anthropic").as_deref(), Some("It's one anthropic tool"));
    assert_eq!(description(&registry, "openai").as_deref(), Some("Line one\nline two"));
    assert_eq!(description(&registry, "spread").as_deref(), Some("Dedented\n  text"));
    assert_eq!(description(&registry, "ours").as_deref(), Some("a b"));
    assert_eq!(unknown(&registry, "responses", ToolField::Description).unwrap(), "m.py:18:67 it is bytes, not text");
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
    assert_eq!(registry.tool("openai").unwrap().input_schema, Some(schema));
    let spread = registry.tool("spread").unwrap();
    assert_eq!(spread.input_schema.as_ref().unwrap()["additionalProperties"], false);
    assert_eq!((spread.version.as_deref(), spread.category.as_deref()), (Some("1.2.0"), Some("read")));
    assert_eq!(spread.place.as_ref().unwrap().to_string(), "m.py:12:5");
    assert_eq!(spread.description_place.as_ref().unwrap().to_string(), "m.py:12:49");
    assert_eq!(registry.tool("ours").unwrap().trigger_phrases, ["do it"]);
    assert_eq!(registry.tool("ours").unwrap().requires_confirmation, Some(true));
    assert_eq!(spread.requires_confirmation, None);
}

const CONSTRUCTORS: &str = r#"
import mcp.types as types
from mcp.types import Tool
from langchain_core.tools import BaseTool, Tool as LangTool
from pydantic import BaseModel

class Query(BaseModel):
    q: str

class Search(BaseTool):
    name: str = "search"
    description: str = "Searches."
    args_schema: type[BaseModel] = Query

@server.list_tools()
async def list_tools():
    limit = 3
    extra = [Tool(name=n, description="x", inputSchema={}) for n in NAMES]
    return [
        types.Tool(name="one", description="One.", inputSchema={"type": "object", "properties": {"n": {"maximum": limit}}}),
        Tool(name="two", description=f"At most {limit}.", inputSchema=Query.model_json_schema()),
        *extra,
    ]

LANG = LangTool(name="lang", func=print, description=" Spaced. ")
"#;

#[test]
fn constructors_and_classes() {
    let registry = module(CONSTRUCTORS);
    assert_eq!(registry.names(), ["search", "one", "two", "lang"]);
    assert_eq!(description(&registry, "search").as_deref(), Some("Searches."));
    let query = json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
    assert_eq!(registry.tool("search").unwrap().input_schema.as_ref(), Some(&query));
    assert_eq!(registry.tool("two").unwrap().input_schema.as_ref(), Some(&query));
    let one = registry.tool("one").unwrap();
    assert_eq!(one.input_schema, Some(json!({"type": "object", "properties": {"n": {}}})), "unknown allows everything");
    assert_eq!(unknown(&registry, "one", ToolField::InputSchema).unwrap(), "m.py:20:115 'limit' belongs to a function");
    assert_eq!(unknown(&registry, "two", ToolField::Description).unwrap(), "m.py:21:49 'limit' belongs to a function");
    assert_eq!(description(&registry, "lang").as_deref(), Some(" Spaced. "));
    assert!(unknown(&registry, "lang", ToolField::InputSchema).is_some());
    assert_eq!(gaps(&registry), ["Unknown m.py:18:24 the name of a tool is not known: 'n' belongs to a function"]);
}

#[rstest]
#[case::format("'a {}'.format(1)", "a call of 'format' gives it")]
#[case::percent("'a %s' % 1", "it is filled in with '%'")]
#[case::call("make()", "a call of 'make' gives it")]
#[case::environment("os.environ['X']", "'os.environ['X']' is known only when it is run")]
#[case::twice("TWICE", "it is not clear what 'TWICE' is")]
#[case::branch("BRANCH", "it is not clear what 'BRANCH' is")]
#[case::rebound("REBOUND", "it is not clear what 'REBOUND' is")]
#[case::itself("LOOP", "'LOOP' is made of itself")]
#[case::external("other.TEXT", "'other.TEXT' is not part of the project")]
#[case::ternary("'a' if X else 'b'", "a condition gives it")]
#[case::spec("f'{ONCE:>5}'", "an f-string formats a value")]
#[case::surrogate(r"'\ud800'", "it has half of a character")]
#[case::surrogate_between(r"f'{ONCE}\udc00'", "it has half of a character")]
#[case::before_all_of_a_module("'a' + os.environ['X']", "'os.environ['X']' is known only when it is run")]
fn what_shows_only_at_run_time_is_unknown(#[case] expression: &str, #[case] why: &str) {
    let text = format!(
        "import os, other\nONCE = 'x'\nTWICE = 'a'\nTWICE = 'b'\nif os: BRANCH = 'a'\nREBOUND = 'a'\nLOOP = LOOP + 'a'\n\
         def f():\n    global REBOUND\nTOOLS = [{{'name': 't', 'description': {expression}, 'input_schema': {{}}}}]\n"
    );
    let registry = module(&text);
    assert_eq!(description(&registry, "t"), None);
    let unknown = unknown(&registry, "t", ToolField::Description).unwrap();
    assert!(unknown.ends_with(why), "{unknown}");
    assert_eq!(registry.tool("t").unwrap().description_hash(), None);
}

#[test]
fn what_is_changed_later_is_unknown() {
    let registry = module(
        "SCHEMA = {'type': 'object'}\nSCHEMA['required'] = ['x']\nBASE = {'description': 'd'}\nBASE.update(description='e')\n\
         TOOLS = [{'name': 'a', 'input_schema': SCHEMA}, {**BASE, 'name': 'b', 'input_schema': {}}]\n\
         TOOLS.append({'name': 'c', 'description': 'added'})\n",
    );
    assert_eq!(registry.names(), ["a", "b", "c"]);
    assert!(unknown(&registry, "a", ToolField::InputSchema).unwrap().contains("'SCHEMA' is changed"));
    assert_eq!(registry.tool("a").unwrap().input_schema, None);
    assert!(unknown(&registry, "b", ToolField::Description).unwrap().contains("'BASE' is changed"));
    assert_eq!(description(&registry, "c").as_deref(), Some("added"));
}

#[test]
fn a_docstring_whose_library_is_not_clear() {
    let registry = module(
        "from somewhere import tool as make_tool\n@make_tool\ndef one(x: int): 'One line.'\n@make_tool\ndef two(x: int):\n    '''Two\n    lines.'''\n\
         @registry.tool(name=make())\ndef nameless(): 'd'\n",
    );
    assert_eq!(description(&registry, "one").as_deref(), Some("One line."));
    assert!(unknown(&registry, "two", ToolField::Description).unwrap().contains("libraries differ"));
    assert_eq!(gaps(&registry), ["Unknown m.py:8:21 the name of a tool is not known: a call of 'make' gives it"]);
}

#[test]
fn indentation_depends_on_the_python() {
    let text =
        "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n@mcp.tool()\ndef f():\n    '''A\n    b'''\n";
    let folder = project(&[("m.py", text)]);
    assert!(unknown(&read(&folder, "m.py"), "f", ToolField::Description).unwrap().contains("3.13"));
    std::fs::write(folder.path().join(".python-version"), "3.12\n").unwrap();
    assert_eq!(description(&read(&folder, "m.py"), "f").as_deref(), Some("A\n    b"));
    std::fs::write(folder.path().join(".python-version"), "3.13\n").unwrap();
    assert_eq!(description(&read(&folder, "m.py"), "f").as_deref(), Some("A\nb"));
}

#[test]
fn a_syntax_error_has_its_place_and_costs_no_other_tool() {
    let folder = project(&[
        ("tools/__init__.py", "from .good import look\nfrom .bad import x\nfrom .gone import y\n"),
        ("tools/good.py", "@tool\ndef look(x: int): 'Looks.'\n"),
        ("tools/bad.py", "@tool\ndef broken(:\n    pass\n"),
        ("tools/latin.py", "# fine\n"),
        ("tools/test_good.py", "@tool\ndef fake(): 'd'\n"),
        ("tools/deep/more.py", "@tool\ndef more(): 'More.'\n"),
    ]);
    std::fs::write(folder.path().join("tools/latin.py"), b"X = '\xe9'\n").unwrap();
    let registry = read(&folder, "tools");
    assert_eq!(registry.names(), ["more", "look"]);
    assert!(registry.gaps().iter().all(|gap| gap.kind == GapKind::Broken));
    let gaps = gaps(&registry);
    assert!(gaps.iter().any(|gap| gap.starts_with("Broken tools/bad.py:2:12 not Python: ")), "{gaps:?}");
    assert!(gaps.iter().any(|gap| gap == "Broken tools/latin.py the file is not UTF-8"), "{gaps:?}");
    assert!(gaps.iter().any(|gap| gap == "Broken tools/__init__.py:3:1 there is no module '.gone'"), "{gaps:?}");
}

#[test]
fn imports_within_the_project_are_followed() {
    let folder = project(&[
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
    let registry = read(&folder, "app/tools.py");
    assert_eq!(registry.names(), ["own", "add", "rain", "shine"]);
    assert_eq!(description(&registry, "own").as_deref(), Some("It's here 4*"));
    assert_eq!(registry.tool("rain").unwrap().place.as_ref().unwrap().to_string(), "app/weather.py:2:5");
    assert_eq!(gaps(&registry), [""; 0]);
}

#[test]
fn one_name_for_two_tools() {
    let registry = module("@tool\ndef a(): 'One.'\n@tool(name='a')\ndef b(): 'Two.'\n");
    assert!(unknown(&registry, "a", ToolField::Description).unwrap().contains("declared again at m.py:4:5"));
    assert_eq!(gaps(&registry), ["Broken m.py:4:5 another tool has the name 'a' too (m.py:2:5)"]);
    let same = module("@tool\ndef a(): 'One.'\nif X:\n    pass\n@tool(name='a')\ndef b(): 'One.'\n");
    assert_eq!(description(&same, "a").as_deref(), Some("One."));
    assert_eq!(gaps(&same), [""; 0]);
    let branches = module("if X:\n    @tool\n    def a(): 'One.'\nelse:\n    @tool\n    def a(): 'Two.'\n");
    assert_eq!(gaps(&branches), [""; 0]);
    assert!(unknown(&branches, "a", ToolField::Description).unwrap().starts_with("m.py:6:9 "));
}

#[test]
fn unknown_types_allow_everything() {
    let registry = module(
        "from decimal import Decimal\nfrom elsewhere import Thing\n\
         @tool\ndef f(a: Thing, b: 'list[Thing]', c: Missing, *args, d: int = compute(), **kwargs): 'D.'\n",
    );
    let schema = json!({
        "type": "object",
        "properties": {"a": {}, "b": {"type": "array", "items": {}}, "c": {}, "d": {}},
        "required": ["a", "b", "c"],
    });
    let tool = registry.tool("f").unwrap();
    assert_eq!(tool.input_schema, Some(schema));
    assert_eq!(tool.schema_hash(), None);
    let unknown: Vec<String> =
        tool.unknown.iter().map(|unknown| format!("{} {}", unknown.place, unknown.why)).collect();
    assert!(
        unknown.contains(&"m.py:4:10 the type 'elsewhere.Thing' is not part of the project".to_owned()),
        "{unknown:?}"
    );
    assert!(
        unknown.contains(&"m.py:4:20 the type 'elsewhere.Thing' is not part of the project".to_owned()),
        "{unknown:?}"
    );
    assert_eq!(unknown.len(), 6, "{unknown:?}");
}

#[test]
fn a_windows_file_is_read_as_python_reads_it() {
    let folder = project(&[("m.py", "\u{feff}@tool(description='''a\r\nb''')\r\ndef f(): pass\r\n")]);
    let registry = read(&folder, "m.py");
    assert_eq!(description(&registry, "f").as_deref(), Some("a\nb"));
    assert_eq!(registry.tool("f").unwrap().place.as_ref().unwrap().to_string(), "m.py:3:5");
}

/// Returns a text with a line for each number after it.
fn chain(first: &str, count: usize, line: impl Fn(usize) -> String) -> String {
    (1..=count).fold(first.to_owned(), |text, number| text + &line(number))
}

#[rstest]
#[case::parentheses(format!("X = {}1{}\n", "(".repeat(20_000), ")".repeat(20_000)))]
#[case::lists(format!("X = {}{}\n", "[".repeat(20_000), "]".repeat(20_000)))]
#[case::dictionaries(format!("TOOLS = {}1{}\n", "{'a': ".repeat(5_000), "}".repeat(5_000)))]
#[case::sum(format!("X = {}'a'\n", "'a' + ".repeat(100_000)))]
#[case::attributes(format!("X = a{}\n", ".b".repeat(100_000)))]
#[case::unions(format!("@tool\ndef g(x: {}int): 'd'\n", "int | ".repeat(50_000)))]
#[case::types(format!("@tool\ndef g(x: {}int{}): 'd'\n", "list[".repeat(5_000), "]".repeat(5_000)))]
#[case::optional(format!("@tool\ndef g(x: {}int{}): 'd'\n", "Optional[".repeat(20_000), "]".repeat(20_000)))]
#[case::quoted(format!("@tool\ndef g(x: '{}1', y: 'int |{} int'): 'd'\n", "-".repeat(50_000), " int |".repeat(20_000)))]
#[case::classes(chain("class M0(BaseModel): pass\n", 3_000, |n| format!("class M{n}(M{0}):\n    x: 'M{0}'\n", n - 1)))]
#[case::unary(format!("X = {}1\n", "-".repeat(50_000)))]
#[case::blocks(chain("", 90, |depth| format!("{}if x:\n", " ".repeat(depth - 1))) + &" ".repeat(90) + "pass\n")]
#[case::doubling(chain("X0 = 'aaaaaaaa'\n", 59, |n| format!("X{n} = X{0} + X{0}\n", n - 1)))]
#[case::doubling_lists(chain("X0 = ['a']\n", 59, |n| format!("X{n} = [X{0}, X{0}]\n", n - 1)))]
#[case::open_lists(format!("X = {}\n", "[".repeat(70_000)))]
#[case::sum_and_error(format!("X = {}'a'\nx = = 1\n", "'a' + ".repeat(100_000)))]
#[case::patterns(format!("match x:\n    case {}{}: pass\n", "[".repeat(50_000), "]".repeat(50_000)))]
#[case::own_type("type J = dict[str, J] | list[J] | str\nK = dict[str, 'K'] | list['K'] | tuple['K', ...]\n@tool\ndef g(x: J, y: K): 'd'\n".to_owned())]
#[case::doubling_types(chain("T0 = int\n", 39, |n| format!("T{n} = tuple[T{0}, T{0}]\n", n - 1)) + "@tool\ndef g(x: T39): 'd'\n")]
#[case::diamonds(chain("class A0(BaseModel): pass\nclass B0(BaseModel): pass\n", 40, |n| format!("class A{n}(A{0}, B{0}): pass\nclass B{n}(A{0}, B{0}): pass\n", n - 1)) + "@tool\ndef g(x: A28): 'd'\n")]
#[case::text_bomb(chain("Y0 = 'aaaaaaaa'\n", 18, |n| format!("Y{n} = Y{0} + Y{0}\n", n - 1)) + &format!("X59 = f'{}'\nZ = {{'name': 'z', 'description': ''.join([{1}]), 'input_schema': {{'a': [{1}]}}}}\n", "{Y18}".repeat(4_000), "Y18, ".repeat(4_000)))]
#[case::circle("A = B\nB = A\nfrom m import A as C\nclass K(K): pass\n".to_owned())]
#[case::empty(String::new())]
#[case::nul("X = 1\u{0}\n".to_owned())]
fn hostile_sources_do_no_harm(#[case] text: String) {
    let text = format!(
        "@tool\ndef fine(): 'Fine.'\n{text}TOOLS = [{{'name': 'last', 'description': X59, 'input_schema': {{}}}}]\n"
    );
    let registry = module(&text);
    assert!(registry.tool("fine").is_some() || !registry.gaps().is_empty());
}

#[test]
fn a_folder_or_file_without_tools_says_what_was_looked_for() {
    let folder = project(&[("empty/readme.md", ""), ("tools.yaml", ""), ("none.py", "x = 1\n")]);
    let message = |path: &str| read_path(&folder.path().join(path), folder.path()).unwrap_err().to_string();
    assert!(
        message("empty").contains("the folder empty has nothing to read tools from: looked for *.py"),
        "{}",
        message("empty")
    );
    assert!(message("tools.yaml").starts_with("tools.yaml is no kind of file that karat reads tools from"));
    assert!(message("gone.py").contains("No such file"));
    assert_eq!(read(&folder, "none.py").names(), [""; 0]);
}

/// Texts as Python writes and reads them: hundreds of literals, each in its own words.
#[test]
fn literals_are_what_python_takes_them_for() {
    let folder = project(&[("literals.py", &library_module("literals"))]);
    let made = Command::new("python3")
        .args(["-B", "-W", "ignore", "literals.py"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let expected: serde_json::Map<String, Value> = serde_json::from_slice(&made.stdout).unwrap();
    let registry = read(&folder, "m.py");
    assert_eq!(gaps(&registry), [""; 0]);
    assert_eq!(registry.tools().len(), 600);
    for (name, text) in expected {
        assert_eq!(description(&registry, &name).as_deref(), text.as_str(), "{name}: {:?}", registry.tool(&name));
    }
}
