//! Python: what is a tool and what only looks like one, and what a library gives it of its own.

use karat_core::registry::ToolField;
use rstest::rstest;

use crate::python::{description, gaps, module, project, read, unknown};

#[rstest]
#[case::choice("f(tool_choice={'type': 'function', 'function': {'name': 'a'}})")]
#[case::choice_of_responses("tool_choice = {'type': 'function', 'name': 'a'}")]
#[case::call("M = [{'tool_calls': [{'id': 'c', 'type': 'function', 'function': {'name': 'a', 'arguments': '{}'}}]}]")]
fn what_only_looks_like_a_tool(#[case] text: &str) {
    let registry = module(text);
    assert_eq!(registry.names(), [""; 0]);
    assert_eq!(gaps(&registry), [""; 0]);
}

#[rstest]
#[case("@tool(name_or_callable='real')\ndef a(x: int): 'Does.'", "real", "Does.")]
#[case("def s(q: str): 'Docs.'\nT = Tool.from_function(s, 'real', 'Given.')", "real", "Given.")]
#[case("def s(q: str): 'Docs.'\nT = StructuredTool.from_function(s, None, 'real', 'Given.')", "real", "Given.")]
#[case("def s(q: str): 'Docs.'\nT = Tool('real', s, 'Given.')", "real", "Given.")]
fn names_by_position(#[case] text: &str, #[case] name: &str, #[case] given: &str) {
    let registry = module(&format!("from langchain_core.tools import tool, Tool, StructuredTool\n{text}\n"));
    assert_eq!(registry.names(), [name]);
    assert_eq!(description(&registry, name).as_deref(), Some(given));
}

/// Each of these makes a tool that cannot be named by reading; none is passed over.
#[rstest]
#[case::home_made("@tool('Gets the weather.')\ndef get(city: str): 'Note.'")]
#[case::wrapped("@tool\n@shout\ndef get(city: str): 'Note.'")]
#[case::call("def d(x: int): 'D.'\nserver.tool(d)")]
#[case::call_of_call("def d(x: int): 'D.'\nserver.tool(name='d3')(d)")]
#[case::added("def d(x: int): 'D.'\nserver.add_tool(d)")]
#[case::bound("server.add_tool(client.find)")]
#[case::agent("D = agent.as_tool(tool_name='d')")]
#[case::plain("def d(x: int): 'D.'\na = Agent(tools=[d])")]
#[case::nested("from x import StructuredTool\ndef f():\n    def i(): 'I.'\n    return StructuredTool.from_function(i)")]
#[case::autogen(
    "from autogen_core.tools import FunctionTool\ndef p(t: str): 'P.'\nt = FunctionTool(p, description='x')"
)]
#[case::pydantic("import openai\nT = openai.pydantic_function_tool(M)")]
#[case::remade("from x import BaseTool\nclass H(BaseTool):\n    name: str = 'h'\nT = H(name='other')")]
fn what_cannot_be_named_is_a_gap(#[case] text: &str) {
    let registry = module(text);
    assert_eq!(gaps(&registry).len(), 1, "{:?} {:?}", gaps(&registry), registry.names());
    assert!(gaps(&registry)[0].contains("the name of a tool is not known"));
}

#[test]
fn what_stands_between_a_function_and_its_tool() {
    let registry = module(
        "import functools\ndef keep(f):\n    @functools.wraps(f)\n    def inner(*a): return f(*a)\n    return inner\n\
         @tool\n@keep\ndef kept(x: int): 'Kept.'\n@tool(name='b')\n@shout\ndef lost(x: int): 'Lost.'\n",
    );
    assert_eq!(description(&registry, "kept").as_deref(), Some("Kept."));
    assert!(registry.tool("kept").unwrap().unknown.is_empty());
    assert!(unknown(&registry, "b", ToolField::Description).unwrap().contains("'shout' may change the function"));
    assert!(unknown(&registry, "b", ToolField::InputSchema).is_some());
}

