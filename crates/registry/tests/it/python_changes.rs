//! Python: what is written to a tool after it was made is never known by its old text.

use karat_core::registry::ToolField;
use rstest::rstest;

use crate::python::{description, gaps, module, unknown};

const TOOL: &str = "{'name': 'a', 'description': 'old', 'input_schema': {'type': 'object', 'properties': {}}}";

#[rstest]
#[case::item("TOOLS = [TOOL]\nTOOLS[0]['description'] = 'new'")]
#[case::sum("T = TOOL\nT['description'] += ' more'")]
#[case::update("T = TOOL\nT.update(description='new')")]
#[case::deleted("TOOLS = [TOOL, 1]\nfor t in TOOLS:\n    t.pop('description')")]
#[case::another_name("T = TOOL\nALIAS = T\nALIAS['description'] = 'new'")]
#[case::of_a_list("T = TOOL\nTOOLS = [T]\nfor i, t in enumerate(TOOLS):\n    t['description'] += str(i)")]
#[case::function("def footer(t): t['description'] += ' footer'\nT = TOOL\nfooter(T)")]
#[case::function_of_a_list("def footer(tools):\n    for t in tools: t['description'] += ' footer'\nfooter([TOOL])")]
#[case::class("class C:\n    definition = TOOL\n    definition['description'] = 'new'")]
#[case::of_a_class("class C:\n    definition = TOOL\nC.definition['description'] = 'new'")]
#[case::own("class C:\n    def __init__(self):\n        self.tool = TOOL\n        self.tool['description'] = 'new'")]
#[case::local("def f():\n    t = TOOL\n    t['description'] = 'new'\n    return [t]")]
#[case::attribute(
    "from mcp.types import Tool\nt = Tool(name='a', description='old', inputSchema={})\nt.description = 'new'"
)]
#[case::decorated("@tool\ndef a(x: int): 'old'\na.description = 'new'")]
#[case::added("TOOLS = []\nTOOLS.append(TOOL)\nTOOLS[0]['description'] = 'new'")]
#[case::comprehension("TOOLS = [TOOL]\n[t.update({'description': 'new'}) for t in TOOLS]")]
fn a_description_that_is_written_later(#[case] text: &str) {
    let registry = module(&text.replace("TOOL", TOOL).replace(&format!("{TOOL}S"), "TOOLS"));
    assert_eq!(description(&registry, "a"), None);
    let why = unknown(&registry, "a", ToolField::Description).unwrap();
    assert!(why.ends_with("is changed after it was made"), "{why}");
}

#[rstest]
#[case::property("T = TOOL\nT['input_schema']['properties']['q'] = {}")]
#[case::alias("T = TOOL\nprops = T['input_schema']['properties']\nprops['q'] = {}")]
#[case::required("T = TOOL\nT['input_schema'].setdefault('required', []).append('q')")]
fn a_schema_that_is_written_later(#[case] text: &str) {
    let registry = module(&text.replace("TOOL", TOOL));
    assert_eq!(description(&registry, "a").as_deref(), Some("old"));
    assert!(unknown(&registry, "a", ToolField::InputSchema).is_some());
    assert_eq!(registry.tool("a").unwrap().input_schema, None);
}

#[rstest]
#[case("TOOLS = [TOOL]\nfor t in TOOLS:\n    t['name'] = 'x_' + t['name']")]
#[case("TOOLS = [TOOL]\ndel TOOLS[0]")]
#[case("@tool\ndef a(): 'old'\na.name = 'b'")]
fn a_name_that_is_written_later_is_a_gap(#[case] text: &str) {
    let registry = module(&text.replace("TOOL", TOOL).replace(&format!("{TOOL}S"), "TOOLS"));
    assert_eq!(registry.names(), [""; 0]);
    assert!(gaps(&registry)[0].contains("the name of a tool is not known"), "{:?}", gaps(&registry));
}

/// What everybody writes changes nothing.
#[rstest]
#[case::cache("TOOLS = [TOOL]\nTOOLS[-1]['cache_control'] = {'type': 'ephemeral'}")]
#[case::more("TOOLS = [TOOL]\nTOOLS.append(2)\nTOOLS += [3]\nTOOLS.sort()")]
#[case::read("TOOLS = [TOOL]\nBY_NAME = {t['name']: t for t in TOOLS}\nfor t in TOOLS:\n    print(t['name'])")]
#[case::copy(
    "T = TOOL\nOTHER = {**T, 'name': 'b'}\nOTHER['description'] = 'b'\nTHIRD = dict(T, name='c')\nTHIRD['description'] = 'third'"
)]
#[case::other_scope("T = TOOL\ndef f(T):\n    T['description'] = 1\ndef g():\n    t = {}\n    t['name'] = 1")]
#[case::given("T = TOOL\nimport json\nprint(json.dumps(T))\nclient.create(tools=[T])")]
#[case::result("T = TOOL\nr = client.create(tools=[T])\nr['description'] = 'x'")]
fn what_changes_no_tool(#[case] text: &str) {
    let registry = module(&text.replace("TOOL", TOOL).replace(&format!("{TOOL}S"), "TOOLS"));
    assert_eq!(description(&registry, "a").as_deref(), Some("old"));
    assert!(registry.tool("a").unwrap().unknown.is_empty(), "{:?}", registry.tool("a"));
    assert_eq!(gaps(&registry), [""; 0]);
}