#[test]
fn classes_that_are_tools() {
    let registry = module(
        "from langchain_core.tools import BaseTool\nD = 'module'\nclass Base(BaseTool):\n    pass\n\
         class G(Base):\n    name: str = 'g'\n    description: str = 'G.'\n\
         class H(BaseTool):\n    name: str = 'h'\n    description: str = 'One.'\n    description: str = 'Two.'\n\
         class I(BaseTool):\n    D = 'class'\n    name: str = 'i'\n    description: str = D\n\
         class J(BaseTool):\n    name: str = 'j'\n    description: str = 'J.'\n    def __init__(self):\n        self.description = 'K.'\n\
         class L(BaseTool):\n    name: str = 'l'\n    description: str = 'L.'\nl = L(description='M.')\n",
    );
    assert_eq!(description(&registry, "g").as_deref(), Some("G."));
    assert_eq!(description(&registry, "h").as_deref(), Some("Two."));
    assert!(unknown(&registry, "i", ToolField::Description).is_some());
    assert!(unknown(&registry, "j", ToolField::Description).is_some());
    assert!(unknown(&registry, "l", ToolField::Description).is_some());
}

#[rstest]
#[case::fastmcp_class("from fastmcp import FastMCP\ns = FastMCP('x')\n@s.tool\ndef t(m: M, n: int): 'T.'")]
#[case::fastmcp_excluded(
    "from fastmcp import FastMCP\ns = FastMCP('x')\n@s.tool(exclude_args=['n'])\ndef t(n: int = 1): 'T.'"
)]
#[case::pydantic_ai_class("from pydantic_ai import Agent\ns = Agent('x')\n@s.tool_plain\ndef t(m: M): 'T.'")]
#[case::pydantic_ai_prepared(
    "from pydantic_ai import Agent\ns = Agent('x')\n@s.tool_plain(prepare=p)\ndef t(m: int): 'T.'"
)]
#[case::agents(
    "from agents import FunctionTool\nT = FunctionTool(name='t', description='T.', params_json_schema={'type': 'object', 'properties': {'x': {}}})"
)]
#[case::config("@tool\ndef t(c: C): 'T.'")]
#[case::forbidding("@tool\ndef t(c: F): 'T.'")]
#[case::typed_enumeration("@tool\ndef t(c: E): 'T.'")]
fn schemas_that_a_library_makes_in_its_own_way(#[case] text: &str) {
    let registry = module(&format!(
        "from pydantic import BaseModel\nfrom enum import Enum\nclass M(BaseModel):\n    a: int\n\
         class C(BaseModel):\n    a: int\n    class Config:\n        extra = 'forbid'\nclass F(BaseModel, extra='forbid'):\n    a: int\n\
         class E(Enum):\n    A: str = 'a'\n{text}\n"
    ));
    assert!(unknown(&registry, "t", ToolField::InputSchema).is_some(), "{:?}", registry.tool("t"));
}

#[test]
fn imports_wherever_they_stand() {
    let folder = project(&[
        (
            "main.py",
            "import pkg.a\nfrom .server import mcp\nif X:\n    from pkg.b import b\ndef f():\n    from pkg import c\n",
        ),
        (
            "server.py",
            "from mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\nfrom . import more\n@mcp.tool()\ndef s(): 'S.'\n",
        ),
        ("more.py", "from .server import mcp\n@mcp.tool()\ndef m(): 'M.'\n"),
        ("pkg/__init__.py", "from ._version import version\n"),
        ("pkg/a.py", "@tool\ndef a(): 'A.'\n"),
        ("pkg/b.py", "@tool\ndef b(): 'B.'\n"),
        ("pkg/c.py", "@tool\ndef c(): 'C.'\n"),
    ]);
    let registry = read(&folder, "main.py");
    let mut names = registry.names();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c", "m", "s"]);
    assert_eq!(gaps(&registry), [""; 0]);
}

#[test]
fn a_star_after_an_assignment_binds_anew() {
    let folder = project(&[
        ("m.py", "D = 'own'\nfrom consts import *\nTOOLS = [{'name': 's', 'description': D, 'input_schema': {}}]\n"),
        ("consts.py", "D = 'star'\n"),
    ]);
    assert!(unknown(&read(&folder, "m.py"), "s", ToolField::Description).is_some());
}
